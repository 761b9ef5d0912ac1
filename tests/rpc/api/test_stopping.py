"""Stopping: in agreement, in time, at once; who is missing, and what is left over."""

import operator
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from everyorder.runtime.errors.rpc import (
    NotInitialized,
    ReferenceDead,
    RpcMisuse,
    RpcTimeout,
    WorkerLost,
)
from everyorder.runtime.rpc.agent import (
    Agent,
    CallRequest,
    RpcBackendOptions,
    current_agent,
    in_worker_slot,
)
from everyorder.runtime.rpc.api import lifecycle as chapter
from everyorder.runtime.rpc.api.lifecycle import init_rpc, shutdown, stop
from tests.coded import code, coded
from tests.rpc.worlds import (
    HASTY,
    SECONDS,
    at_once,
    place,
    processes,
    stopped,
    threads,
)

ShutdownTimeout = coded(RpcTimeout, "ShutdownTimeout")

ROOT = Path(__file__).parents[3]
ADD = CallRequest(operator.add, (1, 2))


def living(name: str) -> list[str]:
    """The threads of a worker of that name."""
    return [each.name for each in threading.enumerate() if each.name.startswith(name)]


def test_all_stop_together_and_nothing_is_left() -> None:
    with threads("one", "two", "three") as agents:
        for agent in agents:
            agent.call_and_wait(agents[0].node, ADD, timeout=SECONDS)
        seats = [agent.slot for agent in agents]
        stopped(*agents)
        assert [seat.agent for seat in seats] == [None] * 3
        assert living("one ") + living("two ") + living("three ") == []
        for agent in agents:
            with pytest.raises(NotInitialized):
                agent.call(agents[0].node, ADD, timeout=SECONDS)


def test_who_stops_serves_until_all_do() -> None:
    with threads("a", "b") as (a, b):
        thread = threading.Thread(target=stop, args=(b,))
        thread.start()
        assert a.wait_until(lambda: a.missing() == ("a",), SECONDS)
        assert a.call_and_wait(b.node, ADD, timeout=SECONDS) == 3
        assert thread.is_alive()
        stop(a, timeout=SECONDS)
        thread.join(SECONDS)
        assert b.ended


def slowly(event: threading.Event) -> None:
    assert event.wait(SECONDS)


EVENT = threading.Event()


def wait_for_event() -> str:
    assert EVENT.wait(SECONDS)
    return current_agent("test").name


def call_back(name: str) -> int:
    """Wait, then call somebody who may have wanted to stop long ago."""
    wait_for_event()
    agent = current_agent("test")
    return int(agent.call_and_wait(agent.find(name), ADD, timeout=SECONDS))


def test_what_runs_is_finished_first() -> None:
    EVENT.clear()
    with threads("a", "b") as (a, b):
        future = a.call(b.node, CallRequest(call_back, ("a",)), timeout=SECONDS)
        ending = [threading.Thread(target=stop, args=(each,)) for each in (a, b)]
        for thread in ending:
            thread.start()
        for thread in ending:
            thread.join(0.2)
            assert thread.is_alive()
        EVENT.set()
        for thread in ending:
            thread.join(SECONDS)
        assert future.wait(SECONDS) == 3
        assert a.ended
        assert b.ended


def test_who_is_missing_is_named_and_one_stops_all_the_same() -> None:
    with threads("a", "b", "c") as (a, b, c):

        def first(agent: Agent) -> RpcTimeout:
            with pytest.raises(ShutdownTimeout) as error:
                stop(agent, timeout=0.3)
            return error.value

        errors = at_once(lambda: first(a), lambda: first(c))
        assert ("b",) in [error.missing for error in errors]
        assert isinstance(errors[0], TimeoutError)
        assert a.ended
        assert c.ended
        assert a.slot.agent is None
        # The one that is left stops by itself.
        stop(b, timeout=SECONDS)


def test_calls_in_flight_may_be_what_is_missing() -> None:
    EVENT.clear()
    with threads("a") as (a,):
        future = a.call(a.node, CallRequest(wait_for_event), timeout=SECONDS)
        with pytest.raises(ShutdownTimeout):
            stop(a, timeout=0.2)
        with pytest.raises(WorkerLost):
            future.wait(SECONDS)
        EVENT.set()


@pytest.mark.parametrize(("serves", "level"), [(False, "WARNING"), (True, "INFO")])
def test_those_who_are_missing_are_told_while_one_waits(
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    serves: bool,
    level: str,
) -> None:
    """Who is there to wait for them does not tell everybody."""
    caplog.set_level("INFO", "everyorder.runtime.rpc")
    monkeypatch.setattr(chapter, "_LOG_SECONDS", 0.05)
    with threads("a", "b") as (a, b):
        thread = threading.Thread(target=stop, args=(a,), kwargs={"serves": serves})
        thread.start()
        told = level, "a waits to shut down for b"
        assert b.wait_until(
            lambda: told in [(each.levelname, each.message) for each in caplog.records],
            SECONDS,
        )
        stop(b, timeout=SECONDS)
        thread.join(SECONDS)


def test_at_once_nobody_is_waited_for() -> None:
    with threads("a", "b") as (a, b):
        stop(a, graceful=False)
        assert b.wait_until(lambda: len(b.nodes()) == 1, SECONDS)
        # Who is gone is not waited for.
        stop(b, timeout=SECONDS)


