"""Clocks that jump: only the monotonic one counts, and a gap of it ends in an error.

the clock of the day jumps      nothing happens
the monotonic clock has a gap   nothing, if the other processes answer; else as after a
                                long silence: calls fail, references are dead, and the
                                worker is a member again
it stands still meanwhile       as a machine that sleeps sees it: the others have
                                given the worker up, and it is told when it wakes
"""

import ast
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from everyorder.runtime import rpc
from everyorder.runtime.errors.rpc import RpcError, RpcMisuse, WorkerLost
from everyorder.runtime.rpc.agent import Agent, current_agent
from everyorder.runtime.rpc.protocol.events import Settings
from tests.rpc.faults import bodies
from tests.rpc.faults.test_faults import asked, stop_running
from tests.rpc.worlds import HASTY, SECONDS, Process, processes

ROOT = Path(__file__).parents[3]
# Who reads which clock.  The session is told the time by `driver`.
READ = {
    "rpc/agent/outgoing_calls.py": {"monotonic"},
    "rpc/agent/driver.py": {"monotonic"},
    "rpc/agent/rendezvous.py": {"monotonic"},
    "rpc/api/lifecycle.py": {"monotonic"},
    "rpc/api/gatherings.py": {"monotonic"},
    "rpc/api/profiling.py": {"perf_counter_ns"},
    "rpc/transport/interface.py": {"monotonic"},
    "rpc/transport/receiver.py": {"monotonic"},
    "rpc/transport/sockets.py": {"monotonic"},
}
# What an error may be, where the owner of a value has given it up.
DEAD = ("ReferenceDead", "WorkerLost")
# Late enough for busy machines; who is lost asks again after `connect`.
MORTAL = Settings(heartbeat=0.3, dead=5.0, expire=7.0, connect=2.0)
KEPT: list[Any] = []


def clocks(source: str) -> set[str]:
    """What of the modules of clocks a module names."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module in ("time", "datetime"):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.Import):
            found |= {each.name for each in node.names} & {"time", "datetime"}
    return found


def test_only_the_monotonic_clock_is_read() -> None:
    runtime = ROOT / "runtime"
    paths = [
        *(runtime / "rpc").rglob("*.py"),
        *(runtime / "futures").rglob("*.py"),
        runtime / "base" / "locks.py",
    ]
    found = {
        path.relative_to(runtime).as_posix(): clocks(path.read_text(encoding="utf-8"))
        for path in paths
    }
    assert {path: names for path, names in found.items() if names} == READ
    assert clocks("import time\nfrom datetime import timezone") == {"time", "timezone"}


@pytest.mark.slow
def test_the_clock_of_the_day_jumps() -> None:
    """In all processes, each time that it is read."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.rpc.faults.jumping"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=2 * SECONDS,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, "300\nas ever\n"), run.stderr


def follow(clock: Callable[[], float]) -> None:
    """Have everything of workers in this process go by a clock."""
    for name, module in [*sys.modules.items()]:
        if name.startswith("everyorder.runtime.rpc.") and hasattr(module, "monotonic"):
            setattr(module, "monotonic", clock)  # noqa: B010  # few modules have it


def jump(seconds: float) -> None:
    """Have the monotonic clock be later, all at once."""
    follow(lambda: time.monotonic() + seconds)


def go_right() -> None:
    follow(time.monotonic)


def sleep_with_the_machine() -> None:
    """Have the monotonic clock stand still while nobody reads it for long."""
    last, told = time.monotonic(), 0.0
    began = last

    def clock() -> float:
        nonlocal last, told
        now = time.monotonic()
        told += min(now - last, 0.05)
        last = now
        return began + told

    follow(clock)


def keep_what(worker: str) -> None:
    """Keep a reference to a value of another worker, and a call that is not done."""
    KEPT.append(rpc.remote(worker, bodies.double, args=(4,)))
    assert KEPT[0].to_here() == 8
    KEPT.append(rpc.rpc_async(worker, bodies.hold, args=(1,), timeout=0))


def became_of_it() -> tuple[str, str]:
    """The class of error that the kept reference and the kept call give."""
    reference, future = KEPT
    found = []
    for ask in (future.wait, reference.to_here):
        try:
            found.append(str(ask(SECONDS)))
        except RpcError as error:
            found.append(type(error).__name__)
    KEPT.clear()
    return found[1], found[0]


def calls_work(agent: Agent, worker: str) -> bool:
    """Whether a worker can be called, in the end; any other answer is a wrong one."""

    def works() -> bool:
        try:
            return bool(rpc.rpc_sync(worker, bodies.double, args=(21,)) == 42)
        except (RpcMisuse, WorkerLost) as error:
            if error.code not in ("UnknownWorker", "WorkerLost"):
                raise
            return False

    return agent.wait_until(works, SECONDS)


