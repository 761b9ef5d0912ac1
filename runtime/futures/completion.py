"""Completion: how an outcome reaches waiting threads, callbacks, and their futures.

    ValueOutcome, Error   outcomes: a future is completed with one, once
    Completable           the state of a future: outcome, waiting threads, callbacks
    CallbackStep          a registered callback; `run` is the loop of its consequences

The thread that completes a future publishes the outcome by one store, wakes the waiting
threads, and runs the callbacks in the order in which they were registered.  A callback
whose result completes another future is followed by the callbacks of that one, then by
the next.  This is one loop over a stack, so a chain of `then` of any length needs no
recursion.  A callback that itself calls `set_result` nests; too many nested calls end
in a RecursionError.

The guarantee: whatever interrupts (Ctrl-C, an exit inside of a callback), a published
outcome reaches every waiting thread and callback.  Due steps stay on the stack until
they are done, a step may run twice, and the interruption is raised when all are done. A
callback is called by `next` of a `map`: starting it and exhausting the `map` is one
step in C, so an exhausted `map` without a result means that the callback was started
and interrupted.  Not covered is a second interrupt at the very moment in which the
first one is caught.

Rules:
- `LOCK` is held for a check and one store, never while callbacks run.  There is one for
  all futures: free in a forked child, and reentrant, as signal handlers and finalizers
  may complete futures;
- an exception of a callback is the error of the future that it should complete; without
  such a future it is logged, as far as it can be logged;
- an exception is raised again with its traceback at the completion of the future, and
  the frames of the current `wait`; frames of earlier waits are dropped;
- a dropped error is reported only by futures of other areas that ask for it (`unread`);
- futures and awaits are neither copied nor pickled; the error names the class.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import repeat
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX
from traceback import format_exception_only, walk_tb
from types import TracebackType
from typing import Any, Generic, NoReturn, Self, SupportsIndex, TypeVar

from everyorder.runtime.base.exceptions import (
    is_interrupt,
    set_traceback,
    traceback_of,
)
from everyorder.runtime.base.locks import reentered
from everyorder.runtime.errors.base import code_of
from everyorder.runtime.errors.future import (
    CallbackFailed,
    FutureMisuse,
    FutureTimeout,
    callable_name,
    describe_type,
)

T_co = TypeVar("T_co", covariant=True)


class ValueOutcome(Generic[T_co]):
    """A value."""

    __slots__ = ("value",)

    def __init__(self, value: T_co) -> None:
        self.value = value

    def copy(self) -> "ValueOutcome[T_co]":
        """Return an equal outcome for another future; each future has its own."""
        return ValueOutcome(self.value)

    def summary(self) -> str:
        """Return the type of the value, for messages."""
        return f"a value of type {type(self.value).__name__}"


class Error:
    """An exception, and its traceback when the future was completed.

    `unread`, if it is not None, is called with the exception if the last future with
    this outcome is dropped before its error was read.  It is called by a finalizer, so
    it may only store the exception.
    """

    __slots__ = ("error", "traceback", "unread")

    def __init__(
        self,
        error: BaseException,
        traceback: TracebackType | None,
        unread: Callable[[BaseException], object] | None = None,
    ) -> None:
        self.error = error
        self.traceback = traceback
        self.unread = unread

    def __del__(self) -> None:
        # An interrupt may have come before it was made.
        unread = getattr(self, "unread", None)
        if unread is not None:
            unread(self.error)

    def throw(self) -> NoReturn:
        """Raise the exception object itself."""
        self.unread = None
        error, traceback = self.error, self.traceback
        try:
            raise BaseException.with_traceback(error, traceback)
        finally:
            # An exception refers to its frames: no frame may refer to the exception.
            del error, traceback, self

    def copy(self) -> "Error":
        """Return an equal outcome for another future, where it is to be read then."""
        unread, self.unread = self.unread, None
        return Error(self.error, self.traceback, unread)

    def summary(self) -> str:
        """Return the type of the exception, for messages."""
        return f"the error {code_of(self.error)}"


# The outcome of a completed future.
Outcome = ValueOutcome[Any] | Error


class Unmovable:
    """Base of objects that threads wait for: neither copied nor pickled."""

    __slots__ = ()

    def __refusal__(self, operation: str) -> Exception:
        kind = type(self).__name__
        return FutureMisuse(code="Unmovable", kind=kind, asked=operation)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise self.__refusal__("pickled")

    def __setstate__(self, state: Any) -> NoReturn:
        raise self.__refusal__("unpickled")

    def __copy__(self) -> Self:
        raise self.__refusal__("copied")

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        raise self.__refusal__("copied")


LOCK = reentered()
# The folder whose frames are omitted from tracebacks of callbacks.
_HERE = __file__.rpartition("completion")[0]

Callback = Callable[[Any], Any]
# (result of the callback, or the completed future without one; child) -> the outcome of
# the child, None if it is completed later, by other code.  It may be called twice.
Transform = Callable[[Any, Any], Outcome | None]


class CallbackStep:
    """A registered callback, and one step of the loop that runs it.

    `child` is completed with `outcome`, else with the callback's result after
    `transform`.  A step without a callback passes the completed future on.
    """

    __slots__ = ("call", "callback", "child", "outcome", "transform")

    # An iterator over the callback's result, once; without one, the future for ever.
    call: Iterator[Any]

    def __init__(
        self,
        callback: Callback | None,
        child: "Completable | None",
        transform: Transform | None = None,
        outcome: Outcome | None = None,
    ) -> None:
        self.callback = callback
        self.child = child
        self.transform = transform
        self.outcome = outcome


class Completable(Unmovable):
    """The state of a future: its outcome, waiting threads, registered steps."""

    __slots__ = ("__weakref__", "_callbacks", "_outcome", "_waiters")

    _outcome: Outcome | None
    _callbacks: list[CallbackStep]
    # One queue for each waiting thread: putting anything into it wakes the thread.
    _waiters: set[SimpleQueue[None]]

    def _offer(self, outcome: Outcome) -> bool:
        """Complete the future with this outcome; False if it already was complete."""
        if not self._callbacks:
            with LOCK:
                # The fast path: no waiting threads and no callbacks.
                if not (self._outcome or self._callbacks or self._waiters):
                    self._outcome = outcome
                    return True
        run([CallbackStep(None, self, None, outcome)])
        return self._outcome is outcome

    def _offer_without_callbacks(self, outcome: Outcome) -> bool:
        """As `_offer`; False, and nothing done, if a callback would run."""
        with LOCK:
            if self._callbacks:
                return False
            if self._outcome is None:
                self._outcome = outcome
            for waiter in tuple(self._waiters):
                waiter.put(None)
        return True

    def _register_unless_complete(self, callback: Callable[[Any], object]) -> bool:
        """As `add_done_callback`; False, and nothing done, if it is complete."""
        with LOCK:
            if self._outcome is not None:
                return False
            self._callbacks.append(CallbackStep(callback, None))
        return True

    def _register(self, step: CallbackStep) -> None:
        with LOCK:
            if self._outcome is None:
                self._callbacks.append(step)
                return
        run(stack_of(self, [step]))

    def _withdraw(self, step: CallbackStep) -> None:
        with LOCK:
            # A step of a complete future is due, and is not withdrawn.
            if self._outcome is None and step in self._callbacks:
                self._callbacks.remove(step)

    def _wait_outcome(self, timeout: float | None) -> Outcome:
        seconds = _seconds(timeout)
        waiter: SimpleQueue[None] = SimpleQueue()
        try:
            with LOCK:
                # Before the check: a signal handler of this thread may complete it.
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
            assert seconds is not None, "without a timeout only an outcome ends it"
            raise FutureTimeout(seconds=seconds)
        return self._outcome

    def _forward_to(self, other: "Completable") -> None:
        """Complete another future with the outcome of this one, once it has one."""
        self._register(CallbackStep(None, other, _outcome_of))


def _outcome_of(future: Completable, child: object) -> Outcome | None:
    return future._outcome


def _seconds(timeout: float | None) -> float | None:
    """Return a timeout for `SimpleQueue.get`: None, or at most `TIMEOUT_MAX`."""
    if timeout is None or timeout == float("inf"):
        return None
    if not isinstance(timeout, int | float) or not timeout >= 0:
        number = isinstance(timeout, int | float)
        raise FutureMisuse(
            call="Future.wait",
            found=f"a timeout of {timeout}" if number else describe_type(timeout),
            wanted="seconds from 0 on, or None for no end",
        )
    return float(min(timeout, TIMEOUT_MAX))


def stack_of(future: Completable, steps: list[CallbackStep]) -> list[CallbackStep]:
    """Return the steps of a completed future in stack order: the first one is last."""
    for step in steps:
        if step.callback is None:
            step.call = repeat(future)
        else:
            step.call = map(step.callback, (future,))
    return steps[::-1]


# The depth of calls below `run`, without those of callbacks.
_ROOM = 7


def _have_room(calls: int) -> None:
    """Check that so many nested calls fit.

    Raises:
        RecursionError: they do not.
    """
    if calls:
        _have_room(calls - 1)


def run(stack: list[CallbackStep]) -> None:
    """Run the steps of a stack, the last one first, and those that follow from them.

    Raises:
        RecursionError: the stack of calls is too deep; nothing happened.
        BaseException: an interrupt, after all steps were run.
    """
    _have_room(_ROOM)
    try:
        while stack:
            _advance(stack)
    except BaseException as interrupt:
        _resume(stack, interrupt)
        raise


def _resume(stack: list[CallbackStep], interrupt: BaseException) -> None:
    begun = stack[-1] if stack else None
    stuck = None
    while stack:
        last = stack[-1]
        try:
            _advance(stack, interrupt if last is begun else None)
        except BaseException as another:
            # A callback raised it; if it happens twice, the stack has no room left.
            interrupt, begun = another, last
            if last is stuck:
                stack.pop()
            stuck = last


def _advance(stack: list[CallbackStep], interrupt: BaseException | None = None) -> None:
    """Run the last step, and replace it, in one store, by the steps that follow.

    `interrupt` is an exception that arrived while this step ran, or just before.
    """
    last = stack[-1]
    child = last.child
    replaced = False
    if last.outcome is None:
        last.outcome = _step_outcome(last, interrupt)
    if child is not None and last.outcome is not None:
        with LOCK:
            if child._outcome is None:
                child._outcome = last.outcome
        if child._outcome is last.outcome:
            if child._waiters:
                for waiter in tuple(child._waiters):
                    waiter.put(None)
            if child._callbacks:
                stack[-1:] = stack_of(child, child._callbacks)
                child._callbacks.clear()
                replaced = True
    if not replaced:
        stack.pop()
    # The traceback of a callback's error keeps this frame, which must not keep `child`.
    del last, child


def _step_outcome(
    step: CallbackStep, interrupt: BaseException | None
) -> Outcome | None:
    """Return the outcome of a step's child; None if it is completed later."""
    try:
        result = next(step.call)
    except Exception as error:
        # The traceback must not keep this frame and its callers, which keep the child.
        trace = traceback_of(error)
        if trace is not None:
            trace = trace.tb_next
            set_traceback(error, trace)
        # An exhausted `map` was interrupted; a callback's own StopIteration has frames.
        nothing = type(error) is StopIteration and trace is None
        try:
            lost = interrupt if nothing else None
            return _failed(step, error if lost is None else lost)
        finally:
            del step, trace
    if step.transform is not None:
        settled = step.transform(result, step.child)
        return None if settled is None else settled.copy()
    return None if step.child is None else ValueOutcome(result)


