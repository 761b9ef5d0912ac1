"""Calls under fault, on real processes: each ends once, in a result or in an error."""

import multiprocessing
import os
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Condition, Event
from typing import Any

import pytest

from everyorder.runtime import rpc
from everyorder.runtime.errors.rpc import RpcMisuse, RpcTimeout, WorkerLost
from everyorder.runtime.futures import Future
from everyorder.runtime.rpc.agent import (
    Agent,
    WorkerSlot,
    current_agent,
    in_worker_slot,
    rendezvous,
)
from everyorder.runtime.rpc.agent.rendezvous import join, parse_init_method
from everyorder.runtime.rpc.api.lifecycle import stop
from everyorder.runtime.rpc.protocol.events import Joined, Lost, Settings
from everyorder.runtime.rpc.transport import Transport
from everyorder.runtime.rpc.transport.addresses import Keys, parse_address
from tests.coded import coded
from tests.rpc.faults import bodies
from tests.rpc.transport.inbox import folder
from tests.rpc.transport.proxying import Proxy
from tests.rpc.worlds import HASTY, SECONDS, Process, at_once, options, processes

# Silence alone loses nobody within the time of a test.
LASTING = Settings(heartbeat=0.3, dead=300.0, expire=400.0, connect=200.0)
# What may come of a call beside its result.
ERRORS = (RpcTimeout, WorkerLost, RpcMisuse)


class Ends:
    """How each of many calls ended, and how often."""

    def __init__(self) -> None:
        self.told: Counter[int] = Counter()
        self.results: dict[int, object] = {}
        self._changed = Condition()

    def of(self, number: int, future: Future[Any]) -> None:
        self.told[number] = 0

        def ended(done: Future[Any]) -> None:
            with self._changed:
                self.told[number] += 1
                try:
                    self.results[number] = done.value()
                except ERRORS as error:
                    self.results[number] = type(error)
                self._changed.notify()

        future.add_done_callback(ended)

    def wait(self) -> dict[int, object]:
        """The results of all; each was told once."""
        with self._changed:
            all_told = self._changed.wait_for(lambda: all(self.told.values()), SECONDS)
            assert all_told, "a call never ends"
            assert set(self.told.values()) == {1}, self.told
            return self.results


def asked(worker: str, body: Any, numbers: range, **more: Any) -> Ends:
    ends = Ends()
    for number in numbers:
        try:
            future = rpc.rpc_async(worker, body, args=(number,), **more)
        except RpcMisuse as error:
            if error.code != "UnknownWorker":
                raise
            # It is known by now that the worker is gone.
            future = Future()
            future.set_exception(error)
        ends.of(number, future)
    return ends


def stop_running(other: Process) -> None:
    """Stop a process as Ctrl-Z does; it has stopped when this returns."""
    other.signal(signal.SIGSTOP)
    os.waitpid(other.pid, os.WUNTRACED)


def test_killed_while_it_is_asked() -> None:
    """Its calls fail, those of others go on, and nothing is left."""
    shared = {*Path("/dev/shm").iterdir()}
    with processes("spawn", ["w0", "w1", "w2"], session=HASTY) as (_, others):
        done = asked("w1", bodies.double, range(50)).wait()
        assert done == {number: 2 * number for number in range(50)}
        held = asked("w1", bodies.hold, range(200))
        others[0].signal(signal.SIGKILL)
        more = asked("w1", bodies.double, range(200))
        assert set(held.wait().values()) == {WorkerLost}
        assert set(more.wait().values()) <= {
            WorkerLost,
            RpcMisuse,
        }
        done = asked("w2", bodies.double, range(50)).wait()
        assert done == {number: 2 * number for number in range(50)}
        with pytest.raises((WorkerLost, coded(RpcMisuse, "UnknownWorker"))):
            rpc.rpc_sync("w1", bodies.double, args=(1,))
    assert {*Path("/dev/shm").iterdir()} <= shared


def test_who_is_killed_is_found_out_by_its_link() -> None:
    """Long before it has been silent for long enough."""
    with processes("fork", ["w0", "w1"], settings=LASTING) as (_, others):
        held = asked("w1", bodies.hold, range(20))
        others[0].signal(signal.SIGKILL)
        assert set(held.wait().values()) == {WorkerLost}


