"""Index tensors: `index`, `index_put`, and operators of masks.

In a list of index tensors, None keeps a dimension; a tensor of integers selects places
of one dimension, negative ones from the end; a mask of booleans covers as many
dimensions as it has, and becomes the numbers of its true elements.  All integers
broadcast to one shape, which replaces the indexed dimensions if they are adjacent, and
precedes all others if not, as in NumPy.  `runtime.operators.subscripts` makes such
lists of what is in brackets.

Rules:
- the result is a copy;
- the size of a mask's result depends on its elements, so that a plan with a mask reads
  them; on meta that is refused.  The kernel checks numbers before it writes.
"""

from collections.abc import Sequence
from warnings import warn

from everyorder.runtime.dispatch.library import levels_to_caller
from everyorder.runtime.errors.tensor import NoData
from everyorder.runtime.operators.declare.allocate_outputs import (
    as_dtype,
    expanded,
    in_order,
    table_for,
)
from everyorder.runtime.operators.declare.plan import (
    ALL,
    BOOL,
    INDICES,
    INT64,
    CallPlan,
    KernelTable,
    Shape,
    bad_dtype,
    bad_shapes,
    one_dtype,
    require_dtype,
    same_device,
    strides_of,
)
from everyorder.runtime.operators.declare.structured import Structured
from everyorder.runtime.operators.gather_scatter import check_places
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.construction import empty_tensor, view_of
from everyorder.runtime.tensors.shape import broadcast_shapes
from everyorder.runtime.tensors.tensor import Tensor

Indices = list[Tensor | None]

UINT8 = DType.named("uint8")
MASKS = frozenset({BOOL, UINT8})


class ByteMask(UserWarning):
    """A warning that an index tensor of uint8 is a mask."""


BYTE_MASK = "an index tensor of uint8 is a mask; pass bool, or int64 for places"


def numbers_of(mask: Tensor) -> list[Tensor]:
    """Return the places of true elements: one tensor of numbers for each dimension.

    Raises:
        NoData: the mask is on meta.
    """
    if mask.device.type == "meta":
        operation = "has a result whose size depends on a mask"
        raise NoData(code="NoDataToRead", device="meta", asked=operation)
    table = table_for(mask.device)
    rows = empty_tensor(
        (table["nonzero_count"](mask), len(mask.shape)), INT64, mask.device
    )
    table["nonzero"](rows, mask)
    count, dims = rows.shape
    return [
        in_order(table, view_of(rows, (count,), (dims,), rows.offset + dim))
        for dim in range(dims)
    ]


def resolve_indices(self: Tensor, indices: Sequence[Tensor | None]) -> Indices:
    """Return one entry for each dimension: None, or int64 that broadcast together.

    Raises:
        DTypeRefused: an index holds neither integers nor booleans.
        ShapesDoNotFit: too many indices, a mask of another shape, or indices that do
            not broadcast.
        NoData: a mask on meta.
    """
    resolved: Indices = []
    for at, index in enumerate(indices):
        if index is None:
            resolved.append(None)
        elif index.dtype in MASKS:
            if index.dtype is UINT8:
                warn(BYTE_MASK, ByteMask, stacklevel=levels_to_caller())
            _check_mask(self, f"indices[{at}]", index, len(resolved))
            resolved.extend(numbers_of(index))
        elif index.dtype in INDICES:
            resolved.append(_as_numbers(index))
        else:
            raise bad_dtype(
                f"indices[{at}]", index.dtype, "integers, or bool for a mask"
            )
    dims = len(self.shape)
    if len(resolved) > dims:
        raise bad_shapes(
            f"there are {len(resolved)} indices",
            f"at most {dims}, one for each dimension of self",
            ("self", self),
        )
    return resolved + [None] * (dims - len(resolved))


def _as_numbers(index: Tensor) -> Tensor:
    if index.device.type == "meta":
        return index
    return as_dtype(table_for(index.device), index, INT64)


def _check_mask(self: Tensor, name: str, mask: Tensor, first: int) -> None:
    covered = self.shape[first : first + len(mask.shape)]
    if mask.shape != covered:
        raise bad_shapes(
            f"the mask {name} does not have the shape of its dimensions",
            f"a mask of shape {covered}",
            ("self", self),
            (name, mask),
        )


def common_shape(indices: Indices) -> Shape:
    """Return the shape that all indices broadcast to.  Raises `ShapesDoNotFit`."""
    shapes = [each.shape for each in indices if each is not None]
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        raise bad_shapes(
            "the indices do not broadcast together",
            "index tensors of equal sizes, or 1 where they differ",
            *tuple((f"index {at}", shape) for at, shape in enumerate(shapes)),
        ) from None


def indexed_shape(self: Tensor, indices: Indices) -> Shape:
    """Return the shape of the indexed elements; one index per dimension."""
    common = common_shape(indices)
    chosen = [dim for dim, index in enumerate(indices) if index is not None]
    if not chosen:
        return self.shape
    first, last = chosen[0], chosen[-1]
    free = [size for size, i in zip(self.shape, indices, strict=True) if i is None]
    before = first if last - first + 1 == len(chosen) else 0
    return (*free[:before], *common, *free[before:])