def _failed(step: CallbackStep, error: BaseException) -> Outcome:
    """Return the outcome for an exception of a callback; log it if it has no child."""
    if issubclass(type(error), CallbackFailed):
        # The error of an earlier callback: this one waited for its future.
        failed = error
    else:
        try:
            text = "".join(format_exception_only(error)).strip()
            frames = tuple(_frames(traceback_of(error)))
        except BaseException as worse:
            # The error cannot be formatted, or no stack is left.
            if is_interrupt(worse):
                raise
            text, frames = code_of(error), ()
        name = callable_name(step.callback)
        failed = CallbackFailed(callback=name, error=text, at=frames)
        failed.__cause__ = error
    if step.child is None:
        # A failing logger must not hide the outcome.
        try:
            from logging import getLogger

            getLogger("everyorder.runtime.futures").error("%s", failed, exc_info=error)
        except BaseException as worse:
            if is_interrupt(worse):
                raise
    return Error(failed, None)


def _frames(traceback: TracebackType | None) -> Iterator[str]:
    """Yield the frames of a traceback outside of this module, outermost first."""
    for frame, line in walk_tb(traceback):
        code = frame.f_code
        if not code.co_filename.startswith(_HERE):
            yield f"{code.co_filename}:{line} in {code.co_qualname}"
