"""Futures: values that one thread waits for and another one provides.

    Future                   complete once, wait, callbacks
    collect_all, wait_all    combine several: `collect_all` waits for all, and its error
                             is that of the first in the list; `wait_all` raises the
                             first error that occurs
    call_end_callbacks       a future that is complete after callbacks were called
    to_... and from_...      futures of `concurrent.futures` and of `asyncio`

`runtime.futures.completion` describes how an outcome reaches waiting threads and
callbacks.

Rules:
- a future is completed once; then it never changes;
- a waiting thread that is interrupted leaves the future unchanged;
- callbacks run in the order of their registration, on the thread that completes the
  future; those of a complete future on the thread that registers them, at once;
- no lock is held while a callback runs;
- a future only handles values: it is independent of messages and of their source;
- a future cannot be cancelled: it represents work that cannot be stopped;
- a future of asyncio is accessed only on the thread of its loop; a closed loop is not
  notified.  `wait` blocks the loop of its thread: coroutines use `await`;
- values and exceptions are passed unchanged; only StopIteration cannot be raised in a
  coroutine;
- other libraries are imported on first use.

| created by                        | if the other side is cancelled                  |
|-----------------------------------|-------------------------------------------------|
| `to_concurrent`                   | it cannot be: it runs from the start            |
| `to_asyncio`, `await future`      | only the asyncio future is; ours continues      |
| `from_concurrent`, `from_asyncio` | ours is completed with `FutureCancelled`        |
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from everyorder.runtime.base.exceptions import traceback_of
from everyorder.runtime.errors.future import (
    FutureCancelled,
    FutureMisuse,
    describe_type,
)
from everyorder.runtime.futures.completion import (
    CallbackStep,
    Completable,
    Error,
    Outcome,
    ValueOutcome,
)

if TYPE_CHECKING:
    import asyncio
    import concurrent.futures
    from collections.abc import Generator


T = TypeVar("T")
S = TypeVar("S")


class Future(Completable, Generic[T]):
    """A value that is available later; `Future[int]` declares its type.

    `devices` is accepted for programs that name them; only the CPU is supported.

    Raises:
        FutureMisuse: a device is another one.
    """

    __slots__ = ()

    def __init__(self, *, devices: Iterable[object] | None = None) -> None:
        if devices is not None:
            _check_devices(devices)
        # Set here: a call of the base class would take half as long again.
        self._outcome = None
        self._callbacks = []
        self._waiters = set()

    def done(self) -> bool:
        """Return True if it is complete, with a value or with an error."""
        return self._outcome is not None

    def wait(self, timeout: float | None = None) -> T:
        """Return the value as soon as there is one; `timeout` is in seconds.

        Raises:
            FutureTimeout: it was not complete in time.
            FutureMisuse: `timeout` is not a number of seconds.
            BaseException: the error that the future was completed with, itself.
        """
        outcome = self._outcome
        if outcome is None:
            outcome = self._wait_outcome(timeout)
        if isinstance(outcome, ValueOutcome):
            value: T = outcome.value
            return value
        try:
            outcome.throw()
        finally:
            # The traceback keeps this frame, which must not keep the error: no cycle.
            del self, outcome

    def value(self) -> T:
        """Return the value of a complete future.

        Raises:
            FutureMisuse: it is not complete.
            BaseException: the error that the future was completed with, itself.
        """
        outcome = self._outcome
        if outcome is None:
            raise FutureMisuse(code="NotSettled")
        if isinstance(outcome, ValueOutcome):
            value: T = outcome.value
            return value
        try:
            outcome.throw()
        finally:
            del self, outcome

    def error(self) -> BaseException | None:
        """Return the error that it was completed with, or None."""
        outcome = self._outcome
        if not isinstance(outcome, Error):
            return None
        outcome.unread = None
        return outcome.error

    def set_result(self, result: T) -> None:
        """Complete it with a value: wake waiting threads, then run callbacks here.

        Raises:
            FutureMisuse: it is complete.
            BaseException: an exit or interrupt of a callback or a signal handler; all
                callbacks ran.
        """
        outcome = ValueOutcome(result)
        if not self._offer(outcome):
            raise _already_complete(self, outcome)

    def set_exception(self, result: Exception) -> None:
        """Complete it with an error, which `wait` and `value` raise.

        Raises:
            FutureMisuse: `result` is not an instance of Exception.
            FutureMisuse, BaseException: as for `set_result`.
        """
        if not isinstance(result, Exception):
            raise FutureMisuse(
                call="Future.set_exception",
                found=describe_type(result),
                wanted="an instance of Exception",
            )
        outcome = Error(result, traceback_of(result))
        if not self._offer(outcome):
            raise _already_complete(self, outcome)

    def set_error_if_needed(self, error: BaseException) -> bool:
        """Complete it with an error; return False, unchanged, if it is complete."""
        return self._offer(Error(error, traceback_of(error)))

    def then(self, callback: "Callable[[Future[T]], S]") -> "Future[S]":
        """Return a future of the result of `callback`, which is called with this one.

        An error of this future is an error of the next one only if the callback waits
        for it, or reads its value.  An exception of the callback becomes a
        `CallbackFailed`.

        Raises:
            FutureMisuse: `callback` cannot be called.
        """
        if not callable(callback):
            raise _not_callable("then", callback)
        child: Future[S] = Future()
        self._register(CallbackStep(callback, child))
        return child

    @overload
    def then_async(
        self, callback: "Callable[[Future[T]], Future[S]]"
    ) -> "Future[S]": ...

    @overload
    def then_async(self, callback: "Callable[[Future[T]], S]") -> "Future[S]": ...

    def then_async(self, callback: "Callable[[Future[T]], Any]") -> "Future[Any]":
        """As `then`; a future that the callback returns is awaited for its outcome.

        Raises:
            FutureMisuse: `callback` cannot be called.
        """
        if not callable(callback):
            raise _not_callable("then_async", callback)
        child: Future[Any] = Future()
        self._register(CallbackStep(callback, child, _follow))
        return child

    def add_done_callback(self, callback: "Callable[[Future[T]], object]") -> None:
        """Call `callback` with this future when it is complete; log its errors.

        Raises:
            FutureMisuse: `callback` cannot be called.
        """
        if not callable(callback):
            raise _not_callable("add_done_callback", callback)
        self._register(CallbackStep(callback, None))

    def _map(self, function: "Callable[[Future[T]], S]") -> "Future[S]":
        """Return a future of `function(self)`; an error of this one is passed on."""

        def transform(future: Future[T], child: object) -> Outcome | None:
            if isinstance(future._outcome, Error):
                return future._outcome
            try:
                return ValueOutcome(function(future))
            except Exception as error:
                return Error(error, traceback_of(error))

        child: Future[S] = Future()
        self._register(CallbackStep(None, child, transform))
        return child

    def __await__(self) -> "Generator[Any, None, T]":
        """Return the value, for coroutines of asyncio; see `to_asyncio`."""
        if self._outcome is None or isinstance(self.error(), StopIteration):
            return (yield from to_asyncio(self).__await__())
        return self.value()

    def __repr__(self) -> str:
        outcome = self._outcome
        state = "not complete" if outcome is None else outcome.summary()
        return f"<{type(self).__name__}: {state}>"


def _follow(result: object, child: Future[Any]) -> Outcome | None:
    """Complete the child with a result, later if the result is a future."""
    if not isinstance(result, Future):
        return ValueOutcome(result)
    if result is child:
        misuse = FutureMisuse(
            call="Future.then_async",
            found="a callback that returned the future of its own result",
            wanted="callbacks that return a value or another future",
        )
        return Error(misuse, None)
    result._forward_to(child)
    return None


def _already_complete(future: Future[Any], outcome: Outcome) -> FutureMisuse:
    assert future._outcome is not None, "else it would have accepted the outcome"
    return FutureMisuse(
        code="AlreadySettled",
        found=future._outcome.summary(),
        wanted=outcome.summary(),
    )


def _not_callable(method: str, callback: object) -> FutureMisuse:
    return FutureMisuse(
        call=f"Future.{method}",
        found=describe_type(callback),
        wanted="a callable of one argument, the future",
    )


def _check_devices(devices: Iterable[object]) -> None:
    for each in devices:
        name = str(each)
        if name.partition(":")[0] != "cpu":
            raise FutureMisuse(
                call="Future(devices=...)",
                found=f"the device `{name}`",
                wanted="the CPU only: values of other devices are not waited for",
            )


def to_concurrent(future: "Future[T]") -> "concurrent.futures.Future[T]":
    """Return a future of `concurrent.futures` with the same outcome."""
    from concurrent.futures import Future as Concurrent

    other: Concurrent[T] = Concurrent()
    other.set_running_or_notify_cancel()

    future.add_done_callback(partial(_complete_other, other))
    return other


def to_asyncio(future: "Future[T]") -> "asyncio.Future[T]":
    """Return a future of the loop that runs in this thread, with the same outcome.

    Raises:
        RuntimeError: no loop runs in this thread.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    other: asyncio.Future[T] = loop.create_future()

    def complete() -> None:
        # The coroutine that awaited it may have been cancelled.
        if not other.done():
            _complete_other(other, future, asks="await")

    def complete_in_loop(settled: "Future[T]") -> None:
        try:
            loop.call_soon_threadsafe(complete)
        except RuntimeError:
            if not loop.is_closed():
                raise

    if future.done():
        complete()
    else:
        step = CallbackStep(complete_in_loop, None)
        future._register(step)
        # Repeated waits that are cancelled must not leave callbacks behind.
        other.add_done_callback(lambda _: future._withdraw(step))
    return other


