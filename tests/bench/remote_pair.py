"""`python -m tests.bench.remote_pair ENGINE WAY WORKERS WHAT...`: one engine, measured.

True only here: a program of its own, so that neither engine is loaded beside the other.
The first worker calls the others, and prints what it measured as one line of JSON.

    ENGINE   ours, torch
    WAY      ours: ipc, tcp (encrypted), plain; torch: uv (TCP), shm
    WHAT     sync, pipelined, remote, tensor, spread
"""

import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from statistics import median
from time import perf_counter
from typing import Any

# Calls that are measured, after some that are not.
CALLS, WARM = 1500, 300
# Calls under way at once.
BURST = 2000
# Elements of float32: 64 MB.
ELEMENTS, TENSORS = 16 * 1024 * 1024, 8


def plus(x: int) -> int:
    """The callee."""
    return x + 1


def size(x: Any) -> int:
    """The callee of tensors."""
    return int(x.shape[0])


def times(run: Callable[[], object], count: int) -> list[float]:
    """How long each of several runs takes, in seconds."""
    took = []
    for _ in range(count):
        began = perf_counter()
        run()
        took.append(perf_counter() - began)
    return took


def measured(rpc: Any, ones: Callable[[int], Any], what: str, workers: int) -> float:
    """Microseconds, calls a second, or MB a second."""
    if what == "sync":
        run = lambda: rpc.rpc_sync("w1", plus, (1,))  # noqa: E731  # the thing measured
        times(run, WARM)
        return median(times(run, CALLS)) * 1e6
    if what == "remote":
        made = lambda: rpc.remote("w1", plus, (1,)).to_here()  # noqa: E731  # likewise
        times(made, WARM)
        return median(times(made, CALLS)) * 1e6
    if what == "tensor":
        x = ones(ELEMENTS)
        sent = lambda: rpc.rpc_sync("w1", size, (x,))  # noqa: E731  # likewise
        times(sent, 2)
        return ELEMENTS * 4 / 1e6 / median(times(sent, TENSORS))
    # Of one other worker, or of all of them in turn.
    names = [f"w{n}" for n in range(1, workers if what == "spread" else 2)]

    def burst() -> None:
        futures = [
            rpc.rpc_async(names[n % len(names)], plus, (n,)) for n in range(BURST)
        ]
        for each in futures:
            each.wait()

    burst()
    return BURST / median(times(burst, 4))


def ours(way: str, folder: str, rank: int, workers: int, name: str) -> Any:
    """A worker of ours."""
    from everyorder.runtime import rpc

    port = os.environ["MASTER_PORT"]
    address = f"ipc://{folder}/w" if way == "ipc" else f"tcp://127.0.0.1:{port}"
    if way == "plain":
        _without_keys()
    # What is measured is no end of a worker, however busy the machine is.
    patient = rpc.Settings(dead=60.0, expire=70.0)
    options = rpc.RpcBackendOptions(init_method=address, session=patient)
    rpc.init_rpc(name, rank=rank, world_size=workers, rpc_backend_options=options)
    return rpc


def _without_keys() -> None:
    """Have workers listen and meet without keys, which no option does."""
    from everyorder.runtime.rpc.agent import rendezvous
    from everyorder.runtime.rpc.transport.sockets import SocketTransport

    def plain(address: str, options: Any) -> Any:
        return SocketTransport(address, None, unprotected=True)

    rendezvous._transport = plain
    rendezvous._keys = lambda address, options: None


def torchs(way: str, folder: str, rank: int, workers: int, name: str) -> Any:
    """A worker of torch."""
    from torch.distributed import rpc

    options = rpc.TensorPipeRpcBackendOptions(
        init_method=f"file://{folder}/store", _transports=[way]
    )
    rpc.init_rpc(name, rank=rank, world_size=workers, rpc_backend_options=options)
    return rpc


def work(
    engine: str, way: str, folder: str, rank: int, workers: int, what: Any
) -> None:
    """One process, from its start to its end."""
    make = ours if engine == "ours" else torchs
    rpc = make(way, folder, rank, workers, f"w{rank}")
    if rank == 0:
        library: Any = import_module(
            "everyorder.runtime" if engine == "ours" else "torch"
        )
        told = {each: measured(rpc, library.ones, each, workers) for each in what}
        print(json.dumps(told), flush=True)
    rpc.shutdown()


def main(arguments: list[str]) -> int:
    """Start the processes and wait for them; 0 if all ended well."""
    engine, way, workers, *what = arguments
    os.environ.setdefault("MASTER_PORT", "29581")
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            context.Process(
                target=work, args=(engine, way, folder, n, int(workers), what)
            )
            for n in range(int(workers))
        ]
        for each in processes:
            each.start()
        for each in processes:
            each.join()
    return max(abs(each.exitcode or 0) for each in processes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
