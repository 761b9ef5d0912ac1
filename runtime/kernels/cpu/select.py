"""index_select and index_add: whole slices along one dimension, chosen by a list.

True only here: the index is one-dimensional (or one number), the slices are rows where
the inner dimensions are contiguous.  Equal targets of index_add are added in the order
of the index.
"""

from runtime.kernels.cpu.adding import Number, Sums
from runtime.kernels.cpu.bounds import refused
from runtime.kernels.cpu.lines import READ
from runtime.kernels.cpu.operand import (
    WORDS,
    Geometry,
    Ints,
    Run,
    integers,
    strides_of,
    words,
)
from runtime.kernels.cpu.walks import Call, Walks, along, checked
from runtime.kernels.jit import Family
from runtime.schema.codes import DType
from runtime.tensors.tensor import Tensor


def _made(
    family: Family,
    name: str,
    shape: Ints,
    strides: Ints | None,
    dim: int,
    chosen: Ints,
    steps: Ints | None,
    linear: Ints | None,
    walked: Ints,
) -> Call:
    """The walk over slices; the index, of shape `chosen`, goes along `dim` only."""
    own = strides_of(chosen, steps)
    after = len(shape) - dim - 1
    by = (0,) * dim + (own or (0,) * bool(shape)) + (0,) * after
    return along(
        family,
        name,
        shape,
        strides_of(shape, strides),
        dim,
        (chosen, own, by),
        strides_of(walked, linear),
        walked,
    )


def _selected(
    dtype: DType,
    shape: Ints,
    strides: Ints | None,
    dim: int,
    chosen: Ints,
    steps: Ints | None,
    linear: Ints | None,
    walked: Ints,
) -> Call:
    name = WORDS[dtype]
    return _made(READ, name, shape, strides, dim, chosen, steps, linear, walked)


_SELECTED = Walks(_selected)
_ADDED = Sums(_made)


def index_select(out: Tensor, x: Tensor, dim: int, index: Tensor) -> None:
    """Fill `out` with the slices of `x` that `index` names.

    Raises `IndexOutOfRange`, before anything is written.
    """
    source, a, strides = words(x)
    places, i, steps = integers(index)
    target, o, to = words(out)
    own = index.shape
    call = _SELECTED[x.dtype, x.shape, strides, dim, own, steps, to, out.shape]
    if call(source, places, target, a, i, o, 0):
        raise refused((places, i, steps), own, x.shape, "core::index_select", dim)


def index_add(
    out: Tensor, dim: int, index: Tensor, src: Tensor, alpha: Number = 1
) -> None:
    """Add `alpha` times the slices of `src` to the slices of `out` named by `index`.

    `out` comes with a copy of self.  Raises `IndexOutOfRange`, before anything is
    written.
    """
    chosen = integers(index)
    if _ADDED.add(out, dim, index.shape, chosen, src, alpha):
        raise refused(chosen, index.shape, out.shape, "core::index_add", dim)


def _ready(out: Geometry, x: Geometry, dim: int, index: Geometry) -> Run:
    """By an index of int64."""
    own, steps = index.shape, index.strides
    call = _SELECTED[x.dtype, x.shape, x.strides, dim, own, steps, None, out.shape]
    return checked(call, x, dim, index, "core::index_select")


KERNELS = {"index_select": index_select, "index_add": index_add}
READY = {"index_select": _ready}
