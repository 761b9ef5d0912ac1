"""Errors of futures and of awaits: not settled, settled, not to be had in this way.

Who must act: whoever completes, waits, or hands futures and awaits around; all are
`FutureError`, one class for each thing that one can do about it.

Rules: values and exceptions are named by their types, so that an error keeps neither
alive; what a callback raised is the `__cause__` of the error that tells of it.
"""

from types import BuiltinFunctionType, FunctionType, MethodType
from typing import ClassVar

from runtime.errors.base import EveryorderError, Words, page


def described(value: object) -> str:
    """What was found, by its type; nothing of the value itself is asked."""
    return "None" if value is None else f"an object of type {type(value).__name__}"


def named(function: object) -> str:
    """How a function is called in texts; other callables are called by their class."""
    if isinstance(function, BuiltinFunctionType | FunctionType | MethodType):
        return function.__qualname__
    return type(function).__qualname__


class FutureError(EveryorderError):
    """Base of the errors of futures and awaits."""


class FutureMisuse(FutureError, TypeError, RuntimeError):
    """A future or an await was asked for what it does not do, or `call` given what is
    none.
    """

    call: str = ""
    found: str = ""
    wanted: str = ""
    kind: str = ""
    asked: str = ""

    words: ClassVar[Words] = {
        "FutureMisuse": (
            "`{call}` was given {found}.",
            ("it takes", "{wanted}"),
        ),
        "Unmovable": (
            "{kind} objects cannot be {asked}: who waits holds this one.",
            ("to do", "wait, and let the value be {asked}"),
        ),
        "WithoutFunction": (
            "This await was made of a value by `awaitable_nowait`: there is no "
            "function.",
            ("to do", "ask `is_nowait()` first"),
        ),
        "NotSettled": (
            "`value()` was asked of a future that is not complete.",
            ("to do", "`wait()` waits for it; `then(...)` runs when it is complete"),
        ),
    }


class AlreadySettled(FutureError, RuntimeError):
    """A future was to be completed a second time; the first time stays.

    `found` is what it was completed with, `wanted` what it was to be completed with.
    """

    found: str
    wanted: str

    words: ClassVar[Words] = {
        "AlreadySettled": (
            "A future was to be completed with {wanted}, and is complete.",
            ("it holds", "{found}, as before"),
            ("to do", "complete it once; ask `done()` where several may do so"),
        ),
    }


class FutureTimeout(FutureError, TimeoutError):
    """Nobody completed the future in time; it is as it was."""

    seconds: float

    words: ClassVar[Words] = {
        "FutureTimeout": (
            "A future was not complete after {seconds:g} s.",
            ("state", "it can still be completed, and waited for again"),
        ),
    }


class FutureCancelled(FutureError, RuntimeError):
    """A future of another library, which this one stands for, was cancelled."""

    library: str

    words: ClassVar[Words] = {
        "FutureCancelled": (
            "The {library} future behind this one was cancelled, so that there "
            "is no value.",
        ),
    }


class CallbackFailed(FutureError, RuntimeError):
    """A callback raised `error`, a type and a text.

    `at` are its frames, outermost first; the exception itself is the `__cause__`.
    """

    callback: str
    error: str
    at: tuple[str, ...]

    def render(self) -> str:
        """The callback, the error, and where it was raised."""
        rows = [("frame", each) for each in self.at]
        return page(f"The callback `{self.callback}` raised {self.error}", *rows)


class AwaitedAttribute(FutureError, AttributeError):
    """Neither an await nor what it stands for, a `kind`, has the attribute."""

    attribute: str
    kind: str

    words: ClassVar[Words] = {
        "AwaitedAttribute": (
            "This await stands for a `{kind}`, which has no attribute `{attribute}`.",
        ),
    }