def die_when_admitted(address: str) -> None:
    """Join, and end as soon as one is a member: nothing was said to it yet."""
    # The handlers of its events are bound when it is made.
    Agent._admitted = lambda *_: os._exit(9)  # type: ignore[method-assign]  # to end there
    chosen = options(settings=LASTING, init_method=address)
    rpc.init_rpc("w1", rpc_backend_options=chosen)


def test_who_dies_when_it_has_just_joined_is_found_out_by_its_link() -> None:
    """Though no channel was open, and nobody has called it."""
    told: list[str] = []
    with folder() as home, in_worker_slot():
        address = f"ipc://{home}/w"
        chosen = options(settings=LASTING, init_method=address)
        rpc.init_rpc("w0", rpc_backend_options=chosen)
        try:
            agent = current_agent("test")
            for kind in (Joined, Lost):
                handle = agent.handlers[kind]

                def tell(event: Any, handle: Any = handle) -> None:
                    handle(event)
                    told.append(f"{type(event).__name__} {event.node.name}")
                    agent.notify_watchers()

                agent.handlers[kind] = tell
            context = multiprocessing.get_context("spawn")
            other = context.Process(target=die_when_admitted, args=(address,))
            other.start()
            assert agent.wait_until(lambda: "Lost w1" in told, SECONDS)
            other.join(SECONDS)
            assert (other.exitcode, told) == (9, ["Joined w1", "Lost w1"])
            other.close()
        finally:
            rpc.shutdown(graceful=False)


def test_without_files_what_needs_one_fails_and_nothing_else() -> None:
    with processes("fork", ["w0", "w1", "w2"]) as (_, (other, _)):
        # ZeroMQ ends a process that has no file for a connection that it is asked for:
        # the one of `w0` is there before.
        assert rpc.rpc_sync("w1", bodies.double, args=(1,)) == 2
        found = other.do(bodies.called_without_files, "w2")
        assert found == ["WorkerLost", "WorkerLost", "42"]
        done = asked("w1", bodies.double, range(50)).wait()
        assert done == {number: 2 * number for number in range(50)}


def test_stopped_for_a_moment() -> None:
    """It was only slow: every call has its result, and was run once."""
    with processes("spawn", ["w0", "w1"]) as (_, others):
        stop_running(others[0])
        ends = asked("w1", bodies.double, range(300))
        late = asked("w1", bodies.double, range(300, 310), timeout=0.2)
        assert set(late.wait().values()) == {RpcTimeout}
        others[0].signal(signal.SIGCONT)
        assert ends.wait() == {number: 2 * number for number in range(300)}
        runs = others[0].do(bodies.runs)
        assert [runs[number] for number in range(300)] == [1] * 300
        assert max(runs.values()) == 1
        assert rpc.rpc_sync("w1", bodies.double, args=(7,)) == 14


