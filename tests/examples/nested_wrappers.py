"""Wrappers inside of wrappers, in any order and to any depth.

The idea: a wrapper that unwraps *its own class only*, calls the operator again, and
wraps what comes back, composes with every other one.  Nobody has to know whom else a
tensor passes through: each call peels one layer, the next layer is a tensor with a
handler like any other, and the results are wrapped on the way out.

    x = nest(tensor([1.0, -2.0]), "logging", "quantized", "logging")
    y = (x + x).relu()
    layers(y)                    # ("logging", "quantized", "logging")
    plain(y)                     # tensor([2., 0.])

`Wrapper` is the least that does this, to copy from; a class derived from it sees every
operator in `called`.  `Counting` and `NoNaN` are what that is good for.

Rules:
- of two classes in one call the derived one is asked first, else the first argument's;
  both orders give the same values, and the class that is asked first comes outside;
- results are tensors, lists of tensors or numbers: only tensors are wrapped;
- where a wrapper wants to be innermost, it returns NotImplemented as long as `types`
  has others; if all of them do so, that is an error.
"""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

from everyorder.runtime import Tensor
from tests.examples.lazy_broadcast import LazyBroadcast, materialized
from tests.examples.logging_tensor import LoggingTensor, found_in, mapped
from tests.examples.quantized_tensor import QuantizedTensor, numbers, quantize


class Wrapper(Tensor):
    """A tensor around `inner` that changes nothing; to be derived from."""

    inner: Tensor

    @staticmethod
    def __new__(
        cls: type["Wrapper"], inner: Tensor, *, requires_grad: bool = False
    ) -> "Wrapper":
        made: Wrapper = Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.strides,
            storage_offset=inner.offset,
            dtype=inner.dtype,
            device=inner.device,
            requires_grad=requires_grad,
        )
        made.inner = inner.detach() if requires_grad else inner
        return made

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        def unwrap(value: Any) -> Any:
            # Exactly its own class: a derived one is another layer.
            return value.inner if type(value) is cls else value

        def wrap(value: Any) -> Any:
            return cls(value) if isinstance(value, Tensor) else value

        found = func(*mapped(unwrap, args), **mapped(unwrap, kwargs or {}))
        cls.called(func, found)
        return mapped(wrap, found)

    @classmethod
    def called(cls, func: Any, found: Any) -> None:
        """Told of every operator, and what it returned one layer further in."""

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["inner"], None

    @classmethod
    def __tensor_unflatten__(
        cls, inner: dict[str, Tensor], context: None, size: Any, stride: Any
    ) -> "Wrapper":
        return cls(inner["inner"])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"


class Counting(Wrapper):
    """Counts the operators that its tensors pass through."""

    count: ClassVar[int] = 0

    @classmethod
    def called(cls, func: Any, found: Any) -> None:
        cls.count += 1


class NoNaN(Wrapper):
    """Stops at the first operator that makes something that is not a number."""

    @classmethod
    def called(cls, func: Any, found: Any) -> None:
        for each in found_in(found, Tensor):
            if each.dtype.is_floating and each.isnan().any():
                raise FloatingPointError(f"{func} made NaN")


def unrepeated(inner: Tensor) -> LazyBroadcast:
    """A lazy tensor that repeats nothing, yet."""
    return LazyBroadcast(inner, inner.shape)


class Layer(NamedTuple):
    """A kind of wrapper: its class, what puts it on, and what takes it off."""

    cls: type[Tensor]
    put: Callable[[Tensor], Tensor]
    take: Callable[[Any], Tensor]


LAYERS = {
    "wrapper": Layer(Wrapper, Wrapper, lambda value: value.inner),
    "counting": Layer(Counting, Counting, lambda value: value.inner),
    "nonan": Layer(NoNaN, NoNaN, lambda value: value.inner),
    "logging": Layer(LoggingTensor, LoggingTensor, lambda value: value.elem),
    "lazy": Layer(LazyBroadcast, unrepeated, materialized),
    "quantized": Layer(QuantizedTensor, quantize, numbers),
}
NAMES = {layer.cls: name for name, layer in LAYERS.items()}


def nest(tensor: Tensor, *names: str) -> Tensor:
    """The tensor inside of these layers, the outermost named first."""
    for name in reversed(names):
        tensor = LAYERS[name].put(tensor)
    return tensor


def peeled(tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Each layer's name, from outside, and what is inside of it."""
    while (name := NAMES.get(type(tensor))) is not None:
        tensor = LAYERS[name].take(tensor)
        yield name, tensor


def layers(tensor: Tensor) -> tuple[str, ...]:
    """The names of the layers, the outermost first."""
    return tuple(name for name, _ in peeled(tensor))


def plain(tensor: Tensor) -> Tensor:
    """What is inside of all layers."""
    for _, inner in peeled(tensor):
        tensor = inner
    return tensor
