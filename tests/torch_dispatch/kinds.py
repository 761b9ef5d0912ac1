"""Classes of tensors that tests use: one that has a tensor, and one that is one.

True only here: every handler of these classes writes down what it was asked, in LOG.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from everyorder import runtime
from everyorder.runtime import Tensor

core: Any = runtime.ops.core

# The operators that handlers were asked for, in order.
LOG: list[str] = []

# With the methods that are installed on it.
TENSOR: Any = Tensor


@contextmanager
def logged() -> Iterator[list[str]]:
    """Context: gives the list that fills with what handlers are asked."""
    LOG.clear()
    yield LOG


def asked(call: Callable[[], Any]) -> list[str]:
    """What handlers are asked while `call` runs."""
    with logged() as log:
        call()
        return list(log)


def turned(value: Any, turn: Callable[[Any], Any]) -> Any:
    """A value with `turn` applied to the tensors in it."""
    if isinstance(value, (list, tuple)):
        return type(value)(turned(each, turn) for each in value)
    return turn(value) if isinstance(value, Tensor) else value


class Boxed(Tensor):
    """Has a tensor: computes with it, and wraps what comes out."""

    inner: Tensor

    def __new__(cls, inner: Tensor, **options: Any) -> Any:
        made = TENSOR._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.strides,
            storage_offset=inner.offset,
            dtype=inner.dtype,
            device=inner.device,
            **options,
        )
        made.inner = inner
        return made

    @classmethod
    def out_of(cls, value: Any) -> Any:
        return value.inner if isinstance(value, cls) else value

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        LOG.append(str(func))
        given = turned(tuple(args), cls.out_of)
        named = {name: turned(v, cls.out_of) for name, v in (kwargs or {}).items()}
        return turned(func(*given, **named), cls)

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        return ["inner"], None

    @classmethod
    def __tensor_unflatten__(
        cls, tensors: dict[str, Tensor], context: Any, size: Any, strides: Any
    ) -> Any:
        return cls(tensors["inner"])


class Counted(Tensor):
    """Is a tensor: leaves every operator to the one that has no handler."""

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        LOG.append(str(func))
        return super().__torch_dispatch__(func, types, args, kwargs)


def boxed(*numbers: float, **options: Any) -> Any:
    """A wrapper of a vector."""
    return Boxed(runtime.tensor([*numbers]), **options)


def counted(*numbers: float) -> Any:
    """A vector that counts."""
    return vector(*numbers).as_subclass(Counted)


def vector(*numbers: float, **options: Any) -> Any:
    """A plain one."""
    return runtime.tensor([*numbers], **options)
