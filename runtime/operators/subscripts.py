"""Brackets: `tensor[...]` and `tensor[...] = value`.

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

Rules:
- an index that only takes views shares memory with the tensor; index tensors copy
  (`runtime.operators.indexing`);
- an integer tensor without dimensions counts as an int, except on meta; one of uint8
  counts as a bool; a number of NumPy's is a number, whatever its dtype;
- an assigned value is converted to the tensor's dtype and device, and broadcasts; it
  may have extra leading dimensions of size 1.  Elements that would lose their fraction
  or imaginary part are converted only for a view, and only if a tensor holds them.
"""

from operator import index as as_int
from typing import Any
from warnings import warn

from everyorder.runtime.dispatch.library import levels_to_caller
from everyorder.runtime.errors.tensor import IndexOutOfRange
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.declare.plan import BOOL, INT64, bad_dtype
from everyorder.runtime.operators.indexing import BYTE_MASK, MASKS, UINT8, ByteMask
from everyorder.runtime.tensors.dtype_info import NUMBERS
from everyorder.runtime.tensors.from_data import tensor as tensor_of
from everyorder.runtime.tensors.promotion import can_cast
from everyorder.runtime.tensors.tensor import Tensor

_FITS = (
    "an int, a slice, None, `...`, or integers or booleans as tensor, array, list or "
    "tuple"
)


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
        DTypeRefused: elements of a list or an array, or elements at index tensors,
            would lose their fraction or imaginary part; one value for a mask, and a
            tensor for a view, are converted.
    """
    view, indices = _apply_views(self, index)
    number = isinstance(value, NUMBERS)
    if not indices:
        if number:
            core.fill_(view, value)
        else:
            core.copy_(view, _fitted(_assigned(value, self), len(view.shape)))
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
        source = _assigned(value, self)
        masked = len(indices) == 1 and first is not None and first.dtype is BOOL
        if not (masked and source.numel() == 1):
            _require_cast(source, self)
        values = core.to(source, dtype=self.dtype, device=self.device)
        values = _fitted(values, _result_dims(view, indices))
    core.index_put_(view, indices, values)


def _assigned(value: Any, like: Tensor) -> Tensor:
    """Return a value as a tensor; a list or an array in the dtype of `like`.

    Raises:
        DTypeRefused: elements of a list or an array would lose their fraction or
            imaginary part.
    """
    if isinstance(value, Tensor):
        return value
    # In a dtype of its own: that of the array, or of the kind of numbers of a list.
    own = tensor_of(value)
    if own.numel():
        _require_cast(own, like)
    return tensor_of(value, dtype=like.dtype, device=like.device)


def _require_cast(source: Tensor, like: Tensor) -> None:
    if not can_cast(source.dtype, like.dtype):
        fits = f"what converts to {like.dtype}, the dtype of self"
        raise bad_dtype("value", source.dtype, fits, call="Tensor.__setitem__")


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
        return bool(number) if part.dtype in MASKS else int(number)
    if part.device is not self.device:
        part = core.to(part, device=self.device)
    if part.dtype is UINT8:
        warn(BYTE_MASK, ByteMask, stacklevel=levels_to_caller())
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
