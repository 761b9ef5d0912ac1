"""Indexing: `tensor[...]`, `tensor[...] = value`, `index`, `index_put`, masks.

=============== ========== =====================================================
in the brackets dimensions becomes
=============== ========== =====================================================
int             1, removed `select`
slice           1          `slice`; the step is positive
None            a new one  `unsqueeze`
...             the rest   nothing
True, False     a new one  a mask of one element
integers        1          one entry of `index`; lists and arrays become tensors
booleans        theirs     a mask, one entry of `index`
uint8           theirs     a mask of the elements that are not 0; deprecated
=============== ========== =====================================================

In a list of index tensors, None keeps a dimension; a tensor of integers selects places
of one dimension, negative ones from the end; a mask of booleans covers as many
dimensions as it has, and becomes the numbers of its true elements.  All integers
broadcast to one shape, which replaces the indexed dimensions if they are adjacent, and
precedes all others if not, as in NumPy.

Rules:
- an index that only takes views shares memory with the tensor; index tensors copy;
- the size of a mask's result depends on its elements, so that a plan with a mask reads
  them; on meta that is refused.  The kernel checks numbers before it writes;
- an integer tensor without dimensions counts as an int, except on meta; one of uint8
  counts as a bool; a number of NumPy's is a number, whatever its dtype;
- an assigned value is converted to the tensor's dtype and device, and broadcasts; it
  may have extra leading dimensions of size 1.
"""

from collections.abc import Sequence
from operator import index as as_int
from typing import Any
from warnings import warn

from everyorder.runtime.dispatch.library import levels_to_caller
from everyorder.runtime.errors.tensor import IndexOutOfRange, NoData
from everyorder.runtime.operators.declare.allocate_outputs import (
    as_dtype,
    expanded,
    in_order,
    table_for,
)
from everyorder.runtime.operators.declare.handles import core
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
from everyorder.runtime.tensors.from_data import tensor as tensor_of
from everyorder.runtime.tensors.promotion import can_cast
from everyorder.runtime.tensors.shape import broadcast_shapes
from everyorder.runtime.tensors.tensor import Tensor

Indices = list[Tensor | None]

UINT8 = DType.named("uint8")
_MASKS = frozenset({BOOL, UINT8})


class ByteMask(UserWarning):
    """A warning that an index tensor of uint8 is a mask."""


_BYTE_MASK = "an index tensor of uint8 is a mask; pass bool, or int64 for places"


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
        elif index.dtype in _MASKS:
            if index.dtype is UINT8:
                warn(_BYTE_MASK, ByteMask, stacklevel=levels_to_caller())
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
        each is not None and each.dtype in _MASKS for each in indices
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


def plan_masked_select(self: Tensor, mask: Tensor) -> CallPlan:
    """Return the plan of the elements where the mask is true; both broadcast."""
    device = same_device(self, mask)
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


_FITS = (
    "an int, a slice, None, `...`, or integers or booleans as tensor, array, list or "
    "tuple"
)
_NUMBERS = (bool, int, float, complex)


def get_item(self: Tensor, index: Any) -> Tensor:
    """Return `self[index]`.

    Raises:
        IndexOutOfRange: a part of the index is invalid, or is out of range.
        ShapesDoNotFit: an index tensor does not fit.
    """
    kind = type(index)
    if kind is int:
        return _selected(self, 0, index, 0, self.shape)
    if kind is slice and self.shape:
        part = _sliced(self, self, 0, 0, index)
        return core.alias(self) if part is self else part
    view, indices = _apply_views(self, index)
    result: Tensor
    if indices:
        result = core.index(view, indices)
    else:
        result = core.alias(self) if view is self else view
    return result


