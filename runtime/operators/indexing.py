"""Indexing with tensors: `index`, `index_put`, and picking by a mask.

True only here: what a list of index tensors means.  None leaves a dimension alone; a
tensor of integers picks places of one dimension, negative ones from the end; a mask of
booleans stands for as many dimensions as it has, and becomes the numbers of its true
elements.  All integers broadcast to one shape, which stands where they stood if they
are neighbours, and comes first otherwise, as in NumPy.

Rules: how many elements a mask picks depends on its elements, so that a plan with a
mask reads them; on meta that is refused.  The kernel checks numbers before it writes.
"""

from collections.abc import Sequence

from runtime.errors.operands import DTypeRefused, NoDataToRead
from runtime.errors.operator import ShapesDoNotFit
from runtime.operators.agreement import INDICES, misfit, one_dtype
from runtime.operators.backends import KEYS, table_of
from runtime.operators.gathering import check_places
from runtime.operators.memory_format import strides_of
from runtime.operators.plan import (
    ALL,
    BOOL,
    INT64,
    KernelTable,
    Plan,
    Shape,
    require_dtype,
    same_device,
)
from runtime.operators.rows import as_dtype, expanded, in_order
from runtime.operators.structured import Structured
from runtime.schema.device import Device
from runtime.tensors.making import empty_tensor, view_of
from runtime.tensors.shape import broadcast_shapes
from runtime.tensors.tensor import Tensor

Indices = list[Tensor | None]


def kernels_for(device: Device) -> KernelTable:
    """The kernels that work on the memory of a device; those of the CPU by default."""
    return table_of(KEYS.get(device.type, "CPU"))


def numbers_of(call: str, mask: Tensor) -> list[Tensor]:
    """Where a mask is true: one tensor of numbers for each of its dimensions.

    Raises:
        NoDataToRead: on meta.
    """
    if mask.device.type == "meta":
        asked = "has a result whose size depends on a mask"
        raise NoDataToRead(operator=call, device="meta", asked=asked)
    table = kernels_for(mask.device)
    found = empty_tensor(
        (table["nonzero_count"](mask), len(mask.shape)), INT64, mask.device
    )
    table["nonzero"](found, mask)
    count, dims = found.shape
    return [
        in_order(table, view_of(found, (count,), (dims,), found.offset + dim))
        for dim in range(dims)
    ]


def resolved(call: str, self: Tensor, indices: Sequence[Tensor | None]) -> Indices:
    """One entry for each dimension of `self`: None, or int64 that broadcast together.

    Raises:
        DTypeRefused: an index holds neither integers nor booleans.
        ShapesDoNotFit: too many indices, a mask of another shape, or indices that do
            not broadcast.
        NoDataToRead: a mask on meta.
    """
    found: Indices = []
    for at, index in enumerate(indices):
        if index is None:
            found.append(None)
        elif index.dtype is BOOL:
            _check_mask(call, self, f"indices[{at}]", index, len(found))
            found.extend(numbers_of(call, index))
        elif index.dtype in INDICES:
            found.append(_as_numbers(index))
        else:
            raise DTypeRefused(
                operator=call,
                argument=f"indices[{at}]",
                dtype=str(index.dtype),
                fits="integers, or bool for a mask",
            )
    dims = len(self.shape)
    if len(found) > dims:
        raise misfit(
            call,
            f"there are {len(found)} indices",
            f"at most {dims}, one for each dimension of self",
            ("self", self),
        )
    return found + [None] * (dims - len(found))


def _as_numbers(index: Tensor) -> Tensor:
    if index.device.type == "meta":
        return index
    return as_dtype(kernels_for(index.device), index, INT64)


def _check_mask(call: str, self: Tensor, name: str, mask: Tensor, first: int) -> None:
    covered = self.shape[first : first + len(mask.shape)]
    if mask.shape != covered:
        raise misfit(
            call,
            f"the mask {name} has not the shape of the dimensions it stands for",
            f"a mask of shape {covered}",
            ("self", self),
            (name, mask),
        )


def common_shape(call: str, indices: Indices) -> Shape:
    """The shape that all indices broadcast to.  Raises `ShapesDoNotFit`."""
    shapes = [each.shape for each in indices if each is not None]
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        raise ShapesDoNotFit(
            operator=call,
            shapes=tuple((f"index {at}", shape) for at, shape in enumerate(shapes)),
            reason="the indices do not broadcast together",
            fits="index tensors of equal sizes, or 1 where they differ",
        ) from None


def indexed_shape(call: str, self: Tensor, indices: Indices) -> Shape:
    """The shape of what the indices pick; as many indices as dimensions."""
    common = common_shape(call, indices)
    chosen = [dim for dim, index in enumerate(indices) if index is not None]
    if not chosen:
        return self.shape
    first, last = chosen[0], chosen[-1]
    free = [size for size, i in zip(self.shape, indices, strict=True) if i is None]
    before = first if last - first + 1 == len(chosen) else 0
    return (*free[:before], *common, *free[before:])


def plan_index(call: str, self: Tensor, indices: Sequence[Tensor | None]) -> Plan:
    """What `self[indices]` is in NumPy."""
    device = same_device(call, self, *indices)
    numbers = resolved(call, self, indices)
    shape = indexed_shape(call, self, numbers)
    outputs = ((shape, self.dtype),)
    return Plan(outputs, device, (self, numbers), kernel=_index)


