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
from traceback import format_exception_only, walk_tb
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, SupportsIndex, TypeVar

from runtime.errors.base import code_of
from runtime.errors.future import CallbackFailed, FutureMisuse, named
from runtime.locks import reentered

if TYPE_CHECKING:
    from runtime.futures.future import Future


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


class Stays:
    """An object that is itself what others wait for."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be pickled.

        Raises:
            FutureMisuse: always.
        """
        raise FutureMisuse(code="Unmovable", kind=type(self).__name__, asked="pickled")

    def __setstate__(self, state: Any) -> NoReturn:
        """Refuse to be made of what somebody pickled.

        Raises:
            FutureMisuse: always.
        """
        raise FutureMisuse(
            code="Unmovable", kind=type(self).__name__, asked="unpickled"
        )

    def __copy__(self) -> NoReturn:
        """Refuse to be copied.

        Raises:
            FutureMisuse: always.
        """
        raise FutureMisuse(code="Unmovable", kind=type(self).__name__, asked="copied")

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        """Refuse to be copied in depth.

        Raises:
            FutureMisuse: always.
        """
        raise FutureMisuse(code="Unmovable", kind=type(self).__name__, asked="copied")


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
        child: "Future[Any] | None",
        take: Take | None = None,
        outcome: Outcome | None = None,
    ) -> None:
        self.callback = callback
        self.child = child
        self.take = take
        self.outcome = outcome


def due(future: "Future[Any]", steps: list[Step]) -> list[Step]:
    """The steps of a settled future, as they lie on a stack."""
    for step in steps:
        if step.callback is None:
            step.once = repeat(future)
        else:
            step.once = map(step.callback, (future,))
    return steps[::-1]


# So many calls below `run` is the deepest one of ours, callbacks apart.
_ROOM = 5


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