def test_a_lost_one_is_not_waited_for() -> None:
    with threads("a", "b", "c", settings=HASTY) as (a, b, c):
        b.transport.close(0)
        stopped(a, c)


def test_twice_is_once() -> None:
    with threads("a") as (a,):
        a.close()
        a.close()
        with pytest.raises(NotInitialized):
            stop(a)


@pytest.mark.parametrize("wrong", ["1", -5, None])
def test_what_is_no_time(wrong: float) -> None:
    with threads("a") as (a,):
        with pytest.raises(RpcMisuse, check=code("RpcMisuse")):
            stop(a, timeout=wrong)
        assert not a.ended


def test_references_are_given_up_first() -> None:
    with threads("a", "b") as (a, b):
        handle = a.remote(b.node, ADD, timeout=SECONDS)
        handle.created.wait(SECONDS)
        stopped(a, b)
        with pytest.raises(
            ReferenceDead, check=code("ReferenceDead"), match="has been deleted"
        ):
            handle.check("to_here")
        handle.drop()


def test_references_that_nobody_gives_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(chapter, "_RELEASE_SECONDS", 0.1)
    monkeypatch.setattr(Agent, "give_up_references", lambda self: None)
    monkeypatch.setattr(Agent, "is_static", False)
    with threads("a", "b") as (a, b):
        handle = a.remote(b.node, ADD, timeout=SECONDS)
        handle.created.wait(SECONDS)
        fork = handle.fork
        with pytest.raises(ReferenceDead, check=code("ReferencesLeaked")) as error:
            stop(b, ignore_leaks=False)
        assert error.value.lines == (
            f"Leaking RRef {fork.rref} with fork Id {fork.fork}",
        )
        assert "Detected RRef Leaks during shutdown" in caplog.text
        assert b.ended


def test_an_interrupt_while_it_waits_stops_all_the_same() -> None:
    main = threading.main_thread().ident
    assert main is not None
    with threads("a", "b") as (a, b):

        def interrupt() -> None:
            assert b.wait_until(lambda: b.missing() == ("b",), SECONDS)
            signal.pthread_kill(main, signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            stop(a)
        thread.join(SECONDS)
        assert a.ended
        assert a.slot.agent is None


AT_EXIT = """
import threading
from everyorder.runtime.rpc import RpcBackendOptions, init_rpc
init_rpc("a", rpc_backend_options=RpcBackendOptions(init_method="ipc://{folder}/g"))
print("there", flush=True)
"""


def test_a_process_that_just_ends_does_not_hang(tmp_path: Path) -> None:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="rpc") as folder:
        done = subprocess.run(
            [sys.executable, "-c", AT_EXIT.format(folder=folder)],
            capture_output=True,
            text=True,
            timeout=2 * SECONDS,
            cwd=ROOT,
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, "there\n", "")


ENDS_AT_A_LINE = """
import sys
import everyorder.runtime.rpc
from everyorder.runtime.rpc import RpcBackendOptions, init_rpc
init_rpc("a", rpc_backend_options=RpcBackendOptions(init_method=sys.argv[1]))
print("there", flush=True)
sys.stdin.readline()
"""


def test_a_process_that_just_ends_says_good_bye() -> None:
    """Before its sockets are closed, whose module was loaded last."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="rpc") as folder:
        place = f"ipc://{folder}/g"
        process = subprocess.Popen(
            [sys.executable, "-c", ENDS_AT_A_LINE, place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        with process, in_worker_slot():
            assert process.stdout is not None
            assert process.stdout.readline() == "there\n"
            init_rpc("b", rpc_backend_options=RpcBackendOptions(init_method=place))
            try:
                agent = current_agent("test")
                asked = CallRequest(time.sleep, (10 * SECONDS,))
                future = agent.call(agent.find("a"), asked, timeout=None)
                here = CallRequest(number)
                there = agent.find("a")
                assert agent.call_and_wait(there, here, timeout=SECONDS) == process.pid
                process.communicate("\n", timeout=SECONDS)
                with pytest.raises(WorkerLost, match="left"):
                    future.wait(SECONDS)
            finally:
                shutdown(graceful=False)
        assert process.returncode == 0


def number() -> int:
    return os.getpid()


def shut_down() -> None:
    from everyorder.runtime.rpc.api.lifecycle import shutdown

    shutdown(timeout=SECONDS)


@pytest.mark.parametrize("how", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_processes_stop_together(how: str) -> None:
    with processes(how, ["a", "b", "c"]) as (agent, others):
        asked = CallRequest(number)
        for process, name in zip(others, "bc", strict=True):
            pid = agent.call_and_wait(agent.find(name), asked, timeout=SECONDS)
            assert pid == process.pid
            process.ask(shut_down)
        stop(agent, timeout=SECONDS)
        for process in others:
            process.answer()


def test_a_killed_process_is_not_waited_for() -> None:
    with processes("fork", ["a", "b", "c"], settings=HASTY) as (agent, others):
        others[0].signal(signal.SIGKILL)
        others[1].ask(shut_down)
        stop(agent, timeout=SECONDS)
        others[1].answer()


def test_a_frozen_process_is_not_waited_for() -> None:
    with processes("fork", ["a", "b"], settings=HASTY) as (agent, others):
        others[0].signal(signal.SIGSTOP)
        stop(agent, timeout=SECONDS)


def test_places_are_not_shared() -> None:
    assert place() != place()
