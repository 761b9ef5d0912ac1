"""Ordering: sort, argsort and topk along one dimension.

True only here: shapes, and what may be ordered.  NaN counts as greater than every
number; `argsort` is what `sort` says about places.
"""

from typing import Any

from runtime.errors.operands import WrongOption
from runtime.operators.call import core
from runtime.operators.gathering import one_or_more
from runtime.operators.plan import (
    BOOL,
    INT64,
    REALS,
    KernelTable,
    Plan,
    one_dim,
    require_dtype,
)
from runtime.operators.structured import Structured, Written, composed
from runtime.tensors.tensor import Tensor

_ORDERED = REALS | {BOOL}
_FITS = "real numbers and bool, which have an order"


def plan_sort(
    call: str, self: Tensor, dim: int, descending: bool, stable: bool
) -> Plan:
    """The values in order, and where each was."""
    require_dtype(call, "self", self.dtype, _ORDERED, _FITS)
    place = one_dim(call, dim, self.shape)
    outputs = ((self.shape, self.dtype), (self.shape, INT64))
    arguments = (self, place, descending, stable)
    return Plan(outputs, self.device, arguments, kernel=_sort)


def _sort(
    table: KernelTable, values: Tensor, indices: Tensor, self: Tensor, *options: Any
) -> None:
    _ordered(table, "sort", values, indices, self, *options)


def plan_topk(
    call: str,
    self: Tensor,
    k: int,
    dim: int,
    largest: bool,
    sorted: bool,  # noqa: A002  # the schema's name
) -> Plan:
    """The k greatest or least values, and where each was."""
    require_dtype(call, "self", self.dtype, _ORDERED, _FITS)
    place = one_dim(call, dim, self.shape)
    # The result of a tensor without dimensions has one element, never none.
    least, size = (0, self.shape[place]) if self.shape else (1, 1)
    if not least <= k <= size:
        raise WrongOption(
            operator=call,
            argument="k",
            found=str(k),
            fits=f"{least} to {size}, the size of dimension {place}",
        )
    shape = (*self.shape[:place], k, *self.shape[place + 1 :]) if self.shape else ()
    outputs = ((shape, self.dtype), (shape, INT64))
    arguments = (self, k, place, largest, sorted)
    return Plan(outputs, self.device, arguments, kernel=_topk)


def _topk(
    table: KernelTable, values: Tensor, indices: Tensor, self: Tensor, *options: Any
) -> None:
    _ordered(table, "topk", values, indices, self, *options)


def _ordered(
    table: KernelTable,
    kernel: str,
    values: Tensor,
    indices: Tensor,
    self: Tensor,
    *options: Any,
) -> None:
    if not values.numel():
        return
    table[kernel](
        one_or_more(table, values),
        one_or_more(table, indices),
        one_or_more(table, self),
        *options,
    )


def argsort(self: Tensor, *options: Any) -> Tensor:
    """Where each value of `sort` was."""
    places: Tensor = core.sort(self, *options)[1]
    return places


_SORTED = "Tensor self, int dim=-1, bool descending=False, bool stable=False"

OPERATORS = (
    Structured("sort", _SORTED, plan_sort, returns="(Tensor values, Tensor indices)"),
    Written(
        f"argsort({_SORTED}) -> Tensor",
        {"CompositeImplicitAutograd": composed("core::argsort", argsort)},
        says="The places of the elements in order of their values.",
    ),
    Structured(
        "topk",
        "Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True",
        plan_topk,
        returns="(Tensor values, Tensor indices)",
    ),
)
