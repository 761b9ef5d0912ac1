"""Outcomes: what a future is completed with, a value or an error.

True only here: how an error is raised again.  It is raised with the frames that it had
when the future was completed, and those of the one who asks now: not with those of all
who asked before.
"""

from types import TracebackType
from typing import Any, Generic, NoReturn, TypeVar

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
        return f"the error {type(self.error).__name__}"


# A settled `Value | Error`.
Outcome = Value[Any] | Error
