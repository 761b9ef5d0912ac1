"""Scattering: elements and whole slices put, or added, at places told by numbers.

True only here: the shapes and dtypes of `scatter`, `scatter_add` and `index_add`.  The
result begins as a copy of `self`; the numbers are checked by the kernel, before it
writes; where a place is named twice, the last one stays, or all are added in order.
"""

from math import isfinite
from typing import Any

from runtime.errors.operands import DTypeRefused, WrongOption
from runtime.operators.agreement import (
    INDICES,
    misfit,
    one_dtype,
    place_dtype,
    require_ndim,
)
from runtime.operators.gathering import check_cover, check_places, one_or_more
from runtime.operators.number import Number, number_for
from runtime.operators.plan import (
    ALL,
    COMPLEXES,
    INT64,
    INTEGERS,
    KernelTable,
    Plan,
    one_dim,
    require_dtype,
    same_device,
)
from runtime.operators.rows import as_dtype
from runtime.operators.structured import Structured
from runtime.schema.codes import DType
from runtime.tensors.tensor import Tensor


def plan_scatter(call: str, self: Tensor, dim: int, index: Tensor, src: Tensor) -> Plan:
    """`src[i]` to `self` at `index[i]` along `dim`; for scatter_add, too."""
    device = same_device(call, self, index, src)
    one_dtype(call, ALL, "every dtype", ("self", self), ("src", src))
    place = _check_index(call, self, dim, index)
    if index.numel():
        check_cover(call, -1, ("index", index), ("src", src))
    return _plan(self, device, (place, index, src))


def plan_scatter_value(
    call: str, self: Tensor, dim: int, index: Tensor, value: Number
) -> Plan:
    """One number to `self` at every place that `index` names."""
    device = same_device(call, self, index)
    number = number_in(call, "value", value, self.dtype)
    place = _check_index(call, self, dim, index)
    return _plan(self, device, (place, index, number))


def number_in(call: str, argument: str, value: Number, dtype: DType) -> Number:
    """The number as elements of `dtype` are.

    Raises `DTypeRefused`, and `WrongOption` for an infinite integer.
    """
    if isinstance(value, complex) and dtype not in COMPLEXES:
        raise DTypeRefused(
            operator=call, argument=argument, dtype="complex", fits=str(dtype)
        )
    if dtype in INTEGERS and isinstance(value, float) and not isfinite(value):
        raise WrongOption(
            operator=call,
            argument=argument,
            found=repr(value),
            fits=f"a finite number, as the elements are {dtype}",
        )
    return number_for(value, dtype)


def _check_index(call: str, self: Tensor, dim: int, index: Tensor) -> int:
    place_dtype(call, "index", index)
    place = one_dim(call, dim, self.shape)
    if index.numel():
        check_cover(call, place, ("index", index), ("self", self))
    return place


def _plan(self: Tensor, device: Any, arguments: tuple[Any, ...]) -> Plan:
    outputs = ((self.shape, self.dtype),)
    return Plan(outputs, device, arguments, start=self, kernel=_scatter)


def _scatter(
    table: KernelTable, out: Tensor, dim: int, index: Tensor, src: Tensor | Number
) -> None:
    _put(table, "scatter", out, dim, index, src)


def plan_scatter_add(
    call: str, self: Tensor, dim: int, index: Tensor, src: Tensor
) -> Plan:
    """`src[i]` added to `self` at `index[i]` along `dim`."""
    plan = plan_scatter(call, self, dim, index, src)
    return plan._replace(kernel=_scatter_add)


def _scatter_add(
    table: KernelTable, out: Tensor, dim: int, index: Tensor, src: Tensor
) -> None:
    _put(table, "scatter_add", out, dim, index, src)


def _put(
    table: KernelTable,
    kernel: str,
    out: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | Number,
) -> None:
    if not index.numel():
        return
    if isinstance(src, Tensor):
        src = one_or_more(table, src)
    places = as_dtype(table, one_or_more(table, index), INT64)
    table[kernel](one_or_more(table, out), dim, places, src)


def plan_index_add(
    call: str, self: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Number
) -> Plan:
    """Slices of `source`, times `alpha`, added to those that `index` names."""
    device = same_device(call, self, index, source)
    one_dtype(call, ALL, "every dtype", ("self", self), ("source", source))
    require_dtype(call, "index", index.dtype, INDICES, "integers")
    require_ndim(call, ("index", index), 0, 1)
    place = one_dim(call, dim, self.shape)
    inside, given = self.shape or (1,), source.shape or (1,)
    wanted = (*inside[:place], index.numel(), *inside[place + 1 :])
    if given != wanted:
        raise misfit(
            call,
            "source has not one slice for each number in index",
            f"source of shape {wanted}",
            ("self", self),
            ("index", index),
            ("source", source),
        )
    number = number_in(call, "alpha", alpha, self.dtype)
    arguments = (place, index, source, number)
    outputs = ((self.shape, self.dtype),)
    return Plan(outputs, device, arguments, start=self, kernel=_index_add)


def _index_add(
    table: KernelTable,
    out: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    alpha: Number,
) -> None:
    numbers = as_dtype(table, one_or_more(table, index), INT64)
    if not source.numel():
        size = out.shape[dim] if out.shape else 1
        check_places(table, size, dim, numbers, "core::index_add")
        return
    table["index_add"](
        one_or_more(table, out), dim, numbers, one_or_more(table, source), alpha
    )


_INDEXED = "Tensor self, int dim, Tensor index"

OPERATORS = (
    Structured("scatter", f"{_INDEXED}, Tensor src", plan_scatter, in_place=True),
    Structured(
        "scatter.value", f"{_INDEXED}, Scalar value", plan_scatter_value, in_place=True
    ),
    Structured(
        "scatter_add",
        f"{_INDEXED}, Tensor src",
        plan_scatter_add,
        in_place=True,
        says="`src` added where the index says along a dimension.",
        autocast="widest",
    ),
    Structured(
        "index_add",
        f"{_INDEXED}, Tensor source, *, Scalar alpha=1",
        plan_index_add,
        in_place=True,
        says="`source` added to the places of a dimension that the index names.",
    ),
)
