"""Awaits: values that a function computes when they are first asked for.

Rules:
- an await owns the function and all of its arguments; nothing runs before the first
  wait, and no thread is started: the function runs on the thread that waits first;
- its result is kept; an exception is not: it is raised, and the next wait runs the
  function again;
- one thread runs the function; other threads that wait meanwhile wait for that run, and
  get the same object.  Two awaits that wait for each other in two threads deadlock, as
  locks do;
- a function that waits for its own await runs once more inside of itself; the result of
  the outermost run is the one that stays;
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

# The attribute by which the dispatcher recognises a tensor.  An await must not pass for
# one: operators refuse it without running it.
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
        """The value, computed if it is not there yet."""
        user = self, get_ident()
        nested = user in _USERS
        try:
            # Before the lock is taken, and until it is free again.
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


# (call, thread) that may hold the call's lock now.  Of these threads a forked child has
# the one that forked.
_USERS: set[tuple[_Call, int]] = set()


def _in_child() -> None:
    for user in tuple(_USERS):
        call, thread = user
        if thread != get_ident():
            _USERS.discard(user)
            if not call.lock._is_owned():  # type: ignore[attr-defined]  # as Condition does
                call.lock = RLock()


# Some systems have no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


class Await(Unmovable, Generic[W]):
    """A value of type W that is computed when it is first asked for.

    `awaitable` makes one of a function, `awaitable_nowait` of a value.  Attributes and
    methods that are not listed here are those of the value.
    """

    __slots__ = ("__call", "__weakref__")

    __call: _Call

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Refuse: an await is made of a function or of a value.

        Raises:
            FutureMisuse: always.
        """
        raise FutureMisuse(
            call=f"{cls.__name__}()",
            found="what no await is made of",
            wanted="nothing: `awaitable(func, ...)` and `awaitable_nowait(o)` make one",
        )

    def wait(self) -> W:
        """The value: computed by the first wait, the same object ever after.

        Raises:
            BaseException: what the function raised; the next wait runs it again.
        """
        value: W = self.__call.run()
        return value

    def done(self) -> bool:
        """Whether the value is there."""
        return self.__call.done

    def is_nowait(self) -> bool:
        """Whether it was made of a value, and has no function."""
        return self.__call.fn is None

    def fn(self) -> Callable[..., W]:
        """The function.

        Raises:
            FutureMisuse: it was made of a value.
        """
        fn = self.__call.fn
        if fn is None:
            raise FutureMisuse(code="WithoutFunction")
        return fn

    def args(self) -> tuple[Any, ...]:
        """The positional arguments of the function; the value where there is none."""
        return self.__call.args

    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments of the function, copied."""
        return {**self.__call.kwargs}

    def type(self) -> object:
        """The type of this await, as an annotation says it; of Python's: any value."""
        return Await[Any]

    def __getattr__(self, name: str) -> Any:
        """An attribute of the value, for which this waits.

        Raises:
            FutureMisuse: the value has none of that name.
            BaseException: what the function raised.
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


# `Await.__new__` refuses, so `object.__new__` makes awaits; storing the slot by its
# mangled name takes less time than the slot's own `__set__`.
_new = object.__new__


def awaitable(func: Callable[P, W], /, *args: P.args, **kwargs: P.kwargs) -> Await[W]:
    """An await of what `func(*args, **kwargs)` returns; nothing is called yet.

    Raises:
        FutureMisuse: `func` cannot be called.
    """
    if not callable(func):
        raise FutureMisuse(
            call="awaitable",
            found=describe_type(func),
            wanted="a callable, then its arguments",
        )
    made: Await[W] = _new(Await)
    made._Await__call = _Call(func, args, kwargs)  # type: ignore[attr-defined]  # as it is mangled
    return made


def awaitable_wait(aw: Await[W]) -> W:
    """The value of an await, as `aw.wait()`.

    Raises:
        FutureMisuse: it is no await.
        BaseException: what the function raised.
    """
    if type(aw) is not Await:
        raise FutureMisuse(
            call="awaitable_wait",
            found=describe_type(aw),
            wanted="what `awaitable` or `awaitable_nowait` made",
        )
    return aw.wait()


def awaitable_nowait(o: W) -> Await[W]:
    """An await that is done, with the value `o`."""
    call = _Call(None, (o,), {})
    call.value, call.done = o, True
    made: Await[W] = _new(Await)
    made._Await__call = call  # type: ignore[attr-defined]  # as it is mangled
    return made
