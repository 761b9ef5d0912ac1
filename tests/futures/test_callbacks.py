"""Callbacks: in order, on the completing thread, their results, and their errors."""

import gc
import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import ref

import pytest

from everyorder.runtime.errors import CallbackFailed, FutureMisuse
from everyorder.runtime.futures import Future
from tests.futures.test_future import with_error, with_value
from tests.futures.threads import SECONDS, Threads, at_once, until_waited_for


@pytest.mark.spec("futures 2.2", "then")
@pytest.mark.spec("futures 2.4", "then")
def test_then() -> None:
    """2.2, 2.4: called with the same future; a new one holds what it returns."""
    future: Future[int] = Future()
    seen: list[Future[int]] = []

    def plus(settled: Future[int]) -> int:
        seen.append(settled)
        return settled.wait() + 1

    child = future.then(plus)
    assert (child is not future, child.done(), seen) == (True, False, [])
    future.set_result(1)
    assert seen == [future]
    assert seen[0] is future
    assert child.wait() == 2


@pytest.mark.spec("futures 2.4", "chained then")
def test_a_chain() -> None:
    """2.4: chained then."""
    first: Future[int] = Future()
    last = first.then(lambda f: f.wait() + 1).then(lambda f: f.wait() * 10)
    first.set_result(1)
    assert last.wait() == 20


@pytest.mark.spec("futures 2.2", "at once")
def test_of_a_complete_future_a_callback_runs_at_once() -> None:
    """2.2: inline, on the thread that registers it."""
    seen: list[int] = []
    with_value(3).add_done_callback(lambda f: seen.append(f.wait()))
    assert seen == [3]
    child = with_value(3).then(lambda f: threading.get_ident())
    assert child.value() == threading.get_ident()


@pytest.mark.spec("futures 2.2", "order")
@pytest.mark.spec("futures 2.4", "add_done_callback, order", "interleaving order")
def test_callbacks_run_in_the_order_in_which_they_were_registered() -> None:
    """2.2, 2.4: then and add_done_callback interleave."""
    future: Future[int] = Future()
    seen: list[int] = []
    future.add_done_callback(lambda f: seen.append(1))
    future.then(lambda f: seen.append(2))
    future.add_done_callback(lambda f: seen.append(3))
    future.then(lambda f: seen.append(4))
    future.set_result(0)
    assert seen == [1, 2, 3, 4]


@pytest.mark.spec("futures 2.2", "order")
def test_what_follows_from_a_callback_comes_before_the_next_one() -> None:
    """2.2: a child is complete, and its callbacks run, before the next callback."""
    future: Future[int] = Future()
    seen: list[str] = []

    def note(text: str) -> Callable[[Future[Any]], None]:
        return lambda f: seen.append(text)

    child = future.then(note("a"))
    grandchild = child.then(note("a.a"))
    grandchild.then(note("a.a.a"))
    child.then(note("a.b"))
    future.then(note("b"))
    future.set_result(0)
    assert seen == ["a", "a.a", "a.a.a", "a.b", "b"]


@pytest.mark.spec("futures 2.2", "then")
def test_callbacks_run_on_the_completing_thread() -> None:
    """2.2: wherever they were registered."""
    future: Future[int] = Future()
    children = [future.then(lambda f: threading.get_ident()) for _ in range(3)]

    def complete() -> int:
        future.set_result(0)
        return threading.get_ident()

    [completing] = at_once(complete)
    assert {each.wait() for each in children} == {completing}
    assert completing != threading.get_ident()


@pytest.mark.spec("futures 2.2", "locks")
def test_callbacks_run_outside_of_the_lock() -> None:
    """2.2: another thread can use futures while one runs."""
    future: Future[int] = Future()

    def meet(settled: Future[int]) -> Any:
        return at_once(lambda: settled.then(lambda f: f.wait()).wait())

    child = future.then(meet)
    future.set_result(3)
    assert child.wait() == [3]


