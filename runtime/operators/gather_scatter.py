"""Gathering and scattering: elements and slices of one dimension, told by numbers.

Plans say shapes and dtypes; the numbers themselves are checked by the kernel, before it
writes.

Rules:
- what is put somewhere begins as a copy of `self`; where a place is named twice, the
  last one stays, or all are added in order;
- `padding_idx` of an embedding matters to the gradient alone, and -1 means none.
"""

from collections.abc import Callable
from math import isfinite
from typing import Any

from everyorder.runtime.errors.tensor import IndexOutOfRange
from everyorder.runtime.operators.declare.allocate_outputs import as_dtype, shaped
from everyorder.runtime.operators.declare.plan import (
    ALL,
    BOOL,
    COMPLEXES,
    FLOATS,
    INDICES,
    INT64,
    INTEGERS,
    CallPlan,
    KernelTable,
    Number,
    bad_dtype,
    bad_option,
    bad_shapes,
    computing,
    dtypes,
    number_for,
    one_dim,
    one_dtype,
    place_dtype,
    require_dtype,
    require_ndim,
    same_device,
)
from everyorder.runtime.operators.declare.structured import Structured
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.construction import empty_tensor, view_of
from everyorder.runtime.tensors.tensor import Tensor


def plan_gather(self: Tensor, dim: int, index: Tensor) -> CallPlan:
    """The result has the shape of `index`, which may be smaller than `self`."""
    device = same_device(self, index)
    place = _check_index(self, dim, index)
    outputs = ((index.shape, self.dtype),)
    plain = index.dtype is INT64 and index.shape and index.numel()
    kernel = None if plain and self.shape else _gather
    return CallPlan(outputs, device, (self, place, index), kernel=kernel)


def check_cover(dim: int, small: tuple[str, Tensor], large: tuple[str, Tensor]) -> None:
    """Make sure that `small` fits into `large` in every dimension but `dim`.

    A tensor without dimensions counts as one element in one dimension.
    Raises `ShapesDoNotFit`.
    """
    inner, outer = small[1].shape or (1,), large[1].shape or (1,)
    if len(inner) != len(outer):
        raise bad_shapes(
            f"{small[0]} has not as many dimensions as {large[0]}",
            f"{len(outer)} dimensions for {small[0]}",
            small,
            large,
        )
    for at, (size, room) in enumerate(zip(inner, outer, strict=True)):
        if size > room and at != dim:
            raise bad_shapes(
                f"{small[0]} is longer than {large[0]} in dimension {at}",
                f"at most {room} there"
                + (f"; dimension {dim} is free" if dim >= 0 else ""),
                small,
                large,
            )


def _gather(
    table: KernelTable, out: Tensor, self: Tensor, dim: int, index: Tensor
) -> None:
    if not index.numel():
        return
    table["gather"](
        one_or_more(table, out),
        one_or_more(table, self),
        dim,
        as_dtype(table, one_or_more(table, index), INT64),
    )


def one_or_more(table: KernelTable, tensor: Tensor) -> Tensor:
    """The tensor, in one dimension if it has none."""
    return tensor if tensor.shape else shaped(table, tensor, (1,))


def plan_index_select(self: Tensor, dim: int, index: Tensor) -> CallPlan:
    """The slices of `self` at the numbers in `index`, in their order."""
    device = same_device(self, index)
    require_dtype("index", index.dtype, INDICES, "integers")
    require_ndim(("index", index), 0, 1)
    place = one_dim(dim, self.shape)
    count = index.numel()
    shape = (*self.shape[:place], count, *self.shape[place + 1 :])
    if not self.shape:
        shape = ()
        if count != 1:
            raise bad_shapes(
                "self has one element and no dimension",
                "an index of one number",
                ("self", self),
                ("index", index),
            )
    outputs = ((shape, self.dtype),)
    plain = index.dtype is INT64 and index.shape and shape and 0 not in shape
    kernel = None if plain else _index_select
    return CallPlan(outputs, device, (self, place, index), kernel=kernel)


def _index_select(
    table: KernelTable, out: Tensor, self: Tensor, dim: int, index: Tensor
) -> None:
    numbers = as_dtype(table, one_or_more(table, index), INT64)
    if not out.numel():
        check_places(table, self.shape[dim], dim, numbers)
        return
    table["index_select"](
        one_or_more(table, out), one_or_more(table, self), dim, numbers
    )