def set_item(self: Tensor, index: Any, value: Any) -> None:
    """Assign `self[index] = value`.

    Raises:
        IndexOutOfRange, ShapesDoNotFit: as `get_item`.
        ShapesDoNotFit: the value does not broadcast to the shape of `self[index]`.
        DTypeRefused: elements at index tensors would lose their fraction or imaginary
            part; one value for a mask, and values for a view, are converted.
    """
    view, indices = _apply_views(self, index)
    number = isinstance(value, _NUMBERS)
    if not indices:
        if number:
            core.fill_(view, value)
        else:
            core.copy_(view, _fitted(_as_tensor(value, self), len(view.shape)))
        return
    first = indices[0]
    if number and len(indices) == 1 and first is not None and first.dtype is BOOL:
        covered = view.shape[: len(first.shape)]
        if first.shape == covered:
            rest = len(view.shape) - len(covered)
            mask = core.reshape(first, [*covered, *[1] * rest]) if rest else first
            core.masked_fill_(view, mask, value)
            return
    if number:
        values = core.full([], value, dtype=self.dtype, device=self.device)
    else:
        source = _as_tensor(value, self)
        masked = len(indices) == 1 and first is not None and first.dtype is BOOL
        one_value = masked and source.numel() == 1
        if not (one_value or can_cast(source.dtype, self.dtype)):
            fits = f"what converts to {self.dtype}, the dtype of self"
            raise bad_dtype("value", source.dtype, fits, call="Tensor.__setitem__")
        values = core.to(source, dtype=self.dtype, device=self.device)
        values = _fitted(values, _result_dims(view, indices))
    core.index_put_(view, indices, values)