def calls_back(worker: str) -> int:
    for _ in range(200):
        try:
            return int(rpc.rpc_sync(worker, bodies.double, args=(21,)))
        except (RpcMisuse, WorkerLost) as error:
            if error.code not in ("UnknownWorker", "WorkerLost"):
                raise
            bodies.GATE.wait(0.1)
    raise AssertionError("it is no member any more")


@pytest.fixture
def held() -> Iterator[None]:
    """What is held here is let go in the end; nobody inherits an open gate."""
    bodies.GATE.clear()
    yield
    bodies.open_gate()
    bodies.GATE.clear()


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("whose", ["the keeper", "another"])
def test_a_gap_of_the_monotonic_clock_is_a_long_silence(whose: str) -> None:
    """Whoever has it gives all up, and comes back; nobody gets what is not so."""
    with processes("fork", ["w0", "w1"], settings=MORTAL) as (agent, (other,)):
        without_pulses()
        other.do(without_pulses)
        other.do(keep_what, "w0")
        rref = rpc.remote("w1", bodies.double, args=(5,))
        assert rref.to_here() == 10
        held = asked("w1", bodies.hold, range(5), timeout=0)
        try:
            _jump(whose, other)
            assert set(held.wait().values()) == {WorkerLost}
            reference, call = other.do(became_of_it)
            assert (reference in DEAD, call) == (True, "WorkerLost"), reference
            with pytest.raises(RpcError):
                rref.to_here()
            assert calls_work(agent, "w1")
            assert other.do(calls_back, "w0") == 42
            done = asked("w1", bodies.double, range(50)).wait()
            assert done == {number: 2 * number for number in range(50)}
        finally:
            go_right()


def without_pulses() -> None:
    """Let only packets tell who lives."""
    current_agent("test").transport.alive = dict  # type: ignore[method-assign]  # nobody


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("whose", ["the keeper", "another"])
def test_a_gap_in_which_all_processes_ran_is_a_pause(whose: str) -> None:
    with processes("fork", ["w0", "w1"], settings=MORTAL) as (agent, (other,)):
        other.do(keep_what, "w0")
        rref = rpc.remote("w1", bodies.double, args=(5,))
        assert rref.to_here() == 10
        held = asked("w1", bodies.hold, range(5), timeout=0)
        assert agent.wait_until(lambda: bool(agent.transport.alive()), SECONDS)
        assert other.do(knows_who_runs)
        try:
            _jump(whose, other)
            # Each of them has looked at its clock since.
            assert rpc.rpc_sync("w1", bodies.double, args=(1,), timeout=0) == 2
            assert rref.to_here(0) == 10
            other.do(bodies.open_gate)
            assert held.wait() == {number: number for number in range(5)}
            bodies.open_gate()
            assert other.do(became_of_it) == ("8", "1")
        finally:
            go_right()


def knows_who_runs() -> bool:
    agent = current_agent("test")
    return agent.wait_until(lambda: bool(agent.transport.alive()), SECONDS)


def _jump(whose: str, other: Process) -> None:
    if whose == "another":
        other.do(jump, 1000.0)
    else:
        jump(1000.0)


@pytest.mark.usefixtures("held")
def test_a_machine_that_slept_is_told_what_it_missed() -> None:
    """Its own clock says that nothing has happened."""
    with processes("fork", ["w0", "w1"], settings=HASTY) as (agent, (other,)):
        other.do(sleep_with_the_machine)
        other.do(keep_what, "w0")
        try:
            stop_running(other)
            # What it referred to is freed while it sleeps.
            assert agent.wait_until(
                lambda: len(agent.nodes()) == 1 and not agent._owned, SECONDS
            )
            other.signal(signal.SIGCONT)
            reference, call = other.do(became_of_it)
            assert (reference in DEAD, call) == (True, "WorkerLost"), reference
            assert calls_work(agent, "w1")
            assert other.do(calls_back, "w0") == 42
        finally:
            other.signal(signal.SIGCONT)


def test_what_a_clock_that_stands_still_says() -> None:
    """The clock of the test above does not count what nobody was there to see."""
    real = [0.0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: real[0])
        patch.setattr(sys.modules[__name__], "follow", lambda clock: KEPT.append(clock))
        sleep_with_the_machine()
        clock = KEPT.pop()
        said = []
        for real[0] in (0.01, 0.02, 100.0, 100.01):
            said.append(round(clock(), 3))
    assert said == [0.01, 0.02, 0.07, 0.08]