def check_places(
    table: KernelTable,
    size: int,
    dim: int,
    numbers: Tensor,
    wraps: bool = False,
) -> None:
    """Whether int64 numbers name places of a dimension of that size; nothing is read.

    For results without elements, to which no kernel comes.  `wraps`: negative ones are
    counted from the end.  Raises `IndexOutOfRange`.
    """
    if not numbers.numel():
        return
    # One element that stands for all, however many there are.
    line = view_of(empty_tensor((1,), BOOL, numbers.device), (size,), (0,), 0)
    out = empty_tensor((numbers.numel(),), BOOL, numbers.device)
    flat = shaped(table, numbers, out.shape)
    try:
        if wraps:
            table["index"](out, line, [flat])
        else:
            table["index_select"](out, line, 0, flat)
    except IndexOutOfRange as error:
        error.dim = dim
        raise


def _scattering(kernel: str) -> Callable[..., None]:
    """What runs a kernel that puts or adds, which has places to put something at."""

    def run(
        table: KernelTable, out: Tensor, dim: int, index: Tensor, src: Tensor | Number
    ) -> None:
        if not index.numel():
            return
        if isinstance(src, Tensor):
            src = one_or_more(table, src)
        places = as_dtype(table, one_or_more(table, index), INT64)
        table[kernel](one_or_more(table, out), dim, places, src)

    return run


_SCATTER = _scattering("scatter")


def plan_scatter(self: Tensor, dim: int, index: Tensor, src: Tensor) -> CallPlan:
    """`src[i]` to `self` at `index[i]` along `dim`, or added to it."""
    device = same_device(self, index, src)
    one_dtype(ALL, "every dtype", ("self", self), ("src", src))
    place = _check_index(self, dim, index)
    if index.numel():
        check_cover(-1, ("index", index), ("src", src))
    outputs, arguments = ((self.shape, self.dtype),), (place, index, src)
    return CallPlan(outputs, device, arguments, start=self)


def plan_scatter_value(
    self: Tensor, dim: int, index: Tensor, value: Number
) -> CallPlan:
    """One number to `self` at every place that `index` names."""
    device = same_device(self, index)
    number = number_in("value", value, self.dtype)
    place = _check_index(self, dim, index)
    outputs, arguments = ((self.shape, self.dtype),), (place, index, number)
    return CallPlan(outputs, device, arguments, start=self)


def number_in(argument: str, value: Number, dtype: DType) -> Number:
    """The number as elements of `dtype` are.

    Raises `DTypeRefused`, and `WrongOption` for an infinite integer.
    """
    if isinstance(value, complex) and dtype not in COMPLEXES:
        raise bad_dtype(argument, "complex", str(dtype))
    if dtype in INTEGERS and isinstance(value, float) and not isfinite(value):
        raise bad_option(
            argument, repr(value), f"a finite number, as the elements are {dtype}"
        )
    return number_for(value, dtype)


def _check_index(self: Tensor, dim: int, index: Tensor) -> int:
    place_dtype("index", index)
    place = one_dim(dim, self.shape)
    if index.numel():
        check_cover(place, ("index", index), ("self", self))
    return place


def plan_index_add(
    self: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Number
) -> CallPlan:
    """Slices of `source`, times `alpha`, added to those that `index` names."""
    device = same_device(self, index, source)
    one_dtype(ALL, "every dtype", ("self", self), ("source", source))
    require_dtype("index", index.dtype, INDICES, "integers")
    require_ndim(("index", index), 0, 1)
    place = one_dim(dim, self.shape)
    inside, given = self.shape or (1,), source.shape or (1,)
    wanted = (*inside[:place], index.numel(), *inside[place + 1 :])
    if given != wanted:
        raise bad_shapes(
            "source has not one slice for each number in index",
            f"source of shape {wanted}",
            ("self", self),
            ("index", index),
            ("source", source),
        )
    number = number_in("alpha", alpha, self.dtype)
    arguments = (place, index, source, number)
    outputs = ((self.shape, self.dtype),)
    return CallPlan(outputs, device, arguments, start=self, kernel=_index_add)


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
        check_places(table, size, dim, numbers)
        return
    table["index_add"](
        one_or_more(table, out), dim, numbers, one_or_more(table, source), alpha
    )


ROW_NUMBERS = dtypes("int64", "int32")


