"""Gathering: elements and whole slices picked along one dimension by number.

True only here: the shapes of `gather` and `index_select`.  The numbers themselves are
checked by the kernel, before it writes.
"""

from runtime.operators.agreement import INDICES, index_dtype, misfit, require_ndim
from runtime.operators.plan import (
    INT64,
    KernelTable,
    Plan,
    one_dim,
    require_dtype,
    same_device,
)
from runtime.operators.rows import as_dtype, shaped
from runtime.operators.structured import Structured
from runtime.tensors.tensor import Tensor


def plan_gather(call: str, self: Tensor, dim: int, index: Tensor) -> Plan:
    """The result has the shape of `index`, which may be smaller than `self`."""
    device = same_device(call, self, index)
    index_dtype(call, "index", index)
    place = one_dim(call, dim, self.shape)
    if index.numel():
        check_cover(call, place, ("index", index), ("self", self))
    outputs = ((index.shape, self.dtype),)
    return Plan(outputs, device, (self, place, index), kernel=_gather)


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
        one_or_more(table, index),
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
    return Plan(outputs, device, (self, place, index), kernel=_index_select)


def _index_select(
    table: KernelTable, out: Tensor, self: Tensor, dim: int, index: Tensor
) -> None:
    if not out.numel():
        return
    numbers = as_dtype(table, one_or_more(table, index), INT64)
    table["index_select"](
        one_or_more(table, out), one_or_more(table, self), dim, numbers
    )


OPERATORS = (
    Structured("gather", "Tensor self, int dim, Tensor index", plan_gather),
    Structured("index_select", "Tensor self, int dim, Tensor index", plan_index_select),
)