def plan_index(self: Tensor, indices: Sequence[Tensor | None]) -> CallPlan:
    """Return the plan of `self[indices]`, as in NumPy."""
    device = same_device(self, *indices)
    numbers = resolve_indices(self, indices)
    shape = indexed_shape(self, numbers)
    outputs = ((shape, self.dtype),)
    return CallPlan(outputs, device, (self, numbers), kernel=_index)


def _index(table: KernelTable, out: Tensor, self: Tensor, indices: Indices) -> None:
    if not any(each is not None for each in indices):
        table["copy"](out, self)
    elif out.numel():
        table["index"](out, self, together(table, indices))
    else:
        _check(table, self.shape, indices)


def _check(table: KernelTable, shape: Shape, indices: Indices) -> None:
    """Make sure that the numbers of indices that select no element are valid.

    Raises:
        IndexOutOfRange: a number is out of range.
    """
    tensors = [(dim, each) for dim, each in enumerate(indices) if each is not None]
    if 0 not in broadcast_shapes(*(each.shape for _, each in tensors)):
        for dim, each in tensors:
            check_places(table, shape[dim], dim, each, wraps=True)


def together(table: KernelTable, indices: Indices) -> Indices:
    """Return the indices in their common shape, each contiguous."""
    shape = broadcast_shapes(*(each.shape for each in indices if each is not None))
    return [
        None if each is None else in_order(table, expanded(each, shape))
        for each in indices
    ]


def plan_index_put(
    self: Tensor,
    indices: Sequence[Tensor | None],
    values: Tensor,
    accumulate: bool,
) -> CallPlan:
    """Return the plan of `self` with `values`, broadcast, at the indexed places."""
    device = same_device(self, *indices, values)
    one_dtype(ALL, "every dtype", ("self", self), ("values", values))
    strides = strides_of(self, None)
    outputs = ((self.shape, self.dtype),)
    if device.type == "meta" and any(
        each is not None and each.dtype in MASKS for each in indices
    ):
        # The number of places that a mask selects is unknown on meta, and not needed.
        return CallPlan(outputs, device, (), start=self, strides=strides)
    numbers = resolve_indices(self, indices)
    shape = indexed_shape(self, numbers)
    try:
        fits = broadcast_shapes(shape, values.shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise bad_shapes(
            f"values do not broadcast to {shape}, the shape of the places",
            f"values of shape {shape}, or with 1 for some of its sizes",
            ("self", self),
            ("values", values),
        )
    arguments = (numbers, values, accumulate, shape)
    return CallPlan(
        outputs, device, arguments, start=self, kernel=_put, strides=strides
    )


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
            _check(table, out.shape, indices)
    elif accumulate:
        table["add"](out, out, spread, 1)
    else:
        table["copy"](out, spread)


def masked_shape(self: Tensor, mask: Tensor) -> tuple[int, ...]:
    """Return the shape to which a tensor and its mask broadcast.

    Raises:
        DTypeRefused: the mask is not of booleans. ShapesDoNotFit: they do not.
    """
    require_dtype("mask", mask.dtype, frozenset({BOOL}), "bool")
    try:
        shape = broadcast_shapes(self.shape, mask.shape)
    except ValueError:
        raise bad_shapes(
            "self and mask do not broadcast together",
            f"a mask that broadcasts with {self.shape}",
            ("self", self),
            ("mask", mask),
        ) from None
    return shape


def plan_masked_select(self: Tensor, mask: Tensor) -> CallPlan:
    """Return the plan of the elements where the mask is true; both broadcast."""
    device = same_device(self, mask)
    shape = masked_shape(self, mask)
    source, chosen = expanded(self, shape), expanded(mask, shape)
    if not shape:
        source, chosen = expanded(self, (1,)), expanded(mask, (1,))
    numbers: Indices = [*numbers_of(chosen)]
    assert numbers[0] is not None, "a mask with dimensions has numbers"
    outputs = ((numbers[0].shape, self.dtype),)
    return CallPlan(outputs, device, (source, numbers), kernel=_index)


def plan_nonzero(self: Tensor) -> CallPlan:
    """Return the plan of one row of numbers for each nonzero element."""
    if self.device.type == "meta":
        operation = "has one row for each element that is not zero"
        raise NoData(code="NoDataToRead", device="meta", asked=operation)
    count = table_for(self.device)["nonzero_count"](self)
    shape = (count, len(self.shape))
    return CallPlan(((shape, INT64),), self.device, (self,))


_PUT = "Tensor?[] indices, Tensor values, bool accumulate=False"

OPERATORS = (
    Structured(
        "index",
        "Tensor self, Tensor?[] indices",
        plan_index,
        # If a mask is among the indices.
        tags=("dynamic_output_shape",),
    ),
    Structured(
        "index_put",
        f"Tensor self, {_PUT}",
        plan_index_put,
        in_place=True,
        says="Return the tensor with `values` at the index tensors.",
        autocast="widest",
    ),
    Structured(
        "masked_select",
        "Tensor self, Tensor mask",
        plan_masked_select,
        tags=("dynamic_output_shape",),
        says="Return the elements where the mask is true, as a vector.",
    ),
    Structured(
        "nonzero",
        "Tensor self",
        plan_nonzero,
        tags=("dynamic_output_shape",),
        says="Return the indices of the nonzero elements, one per row.",
    ),
)