def _complete_other(other: Any, settled: Future[Any], *, asks: str = "") -> None:
    """Complete a future of another library; `asks` is the coroutine's operation."""
    error = settled.error()
    if error is None:
        other.set_result(settled.value())
        return
    if asks and isinstance(error, StopIteration):
        # In a coroutine it would mean a return; asyncio rejects it.
        misuse = FutureMisuse(
            call=asks,
            found="a future that was completed with StopIteration",
            wanted="errors that a coroutine can raise",
        )
        misuse.__cause__ = error
        error = misuse
    other.set_exception(error)


_Steps = list[tuple[Future[Any], CallbackStep]]


def collect_all(futures: Iterable[Future[T]]) -> Future[list[Future[T]]]:
    """Return a future of the same futures, complete when all of them are.

    With an error among them it is completed with the error of the first in the list.

    Raises:
        FutureMisuse: one of them is not a future.
    """
    return _combination("collect_all", futures, at_first_error=False)[0]


def wait_all(futures: Iterable[Future[T]]) -> list[T]:
    """Return the values of all futures, in their order.

    Raises:
        FutureMisuse: one of them is not a future.
        BaseException: the first error that occurs; the others are not waited for.
    """
    complete, steps = _combination("wait_all", futures, at_first_error=True)
    try:
        return [each.value() for each in complete.wait()]
    finally:
        _read(steps)
        # Futures that are not waited for any more may live long.
        _withdraw(steps)
        # As in `Future.wait`.
        del futures, complete, steps


