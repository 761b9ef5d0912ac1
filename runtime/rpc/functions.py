"""Asynchronous execution: functions whose results come later, without a thread.

A marked function gives a future; where a remote call runs it, the completion of that
future sends the answer, from whichever thread it comes, and no thread waits meanwhile.
The future itself never travels.

Rules:
- under `staticmethod` and `classmethod` the mark is the inner decorator, over
  `jit.script` the outer one;
- called here, a marked function is the function: the caller gets its future;
- what it raises before there is a future, and what the future is completed with, are
  the error of the remote call; a result that is no future is refused there.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from runtime.errors.future import described
from runtime.errors.rpc import RpcMisuse
from runtime.futures import Future
from runtime.rpc.values.callables import MARK

P = ParamSpec("P")
T = TypeVar("T")


def async_execution(fn: Callable[P, Future[T]]) -> Callable[P, Future[T]]:
    """Mark a function that gives a future: remote callers get its value.

    Raises:
        RpcMisuse: it cannot be called.
    """
    if not callable(fn):
        raise RpcMisuse(
            code="RpcMisuse",
            call="async_execution",
            found=described(fn),
            wanted="a function that gives a future; under staticmethod and classmethod",
        )

    @wraps(fn)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return fn(*args, **kwargs)

    setattr(wrapper, MARK, fn)
    return wrapper


def is_async(function: Any) -> bool:
    """Whether a function, or what a method is bound of, is marked."""
    return getattr(function, MARK, None) is not None
