"""Gathering and scattering: access to elements and slices of one dimension by index.

Plans compute shapes and dtypes; the kernel checks the index values before it writes.

Rules:
- a scatter starts as a copy of `self`; for a repeated index, the last source is
  written, or all are added in order;
- `padding_idx` of an embedding affects only the gradient, and -1 means none.
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
    """Return the plan of `gather`.

    The result has the shape of `index`, which may be smaller than `self`.
    """
    device = same_device(self, index)
    place = _check_index(self, dim, index)
    outputs = ((index.shape, self.dtype),)
    plain = index.dtype is INT64 and index.shape and index.numel()
    kernel = None if plain and self.shape else _gather
    return CallPlan(outputs, device, (self, place, index), kernel=kernel)


def check_cover(dim: int, small: tuple[str, Tensor], large: tuple[str, Tensor]) -> None:
    """Make sure that `small` fits into `large` in every dimension but `dim`.

    A tensor without dimensions counts as one element in one dimension.

    Raises:
        ShapesDoNotFit: it does not fit.
    """
    inner, outer = small[1].shape or (1,), large[1].shape or (1,)
    if len(inner) != len(outer):
        raise bad_shapes(
            f"{small[0]} does not have as many dimensions as {large[0]}",
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
    """Return the tensor, or a 0-dim tensor in one dimension."""
    return tensor if tensor.shape else shaped(table, tensor, (1,))


def plan_index_select(self: Tensor, dim: int, index: Tensor) -> CallPlan:
    """Return the plan of the slices of `self` at the numbers in `index`."""
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
                "self has one element and zero dimensions",
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
    """Make sure that int64 numbers are valid places of a dimension of `size`.

    For results without elements, for which no kernel runs; nothing is read.  With
    `wraps`, negative numbers count from the end.

    Raises:
        IndexOutOfRange: a number is out of range.
    """
    if not numbers.numel():
        return
    # One element, expanded to any number of places.
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
    """Return the function that runs a scatter kernel, if the index is not empty."""

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
    """Return the plan that writes, or adds, `src[i]` at `index[i]` along `dim`."""
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
    """Return the plan that writes one number at every place in `index`."""
    device = same_device(self, index)
    number = number_in("value", value, self.dtype)
    place = _check_index(self, dim, index)
    outputs, arguments = ((self.shape, self.dtype),), (place, index, number)
    return CallPlan(outputs, device, arguments, start=self)


def number_in(argument: str, value: Number, dtype: DType) -> Number:
    """Return a number as an element of `dtype`.

    Raises:
        DTypeRefused: the number is complex, and the dtype is not.
        WrongOption: the number is not finite, and the dtype holds integers.
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
    """Return the plan that adds slices of `source`, times `alpha`, at the index."""
    device = same_device(self, index, source)
    one_dtype(ALL, "every dtype", ("self", self), ("source", source))
    require_dtype("index", index.dtype, INDICES, "integers")
    require_ndim(("index", index), 0, 1)
    place = one_dim(dim, self.shape)
    require_slices(self, place, index, source)
    number = number_in("alpha", alpha, self.dtype)
    arguments = (place, index, source, number)
    outputs = ((self.shape, self.dtype),)
    return CallPlan(outputs, device, arguments, start=self, kernel=_index_add)


def require_slices(self: Tensor, dim: int, index: Tensor, source: Tensor) -> None:
    """Make sure that `source` has one slice of `self` for each number in `index`.

    A tensor without dimensions counts as one element in one dimension.

    Raises:
        ShapesDoNotFit: it does not.
    """
    inside, actual = self.shape or (1,), source.shape or (1,)
    expected = (*inside[:dim], index.numel(), *inside[dim + 1 :])
    if actual != expected:
        raise bad_shapes(
            "source does not have one slice for each number in index",
            f"source of shape {expected}",
            ("self", self),
            ("index", index),
            ("source", source),
        )


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
    """Return the plan of rows of a table: (rows, d) by (...) is (..., d)."""
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
    """Return the plan of the table's gradient, from (..., d) and (...)."""
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
            "grad does not have one row for each index",
            f"grad of shape {(*indices.shape, 'd')}".replace("'", ""),
            ("grad", grad),
            ("indices", indices),
        )
    outputs = (((num_weights, grad.shape[-1]), grad.dtype),)
    arguments: tuple[Any, ...] = (grad, indices, padding_idx)
    computed = computing(grad.dtype)
    return CallPlan(outputs, device, arguments, computed, (0,), kernel=_embed_backward)


def _embed_backward(
    table: KernelTable, out: Tensor, grad: Tensor, indices: Tensor, padding_idx: int
) -> None:
    count = indices.numel()
    numbers = as_dtype(table, shaped(table, indices, (count,)), INT64)
    rows = shaped(table, grad, (count, grad.shape[-1]))
    table["embedding_backward"](out, rows, numbers, padding_idx)


_ARGUMENTS = "Tensor self, int dim, Tensor index"

OPERATORS = (
    Structured(
        "gather",
        _ARGUMENTS,
        plan_gather,
        saves_plans=True,
        says="Return the elements at the index along a dimension.",
    ),
    Structured(
        "index_select",
        _ARGUMENTS,
        plan_index_select,
        saves_plans=True,
        says="Return the slices of a dimension at the index.",
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
        says="Return the tensor with `src` added at the index along a dimension.",
        autocast="widest",
    ),
    Structured(
        "index_add",
        f"{_ARGUMENTS}, Tensor source, *, Scalar alpha=1",
        plan_index_add,
        in_place=True,
        says="Return the tensor with `source` added to slices of a dimension.",
    ),
    Structured(
        "embedding",
        "Tensor weight, Tensor indices, int padding_idx=-1",
        plan_embedding,
        says="Return the rows of a table at the indices.",
    ),
    Structured(
        "embedding_backward",
        "Tensor grad, Tensor indices, int num_weights, int padding_idx",
        plan_embedding_backward,
        out=False,
    ),
)
