"""Reshaping: views where they can be, copies where they must.

True only here: how a shape is reached by the operators of views and of copying, so that
these alone need derivatives.
"""

from collections.abc import Sequence
from functools import lru_cache

from runtime.errors.operands import WrongOption
from runtime.errors.operator import ShapesDoNotFit
from runtime.operators.call import core, onward
from runtime.operators.plan import one_dim
from runtime.operators.structured import Written
from runtime.operators.views import sized
from runtime.tensors.shape import view_strides
from runtime.tensors.tensor import Tensor


def reshape(self: Tensor, shape: Sequence[int]) -> Tensor:
    """The elements in another shape.  Raises `ShapesDoNotFit`."""
    # One run of elements in order has a view of every shape.
    if self._flat is None and not _viewable(self.shape, self.strides, tuple(shape)):
        self = core.contiguous(self)
    try:
        viewed: Tensor = _view(self, shape)
    except ShapesDoNotFit as error:
        if error.operator == "core::view":
            error.operator = "core::reshape"
        raise
    return viewed


_view = onward("view")


# Programs see few shapes.
@lru_cache(maxsize=1024)
def _viewable(
    shape: tuple[int, ...], strides: tuple[int, ...], wanted: tuple[int, ...]
) -> bool:
    """Whether a view shows the elements in the wanted shape.  Raises as `reshape`."""
    sizes = tuple(sized("core::reshape", shape, wanted))
    return view_strides(shape, strides, sizes) is not None


def flatten(self: Tensor, start_dim: int, end_dim: int) -> Tensor:
    """The dimensions from `start_dim` to `end_dim` as one."""
    call = "core::flatten"
    shape = self.shape
    first = one_dim(call, start_dim, shape)
    last = one_dim(call, end_dim, shape)
    if first > last:
        raise WrongOption(
            operator=call,
            argument="start_dim",
            found=f"{start_dim}",
            fits=f"a dimension before or at end_dim, which is {end_dim}",
        )
    if not shape:
        return reshape(self, (1,))
    count = 1
    for size in shape[first : last + 1]:
        count *= size
    return reshape(self, (*shape[:first], count, *shape[last + 1 :]))


def sum_to_size(self: Tensor, size: Sequence[int]) -> Tensor:
    """The sums over all that broadcasting `size` to this shape had repeated."""
    shape, wanted = self.shape, tuple(size)
    added = len(shape) - len(wanted)
    fits = added >= 0 and all(
        have in (1, size) for have, size in zip(wanted, shape[added:], strict=True)
    )
    if not fits:
        raise ShapesDoNotFit(
            operator="core::sum_to_size",
            shapes=(("self", shape), ("size", wanted)),
            reason="the size does not broadcast to the shape",
            fits="a size that broadcasts to the shape of self",
        )
    dims = [
        dim
        for dim, have in enumerate(shape)
        if dim < added or (wanted[dim - added] == 1 and have != 1)
    ]
    if dims:
        self = core.sum(self, dims, True)
    result: Tensor = core.view(self, wanted) if added else self
    return result


OPERATORS = (
    Written(
        "reshape(Tensor(a) self, int[] shape) -> Tensor(a)",
        {"CompositeImplicitAutograd": reshape},
        says="The elements in another shape, as a view if that can be.",
    ),
    Written(
        "flatten(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
        {"CompositeImplicitAutograd": flatten},
        says="The dimensions from one to another as one.",
    ),
    Written(
        "sum_to_size(Tensor(a) self, int[] size) -> Tensor(a)",
        {"CompositeImplicitAutograd": sum_to_size},
        says="The sum over what broadcasting from that shape repeats.",
        only="method",
    ),
)
