"""Workers whose interpreter lock is busy for longer than a worker may be silent."""

import ctypes

from everyorder.runtime import rpc
from everyorder.runtime.rpc.agent import Agent
from everyorder.runtime.rpc.protocol.events import Lost, Settings
from everyorder.runtime.rpc.transport import LocalTransport
from everyorder.runtime.rpc.transport.addresses import Keys
from tests.rpc.faults import bodies
from tests.rpc.transport.inbox import folder
from tests.rpc.worlds import Process, processes, threads

MORTAL = Settings(heartbeat=0.3, dead=3.0, expire=4.0, connect=3.0)
BUSY = 7.0
KEPT: list[rpc.RRef[int]] = []


def hold_the_lock(seconds: float) -> int:
    """Call C code that does not release the interpreter lock."""
    return int(ctypes.PyDLL(None).usleep(int(seconds * 1e6)))


def keep(worker: str) -> int:
    KEPT.append(rpc.remote(worker, bodies.double, args=(4,)))
    return KEPT[0].to_here()


def fetch_kept() -> int:
    return KEPT.pop().to_here()


def noted(agent: Agent) -> list[str]:
    """The workers that are lost from now on."""
    lost: list[str] = []
    handle = agent.handlers[Lost]

    def note(event: Lost) -> None:
        lost.append(event.node.name)
        handle(event)

    agent.handlers[Lost] = note
    return lost


def busy_for_long(agent: Agent, others: list[Process]) -> None:
    lost = noted(agent)
    assert others[0].do(keep, "w0") == 8
    mine = rpc.remote("w1", bodies.double, args=(5,))
    assert mine.to_here() == 10
    busy = rpc.rpc_async("w1", hold_the_lock, args=(BUSY,), timeout=0)
    waiting = rpc.rpc_async("w1", bodies.double, args=(21,), timeout=0)
    assert (busy.wait(), waiting.wait()) == (0, 42)
    assert mine.to_here() == 10
    assert others[0].do(fetch_kept) == 8
    assert lost == []


def test_who_is_busy_keeps_its_references_and_loses_none() -> None:
    with processes("fork", ["w0", "w1"], settings=MORTAL) as (agent, others):
        busy_for_long(agent, others)


def test_who_is_busy_behind_keys_keeps_its_references() -> None:
    """Its keys are asked for in the interpreter, and the connections are older."""
    with folder() as home:
        keys = Keys.create(f"{home}/keys").folder
        with processes("fork", ["w0", "w1"], settings=MORTAL, keys=keys) as (
            agent,
            others,
        ):
            busy_for_long(agent, others)


def test_workers_of_one_process_are_busy_together() -> None:
    with threads("a", "b", settings=MORTAL) as (a, b):
        lost = noted(a) + noted(b)
        hold_the_lock(MORTAL.expire + 1)
        assert a.wait_until(lambda: b.node in a.nodes(), 1.0)
        assert not a.wait_until(lambda: len(a.nodes()) < 2, MORTAL.heartbeat)
        assert lost == []
        here = LocalTransport("busy-here")
        assert here.endpoint in here.alive()
        here.close()
        assert here.endpoint not in here.alive()