def call_end_callbacks(
    future: Future[T], *callbacks: Callable[[Future[T]], object]
) -> Future[T]:
    """Return a future with the same outcome, complete after the callbacks were called.

    For measuring how long a value takes: errors of the callbacks are logged, and do not
    change the outcome.

    Raises:
        FutureMisuse: `future` is not a future, or a callback cannot be called.
    """
    (future,) = _check_futures("call_end_callbacks", [future])
    after: Future[T] = Future()
    for each in callbacks:
        future.add_done_callback(each)
    future._forward_to(after)
    return after


def _combination(
    call: str, futures: Iterable[Future[T]], at_first_error: bool
) -> tuple[Future[list[Future[T]]], _Steps]:
    """Return the combined future, and the step that is registered at each member."""
    members = _check_futures(call, futures)
    combined: Future[list[Future[T]]] = Future()
    if not members:
        combined.set_result([])
    # The places of complete members; a step that runs twice changes nothing.
    complete: set[int] = set()
    steps: _Steps = []
    for place, each in enumerate(members):
        combine = partial(_combine, members, complete, place, at_first_error)
        steps.append((each, CallbackStep(None, combined, combine)))
        each._register(steps[-1][1])
    return combined, steps


def _read(steps: _Steps) -> None:
    """Count the errors of complete futures as read: one of them is raised."""
    for future, _ in steps:
        if future.done():
            future.error()


