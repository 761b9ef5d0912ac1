"""A parameter server: one process has the parameters, three others train them.

The server keeps a small model and its optimizer.  Each trainer has its part of the
data; in every step it fetches the parameters, computes gradients on its own, and sends
them.  The server waits for the gradients of all trainers, but no thread of it does:
`step` is executed asynchronously, and the last trainer of a round completes the future
that all of them wait for.

Run as it is (`python -m tests.examples.parameter_server`), it starts four processes,
prints how the loss falls, and what was learned: y = 3 a - 2 b + 0.5.
"""

import multiprocessing
import sys
import tempfile
from threading import Lock

from everyorder import runtime
from everyorder.runtime import rpc
from everyorder.runtime.futures import Future

SERVER = "server"
TRAINERS = ("trainer0", "trainer1", "trainer2")
ROUNDS, RATE, BATCH = 120, 0.1, 32

Weights = list[runtime.Tensor]


class Server:
    """Parameters, and the round that the trainers are in."""

    def __init__(self, trainers: int) -> None:
        self.trainers = trainers
        self.weights: Weights = [runtime.zeros(2, 1), runtime.zeros(1)]
        self.lock = Lock()
        self.sums: Weights = []
        self.arrived = 0
        self.losses: list[float] = []
        self.loss = 0.0
        self.round: Future[Weights] = Future()

    def parameters(self) -> Weights:
        """The parameters of now."""
        return self.weights

    def history(self) -> list[float]:
        """The loss of each round, before its step."""
        return self.losses

    @staticmethod
    @rpc.functions.async_execution
    def step(
        server: "rpc.RRef[Server]", gradients: Weights, loss: float
    ) -> Future[Weights]:
        """Add gradients of one trainer; the parameters after those of all of them."""
        return server.local_value().take(gradients, loss)

    def take(self, gradients: Weights, loss: float) -> Future[Weights]:
        """A future of the next parameters, which the last trainer completes."""
        with self.lock:
            pairs = zip(self.sums, gradients, strict=True)
            self.sums = [x + y for x, y in pairs] if self.sums else gradients
            self.loss += loss
            self.arrived += 1
            future = self.round
            if self.arrived == self.trainers:
                self._finish()
        return future

    def _finish(self) -> None:
        rate = RATE / self.trainers
        pairs = zip(self.weights, self.sums, strict=True)
        self.weights = [w - rate * g for w, g in pairs]
        self.losses.append(self.loss / self.trainers)
        done, self.round = self.round, Future()
        self.sums, self.loss, self.arrived = [], 0.0, 0
        done.set_result(self.weights)


def batch(seed: int) -> tuple[runtime.Tensor, runtime.Tensor]:
    """Points, [batch, 2], and their values, [batch, 1], the same for a seed."""
    drawn = runtime.Generator().manual_seed(seed)
    x = runtime.rand(BATCH, 2, generator=drawn) * 2 - 1
    return x, x @ runtime.tensor([[3.0], [-2.0]]) + 0.5


def train(server: "rpc.RRef[Server]", seed: int) -> int:
    """Train on a part of the data of one's own; how many steps were made."""
    x, y = batch(seed)
    weights = server.rpc_sync().parameters()
    for _ in range(ROUNDS):
        leaves = [each.detach().requires_grad_() for each in weights]
        matrix, bias = leaves
        loss = ((x @ matrix + bias - y) ** 2).mean()
        loss.backward()
        gradients = [each.grad for each in leaves]
        given = (server, gradients, loss.item())
        weights = rpc.rpc_sync(server.owner(), Server.step, given)
    return ROUNDS


def lead() -> tuple[list[float], list[float]]:
    """Have the trainers train: the losses, and what was learned."""
    server = rpc.RRef(Server(len(TRAINERS)))
    futures = [
        rpc.rpc_async(name, train, (server, seed), timeout=0)
        for seed, name in enumerate(TRAINERS)
    ]
    assert [each.wait() for each in futures] == [ROUNDS] * len(TRAINERS)
    matrix, bias = server.local_value().weights
    return server.local_value().losses, [*matrix.flatten().tolist(), *bias.tolist()]


def work(name: str, rank: int, folder: str) -> None:
    """One process, from its start to its end."""
    # Four processes on a busy machine are slow, and not lost.
    patient = rpc.Settings(dead=30.0, expire=40.0)
    options = rpc.RpcBackendOptions(init_method=f"ipc://{folder}/w", session=patient)
    rpc.init_rpc(
        name, rank=rank, world_size=1 + len(TRAINERS), rpc_backend_options=options
    )
    if name == SERVER:
        losses, learned = lead()
        for step in range(0, ROUNDS, ROUNDS // 4):
            print(f"round {step:3}: loss {losses[step]:.4f}")
        print(f"round {ROUNDS:3}: loss {losses[-1]:.4f}")
        shown = [f"{value:.2f}" for value in learned]
        print(f"learned: y = {shown[0]} a + {shown[1]} b + {shown[2]}")
    rpc.shutdown()


def main() -> int:
    """Start the processes and wait for them; 0 if all ended well."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            context.Process(target=work, args=(name, rank, folder))
            for rank, name in enumerate((SERVER, *TRAINERS))
        ]
        for each in processes:
            each.start()
        for each in processes:
            each.join()
    return max(abs(each.exitcode or 0) for each in processes)


if __name__ == "__main__":
    sys.exit(main())
