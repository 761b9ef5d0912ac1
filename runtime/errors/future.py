"""Errors of futures and awaits: not complete, complete already, or misused.

Who must act: the code that completes, waits for, or passes on futures and awaits; all
are `FutureError`.

Rules: values and exceptions are named by their types, so that an error keeps neither
alive; an exception of a callback is the `__cause__` of the error that reports it.
"""

from types import BuiltinFunctionType, FunctionType, MethodType

from everyorder.runtime.errors.base import EveryorderError


def describe_type(value: object) -> str:
    """Return a description of a value by its type; never call methods of the value."""
    return "None" if value is None else f"an object of type {type(value).__name__}"


def callable_name(function: object) -> str:
    """Return the name of a function for texts; for other callables, of their class."""
    if isinstance(function, BuiltinFunctionType | FunctionType | MethodType):
        return function.__qualname__
    return type(function).__qualname__


class FutureError(EveryorderError):
    """Base of the errors of futures and awaits."""


class FutureMisuse(FutureError):
    """A future or an await does not support the operation, or `call` an argument.

    A future that is completed a second time does not change: `found` describes its
    content, `wanted` the rejected one.  An await represents an object of a `kind`.
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
    Unmovable (TypeError, RuntimeError): {kind} objects cannot be {asked}: other
        threads may wait for this one.
      to do: wait, and let the value be {asked}
    WithoutFunction (TypeError, RuntimeError): This await was created from a value by
        `awaitable_nowait`: it has no function.
      to do: check `is_nowait()` first
    NotSettled (TypeError, RuntimeError): `value()` was called on a future that is not
        complete.
      to do: `wait()` waits for it; `then(...)` runs when it is complete
    AlreadySettled (RuntimeError): A future cannot be completed with {wanted}: it is
        complete already.
      it holds: {found}, as before
      to do: complete it once; check `done()` if several threads may complete it
    AwaitedAttribute (AttributeError): This await represents a `{kind}`, which has no
        attribute `{attribute}`.
    """


class FutureTimeout(FutureError, TimeoutError):
    """The future was not completed in time; it is unchanged."""

    seconds: float

    words = """
    FutureTimeout: A future was not complete after {seconds:g} s.
      state: it can still be completed, and waited for again
    """


class CallbackFailed(FutureError, RuntimeError):
    """A callback raised `error`, a type and a text.

    `at` lists the frames, outermost first; the exception itself is the `__cause__`.
    """

    callback: str
    error: str
    at: tuple[str, ...]

    words = """
    CallbackFailed: The callback `{callback}` raised {error}
      frame: {at:each}
    """


class FutureCancelled(FutureError, RuntimeError):
    """The future of another library that this one wraps was cancelled."""

    library: str

    words = """
    FutureCancelled: The {library} future behind this one was cancelled, so that there
        is no value.
    """