def _withdraw(steps: _Steps) -> None:
    for future, step in steps:
        future._withdraw(step)


def _combine(
    members: list[Future[Any]],
    complete: set[int],
    place: int,
    at_first_error: bool,
    member: Future[Any],
    combined: Future[Any],
) -> Outcome | None:
    """Return the outcome of the combination after a member, or None before the last.

    Of several errors only one is the combination's; the others count as read.
    """
    outcome = member._outcome
    if at_first_error and isinstance(outcome, Error):
        if combined.done():
            outcome.unread = None
        return outcome
    complete.add(place)
    if len(complete) < len(members):
        return None
    outcomes = [each._outcome for each in members]
    errors = [each for each in outcomes if isinstance(each, Error)]
    for other in errors[1:]:
        other.unread = None
    return errors[0] if errors else ValueOutcome(members)


def _check_futures(call: str, futures: Iterable[Any]) -> list[Future[Any]]:
    members = list(futures)
    for place, each in enumerate(members):
        if not isinstance(each, Future):
            raise FutureMisuse(
                call=call,
                found=f"{describe_type(each)} at place {place}",
                wanted="futures of `runtime.futures`",
            )
    return members


def from_concurrent(other: "concurrent.futures.Future[T]") -> Future[T]:
    """Return a future with the outcome of one of `concurrent.futures`.

    Raises:
        FutureMisuse: `other` is not such a future.
    """
    from concurrent.futures import Future as Concurrent

    _check_kind("from_concurrent", other, Concurrent)
    future: Future[T] = Future()

    def complete(settled: "concurrent.futures.Future[T]") -> None:
        _complete_from(future, settled, "concurrent.futures")

    other.add_done_callback(complete)
    return future


def from_asyncio(other: "asyncio.Future[T]") -> Future[T]:
    """Return a future with the outcome of a future or task of asyncio, from any thread.

    Raises:
        FutureMisuse: `other` is not such a future.
        RuntimeError: it is not complete, and its loop is closed.
    """
    import asyncio

    _check_kind("from_asyncio", other, asyncio.Future)
    future: Future[T] = Future()

    def complete(settled: "asyncio.Future[T]") -> None:
        _complete_from(future, settled, "asyncio")

    loop = other.get_loop()
    if other.done():
        # Its loop may never run again.
        complete(other)
    elif asyncio._get_running_loop() is loop:
        other.add_done_callback(complete)
    else:
        loop.call_soon_threadsafe(other.add_done_callback, complete)
    return future


def _complete_from(future: Future[Any], settled: Any, library: str) -> None:
    if settled.cancelled():
        future.set_error_if_needed(FutureCancelled(library=library))
    elif (error := settled.exception()) is not None:
        future.set_error_if_needed(error)
    else:
        # Other code may have completed it, for example by `set_error_if_needed`.
        future._offer(ValueOutcome(settled.result()))


def _check_kind(call: str, other: object, kind: type) -> None:
    if not isinstance(other, kind):
        raise FutureMisuse(
            call=call,
            found=describe_type(other),
            wanted=f"a future of `{call.removeprefix('from_')}`",
        )
