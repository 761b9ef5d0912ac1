"""Writing to elements by index: combined with them, along a dimension, at a mask.

`scatter_reduce` combines every source with the element that its index selects;
`index_copy` and `index_fill` write slices of one dimension; `masked_scatter` writes the
elements of a source, in order, where a mask is true.

Rules:
- a plan starts as a copy of `self`; the kernel checks the index values before it
  writes;
- of several values for one place `index_copy` writes the last one; `scatter_reduce`
  combines all of them, in order;
- `scatter_reduce` without `include_self` replaces the elements that an index selects,
  and no others;
- a mean of integers is rounded down; NaN is the greatest and the least of its place.
"""

from math import inf
from typing import Any

from everyorder.runtime.operators.declare.allocate_outputs import (
    as_dtype,
    expanded,
    shaped,
)
from everyorder.runtime.operators.declare.plan import (
    ALL,
    BOOL,
    COMPLEXES,
    INT64,
    INTEGERS,
    NUMBERS,
    CallPlan,
    KernelTable,
    Number,
    bad_option,
    bad_shapes,
    check_fill,
    computing,
    index_dtype,
    number_for,
    one_dim,
    one_dtype,
    require_dtype,
    require_ndim,
    same_device,
    strides_of,
)
from everyorder.runtime.operators.declare.structured import Structured
from everyorder.runtime.operators.gather_scatter import (
    check_places,
    one_or_more,
    plan_scatter,
    require_slices,
)
from everyorder.runtime.operators.indexing import masked_shape, numbers_of
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.construction import empty_tensor, view_of
from everyorder.runtime.tensors.dtype_info import info
from everyorder.runtime.tensors.tensor import Tensor

_SUMS = ("sum", "mean")
_EXTREMES = ("amax", "amin")
REDUCTIONS = (*_SUMS, "prod", *_EXTREMES)


def plan_scatter_reduce(
    self: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    include_self: bool,
) -> CallPlan:
    """Return the plan that combines `src[i]` with the element at `index[i]`."""
    if reduce not in REDUCTIONS:
        raise bad_option("reduce", repr(reduce), ", ".join(map(repr, REDUCTIONS)))
    plan = plan_scatter(self, dim, index, src)
    if reduce in _EXTREMES:
        fits = f"every dtype but complex ones for {reduce!r}"
        require_dtype("self", self.dtype, ALL - COMPLEXES, fits)
    elif reduce == "mean":
        require_dtype("self", self.dtype, NUMBERS, "every dtype but bool for 'mean'")
    place, index, src = plan.arguments
    return plan._replace(
        arguments=(place, index, src, reduce, include_self),
        compute=computing(self.dtype),
        cast=(2,),
        kernel=_scatter_reduce,
    )


def _neutral(reduce: str, dtype: DType) -> Number:
    """Return the number that a reduction of one dtype begins with."""
    if reduce not in _EXTREMES:
        return number_for(reduce == "prod", dtype)
    least = reduce == "amax"
    if dtype is BOOL:
        return not least
    if dtype in INTEGERS:
        return int(info(dtype).smallest if least else info(dtype).largest)
    return -inf if least else inf


def _scatter_reduce(
    table: KernelTable,
    out: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    include_self: bool,
) -> None:
    if not index.numel():
        return
    target, source = one_or_more(table, out), one_or_more(table, src)
    places = as_dtype(table, one_or_more(table, index), INT64)
    if not include_self:
        table["scatter"](target, dim, places, _neutral(reduce, out.dtype))
    if reduce not in _SUMS:
        table["scatter_reduce"](target, dim, places, source, reduce)
        return
    table["scatter_add"](target, dim, places, source)
    if reduce == "sum":
        return
    count, ones = (
        empty_tensor(each.shape, out.dtype, out.device) for each in (target, places)
    )
    table["fill"](count, number_for(include_self, out.dtype))
    table["fill"](ones, number_for(1, out.dtype))
    table["scatter_add"](count, dim, places, ones)
    if not include_self:
        untouched = empty_tensor(count.shape, BOOL, out.device)
        table["eq"](untouched, count, number_for(0, out.dtype))
        table["where"](count, untouched, number_for(1, out.dtype), count)
    divide = "floor_divide" if out.dtype in INTEGERS else "div"
    table[divide](target, target, count)


def plan_index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor) -> CallPlan:
    """Return the plan that writes slices of `source` at the index."""
    device = same_device(self, index, source)
    one_dtype(ALL, "every dtype", ("self", self), ("source", source))
    index_dtype("index", index)
    require_ndim(("index", index), 0, 1)
    place = one_dim(dim, self.shape)
    require_slices(self, place, index, source)
    return CallPlan(
        ((self.shape, self.dtype),),
        device,
        (place, index, source),
        start=self,
        kernel=_index_copy,
    )


