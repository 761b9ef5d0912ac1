"""A tensor that repeats another one without ever holding the repetitions.

The idea: a bias of a thousand numbers that stands for a million rows is a thousand
numbers.  A `LazyBroadcast` has a `small` tensor with as many dimensions as it shows,
some of them of size 1 where it shows more.  Element by element the repeated ones stay
equal, so such an operator runs on what is small:

    row = LazyBroadcast(tensor([1.0, 2.0]), (1_000_000, 2))
    y = row.exp() * row + 1.0    # y.small has shape (1, 2)

Beside a tensor that does not repeat, the operator broadcasts by itself, and the result
is that large and plain.  `expand` repeats more, a sum counts instead of adding, and
every other operator gets the repetitions as `expand` shows them: a view, so that
nothing is copied before a kernel needs the elements side by side.

Rules:
- `small` has all dimensions: without any it would count less when dtypes are promoted;
- what is repeated is not written to in place, as of no expanded tensor (the kernels
  refuse it);
- gradients need nothing: formulas are made of the same operators.  What is kept as
  `grad` is a copy, as always, and large.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from typing import Any

from everyorder.runtime import Tensor, ops
from everyorder.runtime.operators.declare.plan import one_dim
from everyorder.runtime.tensors.shape import broadcast_shapes, broadcast_strides
from tests.examples.logging_tensor import found_in, mapped

Shape = tuple[int, ...]


class LazyBroadcast(Tensor):
    """`small`, shown in a shape that it broadcasts to.  Raises `ShapesDoNotFit`."""

    small: Tensor

    @staticmethod
    def __new__(
        cls: type["LazyBroadcast"],
        small: Tensor,
        shape: Sequence[int],
        *,
        requires_grad: bool = False,
    ) -> "LazyBroadcast":
        shape = tuple(shape)
        strides = broadcast_strides(small.shape, small.strides, shape)
        if missing := len(shape) - len(small.shape):
            small = small.reshape((*[1] * missing, *small.shape))
        made: LazyBroadcast = Tensor._make_wrapper_subclass(
            cls,
            shape,
            strides=strides,
            dtype=small.dtype,
            device=small.device,
            requires_grad=requires_grad,
        )
        made.small = small.detach() if requires_grad else small
        return made

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        rule = RULES.get(func.name.name)
        if rule is not None:
            given, options = func.normalize(args, kwargs)
            return rule(func, *given, **options)
        if "pointwise" in func.tags and not func.schema.is_mutable:
            return pointwise(func, args, kwargs)
        return func(*mapped(materialized, args), **mapped(materialized, kwargs))

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["small"], None

    @classmethod
    def __tensor_unflatten__(
        cls, inner: dict[str, Tensor], context: None, size: Any, stride: Any
    ) -> "LazyBroadcast":
        return cls(inner["small"], size)

    def __repr__(self) -> str:
        return f"LazyBroadcast({self.small!r}, {self.shape})"


def materialized(value: Any) -> Any:
    """What a lazy tensor shows, as a view for every kernel; any other value itself."""
    if not isinstance(value, LazyBroadcast):
        return value
    return value.small.expand(value.shape)


def pointwise(func: Any, args: Any, kwargs: Any) -> Tensor:
    """An operator that goes element by element, on what is small."""

    shapes = [each.shape for each in found_in((args, kwargs), Tensor)]
    made = func(*mapped(unrepeated, args), **mapped(unrepeated, kwargs))
    return shown(made, reduce(broadcast_shapes, shapes))


def unrepeated(value: Any) -> Any:
    """What a tensor repeats, once; what `expand` made of a plain one repeats, too."""
    if isinstance(value, LazyBroadcast):
        return value.small
    if isinstance(value, Tensor):
        for dim, (size, step) in enumerate(
            zip(value.shape, value.strides, strict=True)
        ):
            if size > 1 and not step:
                value = ops.core.slice(value, dim, 0, 1)
    return value


def shown(small: Tensor, shape: Shape) -> Tensor:
    """The tensor in a shape; itself if nothing is repeated."""
    return small if small.shape == shape else LazyBroadcast(small, shape)


def same(func: Any, self: LazyBroadcast, *rest: Any, **options: Any) -> Tensor:
    """What changes no shape."""
    return LazyBroadcast(func(self.small, *rest, **options), self.shape)


def expand(func: Any, self: LazyBroadcast, size: Sequence[int]) -> Tensor:
    """More repetitions of the same."""
    return LazyBroadcast(self.small, materialized(self).expand(size).shape)


def reduced(
    func: Any,
    self: LazyBroadcast,
    dim: Sequence[int] | None,
    keepdim: bool,
    **options: Any,
) -> Tensor:
    """A sum: that of what is small, as often as it is repeated; a mean: only that."""
    call = func.name.name
    dims = [one_dim(each, self.shape, call) for each in dim or range(self.ndim)]
    if not self.shape or 0 in self.shape:
        # Nothing is repeated; or no times, and infinity taken no times is no number.
        return func(materialized(self), dims, keepdim, **options)  # type: ignore[no-any-return]  # a tensor
    part: Tensor = func(self.small, dims, True, **options)
    if call == "core::sum":
        part = part * (
            prod(self.shape[each] for each in dims)
            // prod(self.small.shape[each] for each in dims)
        )
    shape = tuple(1 if at in dims else size for at, size in enumerate(self.shape))
    if not keepdim:
        part = part.squeeze(dims)
        shape = tuple(size for at, size in enumerate(self.shape) if at not in dims)
    return shown(part, shape)


# Operator -> what is done instead: (operator, *arguments) -> result.
RULES: dict[str, Callable[..., Tensor]] = {
    "core::alias": same,
    "core::detach": same,
    "core::_to_copy": same,
    "core::expand": expand,
    "core::sum": reduced,
    "core::mean": reduced,
}
