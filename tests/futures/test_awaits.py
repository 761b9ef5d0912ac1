"""Awaits: made, waited for, run once, run again, never copied."""

import copy
import os
import pickle
import threading
import typing
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everyorder.runtime.errors import FutureMisuse
from everyorder.runtime.futures import (
    Await,
    _Await,
    _awaitable,
    _awaitable_nowait,
    _awaitable_wait,
    awaitable,
    awaitable_nowait,
    awaitable_wait,
)
from tests.coded import code
from tests.forking import ended_well, fork, in_child, needs_fork
from tests.futures.threads import SECONDS, Threads, at_once


class Forged:
    """A pickle of an await that somebody made by hand."""

    def __reduce__(self) -> Any:
        return Await, (), {"fn": print}


class Body:
    """A function that counts its runs, and answers or raises as it is told."""

    def __init__(self, *outcomes: object) -> None:
        self.outcomes = outcomes
        self.runs = 0
        self.thread = 0

    def __call__(self, *args: object, **kwargs: object) -> Any:
        outcome = self.outcomes[min(self.runs, len(self.outcomes) - 1)]
        self.runs += 1
        self.thread = threading.get_ident()
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


@pytest.mark.spec("futures 1.1", "names", "instances")
def test_names() -> None:
    """1.1, 0: the names with an underscore are the same objects."""
    assert _Await is Await
    assert _awaitable is awaitable
    assert _awaitable_wait is awaitable_wait
    assert _awaitable_nowait is awaitable_nowait
    assert isinstance(awaitable(Body(1)), Await)


@pytest.mark.spec("futures 1.1", "no constructor")
@pytest.mark.parametrize("cls", [Await, Await[int]])
def test_the_class_makes_none(cls: Any) -> None:
    """1.1: there is no constructor; the error names the functions."""
    for given_ in ((), (1,)):
        with pytest.raises(FutureMisuse, match="awaitable_nowait") as caught:
            cls(*given_)
        assert isinstance(caught.value, TypeError)


@pytest.mark.spec("futures 1.1", "subscripts")
def test_subscripts() -> None:
    """1.1: `Await[int]` is an alias, and they nest."""
    assert typing.get_origin(Await[int]) is Await
    assert typing.get_args(Await[Await[int]]) == (Await[int],)
    assert repr(Await[int]).endswith("Await[int]")


@pytest.mark.spec("futures 1.1", "members")
def test_members() -> None:
    """1.1: no other public names than these."""
    public = {name for name in dir(Await) if not name.startswith("_")}
    members = {"args", "done", "fn", "is_nowait", "kwargs", "type", "wait"}
    assert public == members


@pytest.mark.spec("futures 1.1", "texts")
def test_a_text_never_waits() -> None:
    """1.1: neither does `str`."""
    body = Body(3)
    aw = awaitable(body)
    assert repr(aw) == str(aw) == "<Await of Body: not run>"
    assert body.runs == 0
    aw.wait()
    assert repr(aw) == "<Await of Body: done>"
    assert repr(awaitable_nowait(3)) == "<Await of an object of type int>"
    assert repr(awaitable(abs, 1)) == "<Await of abs: not run>"


@pytest.mark.spec("futures 1.2", "what can be called")
@pytest.mark.parametrize("wrong", [3, None, "f"])
def test_what_cannot_be_called(wrong: Any) -> None:
    """1.2: refused when it is made."""
    with pytest.raises(FutureMisuse, match="callable"):
        awaitable(wrong)


@pytest.mark.spec("futures 1.2", "no function")
def test_without_a_function() -> None:
    """1.2: an ordinary TypeError."""
    with pytest.raises(TypeError, match="func"):
        awaitable()  # type: ignore[call-arg]  # on purpose


