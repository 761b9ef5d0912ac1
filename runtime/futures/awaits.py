"""Awaits: values that a function computes on first use.

Rules:
- an await owns the function and all of its arguments; nothing runs before the first
  wait, and no thread is started: the function runs on the thread that waits first;
- the result is stored; an exception is not: it is raised, and the next wait runs the
  function again;
- one thread runs the function; other threads that wait meanwhile wait for that run, and
  get the same object.  Two awaits that wait for each other in two threads deadlock, as
  locks do;
- a function that waits for its own await runs once more inside of itself; the result of
  the outermost run is stored;
- an attribute that an await lacks is looked up on its value, which waits.  Operators,
  calls, subscripts, `with`, equality, hash and text are those of the await; attributes
  can be set on the value only, and operators on tensors do not accept an await.
"""

import os
from collections.abc import Callable
from threading import RLock, get_ident
from typing import Any, Generic, ParamSpec, Self, TypeVar

from everyorder.runtime.errors.future import FutureMisuse, callable_name, describe_type
from everyorder.runtime.futures.completion import Unmovable

# The attribute by which the dispatcher recognises a tensor.  An await must not be
# mistaken for one: operators reject it without running its function.
_TENSOR_MARK = "key_bits"
_UNASKED = "value that was not asked"

W = TypeVar("W")
P = ParamSpec("P")


class _Call:
    """The function of an await, its arguments, and its result."""

    __slots__ = ("args", "done", "fn", "kwargs", "lock", "value")

    value: Any

    def __init__(
        self,
        fn: Callable[..., Any] | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.done = False
        self.lock = RLock()

    def run(self) -> Any:
        """Return the value; compute it first if necessary."""
        user = self, get_ident()
        nested = user in _USERS
        try:
            # Registered from before the lock is acquired until after its release.
            _USERS.add(user)
            with self.lock:
                if not self.done:
                    assert self.fn is not None, "without a function it is done"
                    self.value = self.fn(*self.args, **self.kwargs)
                    self.done = True
                value = self.value
            if not nested:
                _USERS.discard(user)
        except BaseException:
            if not nested:
                _USERS.discard(user)
            raise
        return value


# (call, thread) that may hold the call's lock now.  A forked child only has the thread
# that forked.
_USERS: set[tuple[_Call, int]] = set()


def _in_child() -> None:
    for user in tuple(_USERS):
        call, thread = user
        if thread != get_ident():
            _USERS.discard(user)
            if not call.lock._is_owned():  # type: ignore[attr-defined]  # as Condition does
                call.lock = RLock()


# `os.fork` does not exist on every system.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


class Await(Unmovable, Generic[W]):
    """A value of type W that is computed on first use.

    `awaitable` creates one from a function, `awaitable_nowait` from a value.
    Attributes and methods that are not listed here are those of the value.
    """

    __slots__ = ("__call", "__weakref__")

    __call: _Call

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Refuse: use `awaitable` or `awaitable_nowait`.

        Raises:
            FutureMisuse: always.
        """
        raise FutureMisuse(
            call=f"{cls.__name__}()",
            found="a direct call",
            wanted="no calls: use `awaitable(func, ...)` or `awaitable_nowait(o)`",
        )

    def wait(self) -> W:
        """Return the value: computed by the first wait, the same object ever after.

        Raises:
            BaseException: raised by the function; the next wait runs it again.
        """
        value: W = self.__call.run()
        return value

    def done(self) -> bool:
        """Return True if the value is computed."""
        return self.__call.done

    def is_nowait(self) -> bool:
        """Return True if it was created from a value, and has no function."""
        return self.__call.fn is None

    def fn(self) -> Callable[..., W]:
        """Return the function.

        Raises:
            FutureMisuse: it was created from a value.
        """
        fn = self.__call.fn
        if fn is None:
            raise FutureMisuse(code="WithoutFunction")
        return fn

    def args(self) -> tuple[Any, ...]:
        """Return the positional arguments of the function; without one, the value."""
        return self.__call.args

    def kwargs(self) -> dict[str, Any]:
        """Return the keyword arguments of the function, copied."""
        return {**self.__call.kwargs}

    def type(self) -> object:
        """Return the type of this await as an annotation; Python does not check it."""
        return Await[Any]

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the value, after waiting for the value.

        Raises:
            FutureMisuse: the value lacks an attribute of that name.
            BaseException: raised by the function.
        """
        if name == _TENSOR_MARK:
            raise FutureMisuse(code="AwaitedAttribute", attribute=name, kind=_UNASKED)
        value = self.wait()
        try:
            return getattr(value, name)
        except AttributeError as error:
            if isinstance(error, FutureMisuse):
                # The value is an await itself, and its error names the innermost value.
                raise
            kind = type(value).__name__
            raise FutureMisuse(
                code="AwaitedAttribute", attribute=name, kind=kind
            ) from error

    def __repr__(self) -> str:
        call = self.__call
        if call.fn is None:
            return f"<Await of an object of type {type(call.value).__name__}>"
        return (
            f"<Await of {callable_name(call.fn)}: {'done' if call.done else 'not run'}>"
        )


# `Await.__new__` refuses, so `object.__new__` creates awaits; storing the slot by its
# mangled name takes less time than the slot's own `__set__`.
_new = object.__new__


def awaitable(func: Callable[P, W], /, *args: P.args, **kwargs: P.kwargs) -> Await[W]:
    """Return an await of the result of `func(*args, **kwargs)`; call nothing yet.

    Raises:
        FutureMisuse: `func` cannot be called.
    """
    if not callable(func):
        raise FutureMisuse(
            call="awaitable",
            found=describe_type(func),
            wanted="a callable, then its arguments",
        )
    result: Await[W] = _new(Await)
    result._Await__call = _Call(func, args, kwargs)  # type: ignore[attr-defined]  # as it is mangled
    return result


def awaitable_wait(aw: Await[W]) -> W:
    """Return the value of an await, as `aw.wait()`.

    Raises:
        FutureMisuse: `aw` is not an await.
        BaseException: raised by the function.
    """
    if type(aw) is not Await:
        raise FutureMisuse(
            call="awaitable_wait",
            found=describe_type(aw),
            wanted="the result of `awaitable` or `awaitable_nowait`",
        )
    return aw.wait()


def awaitable_nowait(o: W) -> Await[W]:
    """Return a completed await with the value `o`."""
    call = _Call(None, (o,), {})
    call.value, call.done = o, True
    result: Await[W] = _new(Await)
    result._Await__call = call  # type: ignore[attr-defined]  # as it is mangled
    return result
