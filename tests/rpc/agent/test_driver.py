"""The one lock of a worker: what comes in between, and in which order it is told."""

import operator
import signal
import threading
from threading import get_ident
from typing import Any

import pytest

from everyorder.runtime.errors.rpc import NotInitialized, RpcMisuse, WorkerLost
from everyorder.runtime.futures import Future
from everyorder.runtime.rpc.agent import Agent, CallRequest
from everyorder.runtime.rpc.protocol.events import Freed, Joined
from tests.coded import code
from tests.rpc.worlds import SECONDS, threads

ADD = CallRequest(operator.add, (1, 2))


def within(agent: Agent, act: Any) -> Any:
    """What `act` gives while this thread tells the session something."""
    result: list[Any] = []
    agent.do(lambda _: result.append(act()), "test")
    return result[0]


def test_a_call_that_comes_in_between_is_sent_later() -> None:
    with threads("a", "b") as (a, b):
        sent: list[int] = []

        def act() -> Future[int]:
            future: Future[int] = a.call(b.node, ADD, timeout=SECONDS)
            sent.append(a.session.counts()["calls"])
            return future

        future = within(a, act)
        assert sent == [0]
        assert future.wait(SECONDS) == 3


@pytest.mark.parametrize("ask", ["call_and_wait", "remote", "own"])
def test_what_would_have_to_wait_is_refused_in_between(ask: str) -> None:
    with threads("a", "b") as (a, b):
        given: dict[str, Any] = {"timeout": SECONDS}
        args: tuple[Any, ...] = (b.node, ADD)
        if ask == "own":
            given, args = {}, (Future(),)

        def act() -> Exception:
            with pytest.raises(RpcMisuse, match="interrupts this") as error:
                getattr(a, ask)(*args, **given)
            return error.value

        assert within(a, act)
        assert a.call_and_wait(b.node, ADD, timeout=SECONDS) == 3


def test_ctrl_c_is_held_back_in_between() -> None:
    with threads("a", "b") as (a, b):
        passed: list[int] = []

        def act() -> None:
            signal.raise_signal(signal.SIGINT)
            passed.append(1)

        with pytest.raises(KeyboardInterrupt):
            within(a, act)
        assert passed == [1]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert a.call_and_wait(b.node, ADD, timeout=SECONDS) == 3


def test_what_is_told_before_ctrl_c_comes_out_is_handled() -> None:
    with threads("a") as (a,):
        told: list[object] = []
        a.handlers[Joined] = told.append
        joined = Joined(a.node)

        def act() -> None:
            a._events.append(joined)
            signal.raise_signal(signal.SIGINT)

        with pytest.raises(KeyboardInterrupt):
            within(a, act)
        assert a.wait_until(lambda: told == [joined], SECONDS)


def test_signals_that_are_ignored_stay_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with threads("a") as (a,):
            within(a, lambda: signal.raise_signal(signal.SIGINT))
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


class Between(Exception):
    """What a handler of a signal raises."""


def test_what_else_comes_in_between_ends_the_worker() -> None:
    with threads("a", "b") as (a, b):
        blocked = threading.Event()
        future = a.call(b.node, CallRequest(held, (0,)), timeout=SECONDS)

        def act() -> None:
            raise Between

        try:
            with pytest.raises(Between):
                within(a, act)
            with pytest.raises(WorkerLost, match="interrupted by Between"):
                future.wait(SECONDS)
            with pytest.raises(NotInitialized):
                a.call(b.node, ADD, timeout=SECONDS)
        finally:
            blocked.set()
            HELD.set()
        a.close()
        # The others see it leave, in a while or at once.
        assert b.call_and_wait(b.node, ADD, timeout=SECONDS) == 3


HELD = threading.Event()


def held(_: int) -> None:
    assert HELD.wait(SECONDS)


def test_a_mistake_of_the_caller_ends_nothing() -> None:
    with threads("a", "b") as (a, b):

        def act() -> None:
            raise RpcMisuse(
                code="RpcMisuse", call="test", found="nothing", wanted="something"
            )

        with pytest.raises(RpcMisuse, check=code("RpcMisuse")):
            within(a, act)
        assert a.call_and_wait(b.node, ADD, timeout=SECONDS) == 3