def test_a_callback_may_register_and_complete() -> None:
    future: Future[int] = Future()
    other: Future[int] = Future()
    seen: list[str] = []

    def first(settled: Future[int]) -> None:
        settled.add_done_callback(lambda f: seen.append("inner"))
        seen.append("first")
        other.set_result(1)

    future.add_done_callback(first)
    future.add_done_callback(lambda f: seen.append("second"))
    other.add_done_callback(lambda f: seen.append("other"))
    future.set_result(0)
    assert seen == ["inner", "first", "other", "second"]


@pytest.mark.spec("futures 2.2", "not flat")
def test_a_future_of_a_future() -> None:
    """2.2: then does not flatten."""
    inner: Future[int] = Future()
    child = with_value(0).then(lambda f: inner)
    assert child.value() is inner


@pytest.mark.spec("futures 13", "then_async")
def test_then_async_flattens() -> None:
    """13: a future that the callback returns stands for its outcome."""
    inner: Future[int] = Future()
    child = with_value(0).then_async(lambda f: inner)
    assert not child.done()
    inner.set_result(3)
    assert child.value() == 3
    # One that is complete, a value, and an error.
    assert with_value(0).then_async(lambda f: inner).value() == 3
    assert with_value(0).then_async(lambda f: 4).value() == 4
    error = ValueError("inner")
    assert with_value(0).then_async(lambda f: with_error(error)).error() is error
    # One level, as it says.
    deep = with_value(0).then_async(lambda f: with_value(inner))
    assert deep.value() is inner


def test_then_async_of_what_fails() -> None:
    def fails(future: Future[int]) -> Future[int]:
        raise KeyError("here")

    child = with_value(0).then_async(fails)
    assert isinstance(child.error(), CallbackFailed)


def test_then_async_of_itself() -> None:
    """It would wait for itself for ever."""
    future: Future[int] = Future()
    own: list[Future[Any]] = []
    child = future.then_async(lambda f: own[0])
    own.append(child)
    future.set_result(0)
    assert isinstance(child.error(), FutureMisuse)


def test_what_follows_a_flattened_future_follows_it() -> None:
    inner: Future[int] = Future()
    seen: list[str] = []
    first = with_value(0).then_async(lambda f: inner)
    first.then(lambda f: seen.append("first"))
    inner.add_done_callback(lambda f: seen.append("inner"))
    inner.set_result(1)
    assert seen == ["first", "inner"]


def fails(future: Future[Any]) -> int:
    raise ValueError("a text")


@pytest.mark.spec("futures 2.2", "errors of callbacks")
@pytest.mark.spec("futures 2.4", "then, raising")
def test_a_callback_that_raises() -> None:
    """2.2, 2.4: always a RuntimeError, with the type and the text, and where it was."""
    error = with_value(0).then(fails).error()
    assert isinstance(error, CallbackFailed)
    assert isinstance(error, RuntimeError)
    assert (error.callback, error.error) == ("fails", "ValueError: a text")
    assert [frame.rpartition(" in ")[2] for frame in error.at] == ["fails"]
    assert isinstance(error.__cause__, ValueError)


@pytest.mark.spec("futures 2.2", "errors of callbacks")
def test_a_callback_that_ends_an_iteration() -> None:
    """2.2: StopIteration is an error like any other."""

    def stops(future: Future[Any]) -> int:
        raise StopIteration("a text")

    error = with_value(0).then(stops).error()
    assert isinstance(error, CallbackFailed)
    assert error.error == "StopIteration: a text"


@pytest.mark.spec("futures 2.2", "errors of the parent")
def test_an_error_alone_does_not_fail_what_follows() -> None:
    """2.2: only if the callback touches the value."""
    future = with_error(ValueError("x"))
    assert future.then(lambda f: f.done()).value() is True
    error = future.then(lambda f: f.wait()).error()
    assert isinstance(error, CallbackFailed)
    assert error.error == "ValueError: x"
    assert error.__cause__ is future.error()
    error = future.then(lambda f: f.value()).error()
    assert isinstance(error, CallbackFailed)


@pytest.mark.spec("futures 2.4", "set_exception, then", "interleaving errors")
def test_an_error_that_a_chain_hands_on() -> None:
    """2.2, 2.4: interleaved, the error reaches whoever waits; told once, not nested."""
    future: Future[int] = Future()
    first = future.then(fails)
    second = first.then(lambda f: f.wait())
    third = second.then(lambda f: f.wait() + 1)
    future.add_done_callback(lambda f: f.wait())
    future.set_result(0)
    assert first.error() is second.error() is third.error()
    with pytest.raises(RuntimeError, match="ValueError: a text"):
        third.wait()