@pytest.mark.slow
def test_stopped_for_too_long() -> None:
    """It is given up, and its answers come too late to change anything."""
    with processes("spawn", ["w0", "w1", "w2"], session=HASTY) as (_, others):
        held = asked("w1", bodies.hold, range(50))
        others[0].ask(bodies.open_gate)
        stop_running(others[0])
        more = asked("w1", bodies.double, range(50))
        results = [*held.wait().values(), *more.wait().values()]
        assert WorkerLost in results
        others[0].signal(signal.SIGCONT)
        done = asked("w2", bodies.double, range(50)).wait()
        assert done == {number: 2 * number for number in range(50)}
        assert [*held.wait().values(), *more.wait().values()] == results


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Proxy]]:
    """Two workers who reach each other by proxies; the first one is current."""
    proxies: list[Proxy] = []
    made = rendezvous._transport
    with ExitStack() as ends:
        home = ends.enter_context(folder())
        keys = Keys.create(f"{home}/keys")

        def through(address: str, given: Any) -> Transport:
            transport = made(address, given)
            told = parse_address(transport.endpoint)
            proxy = ends.enter_context(closing(Proxy(told.port)))
            proxies.append(proxy)
            transport.endpoint = f"tcp://127.0.0.1:{proxy.port}#{told.key}"  # type: ignore[misc]
            return transport

        monkeypatch.setattr(rendezvous, "_transport", through)
        port = _free_port()
        chosen = options(keys=keys.folder)
        seats = [WorkerSlot(), WorkerSlot()]

        def joined(rank: int) -> Any:
            where = parse_init_method(f"tcp://127.0.0.1:{port}", rank, 2)
            return join(f"w{rank}", where, chosen, seats[rank])

        agents = at_once(lambda: joined(0), lambda: joined(1))
        for agent in agents:
            ends.callback(stop, agent, graceful=False)
        ends.enter_context(in_worker_slot(seats[0]))
        yield proxies


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_connections_that_are_cut(proxied: list[Proxy]) -> None:
    """Calls whose packets are lost have their results, and run once."""
    # By now there is a connection in each direction.
    assert rpc.rpc_sync("w1", bodies.double, args=(-1,)) == -2
    bodies.RUNS.clear()
    ends, cut = Ends(), 0
    for number in range(400):
        ends.of(number, rpc.rpc_async("w1", bodies.double, args=(number,)))
        if number % 50 == 25:
            cut += sum(proxy.reset() for proxy in proxied)
    assert cut >= 2
    assert ends.wait() == {number: 2 * number for number in range(400)}
    assert set(bodies.RUNS.values()) == {1}


def test_calls_in_flight_are_held_back() -> None:
    """Who asks for more than is allowed waits; all have their results."""
    with processes("spawn", ["w0", "w1"], max_calls_in_flight=100) as (agent, others):
        ends = Ends()
        asked_all = Event()

        def ask() -> None:
            for number in range(300):
                ends.of(number, rpc.rpc_async("w1", bodies.hold, args=(number,)))
            asked_all.set()

        def watch() -> None:
            assert not asked_all.wait(1.0)
            assert len(ends.told) <= 101
            others[0].do(bodies.open_gate)

        at_once(lambda: _seated(agent, ask), watch)
        assert ends.wait() == {number: number for number in range(300)}


def _seated(agent: Any, run: Any) -> None:
    with in_worker_slot(agent.slot):
        run()


@pytest.mark.slow
def test_memory_stays_as_it_is() -> None:
    """Many calls, and many that fail, leave nothing behind on either side."""
    with processes("spawn", ["w0", "w1"]) as (_, others):

        def rounds(many: int) -> None:
            for _ in range(many):
                asked("w1", bodies.double, range(500)).wait()
                asked("w1", bodies.double, range(20), timeout=0.001).wait()
                assert rpc.rpc_sync("w1", bodies.length, args=(bytes(1 << 20),)) > 0

        rounds(6)
        before = bodies.memory(), others[0].do(bodies.memory)
        files = bodies.files(), others[0].do(bodies.files)
        rounds(24)
        after = bodies.memory(), others[0].do(bodies.memory)
        assert max(b - a for a, b in zip(before, after, strict=True)) < 16 << 20
        assert (bodies.files(), others[0].do(bodies.files)) == files


@pytest.mark.nightly
def test_24_workers_of_which_some_are_killed() -> None:
    names = [f"w{number}" for number in range(24)]
    with processes("fork", names, session=HASTY) as (_, others):
        ends = {name: asked(name, bodies.double, range(100)) for name in names[1:]}
        victims = others[::5]
        for victim in victims:
            victim.signal(signal.SIGKILL)
        for name, other in zip(names[1:], others, strict=True):
            results = ends[name].wait()
            if other not in victims:
                assert results == {number: 2 * number for number in range(100)}


@pytest.mark.nightly
def test_100_000_calls_in_flight() -> None:
    """A kilobyte each, and they all end."""
    with processes("spawn", ["w0", "w1"]) as (_, others):
        before = bodies.memory()
        ends = asked("w1", bodies.hold, range(100_000), timeout=0)
        assert bodies.memory() - before < 400 << 20
        others[0].do(bodies.open_gate)
        assert ends.wait() == {number: number for number in range(100_000)}
