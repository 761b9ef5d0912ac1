"""Gathering: elements and whole slices picked along one dimension by number.

True only here: the shapes of `gather` and `index_select`.  The numbers themselves are
checked by the kernel, before it writes.
"""

from runtime.errors.operator import IndexOutOfRange
from runtime.operators.agreement import INDICES, misfit, place_dtype, require_ndim
from runtime.operators.plan import (
    BOOL,
    INT64,
    KernelTable,
    Plan,
    one_dim,
    require_dtype,
    same_device,
)
from runtime.operators.rows import as_dtype, shaped
from runtime.operators.structured import Structured
from runtime.tensors.making import empty_tensor, view_of
from runtime.tensors.tensor import Tensor


def plan_gather(call: str, self: Tensor, dim: int, index: Tensor) -> Plan:
    """The result has the shape of `index`, which may be smaller than `self`."""
    device = same_device(call, self, index)
    place_dtype(call, "index", index)
    place = one_dim(call, dim, self.shape)
    if index.numel():
        check_cover(call, place, ("index", index), ("self", self))
    outputs = ((index.shape, self.dtype),)
    plain = index.dtype is INT64 and index.shape and index.numel()
    kernel = None if plain and self.shape else _gather
    return Plan(outputs, device, (self, place, index), kernel=kernel)


def check_cover(
    call: str, dim: int, small: tuple[str, Tensor], large: tuple[str, Tensor]
) -> None:
    """Make sure that `small` fits into `large` in every dimension but `dim`.

    A tensor without dimensions counts as one element in one dimension.
    Raises `ShapesDoNotFit`.
    """
    inner, outer = small[1].shape or (1,), large[1].shape or (1,)
    if len(inner) != len(outer):
        raise misfit(
            call,
            f"{small[0]} has not as many dimensions as {large[0]}",
            f"{len(outer)} dimensions for {small[0]}",
            small,
            large,
        )
    for at, (size, room) in enumerate(zip(inner, outer, strict=True)):
        if size > room and at != dim:
            raise misfit(
                call,
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


def plan_index_select(call: str, self: Tensor, dim: int, index: Tensor) -> Plan:
    """The slices of `self` at the numbers in `index`, in their order."""
    device = same_device(call, self, index)
    require_dtype(call, "index", index.dtype, INDICES, "integers")
    require_ndim(call, ("index", index), 0, 1)
    place = one_dim(call, dim, self.shape)
    count = index.numel()
    shape = (*self.shape[:place], count, *self.shape[place + 1 :])
    if not self.shape:
        shape = ()
        if count != 1:
            raise misfit(
                call,
                "self has one element and no dimension",
                "an index of one number",
                ("self", self),
                ("index", index),
            )
    outputs = ((shape, self.dtype),)
    plain = index.dtype is INT64 and index.shape and shape and 0 not in shape
    kernel = None if plain else _index_select
    return Plan(outputs, device, (self, place, index), kernel=kernel)


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
    call: str = "core::index_select",
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
        error.dim, error.operator = dim, call
        raise


_ARGUMENTS = "Tensor self, int dim, Tensor index"

OPERATORS = (
    Structured(
        "gather",
        _ARGUMENTS,
        plan_gather,
        remembers=True,
        says="The elements along a dimension that the index names.",
    ),
    Structured(
        "index_select",
        _ARGUMENTS,
        plan_index_select,
        remembers=True,
        says="The places of a dimension that the index names.",
    ),
)