def test_events_are_handled_in_order_and_by_one_thread() -> None:
    with threads("a") as (a,):
        told: list[int] = []
        inside = threading.Lock()

        def handle(event: Any) -> None:
            assert inside.acquire(blocking=False), "two threads at once"
            told.append(event.rref)
            inside.release()

        a.handlers[Freed] = handle
        start = threading.Barrier(4)

        def work(number: int) -> None:
            start.wait(SECONDS)
            for n in range(200):
                a._events.append(Freed(number * 1000 + n))  # type: ignore[arg-type]  # numbers are told
                a._drain()

        workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in workers:
            thread.start()
        for thread in workers:
            thread.join(SECONDS)
        assert a.wait_until(lambda: len(told) == 800, SECONDS)
        for number in range(4):
            mine = [each for each in told if each // 1000 == number]
            assert mine == sorted(mine)


def test_events_are_not_handled_inside_of_each_other() -> None:
    """A handler tells the session something: as an answer to who fetches does."""
    with threads("a") as (a,):
        told: list[Any] = []
        inside: list[Any] = []

        def handle(event: Any) -> None:
            assert not inside
            inside.append(event)
            a.do(lambda _: None, "test")
            inside.clear()
            told.append(event.rref)

        def work() -> None:
            a._enter()
            # As they come behind a packet that was lost and sent again.
            a._events.extend(map(Freed, range(256)))  # type: ignore[arg-type]  # numbers are told
            a._drain()

        a.handlers[Freed] = handle
        worker = threading.Thread(target=work)
        worker.start()
        worker.join(SECONDS)
        assert told == [*range(256)]


def test_what_is_behind_an_interruption_is_handled() -> None:
    with threads("a") as (a,):
        told: list[object] = []

        def interrupt(event: Freed) -> None:
            raise KeyboardInterrupt

        a.handlers[Freed] = interrupt
        a.handlers[Joined] = told.append
        joined = Joined(a.node)
        a._events.extend((Freed(0), joined))  # type: ignore[arg-type]  # it is not looked at
        with pytest.raises(KeyboardInterrupt):
            a._drain()
        assert a.wait_until(lambda: told == [joined], SECONDS)


def test_a_handler_that_fails_is_logged_and_the_next_one_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with threads("a") as (a,):
        told: list[object] = []

        def fail(event: Freed) -> None:
            raise ZeroDivisionError

        a.handlers[Freed] = fail
        a.handlers[Joined] = told.append
        joined = Joined(a.node)
        a._events.extend((Freed(0), joined))  # type: ignore[arg-type]  # it is not looked at
        a._drain()
        assert told == [joined]
        assert [each.message for each in caplog.records] == ["a: an event is lost"]


def test_no_lock_is_held_where_functions_of_users_run() -> None:
    with threads("a", "b") as (a, b):
        free: list[bool] = []

        def look(_: Future[int]) -> None:
            for agent in (a, b):
                taken = agent._lock.acquire(timeout=SECONDS)
                free.append(taken)
                agent._lock.release()

        future = a.call(b.node, ADD, timeout=SECONDS)
        future.then(look).wait(SECONDS)
        assert free == [True, True]


def test_who_waits_for_a_change_is_told_of_it() -> None:
    with threads("a") as (a,):
        state = [False]
        assert not a.wait_until(lambda: state[0], 0.01)

        def change() -> None:
            state[0] = True
            a.notify_watchers()

        timer = threading.Timer(0.05, change)
        timer.start()
        assert a.wait_until(lambda: state[0], SECONDS)
        timer.join()


def test_the_next_time_of_a_session_is_asked_once_a_call() -> None:
    asked: list[int] = []
    with threads("a", "b") as (a, b):
        assert a.call_and_wait(b.node, CallRequest(abs, (-1,)), timeout=SECONDS) == 1
        next_time, due = a.session.next_time, a.session._next_due

        def note() -> float | None:
            asked.append(get_ident())
            return next_time()

        def compute() -> float:
            asked.append(-get_ident())
            return due()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(a.session, "next_time", note)
            patch.setattr(a.session, "_next_due", compute)
            future = a.call(b.node, CallRequest(abs, (-2,)), timeout=SECONDS)
            here = [each for each in asked if abs(each) == get_ident()]
        assert here == [get_ident(), -get_ident()]
        assert future.wait(SECONDS) == 2