@pytest.mark.spec("futures 2.2", "arguments of callbacks")
@pytest.mark.spec("futures 2.4", "then, wrong argument", "then, no argument")
@pytest.mark.spec("futures 2.4", "add_done_callback, no argument")
def test_callbacks_with_the_wrong_number_of_arguments() -> None:
    """2.2, 2.4: the same error; told by add_done_callback in the log."""
    two: Any = lambda a, b: 1  # noqa: E731  # as short as a program has it
    none: Any = lambda: 1  # noqa: E731  # as above
    for wrong, said in ((none, "takes 0 positional"), (two, "missing 1 required")):
        error = with_value(0).then(wrong).error()
        assert isinstance(error, CallbackFailed)
        assert said in error.error


@pytest.mark.spec("futures 2.2", "not callable")
@pytest.mark.parametrize("method", ["then", "then_async", "add_done_callback"])
@pytest.mark.parametrize("wrong", [None, 3, "f"])
def test_what_cannot_be_called(method: str, wrong: Any) -> None:
    """2.2, 2.4: a TypeError, and nothing is registered."""
    future: Future[int] = Future()
    with pytest.raises(FutureMisuse, match=method) as caught:
        getattr(future, method)(wrong)
    assert isinstance(caught.value, TypeError)
    assert not future._callbacks


@pytest.mark.spec("futures 2.2", "logged")
@pytest.mark.spec("futures 2.4", "add_done_callback")
@pytest.mark.spec("futures 2.4", "add_done_callback, errors ignored")
def test_errors_of_done_callbacks_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """2.2, 2.4: and swallowed: the next callback runs, the value stays."""
    future: Future[int] = Future()
    seen: list[int] = []
    none: Any = lambda: 1  # noqa: E731  # as short as a program has it
    future.add_done_callback(fails)
    future.add_done_callback(none)
    future.add_done_callback(lambda f: seen.append(f.wait()))
    with caplog.at_level(logging.ERROR, "everyorder.runtime.futures"):
        future.set_result(3)
    assert (seen, future.wait()) == ([3], 3)
    texts = (record.getMessage() for record in caplog.records)
    first, second = (" ".join(text.split()) for text in texts)
    assert "The callback `fails` raised ValueError: a text" in first
    assert "takes 0 positional" in second
    assert caplog.records[0].exc_info is not None


class Unwritable(Exception):
    """Has no text, and says so."""

    def __str__(self) -> str:
        raise AssertionError("asked for its text")


class Odd:
    """A callable without a name."""

    def __call__(self, future: object) -> int:
        raise Unwritable

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"asked for its {name}")


def test_errors_and_callables_without_texts() -> None:
    error = with_value(0).then(Odd()).error()
    assert isinstance(error, CallbackFailed)
    assert error.callback == "Odd"
    assert "Unwritable" in error.error
    error = with_value(0).then(partial(fails)).error()
    assert isinstance(error, CallbackFailed)
    assert error.callback == "partial"


def test_an_error_that_cannot_be_drawn() -> None:
    """It is named, and who completes the future hears nothing of it."""

    def fails_oddly(future: Future[Any]) -> int:
        place: Any = ("file", 1, "no column", "text")
        raise SyntaxError("odd", place)

    future: Future[int] = Future()
    child = future.then(fails_oddly)
    raised = None
    try:
        future.set_result(3)
    except TypeError as drawing:  # which no traceback can show
        raised = str(drawing)
    assert raised is None
    error = child.error()
    assert isinstance(error, CallbackFailed)
    assert error.error == "SyntaxError"
    assert isinstance(error.__cause__, SyntaxError)


