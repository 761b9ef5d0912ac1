"""Embedding: rows of a table looked up by number, and the gradient of the table.

True only here: the shapes.  Which numbers are rows is checked by the kernel, before it
writes; `padding_idx` matters to the gradient alone, and -1 means none.
"""

from typing import Any

from runtime.errors.operands import WrongOption
from runtime.errors.operator import IndexOutOfRange
from runtime.operators.agreement import computing, misfit, require_ndim
from runtime.operators.gathering import check_places
from runtime.operators.plan import (
    ALL,
    FLOATS,
    INT64,
    KernelTable,
    Plan,
    dtypes,
    require_dtype,
    same_device,
)
from runtime.operators.rows import as_dtype, shaped
from runtime.operators.structured import Structured
from runtime.tensors.tensor import Tensor

ROW_NUMBERS = dtypes("int64", "int32")


def plan_embedding(
    call: str, weight: Tensor, indices: Tensor, padding_idx: int
) -> Plan:
    """(rows, d) by (...) gives (..., d)."""
    device = same_device(call, weight, indices)
    require_ndim(call, ("weight", weight), 2)
    require_dtype(call, "weight", weight.dtype, ALL, "every dtype")
    require_dtype(call, "indices", indices.dtype, ROW_NUMBERS, "int64 or int32")
    _check_padding(call, padding_idx, weight.shape[0])
    shape = (*indices.shape, weight.shape[1])
    outputs = ((shape, weight.dtype),)
    return Plan(outputs, device, (weight, indices), kernel=_look_up)


def _check_padding(call: str, padding_idx: int, rows: int) -> None:
    if padding_idx < -1 or padding_idx >= max(rows, 1):
        raise WrongOption(
            operator=call,
            argument="padding_idx",
            found=str(padding_idx),
            fits=f"-1 for none, or a row, 0 to {rows - 1}",
        )


def _look_up(table: KernelTable, out: Tensor, weight: Tensor, indices: Tensor) -> None:
    count = indices.numel()
    numbers = as_dtype(table, shaped(table, indices, (count,)), INT64)
    try:
        if not out.numel():
            check_places(table, weight.shape[0], 0, numbers)
            return
        rows = shaped(table, out, (count, weight.shape[1]))
        table["index_select"](rows, weight, 0, numbers)
    except IndexOutOfRange as error:
        error.operator = "core::embedding"
        raise


def plan_backward(
    call: str, grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int
) -> Plan:
    """The gradient of the table, from (..., d) and (...)."""
    device = same_device(call, grad, indices)
    require_dtype(call, "grad", grad.dtype, FLOATS, "floating-point numbers")
    require_dtype(call, "indices", indices.dtype, ROW_NUMBERS, "int64 or int32")
    if num_weights < 0:
        raise WrongOption(
            operator=call,
            argument="num_weights",
            found=str(num_weights),
            fits="0 or more, the rows of the table",
        )
    _check_padding(call, padding_idx, num_weights)
    if not grad.shape or grad.shape[:-1] != indices.shape:
        raise misfit(
            call,
            "there is not one row of the gradient for each index",
            f"grad of shape {(*indices.shape, 'd')}".replace("'", ""),
            ("grad", grad),
            ("indices", indices),
        )
    outputs = (((num_weights, grad.shape[-1]), grad.dtype),)
    arguments: tuple[Any, ...] = (grad, indices, padding_idx)
    computed = computing(grad.dtype)
    return Plan(outputs, device, arguments, computed, (0,), kernel=_backward)


def _backward(
    table: KernelTable, made: Tensor, grad: Tensor, indices: Tensor, padding_idx: int
) -> None:
    count = indices.numel()
    numbers = as_dtype(table, shaped(table, indices, (count,)), INT64)
    rows = shaped(table, grad, (count, grad.shape[-1]))
    table["embedding_backward"](made, rows, numbers, padding_idx)


OPERATORS = (
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
        plan_backward,
        out=False,
    ),
)