def _as_tensor(value: Any, like: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value
    return tensor_of(value, dtype=like.dtype, device=like.device)


def _fitted(value: Tensor, dims: int) -> Tensor:
    """Return the value without leading dimensions of size 1 that the target lacks."""
    spare = len(value.shape) - dims
    if spare > 0 and all(size == 1 for size in value.shape[:spare]):
        fitted: Tensor = core.reshape(value, list(value.shape[spare:]))
        return fitted
    return value


def _result_dims(view: Tensor, indices: list[Tensor | None]) -> int:
    """Return the number of dimensions of the result: of the indices, and the rest."""
    tensors = [each for each in indices if each is not None]
    covered = sum(len(each.shape) if each.dtype is BOOL else 1 for each in tensors)
    common = max(1 if each.dtype is BOOL else len(each.shape) for each in tensors)
    return len(view.shape) - covered + common


def _apply_views(self: Tensor, index: Any) -> tuple[Tensor, list[Tensor | None]]:
    """Return the view of the index, and its index tensors by dimension of the view.

    The list is empty without index tensors, and ends with the last one.
    """
    parts = index if isinstance(index, tuple) else (index,)
    ready = [_part(self, position, part) for position, part in enumerate(parts)]
    if sum(part is Ellipsis for part in ready) > 1:
        last = len(ready) - 1 - [part is Ellipsis for part in ready][::-1].index(True)
        raise _index_error(self, ..., last, "it occurs twice", "`...` once")
    used = sum(map(_dims, ready))
    dims = len(self.shape)
    if used > dims:
        raise _index_error(
            self,
            parts[-1],
            len(parts) - 1,
            f"{used} dimensions are indexed, and there are {dims}",
            f"at most {dims} of them",
        )
    view, dim = self, 0
    indices: list[Tensor | None] = []
    for position, part in enumerate(ready):
        if part is None:
            view = core.unsqueeze(view, dim)
            step = 1
        elif part is Ellipsis:
            step = dims - used
        elif isinstance(part, bool):
            view = core.unsqueeze(view, dim)
            part = tensor_of([part], device=self.device)
            step = 1
        elif isinstance(part, slice):
            view, step = _sliced(self, view, dim, position, part), 1
        elif isinstance(part, int):
            view, step = _selected(view, dim, part, position, self.shape), 0
        else:
            step = _dims(part)
        if isinstance(part, Tensor):
            indices.append(part)
        else:
            indices.extend([None] * step)
        dim += step
    while indices and indices[-1] is None:
        indices.pop()
    return view, indices


def _part(self: Tensor, position: int, part: Any) -> Any:
    """Return a part as bool, int, slice, None, Ellipsis or a tensor with dimensions."""
    if part is None or part is Ellipsis or isinstance(part, (bool, slice)):
        return part
    if not isinstance(part, Tensor):
        if hasattr(part, "__index__") and not getattr(part, "shape", ()):
            return as_int(part)
        part = _places_of(self, position, part)
    if part.dtype.is_floating or part.dtype.is_complex:
        raise _index_error(
            self, part.dtype, position, "it does not hold integers or booleans", _FITS
        )
    if not part.shape and not part.is_meta:
        number = part.item()
        return bool(number) if part.dtype in _MASKS else int(number)
    if part.device is not self.device:
        part = core.to(part, device=self.device)
    if part.dtype is UINT8:
        warn(_BYTE_MASK, ByteMask, stacklevel=levels_to_caller())
        part = core.ne(part, 0)
    return part


def _places_of(self: Tensor, position: int, part: Any) -> Tensor:
    """Return a sequence or array of places as a tensor.  Raises `IndexOutOfRange`."""
    # A tuple within the subscript; a tuple alone is the subscript itself.
    listed = isinstance(part, (list, range, tuple))
    places = list(part) if listed else part
    if listed and not places:
        return tensor_of(places, dtype=INT64)
    if listed or hasattr(part, "__array__"):
        try:
            return tensor_of(places)
        except (TypeError, ValueError):
            raise _index_error(
                self, part, position, "it is not a list of integers or booleans", _FITS
            ) from None
    raise _index_error(
        self, part, position, f"a {type(part).__name__} is not an index", _FITS
    )


def _dims(part: Any) -> int:
    """Return the number of dimensions of the indexed tensor that a part covers."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    if isinstance(part, Tensor) and part.dtype is BOOL:
        return len(part.shape)
    return 1


def _selected(
    view: Tensor, dim: int, index: int, position: int, shape: tuple[int, ...]
) -> Tensor:
    size = view.shape[dim] if dim < len(view.shape) else -1
    if not -size <= index < size:
        raise IndexOutOfRange(
            code="IndexRefused",
            index=str(index),
            position=position,
            shape=shape,
            reason="there is no dimension left to index"
            if size < 0
            else f"its dimension has size {size}",
            fits=f"{-size} to {size - 1}" if size > 0 else "no int",
        )
    selected: Tensor = core.select(view, dim, index)
    return selected


def _sliced(self: Tensor, view: Tensor, dim: int, position: int, part: slice) -> Tensor:
    bounds: list[int | None] = []
    for bound in (part.start, part.stop, part.step):
        try:
            bounds.append(None if bound is None else as_int(bound))
        except TypeError:
            raise _index_error(
                self, part, position, f"{bound!r} is not a bound", "ints and None"
            ) from None
    start, stop, step = bounds
    if step is not None and step < 1:
        raise _index_error(
            self, part, position, f"the step is {step}", "a positive step; flip(dims)"
        )
    if start is None and stop is None and step in (None, 1):
        return view
    part_view: Tensor = core.slice(view, dim, start, stop, 1 if step is None else step)
    return part_view


# An error shows at most this many characters of an index: half a line.
_SHOWN = 40


def _index_error(
    self: Tensor, part: Any, position: int, reason: str, fits: str
) -> IndexOutOfRange:
    text = _index_text(part)
    return IndexOutOfRange(
        code="IndexRefused",
        index=text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...",
        position=position,
        shape=self.shape,
        reason=reason,
        fits=fits,
    )


def _index_text(part: Any) -> str:
    """Return a part of an index as it is written in the brackets."""
    if part is Ellipsis:
        return "..."
    if not isinstance(part, slice):
        return repr(part)
    bounds = ["" if each is None else repr(each) for each in (part.start, part.stop)]
    return ":".join(bounds if part.step is None else [*bounds, repr(part.step)])


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
        only="method",
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
