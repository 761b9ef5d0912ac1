"""Waiting: who waits receives, and a short value goes along with its creation."""

import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import pytest

from everyorder.runtime.errors.rpc import (
    ReferenceDead,
    RpcMisuse,
    RpcTimeout,
    WorkerLost,
)
from everyorder.runtime.rpc.agent import Agent, CallRequest, current_agent
from everyorder.runtime.rpc.agent.owned_values import ReferenceHandle
from everyorder.runtime.rpc.agent.pending_calls import PendingCall
from everyorder.runtime.rpc.protocol.events import Answered, Failed
from tests.coded import code
from tests.rpc.api.bodies import until
from tests.rpc.worlds import SECONDS, at_once, threads

World = tuple[Agent, Agent]


@pytest.fixture(params=["local", "sockets"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with tempfile.TemporaryDirectory(prefix="rpc") as folder:
        where = f"ipc://{folder}/w" if request.param == "sockets" else ""
        with threads("a", "b", where=where) as (a, b):
            yield a, b


class Gate:
    """What holds up functions until a test opens it."""

    opened = threading.Event()
    entered = threading.Semaphore(0)


@pytest.fixture(autouse=True)
def gate() -> Iterator[type[Gate]]:
    Gate.opened.clear()
    Gate.entered = threading.Semaphore(0)
    yield Gate
    Gate.opened.set()


def held(value: Any) -> Any:
    Gate.entered.release()
    assert Gate.opened.wait(SECONDS)
    return value


def same(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value


def back(name: str) -> str:
    """What this worker asks of another one while it is asked."""
    agent = current_agent("test")
    request = CallRequest(same, (agent.name,))
    given = agent.call_and_wait(agent.find(name), request, timeout=SECONDS)
    return f"{given} by way of {name}"


def asks(agent: Agent, other: Agent, function: Callable[..., Any], *args: Any) -> Any:
    request = CallRequest(function, args)
    return agent.call_and_wait(agent.find(other.name), request, timeout=SECONDS)


def test_requests_that_wait_hold_up_nobody(world: World) -> None:
    """Also where one of them runs on the thread that received it."""
    a, b = world
    waiting = [
        a.call(b.node, CallRequest(held, (n,)), timeout=SECONDS) for n in range(5)
    ]
    for _ in waiting:
        assert Gate.entered.acquire(timeout=SECONDS)
    assert [asks(a, b, same, n) for n in range(50)] == [*range(50)]
    assert [asks(b, a, same, n) for n in range(50)] == [*range(50)]
    Gate.opened.set()
    assert [each.wait(SECONDS) for each in waiting] == [*range(5)]


def test_threads_that_wait_beside_each_other(world: World) -> None:
    a, b = world

    def many() -> list[Any]:
        return [asks(a, b, same, n) for n in range(100)]

    def nested() -> list[Any]:
        return [asks(b, a, back, "b") for _ in range(30)]

    found = at_once(many, many, nested, many, nested)
    for each in found:
        assert each in ([*range(100)], ["a by way of b"] * 30)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="it needs signals")
def test_who_waits_is_interrupted_and_the_worker_goes_on(world: World) -> None:
    a, b = world

    def interrupt() -> None:
        assert Gate.entered.acquire(timeout=SECONDS)
        os.kill(os.getpid(), signal.SIGINT)

    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        asks(a, b, held, 1)
    other.join(SECONDS)
    Gate.opened.set()
    assert [asks(a, b, same, n) for n in range(20)] == [*range(20)]
    assert a.wait_until(a.is_idle, SECONDS)


class Came(Exception):
    """What a handler of a signal raises."""


@pytest.mark.parametrize("world", ["sockets"], indirect=True)
def test_what_else_comes_while_it_receives_ends_the_worker(world: World) -> None:
    """It is raised, and what waits is told: half of an event may have been handled."""
    a, b = world
    answered = a.handlers[Answered]

    def handled(event: Answered) -> None:
        if threading.current_thread() is threading.main_thread():
            raise Came
        answered(event)

    waiting = a.call(b.node, CallRequest(held, (1,)), timeout=SECONDS)
    a.handlers[Answered] = handled
    with pytest.raises(Came):
        [asks(a, b, same, n) for n in range(1000)]
    assert a.ended == "it was interrupted by Came while it spoke"
    with pytest.raises(WorkerLost):
        waiting.wait(SECONDS)


@pytest.mark.parametrize("world", ["sockets"], indirect=True)
def test_who_receives_is_refused_to_wait(world: World) -> None:
    """A finalizer that comes in between would wait for this very thread."""
    a, b = world
    answered = a.handlers[Answered]
    refused: list[RpcMisuse] = []

    def handled(event: Answered) -> None:
        if not refused and a.transport.leads():
            with pytest.raises(RpcMisuse) as caught:
                asks(a, b, same, 2)
            refused.append(caught.value)
        answered(event)

    a.handlers[Answered] = handled
    assert [asks(a, b, same, n) for n in range(20)] == [*range(20)]
    assert "interrupts this worker" in refused[0].found


def test_an_answer_to_who_gives_up_just_then_is_given_back(world: World) -> None:
    a, b = world
    pending = PendingCall(b.node, lambda: "test", None)
    waiter: SimpleQueue[Answered | Failed] = SimpleQueue()
    pending.waiter = waiter
    a._pending[-7] = pending
    answer = Answered(-7, (b"",))
    returned: list[object] = []
    inner = a._hand_over

    def hand(to: "SimpleQueue[Answered | Failed]", event: Answered | Failed) -> None:
        a._abandon(pending, -1, to)
        inner(to, event)

    a.__dict__["_discard_answer"] = lambda _, event: returned.append(event)
    a.__dict__["_hand_over"] = hand
    a._answered(answer)
    del a.__dict__["_discard_answer"], a.__dict__["_hand_over"]
    assert returned == [answer]


@pytest.mark.parametrize("world", ["sockets"], indirect=True)
def test_who_receives_writes_nothing_long(world: World) -> None:
    """Else all others would wait until one has been given what it fetches."""
    a, b = world
    Gate.opened.set()
    receives: list[bool] = []
    inner = b.codec.pack_result

    def packed(value: Any) -> Any:
        receives.append(b.transport.leads())
        return inner(value)

    handle = made(world, held, "x" * 10_000)
    handle.created.wait(SECONDS)
    b.codec.__dict__["pack_result"] = packed
    assert a.fetch_and_wait(handle, timeout=SECONDS) == "x" * 10_000
    assert receives == [False]
    handle.drop()


# What goes along ----------------------------------------------------------------------


def made(world: World, function: Callable[..., Any], *args: Any) -> ReferenceHandle:
    a, b = world
    return a.remote(b.node, CallRequest(function, args), timeout=SECONDS)


def fetched(world: World, handle: ReferenceHandle) -> tuple[Any, bool]:
    """The value, and whether it was asked for by a call of its own.

    The gate is opened when it is waited for, or asked for.
    """
    a = world[0]
    asked: list[Any] = []
    inner = a._ask_and_wait

    def awaited(*args: Any) -> Any:
        asked.append(args)
        return inner(*args)

    def waits() -> bool:
        creation = handle.creation
        return bool(asked) or creation is None or bool(creation.piggyback_waiters)

    def opens() -> None:
        assert until(waits)
        Gate.opened.set()

    opener = threading.Thread(target=opens)
    a.__dict__["_ask_and_wait"] = awaited
    opener.start()
    try:
        return a.fetch_and_wait(handle, timeout=SECONDS), bool(asked)
    finally:
        del a.__dict__["_ask_and_wait"]
        handle.drop()
        opener.join(SECONDS)


def learned(world: World, value: Any) -> None:
    """Have the caller know what becomes of values of `held`."""
    Gate.opened.set()
    handle = made(world, held, value)
    handle.created.wait(SECONDS)
    handle.drop()
    Gate.opened.clear()


@pytest.mark.parametrize(
    "value",
    [7, 2**1000, True, 1.5, 1j, "text", b"bytes", None, "", 0],
    ids=lambda value: repr(value)[:9],
)
def test_a_short_value_goes_along(world: World, value: Any) -> None:
    learned(world, value)
    handle = made(world, held, value)
    assert fetched(world, handle) == (value, False)


@pytest.mark.parametrize(
    "value", [[1], "x" * 2000, 1 << 2000, (1,)], ids=lambda value: repr(value)[:9]
)
def test_what_is_long_or_may_change_is_fetched(world: World, value: Any) -> None:
    learned(world, value)
    handle = made(world, held, value)
    assert fetched(world, handle) == (value, True)


def test_a_wrong_guess_costs_a_fetch(world: World) -> None:
    learned(world, 1)
    handle = made(world, held, [2])
    assert fetched(world, handle) == ([2], True)


def test_what_went_along_is_not_kept(world: World) -> None:
    """Who asks later asks the owner, as of now."""
    learned(world, 1)
    Gate.opened.set()
    handle = made(world, held, 1)
    handle.created.wait(SECONDS)
    assert handle.creation is None
    assert fetched(world, handle) == (1, True)


def test_a_value_that_fails_is_an_error_all_the_same(world: World) -> None:
    a, _ = world
    for value in (1, ValueError("not made")):
        handle = made(world, same, value)
        if isinstance(value, Exception):
            with pytest.raises(ValueError, match="not made"):
                a.fetch_and_wait(handle, timeout=SECONDS)
        else:
            handle.created.wait(SECONDS)
        handle.drop()


def test_who_waits_for_it_has_a_deadline(world: World) -> None:
    a, _ = world
    learned(world, 1)
    handle = made(world, held, 1)
    with pytest.raises(RpcTimeout, match=r"\(50 ms\): to_here"):
        a.fetch_and_wait(handle, timeout=0.05)
    Gate.opened.set()
    assert a.fetch_and_wait(handle, timeout=SECONDS) == 1
    handle.drop()


def test_its_creation_may_be_late(world: World) -> None:
    a, b = world
    learned(world, 1)
    handle = a.remote(b.node, CallRequest(held, (1,)), timeout=0.05)
    with pytest.raises(ReferenceDead, check=code("ReferenceDead")):
        a.fetch_and_wait(handle, timeout=SECONDS)
    handle.drop()