@pytest.mark.spec("futures 0.24", "three functions")
@pytest.mark.spec("futures 1.2", "positional arguments")
def test_arguments_are_owned() -> None:
    """1.2, 0.24: they reach the function as they are; positional ones stay readable."""
    arguments = [1], {"a": 2}
    keyword = object()

    def take(*args: object, **kwargs: object) -> Any:
        return args, kwargs

    aw: Await[Any] = awaitable(take, *arguments, y=keyword)
    assert aw.args() == arguments
    args, kwargs = aw.wait()
    assert args[0] is arguments[0]
    assert kwargs == {"y": keyword}
    assert aw.args() == arguments
    assert aw.fn() is take
    assert aw.fn()(*aw.args(), **aw.kwargs()) == aw.wait()


@pytest.mark.spec("futures 1.2", "keyword arguments")
@pytest.mark.spec("futures 10", "D1 keyword arguments are honoured")
def test_keyword_arguments_are_honoured() -> None:
    """1.2, D1: also one that is called as a parameter of ours."""

    def minus(func: int, self: int) -> int:
        return func - self

    aw = awaitable(minus, func=5, self=2)
    assert aw.kwargs() == {"func": 5, "self": 2}
    aw.kwargs().clear()
    assert aw.wait() == 3
    assert aw.args() == ()


@pytest.mark.spec("futures 0.22", "nothing in parallel")
@pytest.mark.spec("futures 1.2", "not run")
def test_nothing_runs_before_the_first_wait() -> None:
    """1.2, 0.22: and then it runs on the thread that waits; none is started."""
    body = Body(3)
    aw = awaitable(body)
    assert (body.runs, aw.done()) == (0, False)
    count = threading.active_count()
    assert awaitable_wait(aw) == 3
    assert (body.runs, aw.done(), body.thread) == (1, True, threading.get_ident())
    assert threading.active_count() == count
    body = Body(3)
    aw = awaitable(body)

    def wait() -> int:
        aw.wait()
        return threading.get_ident()

    assert at_once(wait) == [body.thread]


@pytest.mark.spec("futures 0.24", "three functions")
@pytest.mark.spec("futures 1.2", "of a value")
def test_of_a_value() -> None:
    """1.2, 0.24: complete at once, and made of that very object."""
    value = object()
    aw = awaitable_nowait(value)
    assert (aw.is_nowait(), aw.done(), aw.kwargs()) == (True, True, {})
    assert aw.args() == (value,)
    assert aw.wait() is value
    with pytest.raises(FutureMisuse, check=code("WithoutFunction")) as caught:
        aw.fn()
    assert isinstance(caught.value, RuntimeError)
    assert not awaitable(Body(1)).is_nowait()


@pytest.mark.spec("futures 1.2", "what can be waited for")
@pytest.mark.parametrize("wrong", [None, 3, Body(1)])
def test_what_is_no_await(wrong: Any) -> None:
    """1.2: None and anything else is refused."""
    with pytest.raises(FutureMisuse, match="awaitable_wait") as caught:
        awaitable_wait(wrong)
    assert isinstance(caught.value, RuntimeError)
    assert isinstance(caught.value, TypeError)


@pytest.mark.spec("futures 1.2", "type")
def test_its_type() -> None:
    """1.2: of Python's it is an await of any value."""
    assert awaitable(Body(1)).type() == Await[Any]
    assert awaitable_nowait(3).type() == Await[Any]


MOVED: dict[str, Callable[[object], object]] = {
    "pickled": pickle.dumps,
    "copied": copy.copy,
    "copied in depth": copy.deepcopy,
}


@pytest.mark.spec("futures 1.2", "not copied")
@pytest.mark.parametrize("moved", MOVED)
@pytest.mark.parametrize("make", [awaitable, lambda f: awaitable_nowait(3)])
def test_an_await_stays(moved: str, make: Any) -> None:
    """1.2: not picklable, not to be copied, by its name; and nothing ran."""
    body = Body(3)
    with pytest.raises(
        FutureMisuse, check=code("Unmovable"), match="Await objects"
    ) as caught:
        MOVED[moved](make(body))
    assert isinstance(caught.value, RuntimeError)
    assert body.runs == 0


