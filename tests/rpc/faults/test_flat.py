"""An hour's worth of calls leaves nothing behind: no entry, no file, no memory.

What is made in rounds is of all kinds: calls that give, fail and come too late,
references that are made, passed on, given back and dropped, large payloads.
"""

import pytest

from everyorder.runtime import rpc
from everyorder.runtime.errors.rpc import RpcTimeout
from tests.rpc.faults import bodies
from tests.rpc.worlds import SECONDS, Process, processes

# A worker that is asked 140 times a second is asked so often in an hour.
HOUR = 500_000
# Of memory: less than 34 bytes a call.  Of entries: ended deadlines are cleared out a
# thousand at a time.
BYTES, ENTRIES = 16 << 20, 2500


def one_round() -> int:
    """All kinds of calls; how many there were."""
    begun = [rpc.rpc_async("w1", bodies.double, args=(n,)) for n in range(800)]
    failing = [rpc.rpc_async("w1", bodies.fail, args=(n,)) for n in range(50)]
    late = [
        rpc.rpc_async("w1", bodies.double, args=(n,), timeout=0.001) for n in range(20)
    ]
    made = [rpc.remote("w1", bodies.double, args=(n,)) for n in range(40)]
    assert [each.wait() for each in begun] == [2 * n for n in range(800)]
    for failed in failing:
        with pytest.raises(ValueError, match="ValueError"):
            failed.wait()
    for each in late:
        try:
            each.wait()
        except RpcTimeout:
            continue
    assert [each.to_here() for each in made] == [2 * n for n in range(40)]
    shared = [rpc.rpc_async("w1", bodies.fetched, args=(each,)) for each in made[:20]]
    assert [each.wait() for each in shared] == [2 * n for n in range(20)]
    own = [rpc.RRef(n) for n in range(10)]
    back = [rpc.rpc_sync("w1", bodies.returned, args=(each,)) for each in own]
    assert [each.local_value() for each in back] == [*range(10)]
    assert rpc.rpc_sync("w1", bodies.length, args=(bytes(1 << 20),)) == 1 << 20
    return len(begun) + len(failing) + len(late) + 2 * len(made) + 20 + 10 + 1


def rounds(calls: int) -> int:
    made = 0
    while made < calls:
        made += one_round()
    return made


def quiet(agent: object, other: Process) -> None:
    """Wait until nothing is under way on either side, and nobody refers to anything."""
    here = there = {"": 1}

    def is_quiet() -> bool:
        nonlocal here, there
        here, there = bodies.left(), other.do(bodies.left)
        return not here and not there

    assert agent.wait_until(is_quiet, SECONDS), (here, there)  # type: ignore[attr-defined]  # an agent


@pytest.mark.parametrize(
    "calls",
    [
        pytest.param(20_000, marks=pytest.mark.slow),
        pytest.param(HOUR, marks=pytest.mark.nightly),
    ],
)
def test_nothing_is_left_of_many_calls(calls: int) -> None:
    with processes("spawn", ["w0", "w1"]) as (agent, (other,)):

        def looked() -> list[tuple[dict[str, int], int, int]]:
            quiet(agent, other)
            return [
                (do(bodies.tables), do(bodies.memory), do(bodies.files))
                for do in (lambda body: body(), other.do)
            ]

        rounds(5_000)
        before = looked()
        assert rounds(calls) >= calls
        for (old, was, opened), (new, now, open_now) in zip(
            before, looked(), strict=True
        ):
            grown = {
                path: (old.get(path, 0), size)
                for path, size in new.items()
                if size > old.get(path, 0) + ENTRIES
            }
            assert grown == {}
            assert len(new) > 30
            assert (now - was < BYTES, open_now) == (True, opened), now - was


def test_an_entry_for_each_call_would_be_seen() -> None:
    """What a worker keeps of each call is in one of the tables that are looked at."""
    bodies.GATE.clear()
    with processes("fork", ["w0", "w1"]) as (agent, (other,)):
        before = bodies.tables(), other.do(bodies.tables)
        held = [rpc.rpc_async("w1", bodies.hold, args=(n,)) for n in range(50)]
        made = [rpc.RRef(n) for n in range(50)]
        assert agent.wait_until(
            lambda: other.do(bodies.tables)["agent._jobs"] >= 50, SECONDS
        )
        after = bodies.tables(), other.do(bodies.tables)
        grown = [
            {path for path, size in new.items() if size >= old.get(path, 0) + 50}
            for old, new in zip(before, after, strict=True)
        ]
        assert {"agent._pending", "agent._owned", "agent.session._calls._outs"} <= (
            grown[0]
        )
        assert {"agent._jobs", "agent.session._calls._ins"} <= grown[1]
        other.ask(bodies.open_gate)
        for each in held:
            each.wait()
        del made, held, each
        quiet(agent, other)
