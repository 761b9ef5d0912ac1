"""Errors of futures and of awaits: not settled, settled, not to be had in this way.

Who must act: whoever completes, waits, or hands futures and awaits around; all are
`FutureError`.

Rules: values and exceptions are named by their types, so that an error keeps neither
alive; what a callback raised is the `__cause__` of the error that tells of it.
"""

from types import BuiltinFunctionType, FunctionType, MethodType

from everyorder.runtime.errors.base import EveryorderError


def describe_type(value: object) -> str:
    """What was found, by its type; nothing of the value itself is asked."""
    return "None" if value is None else f"an object of type {type(value).__name__}"


def callable_name(function: object) -> str:
    """How a function is called in texts; other callables are called by their class."""
    if isinstance(function, BuiltinFunctionType | FunctionType | MethodType):
        return function.__qualname__
    return type(function).__qualname__


class FutureError(EveryorderError):
    """Base of the errors of futures and awaits."""


class FutureMisuse(FutureError):
    """A future or an await was asked for what it does not do, or `call` given what is
    none.

    What is to be completed a second time stays as it is: `found` is what it holds,
    `wanted` what it was to hold.  An await stands for an object of a `kind`.
    """

    call: str = ""
    found: str = ""
    wanted: str = ""
    kind: str = ""
    asked: str = ""
    attribute: str = ""

    words = """
    FutureMisuse (TypeError, RuntimeError): `{call}` was given {found}.
      it takes: {wanted}
    Unmovable (TypeError, RuntimeError): {kind} objects cannot be {asked}: who waits
        holds this one.
      to do: wait, and let the value be {asked}
    WithoutFunction (TypeError, RuntimeError): This await was made of a value by
        `awaitable_nowait`: there is no function.
      to do: ask `is_nowait()` first
    NotSettled (TypeError, RuntimeError): `value()` was asked of a future that is not
        complete.
      to do: `wait()` waits for it; `then(...)` runs when it is complete
    AlreadySettled (RuntimeError): A future was to be completed with {wanted}, and is
        complete.
      it holds: {found}, as before
      to do: complete it once; ask `done()` where several may do so
    AwaitedAttribute (AttributeError): This await stands for a `{kind}`, which has no
        attribute `{attribute}`.
    """


class FutureTimeout(FutureError, TimeoutError):
    """Nobody completed the future in time; it is as it was."""

    seconds: float

    words = """
    FutureTimeout: A future was not complete after {seconds:g} s.
      state: it can still be completed, and waited for again
    """


class CallbackFailed(FutureError, RuntimeError):
    """A callback raised `error`, a type and a text.

    `at` are its frames, outermost first; the exception itself is the `__cause__`.
    """

    callback: str
    error: str
    at: tuple[str, ...]

    words = """
    CallbackFailed: The callback `{callback}` raised {error}
      frame: {at:each}
    """


class FutureCancelled(FutureError, RuntimeError):
    """A future of another library, which this one stands for, was cancelled."""

    library: str

    words = """
    FutureCancelled: The {library} future behind this one was cancelled, so that there
        is no value.
    """