@pytest.mark.spec("futures 1.2", "not copied")
def test_an_await_is_not_unpickled() -> None:
    """1.2: the other direction is refused, too."""
    with pytest.raises(FutureMisuse, check=code("FutureMisuse")):
        pickle.loads(pickle.dumps(Forged()))
    with pytest.raises(FutureMisuse, check=code("Unmovable"), match="unpickled"):
        awaitable(print).__setstate__({})


@pytest.mark.spec("futures 0.24", "three functions")
@pytest.mark.spec("futures 1.3", "the same object", "None is a result")
@pytest.mark.spec("script 0.24", "three functions")
@pytest.mark.parametrize("value", [3, None, [], awaitable_nowait(1)])
def test_the_result_is_kept(value: object) -> None:
    """1.3, 0.24: the same object for every wait; None is kept, too."""
    body = Body(value, AssertionError("run twice"))
    aw = awaitable(body)
    assert aw.wait() is awaitable_wait(aw) is aw.wait() is value
    assert body.runs == 1


@pytest.mark.spec("futures 1.3", "errors")
@pytest.mark.spec("futures 11.1", "once", "failing")
def test_errors_are_not_kept() -> None:
    """1.3, 11.1: each wait runs the function again; the exception is the very one."""
    first, second = ValueError("first"), KeyboardInterrupt()
    body = Body(first, second, 3)
    aw = awaitable(body)
    for error in (first, second):
        with pytest.raises(type(error)) as caught:
            aw.wait()
        assert caught.value is error
        assert not aw.done()
    assert (aw.wait(), aw.wait(), body.runs) == (3, 3, 3)


@pytest.mark.spec("futures 1.3", "itself")
@pytest.mark.spec("futures 11.1", "itself")
def test_a_function_that_waits_for_its_own_await() -> None:
    """1.3, 11.1: it runs once more inside of itself; the outermost result stays."""
    log: list[str] = []

    def body() -> list[str]:
        depth = len([entry for entry in log if entry.startswith("in")])
        log.append(f"in {depth}")
        if depth == 0:
            # The result of the inner run is there, until the outer one ends.
            assert aw.wait() is aw.wait()
            assert aw.done()
        log.append(f"out {depth}")
        return [f"result {depth}"]

    aw = awaitable(body)
    assert aw.wait() == ["result 0"]
    assert aw.wait() is aw.wait()
    assert log == ["in 0", "in 1", "out 1", "out 0"]


@pytest.mark.spec("futures 1.3", "itself")
def test_without_an_end() -> None:
    """1.3: a function that always waits for itself ends as recursion does."""

    def body() -> object:
        return aw.wait()

    aw = awaitable(body)
    with pytest.raises(RecursionError):
        aw.wait()
    assert not aw.done()


@pytest.mark.spec("futures 1.3", "the thread that waits", "two threads")
def test_two_threads() -> None:
    """1.3: one runs the function, the others wait for it, all get the same object."""
    for _ in range(30):
        body = Body([], AssertionError("run twice"))
        aw = awaitable(body)
        first, *others = at_once(*[aw.wait] * 4)
        assert all(other is first for other in others)
        assert body.runs == 1


@pytest.mark.spec("futures 1.3", "two threads")
def test_the_result_of_an_inner_run_is_not_seen_by_other_threads() -> None:
    """1.3: they wait for the outermost."""
    inner_is_done, began = threading.Event(), threading.Event()
    seen: list[object] = []

    def body() -> object:
        if began.is_set():
            return "inner"
        began.set()
        assert aw.wait() == "inner"
        inner_is_done.set()
        return "outer"

    def other() -> None:
        assert inner_is_done.wait(SECONDS)
        seen.append(aw.wait())

    aw = awaitable(body)
    at_once(aw.wait, other)
    assert seen == ["outer"]