def _index_copy(
    table: KernelTable, out: Tensor, dim: int, index: Tensor, source: Tensor
) -> None:
    target, numbers = one_or_more(table, out), one_or_more(table, index)
    # The kernel counts negative numbers from the end; this operator refuses them.
    check_places(table, target.shape[dim], dim, numbers)
    if source.numel():
        slices = one_or_more(table, source)
        table["index_put"](target, [*[None] * dim, numbers], slices, False)


def plan_index_fill(self: Tensor, dim: int, index: Tensor, value: Number) -> CallPlan:
    """Return the plan that writes one number to slices; negative places wrap."""
    check_fill(value, self.dtype)
    return _filling(self, dim, index, number_for(value, self.dtype))


def plan_index_fill_tensor(
    self: Tensor, dim: int, index: Tensor, value: Tensor
) -> CallPlan:
    """Return the plan that writes a tensor of one number to slices."""
    require_ndim(("value", value), 0)
    if value.dtype in COMPLEXES:
        fits = f"a real number, as the elements are {self.dtype}"
        accepted = ALL if self.dtype in COMPLEXES else ALL - COMPLEXES
        require_dtype("value", value.dtype, accepted, fits)
    same_device(self, value)
    return _filling(self, dim, index, value)


def _filling(self: Tensor, dim: int, index: Tensor, value: Any) -> CallPlan:
    device = same_device(self, index)
    require_dtype("self", self.dtype, ALL, "every dtype")
    index_dtype("index", index)
    require_ndim(("index", index), 0, 1)
    place = one_dim(dim, self.shape)
    return CallPlan(
        ((self.shape, self.dtype),),
        device,
        (place, index, value),
        start=self,
        kernel=_index_fill,
        strides=strides_of(self, None),
    )


def _index_fill(
    table: KernelTable, out: Tensor, dim: int, index: Tensor, value: Any
) -> None:
    target, numbers = one_or_more(table, out), one_or_more(table, index)
    size = target.shape[dim]
    if not out.numel() or not numbers.numel():
        check_places(table, size, dim, numbers, wraps=True)
        return
    one = empty_tensor((), out.dtype, out.device)
    if isinstance(value, Tensor):
        table["copy"](one, value)
    else:
        table["fill"](one, value)
    shape = (*target.shape[:dim], numbers.numel(), *target.shape[dim + 1 :])
    table["index_put"](target, [*[None] * dim, numbers], expanded(one, shape), False)


def plan_masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> CallPlan:
    """Return the plan that writes elements of `source` where the mask is true."""
    device = same_device(self, mask, source)
    one_dtype(ALL, "every dtype", ("self", self), ("source", source))
    shape = masked_shape(self, mask)
    return CallPlan(
        ((shape, self.dtype),),
        device,
        (expanded(mask, shape), source),
        start=self if self.shape == shape else expanded(self, shape),
        kernel=_masked_scatter,
    )


def _masked_scatter(
    table: KernelTable, out: Tensor, mask: Tensor, source: Tensor
) -> None:
    target = one_or_more(table, out)
    numbers = numbers_of(one_or_more(table, mask))
    count, available = numbers[0].numel(), source.numel()
    if count > available:
        raise bad_shapes(
            f"source has fewer elements than the mask has true ones, {count}",
            f"a source of at least {count} elements",
            ("mask", mask),
            ("source", source),
        )
    if not count:
        return
    elements = shaped(table, source, (available,))
    first = view_of(elements, (count,), elements.strides, elements.offset)
    table["index_put"](target, numbers, first, False)


_ARGUMENTS = "Tensor self, int dim, Tensor index"

OPERATORS = (
    Structured(
        "scatter_reduce",
        f"{_ARGUMENTS}, Tensor src, str reduce, *, bool include_self=True",
        plan_scatter_reduce,
        in_place=True,
        says="Return the tensor with `src` combined with the elements at the index.",
    ),
    Structured(
        "index_copy",
        f"{_ARGUMENTS}, Tensor source",
        plan_index_copy,
        in_place=True,
        says="Return the tensor with slices of a dimension replaced.",
    ),
    Structured(
        "index_fill",
        f"{_ARGUMENTS}, Scalar value",
        plan_index_fill,
        in_place=True,
        says="Return the tensor with a number in slices of a dimension.",
    ),
    Structured(
        "index_fill.int_Tensor",
        f"{_ARGUMENTS}, Tensor value",
        plan_index_fill_tensor,
        in_place=True,
    ),
    Structured(
        "masked_scatter",
        "Tensor self, Tensor mask, Tensor source",
        plan_masked_scatter,
        in_place=True,
        says="Return the tensor with elements of `source` where the mask is true.",
    ),
)