def _index(table: KernelTable, out: Tensor, self: Tensor, indices: Indices) -> None:
    if not any(each is not None for each in indices):
        table["copy"](out, self)
    elif out.numel():
        table["index"](out, self, together(table, indices))
    else:
        _check(table, "core::index", self.shape, indices)


def _check(table: KernelTable, call: str, shape: Shape, indices: Indices) -> None:
    """Whether indices that pick no element name places: if they name any.

    Raises `IndexOutOfRange`.
    """
    given = [(dim, each) for dim, each in enumerate(indices) if each is not None]
    if 0 not in broadcast_shapes(*(each.shape for _, each in given)):
        for dim, each in given:
            check_places(table, shape[dim], dim, each, call, wraps=True)


def together(table: KernelTable, indices: Indices) -> Indices:
    """The indices in their common shape, each contiguous."""
    shape = broadcast_shapes(*(each.shape for each in indices if each is not None))
    return [
        None if each is None else in_order(table, expanded(each, shape))
        for each in indices
    ]


def plan_index_put(
    call: str,
    self: Tensor,
    indices: Sequence[Tensor | None],
    values: Tensor,
    accumulate: bool,
) -> Plan:
    """`self` with `values`, broadcast, at the places that the indices pick."""
    device = same_device(call, self, *indices, values)
    one_dtype(call, ALL, "every dtype", ("self", self), ("values", values))
    strides = strides_of(call, self, None)
    outputs = ((self.shape, self.dtype),)
    if device.type == "meta" and any(
        each is not None and each.dtype is BOOL for each in indices
    ):
        # How many places a mask picks is not known, and need not be.
        return Plan(outputs, device, (), start=self, strides=strides)
    numbers = resolved(call, self, indices)
    shape = indexed_shape(call, self, numbers)
    try:
        fits = broadcast_shapes(shape, values.shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise misfit(
            call,
            f"values do not broadcast to {shape}, the shape of the places",
            f"values of shape {shape}, or with 1 for some of its sizes",
            ("self", self),
            ("values", values),
        )
    arguments = (numbers, values, accumulate, shape)
    return Plan(outputs, device, arguments, start=self, kernel=_put, strides=strides)


def _put(
    table: KernelTable,
    out: Tensor,
    indices: Indices,
    values: Tensor,
    accumulate: bool,
    shape: Shape,
) -> None:
    spread = expanded(values, shape)
    if any(each is not None for each in indices):
        if spread.numel():
            table["index_put"](out, together(table, indices), spread, accumulate)
        else:
            _check(table, "core::index_put", out.shape, indices)
    elif accumulate:
        table["add"](out, out, spread, 1)
    else:
        table["copy"](out, spread)


def plan_masked_select(call: str, self: Tensor, mask: Tensor) -> Plan:
    """The elements, in order, where the mask is true; both broadcast."""
    device = same_device(call, self, mask)
    require_dtype(call, "mask", mask.dtype, frozenset({BOOL}), "bool")
    try:
        shape = broadcast_shapes(self.shape, mask.shape)
    except ValueError:
        raise misfit(
            call,
            "self and mask do not broadcast together",
            f"a mask that broadcasts with {self.shape}",
            ("self", self),
            ("mask", mask),
        ) from None
    source, chosen = expanded(self, shape), expanded(mask, shape)
    if not shape:
        source, chosen = expanded(self, (1,)), expanded(mask, (1,))
    numbers: Indices = [*numbers_of(call, chosen)]
    assert numbers[0] is not None, "a mask with dimensions has numbers"
    outputs = ((numbers[0].shape, self.dtype),)
    return Plan(outputs, device, (source, numbers), kernel=_index)


def plan_nonzero(call: str, self: Tensor) -> Plan:
    """One row of numbers for each element that is not zero."""
    if self.device.type == "meta":
        asked = "has one row for each element that is not zero"
        raise NoDataToRead(operator=call, device="meta", asked=asked)
    count = kernels_for(self.device)["nonzero_count"](self)
    shape = (count, len(self.shape))
    return Plan(((shape, INT64),), self.device, (self,))


_PUT = "Tensor?[] indices, Tensor values, bool accumulate=False"

OPERATORS = (
    Structured(
        "index",
        "Tensor self, Tensor?[] indices",
        plan_index,
        out=False,
        # Where there is a mask among the indices.
        tags=("dynamic_output_shape",),
    ),
    Structured(
        "index_put",
        f"Tensor self, {_PUT}",
        plan_index_put,
        in_place=True,
        out=False,
        says="Values put where the index tensors say.",
        only="method",
        autocast="widest",
    ),
    Structured(
        "masked_select",
        "Tensor self, Tensor mask",
        plan_masked_select,
        out=False,
        tags=("dynamic_output_shape",),
        says="The elements where the mask is true, as a vector.",
    ),
    Structured(
        "nonzero",
        "Tensor self",
        plan_nonzero,
        out=False,
        tags=("dynamic_output_shape",),
        says="The indices of the elements that are not 0, one a row.",
    ),
)