@pytest.mark.spec("futures 1.3", "the thread that waits")
def test_after_an_error_another_thread_runs_it() -> None:
    """1.3: who waited for the run that failed runs the function itself."""
    running, go = threading.Event(), threading.Event()
    threads: list[int] = []

    def body() -> int:
        threads.append(threading.get_ident())
        if len(threads) == 1:
            running.set()
            assert go.wait(SECONDS)
            raise ValueError("first")
        return threading.get_ident()

    def first() -> int:
        with pytest.raises(ValueError, match="first"):
            aw.wait()
        return threading.get_ident()

    def second() -> int:
        assert running.wait(SECONDS)
        go.set()
        return aw.wait()

    aw = awaitable(body)
    assert at_once(first, second) == threads
    assert len({*threads}) == 2


@pytest.mark.spec("futures P1", "runs until it succeeds")
@given(st.lists(st.booleans(), max_size=6))
@settings(max_examples=50, deadline=None)
def test_the_function_runs_until_it_succeeds_and_never_again(fails: list[bool]) -> None:
    """P1: whatever the outcomes."""
    outcomes = [ValueError() if each else "good" for each in fails]
    body = Body(*outcomes, "end")
    aw = awaitable(body)
    needed = fails.index(False) if False in fails else len(fails)
    for turn in range(len(fails) + 2):
        if turn < needed:
            with pytest.raises(ValueError):  # noqa: PT011  # it has no text
                aw.wait()
        else:
            assert aw.wait() == [*outcomes, "end"][needed]
        assert body.runs == min(turn, needed) + 1


@pytest.mark.spec("futures 1.1", "awaits of awaits")
def test_nested_awaits() -> None:
    """1.1, 1.4: an await of an await is waited for twice."""
    inner = awaitable(Body(3))
    outer: Await[Await[int]] = awaitable(Body(inner))
    assert outer.wait() is inner
    assert awaitable_wait(awaitable_wait(outer)) == 3


@needs_fork
def test_a_forked_child_runs_what_another_thread_was_running() -> None:
    """That thread is not there any more, and nobody would release its lock."""
    running, go = threading.Event(), threading.Event()
    mine = threading.get_ident()

    def body() -> str:
        if threading.get_ident() == mine:
            return "here"
        running.set()
        assert go.wait(SECONDS)
        return "there"

    aw = awaitable(body)
    with Threads(aw.wait) as threads:
        assert running.wait(SECONDS)
        assert in_child(lambda: aw.wait() == "here")
        go.set()
    assert threads.results == ["there"]
    assert aw.wait() == "there"


class Slow(set[Any]):
    """Those who use awaits now; who was one of them goes on only when told so."""

    def __init__(self) -> None:
        self.left, self.go = threading.Event(), threading.Event()

    def discard(self, user: Any) -> None:
        super().discard(user)
        self.left.set()
        assert self.go.wait(SECONDS)


@needs_fork
@pytest.mark.parametrize("outcome", [3, ValueError("x")])
def test_a_fork_while_another_thread_is_about_to_leave(
    outcome: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is none of those who use it holds no lock, so the child is not stuck."""
    slow = Slow()
    monkeypatch.setattr("everyorder.runtime.futures.awaits._USERS", slow)
    aw = awaitable(Body(outcome, 3, 3))

    def waits() -> None:
        with suppress(ValueError):
            aw.wait()

    def asked_in_a_child() -> bool:
        slow.go.set()
        value: int = aw.wait()
        return value == 3

    with Threads(waits):
        assert slow.left.wait(SECONDS)
        assert in_child(asked_in_a_child)
        slow.go.set()
    assert aw.wait() == 3


@needs_fork
def test_a_function_that_forks() -> None:
    """The child goes on in it, and holds what its parent holds."""
    aw = awaitable(fork)
    child = aw.wait()
    if not child:
        os._exit(0 if aw.done() and aw.wait() == 0 else 1)
    assert ended_well(child)
