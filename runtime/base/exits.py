"""Exits of context managers that no signal keeps from running.

CPython handles signals before the first instruction of a function: an exception of the
handler, such as KeyboardInterrupt, leaves an `__exit__` that is written in Python
before it has begun, and the `with` statement does not call it again. So the exit must
be called by code that is not Python, and resume a generator: there, a signal is handled
behind the `yield`, inside of `try`.

    class guard:
        @Exit
        def __exit__(self):
            freed = False
            try:
                yield
            except GeneratorExit:
                freed = True  # not left at all
            finally:
                if not freed:
                    ...  # restore, without a call

Rules:
- `with` reads `__exit__` before it calls `__enter__`: a signal until then does no harm;
- an exit that was read leaves once; called again it raises `ExitCalledAgain`;
- the generator may raise; a call in it is a place where signals are handled again;
- other callers, such as `ExitStack`, are written in Python, and may be interrupted
  before they call the exit; for them it may be another function, with the exception.
"""

import sys
from collections.abc import Callable, Generator, Iterator
from io import IOBase
from itertools import chain
from opcode import opmap
from types import MethodType
from typing import Any, overload

from everyorder.runtime.errors.call import ExitCalledAgain

# The instructions of `with`, of Python until 3.13 and later.
_WITH = {opmap[name] for name in ("BEFORE_WITH", "LOAD_SPECIAL") if name in opmap}

# Yields once, and then leaves.
Leaving = Callable[[Any], Generator[None, None, None]]


class _Left:
    """The steps of an exit behind its last one: a second call reaches them."""

    __slots__ = ()

    def __iter__(self) -> Iterator[None]:
        return self

    def __next__(self) -> None:
        """Raise `ExitCalledAgain`, as often as it is called."""
        raise ExitCalledAgain


# What follows the generator: a step that ends the first call, and the error.
_ENDED = (None,)
_LEFT = _Left()


class Exit:
    """The descriptor of an `__exit__` that is written as a generator."""

    def __init__(
        self, leaving: Leaving, function: Callable[..., None] | None = None
    ) -> None:
        self._leaving = leaving
        # What other callers than `with` call.
        self._function = function

    @overload
    def __get__(self, manager: None, owner: type) -> Callable[..., None]: ...
    @overload
    def __get__(self, manager: object, owner: type) -> Callable[..., None]: ...
    def __get__(self, manager: object, owner: type) -> Callable[..., None]:
        if manager is None:
            return self._called if self._function is None else self._function
        if self._function is not None:
            caller = sys._getframe(1)
            if caller.f_code.co_code[caller.f_lasti] not in _WITH:
                return MethodType(self._function, manager)
        closed = _Caller()
        # Leaving ends the generator; another exit by the same object is refused.
        closed.close = chain(self._leaving(manager), _ENDED, _LEFT).__next__  # type: ignore[method-assign]  # of this one alone
        leave = closed.__exit__
        # It begins in the way in which it will end, so that no recursion that begins
        # is too deep to end.
        leave(None, None, None)
        return leave

    def _called(self, manager: object, *exception: object) -> None:
        """Leave, as the function of the class."""
        self.__get__(manager, type(manager))(*exception)


class _Caller(IOBase):
    """An object whose `__exit__`, which is not Python, calls `close` without arguments.

    The class is that of files, but it has no file.  With a slot, an entered block does
    not create a dictionary.
    """

    __slots__ = ("close",)

    # The finalizer calls `close` for an open one.
    closed = True
