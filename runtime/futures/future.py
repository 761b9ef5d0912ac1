"""Futures: values that somebody waits for and somebody else brings, from any thread.

Here is what a future is asked and told, and how it stands for futures of
`concurrent.futures` and of `asyncio`.  How an outcome reaches everybody is told in
`runtime.futures.settling`.

Rules:
- a future is completed once; then it never changes;
- who waits and is interrupted leaves the future as it was;
- callbacks run in the order in which they were registered, on the thread that completes
  the future; of a complete future on the thread that registers them, at once;
- no lock is held while a callback runs;
- a future knows of values only: nothing of messages, nothing of who brings the value;
- a future cannot be cancelled: it stands for work that nobody takes back;
- a future of asyncio is touched on the thread of its loop only; a loop that is closed
  is not told.  Who waits with `wait` stops his loop: coroutines say `await`;
- values and exceptions cross as they are; but no coroutine can raise StopIteration;
- other libraries are loaded when they are first needed.

| made by                           | where the other side is cancelled                |
|-----------------------------------|--------------------------------------------------|
| `to_concurrent`                   | it cannot be: it runs from the start             |
| `to_asyncio`, `await future`      | it alone is; ours goes on, and tells nobody      |
| `from_concurrent`, `from_asyncio` | ours is completed with `FutureCancelled`         |
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from runtime.errors.future import AlreadySettled, FutureMisuse, FutureTimeout, described
from runtime.futures.settling import LOCK, Error, Outcome, Stays, Step, Value, due, run

if TYPE_CHECKING:
    import asyncio
    import concurrent.futures
    from collections.abc import Generator


T = TypeVar("T")
S = TypeVar("S")


class Future(Stays, Generic[T]):
    """A value that comes later; `Future[int]` says of which type.

    `devices` is there for programs that name them; the only one is the CPU.

    Raises:
        FutureMisuse: a device is another one.
    """

    __slots__ = ("__weakref__", "_callbacks", "_outcome", "_waiters")

    def __init__(self, *, devices: Iterable[object] | None = None) -> None:
        if devices is not None:
            _check_devices(devices)
        self._outcome: Outcome | None = None
        self._callbacks: list[Step] = []
        # One for each thread that waits: whatever is put into it wakes that thread.
        self._waiters: set[SimpleQueue[None]] = set()

    def done(self) -> bool:
        """Whether it is complete, with a value or with an error."""
        return self._outcome is not None

    def wait(self, timeout: float | None = None) -> T:
        """The value, as soon as there is one; `timeout` is in seconds.

        Raises:
            FutureTimeout: it was not complete in time.
            FutureMisuse: `timeout` is no number of seconds.
            BaseException: the error that the future was completed with, itself.
        """
        outcome = self._outcome
        if outcome is None:
            outcome = self._awaited(timeout)
        if isinstance(outcome, Value):
            value: T = outcome.value
            return value
        try:
            outcome.throw()
        finally:
            # An error keeps the frames that it passes: they may not keep it.
            del self, outcome

    def value(self) -> T:
        """The value that is there.

        Raises:
            FutureMisuse: there is none yet.
            BaseException: the error that the future was completed with, itself.
        """
        outcome = self._outcome
        if outcome is None:
            raise FutureMisuse(code="NotSettled")
        if isinstance(outcome, Value):
            value: T = outcome.value
            return value
        try:
            outcome.throw()
        finally:
            del self, outcome

    def error(self) -> BaseException | None:
        """The error that it was completed with; None for a value, or before that."""
        outcome = self._outcome
        return outcome.error if isinstance(outcome, Error) else None

    def set_result(self, result: T) -> None:
        """Complete it with a value: who waits is woken, then callbacks run here.

        Raises:
            AlreadySettled: it is complete.
            BaseException: no `Exception`, of a callback or a signal; all callbacks ran.
        """
        outcome = Value(result)
        if not self._offer(outcome):
            raise _complete(self, outcome)

    def set_exception(self, result: Exception) -> None:
        """Complete it with an error, which `wait` and `value` raise.

        Raises:
            FutureMisuse: it is no instance of Exception.
            AlreadySettled, BaseException: as of `set_result`.
        """
        if not isinstance(result, Exception):
            raise FutureMisuse(
                code="FutureMisuse",
                call="Future.set_exception",
                found=described(result),
                wanted="an instance of Exception",
            )
        outcome = Error(result, result.__traceback__)
        if not self._offer(outcome):
            raise _complete(self, outcome)

    def set_error_if_needed(self, error: BaseException) -> bool:
        """Complete it with an error unless it is complete; whether it was needed."""
        return self._offer(Error(error, error.__traceback__))

    def then(self, callback: "Callable[[Future[T]], S]") -> "Future[S]":
        """A future of what `callback` returns, which is called with this one.

        An error of this future is an error of the next one only where the callback
        waits for it, or takes its value.  What the callback raises becomes a
        `CallbackFailed`.

        Raises:
            FutureMisuse: `callback` cannot be called.
        """
        if not callable(callback):
            raise _not_callable("then", callback)
        child: Future[S] = Future()
        self._register(Step(callback, child))
        return child

    @overload
    def then_async(
        self, callback: "Callable[[Future[T]], Future[S]]"
    ) -> "Future[S]": ...

    @overload
    def then_async(self, callback: "Callable[[Future[T]], S]") -> "Future[S]": ...

    def then_async(self, callback: "Callable[[Future[T]], Any]") -> "Future[Any]":
        """As `then`; a future that the callback returns stands for its own outcome.

        Raises:
            FutureMisuse: `callback` cannot be called.
        """
        if not callable(callback):
            raise _not_callable("then_async", callback)
        child: Future[Any] = Future()
        self._register(Step(callback, child, _follow))
        return child

    def add_done_callback(self, callback: "Callable[[Future[T]], object]") -> None:
        """Call `callback` with this future when it is complete; errors are logged.

        Raises:
            FutureMisuse: `callback` cannot be called.
        """
        if not callable(callback):
            raise _not_callable("add_done_callback", callback)
        self._register(Step(callback, None))

    def __await__(self) -> "Generator[Any, None, T]":
        """The value, for coroutines of asyncio; see `to_asyncio`."""
        if self._outcome is None or isinstance(self.error(), StopIteration):
            return (yield from to_asyncio(self).__await__())
        return self.value()

    def __repr__(self) -> str:
        outcome = self._outcome
        state = "not complete" if outcome is None else outcome.described()
        return f"<{type(self).__name__}: {state}>"

    def _offer(self, outcome: Outcome) -> bool:
        """Complete it unless it is complete; whether this outcome did."""
        if not self._callbacks:
            with LOCK:
                # Nobody to tell: many are complete before they are asked.
                if not (self._outcome or self._callbacks or self._waiters):
                    self._outcome = outcome
                    return True
        run([Step(None, self, None, outcome)])
        return self._outcome is outcome

    def _offer_quietly(self, outcome: Outcome) -> bool:
        """As `_offer`, unless a callback would run: then False, and nothing is done."""
        with LOCK:
            if self._callbacks:
                return False
            if self._outcome is None:
                self._outcome = outcome
            for waiter in tuple(self._waiters):
                waiter.put(None)
        return True

    def _register_before(self, callback: "Callable[[Future[T]], object]") -> bool:
        """As `add_done_callback`, unless it is complete: then False, and nothing."""
        with LOCK:
            if self._outcome is not None:
                return False
            self._callbacks.append(Step(callback, None))
        return True

    def _register(self, step: Step) -> None:
        with LOCK:
            if self._outcome is None:
                self._callbacks.append(step)
                return
        run(due(self, [step]))

    def _withdraw(self, step: Step) -> None:
        with LOCK:
            # What is due is not taken back.
            if self._outcome is None and step in self._callbacks:
                self._callbacks.remove(step)

    def _awaited(self, timeout: float | None) -> Outcome:
        seconds = _seconds(timeout)
        waiter: SimpleQueue[None] = SimpleQueue()
        try:
            with LOCK:
                # First of all: this very thread may complete it at any line.
                self._waiters.add(waiter)
                if self._outcome is not None:
                    waiter.put(None)
            with suppress(Empty):
                waiter.get(timeout=seconds)
            self._waiters.discard(waiter)
        except BaseException:
            self._waiters.discard(waiter)
            raise
        if self._outcome is None:
            assert seconds is not None, "without a timeout there is an end only"
            raise FutureTimeout(seconds=seconds)
        return self._outcome


def _follow(result: object, child: Future[Any]) -> Outcome | None:
    """Let a future stand for its outcome; anything else for itself."""
    if not isinstance(result, Future):
        return Value(result)
    if result is child:
        misuse = FutureMisuse(
            code="FutureMisuse",
            call="Future.then_async",
            found="a callback that returned the future of its own result",
            wanted="callbacks that return a value or another future",
        )
        return Error(misuse, None)
    result._register(Step(None, child, hand_on))
    return None


def hand_on(future: Future[Any], child: object) -> Outcome | None:
    """The outcome of a future, for another one."""
    return future._outcome


def _complete(future: Future[Any], outcome: Outcome) -> AlreadySettled:
    assert future._outcome is not None, "else it would have taken the outcome"
    found, wanted = future._outcome.described(), outcome.described()
    return AlreadySettled(found=found, wanted=wanted)


def _not_callable(method: str, callback: object) -> FutureMisuse:
    return FutureMisuse(
        code="FutureMisuse",
        call=f"Future.{method}",
        found=described(callback),
        wanted="a callable of one argument, the future",
    )


def _seconds(timeout: float | None) -> float | None:
    """A timeout that a lock understands."""
    if timeout is None or timeout == float("inf"):
        return None
    if not isinstance(timeout, int | float) or not timeout >= 0:
        number = isinstance(timeout, int | float)
        raise FutureMisuse(
            code="FutureMisuse",
            call="Future.wait",
            found=f"a timeout of {timeout}" if number else described(timeout),
            wanted="seconds from 0 on, or None for no end",
        )
    return float(min(timeout, TIMEOUT_MAX))


def _check_devices(devices: Iterable[object]) -> None:
    for each in devices:
        name = str(each)
        if name.partition(":")[0] != "cpu":
            raise FutureMisuse(
                code="FutureMisuse",
                call="Future(devices=...)",
                found=f"the device `{name}`",
                wanted="the CPU only: values of other devices are not waited for",
            )


def to_concurrent(future: "Future[T]") -> "concurrent.futures.Future[T]":
    """A future of `concurrent.futures` with the same outcome."""
    from concurrent.futures import Future as Concurrent

    other: Concurrent[T] = Concurrent()
    other.set_running_or_notify_cancel()

    def tell(settled: "Future[T]") -> None:
        error = settled.error()
        if error is None:
            other.set_result(settled.value())
        else:
            other.set_exception(error)

    future.add_done_callback(tell)
    return other


def to_asyncio(future: "Future[T]") -> "asyncio.Future[T]":
    """A future of the loop that runs in this thread, with the same outcome.

    Raises:
        RuntimeError: no loop runs in this thread.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    other: asyncio.Future[T] = loop.create_future()

    def tell() -> None:
        # Who awaited it may have been cancelled.
        if not other.done():
            _tell(future, other)

    def tell_loop(settled: "Future[T]") -> None:
        try:
            loop.call_soon_threadsafe(tell)
        except RuntimeError:
            if not loop.is_closed():
                raise

    if future.done():
        tell()
    else:
        step = Step(tell_loop, None)
        future._register(step)
        # Who is cancelled again and again leaves nothing behind.
        other.add_done_callback(lambda _: future._withdraw(step))
    return other


def _tell(settled: "Future[Any]", other: Any) -> None:
    error = settled.error()
    if error is None:
        other.set_result(settled.value())
        return
    if isinstance(error, StopIteration):
        # Inside of a coroutine it means an end without an error; asyncio refuses it.
        told = FutureMisuse(
            code="FutureMisuse",
            call="await",
            found="a future that was completed with StopIteration",
            wanted="errors that a coroutine can raise",
        )
        told.__cause__ = error
        error = told
    other.set_exception(error)
