"""One future: completed once, asked and waited for, never copied."""

import copy
import copyreg
import gc
import pickle
import signal
import sys
import typing
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event
from types import FrameType
from typing import Any
from weakref import ref

import pytest

from everyorder.runtime.errors import FutureError, FutureMisuse, FutureTimeout
from everyorder.runtime.futures import Future
from everyorder.runtime.schema.enums import Device
from tests.coded import code, coded
from tests.futures.threads import Threads, at_once, signalled, until_waited_for

Unmovable = coded(FutureMisuse, "Unmovable")


def with_value(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def with_error(error: Exception) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


@pytest.mark.spec("futures 2.1", "classes")
def test_one_class() -> None:
    """2.1: there is one class, whatever makes a future; its subscripts are types."""
    future = Future[int]()
    assert {type(future), type(future.then(lambda f: 1))} == {Future}
    assert typing.get_args(Future[int]) == (int,)
    assert isinstance(future, Future)


class Silent:
    """Has a text that nobody may ask for."""

    def __repr__(self) -> str:
        raise AssertionError("asked for its text")


@pytest.mark.spec("futures 2.1", "text")
def test_a_text_never_waits_nor_asks_the_value() -> None:
    """2.1: the state, and what there is by its type."""
    assert repr(Future()) == "<Future: not complete>"
    assert repr(with_value(Silent())) == "<Future: a value of type Silent>"
    assert repr(with_error(ValueError("x"))) == "<Future: the error ValueError>"


@pytest.mark.spec("futures 2.1", "devices")
def test_devices_are_the_cpu() -> None:
    """2.1: `devices=` is accepted; any other device is refused by its name."""
    cpu = ["cpu", "cpu:0", Device("cpu")]
    assert not Future(devices=cpu).done()
    assert not Future(devices=[]).done()
    for device in ("cuda:1", 0, Device("cuda", 1)):
        with pytest.raises(FutureMisuse, match=f"the device `{device}`"):
            Future(devices=["cpu", device])
    with pytest.raises(TypeError):
        Future("cpu")  # type: ignore[call-arg]  # by keyword only


@pytest.mark.spec("futures 2.2", "done")
@pytest.mark.spec("futures 2.4", "done", "done of an error")
def test_done_with_a_value_and_with_an_error() -> None:
    """2.2, 2.4: done is True on a value or an error."""
    assert not Future().done()
    assert with_value(None).done()
    assert with_error(ValueError()).done()


@pytest.mark.spec("futures 2.2", "wait")
@pytest.mark.spec("futures 2.4", "wait")
def test_waiting_on_the_same_thread() -> None:
    """2.2, 2.4: wait returns the value: the very object, None too."""
    value = object()
    assert with_value(value).wait() is value
    assert with_value(value).value() is value
    assert with_value(None).wait() is None


@pytest.mark.spec("futures 2.2", "wait")
@pytest.mark.spec("futures 2.4", "set_exception, many threads", "wait, many threads")
def test_waiting_on_another_thread() -> None:
    """2.2, 2.4: wait blocks until another thread completes the future."""
    future: Future[int] = Future()
    with Threads(future.wait, future.wait) as threads:
        until_waited_for(future, 2)
        future.set_result(3)
    assert threads.results == [3, 3]


@pytest.mark.spec("futures 2.2", "value")
def test_a_value_that_is_not_there() -> None:
    """2.2: value() never blocks; there is an error that is a RuntimeError."""
    future: Future[int] = Future()
    with pytest.raises(FutureMisuse, check=code("NotSettled")) as caught:
        future.value()
    assert isinstance(caught.value, RuntimeError)
    assert future.error() is None
    future.set_result(3)
    assert future.value() == 3
    assert future.error() is None


COMPLETED = {
    "set_result": lambda future: future.set_result(1),
    "set_exception": lambda future: future.set_exception(ValueError("new")),
}


@pytest.mark.spec("futures 2.2", "set_result twice")
@pytest.mark.spec("futures 2.4", "completed twice")
@pytest.mark.spec("futures 10", "D6 the first completion stays")
@pytest.mark.parametrize("again", COMPLETED)
@pytest.mark.parametrize("first", [with_value(3), with_error(KeyError("old"))])
def test_a_second_completion(again: str, first: Future[Any]) -> None:
    """2.2, 2.4, D5, D6: of any kind, it is refused, and the first one stays intact."""
    before = first._outcome
    with pytest.raises(FutureMisuse, check=code("AlreadySettled")) as caught:
        COMPLETED[again](first)
    assert isinstance(caught.value, RuntimeError)
    assert isinstance(caught.value, FutureError)
    assert first._outcome is before
    if first.error() is None:
        assert first.wait() == 3
    else:
        with pytest.raises(KeyError, match="old"):
            first.wait()


@pytest.mark.spec("futures 2.2", "set_exception")
@pytest.mark.spec("futures 2.4", "set_exception")
def test_an_error_is_raised_itself() -> None:
    """2.2, 2.4: wait and value raise the very exception, each time."""
    error = ValueError("mine")
    future = with_error(error)
    assert future.error() is error
    for ask in (future.wait, future.value, future.wait):
        with pytest.raises(ValueError, match="mine") as caught:
            ask()
        assert caught.value is error


@pytest.mark.spec("futures 2.2", "the place of the error")
@pytest.mark.spec("futures 10", "D5 an error is not a value")
def test_an_error_is_no_value() -> None:
    """2.2, D5: an exception is a value where a value belongs."""
    error = ValueError("mine")
    assert with_value(error).wait() is error
    assert with_value(error).error() is None


@pytest.mark.spec("futures 2.2", "set_exception")
@pytest.mark.parametrize("wrong", [3, None, KeyboardInterrupt(), ValueError])
def test_what_is_no_exception(wrong: Any) -> None:
    """2.2: set_exception takes instances of Exception only; nothing happened then."""
    future: Future[int] = Future()
    with pytest.raises(FutureMisuse, check=code("FutureMisuse")):
        future.set_exception(wrong)
    assert not future.done()


@pytest.mark.spec("futures 13", "set_error_if_needed")
def test_an_error_if_needed() -> None:
    """13: set_error_if_needed says whether it was, and never raises."""
    future: Future[int] = Future()
    error = ValueError("first")
    assert future.set_error_if_needed(error) is True
    assert future.set_error_if_needed(KeyError("second")) is False
    assert future.error() is error
    assert with_value(3).set_error_if_needed(error) is False
    future = Future()
    exit_ = SystemExit()
    assert future.set_error_if_needed(exit_)
    with pytest.raises(SystemExit):
        future.wait()


def traceback_length(ask: Callable[[], object]) -> int:
    try:
        ask()
    except ValueError as error:
        count, traceback = 0, error.__traceback__
        while traceback is not None:
            count, traceback = count + 1, traceback.tb_next
        return count
    raise AssertionError("it raises")


def test_an_error_does_not_collect_the_frames_of_who_waited() -> None:
    future = with_error(ValueError())
    assert len({traceback_length(future.wait) for _ in range(5)}) == 1


def test_an_error_keeps_the_frames_that_it_had() -> None:
    def raising() -> None:
        raise ValueError("here")

    future: Future[int] = Future()
    try:
        raising()
    except ValueError as error:
        future.set_exception(error)
    with pytest.raises(ValueError, match="here") as caught:
        future.wait()
    assert [each.name for each in caught.traceback][-1] == "raising"


def test_a_failed_future_is_freed_without_the_collector() -> None:
    """An error that was raised does not keep the future, nor itself."""

    class Mine(ValueError):
        pass

    gc.collect()
    gc.disable()
    try:
        errors = []
        for ask in ("wait", "value"):
            error = Mine()
            errors.append(ref(error))
            asked = getattr(with_error(error), ask)
            del error
            with pytest.raises(Mine):
                asked()
            del asked
        # pytest keeps what it caught, until the next is.
        with pytest.raises(KeyError):
            raise KeyError
        assert [each() for each in errors] == [None, None]
    finally:
        gc.enable()


@pytest.mark.spec("script 0.19", "owners")
def test_an_abandoned_future_is_freed_without_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        future: Future[int] = Future()
        future.add_done_callback(print)
        child = future.then(lambda f: f.value())
        kept = ref(future), ref(child)
        del future, child
        assert [each() for each in kept] == [None, None]
    finally:
        gc.enable()


@pytest.mark.spec("futures 2.2", "timeouts")
def test_a_wait_that_ends_in_time() -> None:
    """2.2: a timeout leaves the future as it was: it can be waited for again."""
    future: Future[int] = Future()
    for seconds in (0, 0.001):
        with pytest.raises(FutureTimeout) as caught:
            future.wait(timeout=seconds)
        assert isinstance(caught.value, TimeoutError)
        assert caught.value.seconds == seconds
    assert not future._waiters
    assert not future.done()
    future.set_result(3)
    assert future.wait(timeout=0) == 3


@pytest.mark.parametrize("timeout", [None, float("inf"), 1e300, 10**400])
def test_timeouts_without_an_end(timeout: float | None) -> None:
    future: Future[int] = Future()
    with Threads(lambda: future.wait(timeout)) as threads:
        until_waited_for(future)
        future.set_result(3)
    assert threads.results == [3]


@pytest.mark.parametrize("timeout", [-1, -0.5, float("nan"), "soon", [1]])
def test_timeouts_that_are_none(timeout: Any) -> None:
    future: Future[int] = Future()
    with pytest.raises(FutureMisuse, match=r"Future.wait"):
        future.wait(timeout)
    assert not future._waiters


def test_a_wait_that_is_interrupted_leaves_the_future_as_it_was() -> None:
    """Ctrl-C while it waits: whoever waits next gets the value."""
    future: Future[int] = Future()

    heard = Event()

    def interrupt() -> None:
        until_waited_for(future)
        signalled(signal.SIGINT, heard)

    with Threads(interrupt):
        with pytest.raises(KeyboardInterrupt):
            future.wait()
        heard.set()
    assert not future._waiters
    assert not future.done()
    future.set_result(3)
    assert future.wait() == 3


def test_a_signal_handler_may_complete_the_future_that_its_thread_waits_for() -> None:
    future: Future[int] = Future()
    heard = Event()

    def complete(*_: object) -> None:
        heard.set()
        future.set_result(3)

    before = signal.signal(signal.SIGUSR1, complete)
    try:

        def interrupt() -> None:
            until_waited_for(future)
            signalled(signal.SIGUSR1, heard)

        with Threads(interrupt):
            assert future.wait() == 3
    finally:
        signal.signal(signal.SIGUSR1, before)


MOVED: dict[str, Callable[[object], object]] = {
    "pickled": pickle.dumps,
    "copied": copy.copy,
    "copied in depth": copy.deepcopy,
}


@pytest.mark.spec("futures 2.2", "not pickled")
@pytest.mark.spec("futures 2.4", "pickled")
@pytest.mark.parametrize("moved", MOVED)
@pytest.mark.parametrize("future", [Future(), with_value(3)])
def test_a_future_stays(moved: str, future: Future[int]) -> None:
    """2.2, 2.4: not picklable, not to be copied, and it says so by its name."""
    with pytest.raises(Unmovable, match="Future objects") as caught:
        MOVED[moved](future)
    assert isinstance(caught.value, RuntimeError)


class Forged:
    """A pickle of a future that somebody made by hand."""

    def __reduce__(self) -> Any:
        return copyreg._reconstructor, (Future, object, None), {"_outcome": 3}  # type: ignore[attr-defined]  # as pickles of old have it


@pytest.mark.spec("futures 1.2", "not copied")
def test_a_future_is_not_unpickled() -> None:
    """1.2: the other direction is refused, too."""
    with pytest.raises(Unmovable, match="unpickled"):
        pickle.loads(pickle.dumps(Forged()))


def test_a_subclass_is_named_by_its_own_name() -> None:
    class Mine(Future[int]):
        pass

    assert repr(Mine()) == "<Mine: not complete>"
    with pytest.raises(Unmovable, match="Mine objects"):
        copy.copy(Mine())
    # What follows from it is an ordinary future.
    assert type(Mine().then(lambda f: 1)) is Future


class Ready(SimpleQueue[None]):
    """Refuses to wait: whoever would, would do so for ever."""

    def get(self, block: bool = True, timeout: float | None = None) -> None:
        assert not self.empty(), "a future is waited for that is complete"
        super().get(block, timeout)


@pytest.mark.parametrize("at", range(7))
def test_a_thread_may_complete_what_it_is_about_to_wait_for(
    at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any line before it waits, as a finalizer may."""
    monkeypatch.setattr("everyorder.runtime.futures.completion.SimpleQueue", Ready)
    future: Future[int] = Future()
    lines: list[int] = []

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code is not Future._wait_outcome.__code__:
            return None
        if event == "line":
            lines.append(frame.f_lineno)
            if len(lines) == at + 1:
                future.set_result(3)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert future.wait() == 3
    finally:
        sys.settrace(before)
    assert len(lines) > at
    assert not future._waiters


@pytest.mark.spec("futures 2.2", "set_result twice")
def test_one_of_many_completes_it() -> None:
    """2.2: however many threads try at once, one does, and all see that one."""
    for _ in range(50):
        future: Future[int] = Future()

        def complete(value: int, future: Future[int] = future) -> bool:
            try:
                future.set_result(value)
            except FutureMisuse as error:
                if error.code != "AlreadySettled":
                    raise
                return False
            return True

        told = at_once(
            lambda: complete(0), lambda: complete(1), lambda: complete(2), future.wait
        )
        assert told[:3].count(True) == 1
        assert told[:3].index(True) == told[3] == future.wait()
