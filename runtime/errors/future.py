"""Errors of futures and of awaits: not settled, settled, not to be had in this way.

Who must act: whoever completes, waits, or hands futures and awaits around; all are
`FutureError`, one class for each thing that one can do about it.

Rules: values and exceptions are named by their types, so that an error keeps neither
alive; what a callback raised is the `__cause__` of the error that tells of it.
"""

from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MethodType

from runtime.errors.base import EveryorderError
from runtime.errors.call import page


def described(value: object) -> str:
    """What was found, by its type; nothing of the value itself is asked."""
    return "None" if value is None else f"an object of type {type(value).__name__}"


def named(function: object) -> str:
    """How a function is called in texts; other callables are called by their class."""
    if isinstance(function, BuiltinFunctionType | FunctionType | MethodType):
        return function.__qualname__
    return type(function).__qualname__


@dataclass(eq=False, kw_only=True)
class FutureError(EveryorderError):
    """Base of the errors of futures and awaits."""


@dataclass(eq=False, kw_only=True)
class FutureMisuse(FutureError, TypeError, RuntimeError):
    """`call` was given what it cannot take; `wanted` says what it takes."""

    call: str
    found: str
    wanted: str

    def render(self) -> str:
        """The call, what was found, and what belongs there."""
        return page(f"`{self.call}` was given {self.found}.", ("it takes", self.wanted))


@dataclass(eq=False, kw_only=True)
class AlreadySettled(FutureError, RuntimeError):
    """A future was to be completed a second time; the first time stays.

    `found` is what it was completed with, `wanted` what it was to be completed with.
    """

    found: str
    wanted: str

    def render(self) -> str:
        """What is there, what was to come, and who may complete a future."""
        return page(
            f"A future was to be completed with {self.wanted}, and is complete.",
            ("it holds", f"{self.found}, as before"),
            ("to do", "complete it once; ask `done()` where several may do so"),
        )


@dataclass(eq=False, kw_only=True)
class NotSettled(FutureError, RuntimeError):
    """The value of a future was asked for that has none yet."""

    def render(self) -> str:
        """What was asked, and what waits."""
        return page(
            "`value()` was asked of a future that is not complete.",
            ("to do", "`wait()` waits for it; `then(...)` runs when it is complete"),
        )


@dataclass(eq=False, kw_only=True)
class FutureTimeout(FutureError, TimeoutError):
    """Nobody completed the future in time; it is as it was."""

    seconds: float

    def render(self) -> str:
        """How long was waited, and that one may wait again."""
        return page(
            f"A future was not complete after {self.seconds:g} s.",
            ("state", "it can still be completed, and waited for again"),
        )


@dataclass(eq=False, kw_only=True)
class FutureCancelled(FutureError, RuntimeError):
    """A future of another library, which this one stands for, was cancelled."""

    library: str

    def render(self) -> str:
        """Whose future it was."""
        return page(
            f"The {self.library} future behind this one was cancelled, so that there "
            "is no value.",
        )


@dataclass(eq=False, kw_only=True)
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


@dataclass(eq=False, kw_only=True)
class Unmovable(FutureError, RuntimeError, TypeError):
    """A `kind` cannot be copied or pickled, since others wait for this very object."""

    kind: str
    asked: str

    def render(self) -> str:
        """What was asked, and what can be moved instead."""
        return page(
            f"{self.kind} objects cannot be {self.asked}: who waits holds this one.",
            ("to do", f"wait, and let the value be {self.asked}"),
        )


@dataclass(eq=False, kw_only=True)
class WithoutFunction(FutureError, RuntimeError):
    """An await was asked for its function, and was made of a value."""

    def render(self) -> str:
        """What it was made of, and how to tell."""
        return page(
            "This await was made of a value by `awaitable_nowait`: there is no "
            "function.",
            ("to do", "ask `is_nowait()` first"),
        )


@dataclass(eq=False, kw_only=True)
class AwaitedAttribute(FutureError, AttributeError):
    """Neither an await nor what it stands for, a `kind`, has the attribute."""

    attribute: str
    kind: str

    def render(self) -> str:
        """The type that was asked, and the attribute."""
        return page(
            f"This await stands for a `{self.kind}`, which has no attribute "
            f"`{self.attribute}`.",
        )
