"""Subscripts: what `tensor[...]` and `tensor[...] = value` mean.

True only here: how Python's indices become views and index tensors.

=============== ========== =====================================================
in the brackets dimensions becomes
=============== ========== =====================================================
int             1, gone    `select`
slice           1          `slice`; the step is positive
None            a new one  `unsqueeze`
...             the rest   nothing
True, False     a new one  a mask of one element
integers        1          one entry of `index`; lists and arrays become tensors
booleans        theirs     a mask, one entry of `index`
=============== ========== =====================================================

Rules:
- what only takes views shares memory with the tensor; index tensors copy;
- an integer tensor without dimensions counts as an int, except on meta;
- a value that is assigned is converted to the tensor's dtype and device, and
  broadcasts; its leading dimensions of size 1 may be too many.
"""

from operator import index as as_int
from typing import Any

from runtime.errors.operator import IndexRefused
from runtime.operators.call import core
from runtime.operators.plan import BOOL, INT64
from runtime.tensors.data import tensor as tensor_of
from runtime.tensors.tensor import Tensor

_FITS = "an int, a slice, None, `...`, or integers or booleans as tensor, list or array"
_NUMBERS = (bool, int, float, complex)


def get_item(self: Tensor, index: Any) -> Tensor:
    """`self[index]`.

    Raises:
        IndexRefused: a part of the index is out of range, or picks nothing.
        ShapesDoNotFit, IndexOutOfRange: an index tensor does not fit.
    """
    kind = type(index)
    if kind is int:
        return _selected(self, 0, index, 0, self.shape)
    if kind is slice and self.shape:
        part = _sliced(self, self, 0, 0, index)
        return core.alias(self) if part is self else part
    view, indices = _taken(self, index)
    found: Tensor
    if indices:
        found = core.index(view, indices)
    else:
        found = core.alias(self) if view is self else view
    return found


def set_item(self: Tensor, index: Any, value: Any) -> None:
    """`self[index] = value`.

    Raises:
        IndexRefused, ShapesDoNotFit, IndexOutOfRange: as `get_item`.
        ShapesRefused: the value does not broadcast to what the index picks.
    """
    view, indices = _taken(self, index)
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
        values = core.to(_as_tensor(value, self), dtype=self.dtype, device=self.device)
        values = _fitted(values, _result_dims(view, indices))
    core.index_put_(view, indices, values)


def _as_tensor(value: Any, like: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value
    return tensor_of(value, dtype=like.dtype, device=like.device)


def _fitted(value: Tensor, dims: int) -> Tensor:
    """The value without leading dimensions of size 1 that the target lacks."""
    spare = len(value.shape) - dims
    if spare > 0 and all(size == 1 for size in value.shape[:spare]):
        fitted: Tensor = core.reshape(value, list(value.shape[spare:]))
        return fitted
    return value


def _result_dims(view: Tensor, indices: list[Tensor | None]) -> int:
    """How many dimensions indexing gives: those of the indices, and the rest."""
    given = [each for each in indices if each is not None]
    taken = sum(len(each.shape) if each.dtype is BOOL else 1 for each in given)
    common = max(1 if each.dtype is BOOL else len(each.shape) for each in given)
    return len(view.shape) - taken + common


def _taken(self: Tensor, index: Any) -> tuple[Tensor, list[Tensor | None]]:
    """The views of the index taken, and its index tensors by dimension of the view.

    The list is empty if there are none, and ends with the last one.
    """
    parts = index if isinstance(index, tuple) else (index,)
    ready = [_part(self, position, part) for position, part in enumerate(parts)]
    if sum(part is Ellipsis for part in ready) > 1:
        last = len(ready) - 1 - [part is Ellipsis for part in ready][::-1].index(True)
        raise _refused(self, ..., last, "it is there twice", "`...` once")
    used = sum(map(_dims, ready))
    dims = len(self.shape)
    if used > dims:
        raise _refused(
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
    """One part as bool, int, slice, None, Ellipsis or a tensor with dimensions."""
    if part is None or part is Ellipsis or isinstance(part, (bool, slice)):
        return part
    if not isinstance(part, Tensor):
        if hasattr(part, "__index__") and not getattr(part, "shape", ()):
            return as_int(part)
        part = _listed(self, position, part)
    if part.dtype.is_floating or part.dtype.is_complex:
        raise _refused(self, part.dtype, position, "it does not hold places", _FITS)
    if not part.shape and not part.is_meta:
        number = part.item()
        return number if isinstance(number, bool) else int(number)
    if part.device is not self.device:
        part = core.to(part, device=self.device)
    return part


def _listed(self: Tensor, position: int, part: Any) -> Tensor:
    """A list, range or array of places as a tensor.  Raises `IndexRefused`."""
    if isinstance(part, range):
        part = list(part)
    if isinstance(part, list) and not part:
        return tensor_of(part, dtype=INT64)
    if isinstance(part, list) or hasattr(part, "__array__"):
        try:
            return tensor_of(part)
        except (TypeError, ValueError):
            raise _refused(
                self, part, position, "it is no list of places", _FITS
            ) from None
    raise _refused(self, part, position, f"a {type(part).__name__} is no place", _FITS)


def _dims(part: Any) -> int:
    """How many dimensions of the indexed tensor a part stands for."""
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
        raise IndexRefused(
            index=str(index),
            position=position,
            shape=shape,
            reason="there is no dimension left to index"
            if size < 0
            else f"its dimension has size {size}",
            fits=f"{-size} to {size - 1}" if size > 0 else "no int",
        )
    found: Tensor = core.select(view, dim, index)
    return found


def _sliced(self: Tensor, view: Tensor, dim: int, position: int, part: slice) -> Tensor:
    bounds: list[int | None] = []
    for bound in (part.start, part.stop, part.step):
        try:
            bounds.append(None if bound is None else as_int(bound))
        except TypeError:
            raise _refused(
                self, part, position, f"{bound!r} is no bound", "ints and None"
            ) from None
    start, stop, step = bounds
    if step is not None and step < 1:
        raise _refused(
            self, part, position, f"the step is {step}", "a positive step; flip(dims)"
        )
    if start is None and stop is None and step in (None, 1):
        return view
    found: Tensor = core.slice(view, dim, start, stop, 1 if step is None else step)
    return found


def _refused(
    self: Tensor, part: Any, position: int, reason: str, fits: str
) -> IndexRefused:
    text = _written(part)
    return IndexRefused(
        index=text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...",
        position=position,
        shape=self.shape,
        reason=reason,
        fits=fits,
    )


def _written(part: Any) -> str:
    """A part of an index as it is written in the brackets."""
    if part is Ellipsis:
        return "..."
    if not isinstance(part, slice):
        return repr(part)
    bounds = ["" if each is None else repr(each) for each in (part.start, part.stop)]
    return ":".join(bounds if part.step is None else [*bounds, repr(part.step)])


# An index is shown whole in an error up to this many characters: half a line.
_SHOWN = 40
