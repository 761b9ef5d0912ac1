"""Settling: how an outcome gets to who waits, to the callbacks, and to theirs.

The thread that completes a future publishes the outcome by one store, wakes who waits,
and runs the callbacks in the order in which they were registered; a callback whose
result completes another future is followed by the callbacks of that one, then by the
next.  It does so in one loop over a stack, so that a chain of `then` of any length
needs no room.  A callback that calls `set_result` is a call in a call: too many of
these, one in the other, end in a RecursionError.

The promise: whatever comes in between (Ctrl-C, an exit inside of a callback), an
outcome that is published reaches everybody.  What is due lies on the stack until it is
done, a step may be taken twice, and what came is raised when all is done.  A callback
is called by `map`, once: that it is begun and that `map` gives nothing any more is one
step in C, so whoever finds nothing knows that it was begun and interrupted.  Beyond the
promise is a second interrupt in the very moment in which the first one is caught.

Rules:
- `LOCK` is held for a look and one store, never while code of others runs.  It is one
  for all futures: free in a forked child, and reentrant, as signal handlers and
  finalizers may complete futures;
- what a callback raises is the error of the future that it was to complete; it is
  logged if there is none, as far as it can be logged;
- an exception is raised again with the frames that it had when the future was
  completed, and those of the one who asks now: not with those of all who asked before;
- what others wait for is neither copied nor pickled, and says so by its name.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import repeat
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX
from traceback import format_exception_only, walk_tb
from types import TracebackType
from typing import Any, Generic, NoReturn, Self, SupportsIndex, TypeVar

from runtime.errors.base import code_of
from runtime.errors.future import (
    CallbackFailed,
    FutureMisuse,
    FutureTimeout,
    described,
    named,
)
from runtime.locks import reentered

T_co = TypeVar("T_co", covariant=True)


class Value(Generic[T_co]):
    """A value."""

    __slots__ = ("value",)

    def __init__(self, value: T_co) -> None:
        self.value = value

    def again(self) -> "Value[T_co]":
        """The same for another future: an outcome is of one future only."""
        return Value(self.value)

    def described(self) -> str:
        """The type of the value, for texts."""
        return f"a value of type {type(self.value).__name__}"


class Error:
    """An exception, and the frames that it passed until then."""

    __slots__ = ("error", "traceback")

    def __init__(self, error: BaseException, traceback: TracebackType | None) -> None:
        self.error = error
        self.traceback = traceback

    def throw(self) -> NoReturn:
        """Raise the exception: the very one."""
        error, traceback = self.error, self.traceback
        try:
            raise error.with_traceback(traceback)
        finally:
            # An exception keeps the frames that it passes: none may keep it.
            del error, traceback, self

    def again(self) -> "Error":
        """The same for another future."""
        return Error(self.error, self.traceback)

    def described(self) -> str:
        """The type of the exception, for texts."""
        return f"the error {code_of(self.error)}"


# A settled `Value | Error`.
Outcome = Value[Any] | Error


class Unmovable:
    """What others wait for: it is itself, so neither copied nor pickled."""

    __slots__ = ()

    def __refusal__(self, asked: str) -> Exception:
        kind = type(self).__name__
        return FutureMisuse(code="Unmovable", kind=kind, asked=asked)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise self.__refusal__("pickled")

    def __setstate__(self, state: Any) -> NoReturn:
        raise self.__refusal__("unpickled")

    def __copy__(self) -> Self:
        raise self.__refusal__("copied")

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        raise self.__refusal__("copied")


LOCK = reentered()
# The folder of what a callback is called by.
_HERE = __file__.rpartition("settling")[0]

Callback = Callable[[Any], Any]
# What becomes of a callback's result, or of the future itself where there is no
# callback: an outcome of the future in the second place, or None, if that is completed
# some other time.  It may be asked twice.
Take = Callable[[Any, Any], Outcome | None]


class Step:
    """What is registered at a future, and one step of a settlement.

    `child` gets `outcome`, or what comes of the callback; of the future itself, if
    there is none.
    """

    __slots__ = ("callback", "child", "once", "outcome", "take")

    # Gives the result of the callback, once; without one, always the future.
    once: Iterator[Any]

    def __init__(
        self,
        callback: Callback | None,
        child: "Settling | None",
        take: Take | None = None,
        outcome: Outcome | None = None,
    ) -> None:
        self.callback = callback
        self.child = child
        self.take = take
        self.outcome = outcome


class Settling(Unmovable):
    """What is completed once: its outcome, who waits for it, and what follows."""

    __slots__ = ("__weakref__", "_callbacks", "_outcome", "_waiters")

    def __init__(self) -> None:
        self._outcome: Outcome | None = None
        self._callbacks: list[Step] = []
        # One for each thread that waits: whatever is put into it wakes that thread.
        self._waiters: set[SimpleQueue[None]] = set()

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

    def _register_before(self, callback: Callable[[Any], object]) -> bool:
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

    def _hand_to(self, other: "Settling") -> None:
        """Complete another one with the outcome of this one, unless it is complete."""
        self._register(Step(None, other, _outcome_of))


def _outcome_of(future: Settling, child: object) -> Outcome | None:
    return future._outcome


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


def due(future: Settling, steps: list[Step]) -> list[Step]:
    """The steps of a settled future, as they lie on a stack."""
    for step in steps:
        if step.callback is None:
            step.once = repeat(future)
        else:
            step.once = map(step.callback, (future,))
    return steps[::-1]


# So many calls below `run` is the deepest one of ours, callbacks apart.
_ROOM = 7


def _have_room(calls: int) -> None:
    """Whether there is room for so many calls, one in the other.

    Raises:
        RecursionError: there is not.
    """
    if calls:
        _have_room(calls - 1)


def run(stack: list[Step]) -> None:
    """Take the steps of a stack, the last one first, and those that follow from them.

    Raises:
        RecursionError: there is no room for it; nothing happened.
        BaseException: what came meanwhile, and is no `Exception`; all steps were taken.
    """
    _have_room(_ROOM)
    try:
        while stack:
            _advance(stack)
    except BaseException as interrupt:
        _resume(stack, interrupt)
        raise


def _resume(stack: list[Step], interrupt: BaseException) -> None:
    begun = stack[-1] if stack else None
    stuck = None
    while stack:
        last = stack[-1]
        try:
            _advance(stack, interrupt if last is begun else None)
        except BaseException as another:
            # A callback's own, where it was begun; the second time there is no room.
            interrupt, begun = another, last
            if last is stuck:
                stack.pop()
            stuck = last


def _advance(stack: list[Step], interrupt: BaseException | None = None) -> None:
    """Take the last step; in one store it makes way for what follows from it.

    `interrupt` came while this step was taken, or just before.
    """
    last = stack[-1]
    child = last.child
    replaced = False
    if last.outcome is None:
        last.outcome = _came(last, interrupt)
    if child is not None and last.outcome is not None:
        with LOCK:
            if child._outcome is None:
                child._outcome = last.outcome
        if child._outcome is last.outcome:
            if child._waiters:
                for waiter in tuple(child._waiters):
                    waiter.put(None)
            if child._callbacks:
                stack[-1:] = due(child, child._callbacks)
                child._callbacks.clear()
                replaced = True
    if not replaced:
        stack.pop()
    # An error of a callback keeps this frame, which may not keep who has the error.
    del last, child


def _came(step: Step, interrupt: BaseException | None) -> Outcome | None:
    """What comes of a step; None if that is for another time to say."""
    try:
        result = next(step.once)
    except Exception as error:
        # This frame, and those that called it, may not keep who has the error.
        if error.__traceback__ is not None:
            error.__traceback__ = error.__traceback__.tb_next
        # Nothing is left of what was interrupted; a callback that raises this is there.
        nothing = type(error) is StopIteration and error.__traceback__ is None
        try:
            lost = interrupt if nothing else None
            return _failed(step, error if lost is None else lost)
        finally:
            del step
    if step.take is not None:
        taken = step.take(result, step.child)
        return None if taken is None else taken.again()
    return None if step.child is None else Value(result)


def _failed(step: Step, error: BaseException) -> Outcome:
    """The error of a callback: told to its future, or logged."""
    if isinstance(error, CallbackFailed):
        # Of a callback before this one, which handed it on by waiting.
        failed = error
    else:
        try:
            text = "".join(format_exception_only(error)).strip()
            frames = tuple(_frames(error.__traceback__))
        except Exception:  # an error that cannot be drawn, or no room for it
            text, frames = code_of(error), ()
        name = named(step.callback)
        failed = CallbackFailed(callback=name, error=text, at=frames)
        failed.__cause__ = error
    if step.child is None:
        # The outcome of the future is more than the line about the callback.
        with suppress(Exception):
            from logging import getLogger

            getLogger("runtime.futures").error("%s", failed, exc_info=error)
    return Error(failed, None)


def _frames(traceback: TracebackType | None) -> Iterator[str]:
    """The frames of a traceback, without those of this module, outermost first."""
    for frame, line in walk_tb(traceback):
        code = frame.f_code
        if not code.co_filename.startswith(_HERE):
            yield f"{code.co_filename}:{line} in {code.co_qualname}"
