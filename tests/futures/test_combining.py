"""Futures of futures: all of them, their values, and who measures them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from everyorder.runtime.errors import CallbackFailed, FutureMisuse
from everyorder.runtime.futures import Future, call_end_callbacks, collect_all, wait_all
from tests.futures.test_callbacks import exits, fails
from tests.futures.test_future import with_error, with_value
from tests.futures.threads import Threads, at_once


def futures(count: int) -> list[Future[int]]:
    return [Future() for _ in range(count)]


@pytest.mark.spec("futures 2.2", "collect_all")
@pytest.mark.spec("futures 2.4", "collect_all")
def test_collect_all() -> None:
    """2.2, 2.4: complete when all are; the value is the list of the same futures."""
    members = futures(3)
    combined = collect_all(iter(members))
    for place in (1, 2, 0):
        assert not combined.done()
        members[place].set_result(place)
    for member, found in zip(members, combined.wait(), strict=True):
        assert member is found


@pytest.mark.spec("futures 2.2", "collect_all")
def test_collect_all_of_none() -> None:
    """2.2: of no futures it is complete at once."""
    assert collect_all([]).value() == []


def test_collect_all_of_one_future_twice() -> None:
    one: Future[int] = Future()
    combined = collect_all([one, one])
    seen: list[int] = []
    combined.add_done_callback(lambda f: seen.append(len(f.value())))
    one.set_result(1)
    assert seen == [2]


@pytest.mark.spec("futures 2.2", "collect_all")
def test_collect_all_with_an_error() -> None:
    """2.2: the error of a member, the first in the list, once all are complete."""
    members = futures(3)
    combined = collect_all(members)
    first, second = KeyError("first"), ValueError("second")
    members[2].set_exception(second)
    members[1].set_exception(first)
    assert not combined.done()
    members[0].set_result(0)
    assert combined.error() is first
    with pytest.raises(KeyError, match="first"):
        combined.wait()


WRONG: list[tuple[Callable[..., object], list[Any], str]] = [
    (collect_all, [None], "None at place 0"),
    (wait_all, [None], "None at place 0"),
    (wait_all, [with_value(0), 3], "an object of type int at place 1"),
    (call_end_callbacks, [None], "None at place 0"),
]


@pytest.mark.spec("futures 2.2", "collect_all")
@pytest.mark.spec("futures 2.4", "wait_all and None")
@pytest.mark.parametrize(("call", "given", "said"), WRONG)
def test_what_is_no_future(call: Any, given: list[Any], said: str) -> None:
    """2.2, 2.4: None, and anything else, is refused with its place."""
    argument = given[0] if call is call_end_callbacks else given
    with pytest.raises(FutureMisuse, match=said) as caught:
        call(argument)
    assert isinstance(caught.value, RuntimeError)
    assert isinstance(caught.value, TypeError)


@pytest.mark.spec("futures 2.2", "wait_all")
@pytest.mark.spec("futures 2.4", "wait_all and None")
def test_wait_all() -> None:
    """2.2, 2.4: the values, in the order of the futures."""
    members = futures(3)
    with Threads(partial(wait_all, members)) as threads:
        for place in (1, 2, 0):
            members[place].set_result(place)
    assert threads.results == [[0, 1, 2]]
    assert wait_all([]) == []
    assert wait_all(iter([with_value(3)])) == [3]


@pytest.mark.spec("futures 2.2", "wait_all")
def test_wait_all_ends_at_the_first_error() -> None:
    """2.2: it does not wait for the others, wherever they stand."""
    members = futures(3)
    members[1].set_exception(ValueError("early"))
    with pytest.raises(ValueError, match="early"):
        wait_all(members)

    members = futures(3)

    def wait() -> None:
        with pytest.raises(KeyError, match="late"):
            wait_all(members)

    with Threads(wait):
        members[0].set_result(0)
        members[2].set_exception(KeyError("late"))
    assert not members[1].done()


def test_wait_all_leaves_nothing_at_those_it_did_not_wait_for() -> None:
    """A future that lives long does not collect all who ever waited."""
    lasting: Future[int] = Future()
    for _ in range(3):
        with pytest.raises(KeyError):
            wait_all([lasting, with_error(KeyError("mine"))])
    assert not lasting._callbacks
    lasting.set_result(3)
    assert wait_all([lasting]) == [3]


def test_wait_all_of_several_errors() -> None:
    """Of those that are there, the first in the list."""
    members = [with_value(0), with_error(KeyError("a")), with_error(ValueError("b"))]
    with pytest.raises(KeyError, match="a"):
        wait_all(members)


def test_members_that_complete_at_once() -> None:
    for _ in range(30):
        members = futures(4)
        combined = collect_all(members)
        seen: list[object] = []
        combined.add_done_callback(seen.append)
        at_once(*(partial(each.set_result, 1) for each in members), combined.wait)
        assert seen == [combined]
        assert wait_all(members) == [1, 1, 1, 1]


@pytest.mark.spec("futures 0.9", "who measures")
@pytest.mark.spec("rpc 0.9", "a profiler needs a future of anything")
def test_who_measures() -> None:
    """4.10, 0.9: callbacks see the future; what follows has its value, later."""
    future: Future[Any] = Future()
    seen: list[str] = []

    def note(text: str) -> Callable[[Future[Any]], None]:
        return lambda f: seen.append(f"{text} {f.value()} {after.done()}")

    after = call_end_callbacks(future, note("a"), note("b"))
    after.add_done_callback(note("c"))
    value = object()
    future.set_result("x")
    assert seen == ["a x False", "b x False", "c x True"]
    after = call_end_callbacks(with_value(value))
    assert after.value() is value


def test_who_measures_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """4.10: errors of the callbacks are logged, an error of the future is handed on."""
    error = ValueError("mine")
    after = call_end_callbacks(with_error(error), fails)
    assert after.error() is error
    assert "The callback `fails` raised" in caplog.text
    future: Future[int] = Future()
    after = call_end_callbacks(future, exits)
    with pytest.raises(SystemExit):
        future.set_result(3)
    assert after.value() == 3


def test_an_error_of_then_is_a_members_error() -> None:
    combined = collect_all([with_value(0), with_value(0).then(fails)])
    assert isinstance(combined.error(), CallbackFailed)
