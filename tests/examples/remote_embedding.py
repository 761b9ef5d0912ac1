"""A sharded embedding on four processes: promised, looked up where its rows are.

Three workers have a part of the rows of a table each; they keep their weights, and the
model has references to them.  A look-up asks all three at once, each sums the rows that
it has, and the parts are added.  The model has work of its own meanwhile, so the sparse
half gives an `Await`: nobody is asked before the first attribute of the result is.

All of it is compiled: the function that the shards run, the module with its references,
the remote calls and the promise.

Run as it is (`python -m tests.examples.remote_embedding`), it starts four processes,
and prints in which order the halves run, and that one table would give the same.
"""

import sys
from collections.abc import Sequence

from everyorder import runtime
from everyorder.runtime import jit, rpc
from everyorder.runtime.futures import Future

Await = runtime.futures.Await

MODEL = "model"
SHARDS = ("shard0", "shard1", "shard2")
ROWS, WIDTH = 7, 2


@jit.script
def part(
    weight: rpc.RRef[runtime.Tensor], first: int, rows: runtime.Tensor
) -> runtime.Tensor:
    """On the owner of a shard: the sums of its rows, [samples, width]."""
    table = weight.local_value()
    count = table.shape[0]
    here = rows - first
    is_here = (here >= 0) & (here < count)
    found = runtime.embedding(table, here.clamp(0, count - 1))
    return runtime.where(is_here.unsqueeze(-1), found, runtime.zeros_like(found)).sum(1)


class Pooled:
    """The sums of the rows of each sample."""

    def __init__(self, vectors: runtime.Tensor) -> None:
        self.vectors = vectors


class Embedding(runtime.Module):
    """A table whose rows lie on other workers, `size` of them on each."""

    shards: list[rpc.RRef[runtime.Tensor]]

    def __init__(self, shards: list[rpc.RRef[runtime.Tensor]], size: int) -> None:
        super().__init__()
        self.shards = shards
        self.size = size

    def look_up(self, rows: runtime.Tensor) -> Pooled:
        """Ask all shards at once, and add what they give."""
        print("the shards are asked")
        parts: list[Future[runtime.Tensor]] = []
        for place in range(len(self.shards)):
            shard = self.shards[place]
            first = place * self.size
            parts.append(rpc.rpc_async(shard.owner(), part, (shard, first, rows)))
        total = jit.wait(parts[0])
        for place in range(1, len(parts)):
            total = total + jit.wait(parts[place])
        return Pooled(total)

    def forward(self, rows: runtime.Tensor) -> Await[Pooled]:
        """Promise to ask them."""
        return jit.awaitable(self.look_up, rows)


class Model(runtime.Module):
    """A dense half, and the embedding."""

    def __init__(self, sparse: Embedding) -> None:
        super().__init__()
        self.sparse = sparse
        self.dense = runtime.Parameter(runtime.ones(3, WIDTH))

    def forward(self, x: runtime.Tensor, rows: runtime.Tensor) -> runtime.Tensor:
        """Scores, [samples]."""
        pooled = self.sparse(rows)
        print("the dense half runs")
        hidden = runtime.relu(x @ self.dense)
        scores: runtime.Tensor = (hidden * pooled.vectors).sum(1)
        return scores


def weights(first: int, size: int) -> runtime.Tensor:
    """The rows of a shard, [size, width]."""
    return runtime.arange(float(ROWS * WIDTH)).reshape(ROWS, WIDTH)[
        first : first + size
    ]


def made(names: Sequence[str]) -> Model:
    """A model whose table lies on the workers of these names."""
    size = -(-ROWS // len(names))
    shards = [
        rpc.remote(name, weights, (place * size, size))
        for place, name in enumerate(names)
    ]
    return Model(Embedding(shards, size))


SAMPLES = (runtime.ones(2, 3), runtime.tensor([[0, 6], [3, 2]]))


def run() -> None:
    """Run the model as a program, beside one table."""
    model = jit.script(made(SHARDS))
    print(model(*SAMPLES).tolist())
    whole = runtime.embedding(weights(0, ROWS), SAMPLES[1]).sum(1)
    print((whole * 3).sum(1).tolist(), "of one table")


def main() -> int:
    """Start the processes, run, and end them."""
    with rpc.local_workers([MODEL, *SHARDS], how="spawn"):
        run()
    return 0


if __name__ == "__main__":
    # By its own name, under which the other processes know it.
    from tests.examples import remote_embedding

    sys.exit(remote_embedding.main())
