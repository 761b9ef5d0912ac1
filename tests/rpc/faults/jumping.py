"""A program whose clock of the day jumps, in each of its processes.

It is run by `test_clock_jumps`; processes that it spawns load it again, and jump, too.
"""

import time
from random import Random

_DRAWN = Random(1)
READS = [0]


def jumping() -> float:
    """Any time within a century, a different one each time."""
    READS[0] += 1
    return _DRAWN.uniform(0, 3e9)


# Before anything else could get hold of them.
time.time = jumping
time.time_ns = lambda: int(jumping() * 1e9)


def reads() -> int:
    """How often the clock of the day was read in this process."""
    time.time()
    return READS[0]


def run() -> None:
    """Calls, references and deadlines: all as if nothing had jumped."""
    from everyorder.runtime import rpc
    from everyorder.runtime.errors.rpc import RpcTimeout
    from tests.rpc.faults import bodies
    from tests.rpc.worlds import options

    with rpc.local_workers(["a", "b"], how="spawn", options=options()):
        before = rpc.rpc_sync("b", reads)
        futures = [rpc.rpc_async("b", bodies.double, args=(n,)) for n in range(500)]
        held = rpc.rpc_async("b", bodies.hold, args=(1,))
        made = [rpc.remote("b", bodies.double, args=(n,)) for n in range(50)]
        assert [each.wait() for each in futures] == [2 * n for n in range(500)]
        assert [each.to_here() for each in made] == [2 * n for n in range(50)]
        try:
            rpc.rpc_sync("b", bodies.hold, args=(2,), timeout=0.3)
        except RpcTimeout as error:
            print(error.milliseconds)
        assert not held.done()
        rpc.rpc_sync("b", bodies.open_gate)
        assert held.wait() == 1
        # It does jump.
        assert rpc.rpc_sync("b", reads) > before > 0
    print("as ever")


if __name__ == "__main__":
    run()