def plan_embedding(weight: Tensor, indices: Tensor, padding_idx: int) -> CallPlan:
    """(rows, d) by (...) gives (..., d)."""
    device = same_device(weight, indices)
    require_ndim(("weight", weight), 2)
    require_dtype("weight", weight.dtype, ALL, "every dtype")
    require_dtype("indices", indices.dtype, ROW_NUMBERS, "int64 or int32")
    _check_padding(padding_idx, weight.shape[0])
    shape = (*indices.shape, weight.shape[1])
    outputs = ((shape, weight.dtype),)
    return CallPlan(outputs, device, (weight, indices), kernel=_look_up)


def _check_padding(padding_idx: int, rows: int) -> None:
    if padding_idx < -1 or padding_idx >= max(rows, 1):
        raise bad_option(
            "padding_idx",
            str(padding_idx),
            f"-1 for none, or a row, 0 to {rows - 1}",
        )


def _look_up(table: KernelTable, out: Tensor, weight: Tensor, indices: Tensor) -> None:
    count = indices.numel()
    numbers = as_dtype(table, shaped(table, indices, (count,)), INT64)
    if not out.numel():
        check_places(table, weight.shape[0], 0, numbers)
        return
    rows = shaped(table, out, (count, weight.shape[1]))
    table["index_select"](rows, weight, 0, numbers)


def plan_embedding_backward(
    grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int
) -> CallPlan:
    """The gradient of the table, from (..., d) and (...)."""
    device = same_device(grad, indices)
    require_dtype("grad", grad.dtype, FLOATS, "floating-point numbers")
    require_dtype("indices", indices.dtype, ROW_NUMBERS, "int64 or int32")
    if num_weights < 0:
        raise bad_option(
            "num_weights", str(num_weights), "0 or more, the rows of the table"
        )
    _check_padding(padding_idx, num_weights)
    if not grad.shape or grad.shape[:-1] != indices.shape:
        raise bad_shapes(
            "there is not one row of the gradient for each index",
            f"grad of shape {(*indices.shape, 'd')}".replace("'", ""),
            ("grad", grad),
            ("indices", indices),
        )
    outputs = (((num_weights, grad.shape[-1]), grad.dtype),)
    arguments: tuple[Any, ...] = (grad, indices, padding_idx)
    computed = computing(grad.dtype)
    return CallPlan(outputs, device, arguments, computed, (0,), kernel=_embed_backward)


def _embed_backward(
    table: KernelTable, made: Tensor, grad: Tensor, indices: Tensor, padding_idx: int
) -> None:
    count = indices.numel()
    numbers = as_dtype(table, shaped(table, indices, (count,)), INT64)
    rows = shaped(table, grad, (count, grad.shape[-1]))
    table["embedding_backward"](made, rows, numbers, padding_idx)


_ARGUMENTS = "Tensor self, int dim, Tensor index"

OPERATORS = (
    Structured(
        "gather",
        _ARGUMENTS,
        plan_gather,
        saves_plans=True,
        says="The elements along a dimension that the index names.",
    ),
    Structured(
        "index_select",
        _ARGUMENTS,
        plan_index_select,
        saves_plans=True,
        says="The places of a dimension that the index names.",
    ),
    Structured(
        "scatter",
        f"{_ARGUMENTS}, Tensor src",
        plan_scatter,
        kernel=_SCATTER,
        in_place=True,
    ),
    Structured(
        "scatter.value",
        f"{_ARGUMENTS}, Scalar value",
        plan_scatter_value,
        kernel=_SCATTER,
        in_place=True,
    ),
    Structured(
        "scatter_add",
        f"{_ARGUMENTS}, Tensor src",
        plan_scatter,
        kernel=_scattering("scatter_add"),
        in_place=True,
        says="`src` added where the index says along a dimension.",
        autocast="widest",
    ),
    Structured(
        "index_add",
        f"{_ARGUMENTS}, Tensor source, *, Scalar alpha=1",
        plan_index_add,
        in_place=True,
        says="`source` added to the places of a dimension that the index names.",
    ),
    Structured(
        "embedding",
        "Tensor weight, Tensor indices, int padding_idx=-1",
        plan_embedding,
        out=False,
        says="The rows of a table that the indices name.",
    ),
    Structured(
        "embedding_backward",
        "Tensor grad, Tensor indices, int num_weights, int padding_idx",
        plan_embedding_backward,
        out=False,
    ),
)