def test_a_log_that_fails() -> None:
    """Nor of that, and the next callback runs."""

    def refuses(record: logging.LogRecord) -> bool:
        raise ValueError(record.name)

    future: Future[int] = Future()
    future.add_done_callback(fails)
    child = future.then(lambda f: f.wait())
    logger = logging.getLogger("everyorder.runtime.futures")
    logger.addFilter(refuses)
    try:
        future.set_result(3)
    finally:
        logger.removeFilter(refuses)
    assert child.value() == 3


def test_what_callbacks_hold_is_freed_without_the_collector() -> None:
    """Once it is complete; also where the callback failed."""

    class Mine:
        def __call__(self, future: Future[Any]) -> int:
            return 1

        def fail(self, future: Future[Any]) -> int:
            raise ValueError

    gc.collect()
    gc.disable()
    try:
        held = Mine()
        kept = ref(held)
        future: Future[int] = Future()
        child = future.then(held)
        failed = future.then(held.fail)
        future.set_result(1)
        gone = ref(future)
        del future, held
        # The frames of the error have it.
        assert kept() is not None
        del failed
        assert (kept(), gone()) == (None, None)
        assert child.value() == 1
    finally:
        gc.enable()


def test_a_long_chain_needs_no_room() -> None:
    """However long: it is one loop; so is its end, and so are errors."""
    first: Future[int] = Future()
    last = first
    for _ in range(20_000):
        last = last.then(lambda f: f.wait() + 1)
    first.set_result(0)
    assert last.wait() == 20_000
    failed = first.then(fails)
    first = failed
    for _ in range(5_000):
        failed = failed.then(lambda f: f.wait())
    assert failed.error() is first.error()
    waiting: Future[int] = Future()
    outer = waiting

    def give(inner: Future[int], future: object) -> Future[int]:
        return inner

    for _ in range(5_000):
        outer = with_value(0).then_async(partial(give, outer))
    waiting.set_result(3)
    assert outer.wait() == 3


def exits(future: Future[Any]) -> int:
    raise SystemExit(3)


def test_a_callback_that_exits_loses_no_other_one() -> None:
    """What nobody may catch is raised by who completes, after all callbacks ran."""
    future: Future[int] = Future()
    seen: list[int] = []
    child = future.then(exits)
    child.add_done_callback(lambda f: seen.append(1))
    future.add_done_callback(exits)
    future.then(lambda f: seen.append(2))
    with pytest.raises(SystemExit):
        future.set_result(0)
    assert (seen, future.value()) == ([1, 2], 0)
    error = child.error()
    assert isinstance(error, CallbackFailed)
    assert error.error == "SystemExit: 3"


def test_what_comes_after_an_exit_has_errors_of_its_own() -> None:
    """A callback that ends an iteration is not taken for the one that exited."""
    future: Future[int] = Future()
    future.add_done_callback(exits)
    empty: list[int] = []
    child = future.then(lambda f: next(iter(empty)))
    with pytest.raises(SystemExit):
        future.set_result(0)
    error = child.error()
    assert isinstance(error, CallbackFailed)
    assert error.error == "StopIteration"


def test_a_future_that_a_callback_was_to_complete_may_be_complete() -> None:
    """Somebody else did: that stays."""
    future: Future[int] = Future()
    child = future.then(lambda f: 1)
    child.set_result(2)
    future.set_result(0)
    assert child.value() == 2


def test_registering_beside_completing() -> None:
    """Each callback runs once, whoever was first."""
    for _ in range(50):
        future: Future[int] = Future()
        seen: list[int] = []

        def register(place: int, future: Future[int], seen: list[int]) -> None:
            future.add_done_callback(lambda f: seen.append(place))
            future.then(lambda f: seen.append(place + 10)).wait()

        at_once(
            partial(future.set_result, 0),
            *(partial(register, place, future, seen) for place in range(3)),
        )
        assert sorted(seen) == [0, 1, 2, 10, 11, 12]
        for place in range(3):
            assert seen.index(place) < seen.index(place + 10)


def test_who_waits_is_woken_before_callbacks_run() -> None:
    future: Future[int] = Future()
    woken = threading.Event()

    def wait() -> None:
        future.wait()
        woken.set()

    child = future.then(lambda f: woken.wait(SECONDS))
    with Threads(wait):
        until_waited_for(future)
        future.set_result(0)
    assert child.value() is True
