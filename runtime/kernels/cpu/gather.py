"""gather, index_select, scatter, scatter_add, index_add: one dimension by an index.

gather and scatter name every element: `out[.., i, ..] = x[.., index[.., i, ..], ..]`
and `out[.., index[.., i, ..], ..] = src[.., i, ..]`; index_select and index_add whole
slices by a list (or one number).  Each is a walk (`runtime.kernels.cpu.walks`), made
once for a geometry.  What is moved is moved as words, so few kernels serve every dtype;
an index that repeats along the inner dimensions (stride 0) moves whole rows.

Rules:
- what is written into, `out`, comes with a copy of self;
- of several values for one place, scatter keeps the last in the order of the index, and
  scatter_add and index_add add them in that order, on any number of threads;
- 16-bit floats are summed in a float32 copy of the whole target, rounded once when it
  is written back; integers wrap around; of booleans the sum is "any".  So are those of
  index_put (`factor`, `summed`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.kernels.cpu.operand import (
    WORDS,
    Geometry,
    Ints,
    Lying,
    Run,
    integers,
    lying,
    strides_of,
    words,
)
from runtime.kernels.cpu.walks import (
    ADD,
    READ,
    WRITE,
    Call,
    Walks,
    along,
    checked,
    refused,
)
from runtime.kernels.jit import Family
from runtime.schema.codes import DType
from runtime.tensors.elements import compute_dtype, numpy_dtype
from runtime.tensors.tensor import Tensor

Number = bool | int | float | complex

# flat target, where it begins, flat source, where it begins, factor
Sum = Callable[[Any, int, Any, int, Any], bool]


def factor(alpha: Number, dtype: DType) -> Number:
    """The factor as a number of the dtype that sums are taken in."""
    wide = compute_dtype(dtype)
    if type(alpha) is int and alpha == 1 and wide.name != "bool":
        return alpha
    number: Number = numpy_dtype(wide).type(alpha).item()
    return number


def summed(dtype: DType, count: int, run: Sum) -> Sum:
    """`run` on arrays of the dtype that sums are taken in; the target has `count`."""
    wide = compute_dtype(dtype)
    if wide is dtype:
        return run
    form = numpy_dtype(wide)

    def widened(target: Any, a: int, source: Any, o: int, alpha: Any) -> bool:
        total = target[a : a + count].astype(form)
        if run(total, 0, source.astype(form), o, alpha):
            return True
        with np.errstate(all="ignore"):
            target[a : a + count] = total
        return False

    return widened


class Sums:
    """The sums of one kernel along a dimension, by geometry."""

    __slots__ = ("walks",)

    def __init__(self, make: Callable[..., Call]) -> None:
        def made(dtype: DType, *geometry: Any) -> Call:
            return make(ADD, compute_dtype(dtype).name, *geometry)

        self.walks = Walks(made)

    def add(
        self,
        out: Tensor,
        dim: int,
        own: Ints,
        index: Lying,
        src: Tensor,
        alpha: Number = 1,
    ) -> bool:
        """Add `alpha` times `src` into `out`, which is contiguous.

        The answer is whether a value of the index, of shape `own`, lies outside; then
        nothing was written.
        """
        places, i, steps = index
        target, a, strides = lying(out)
        source, o, by = lying(src)
        dtype = out.dtype
        call = self.walks[dtype, out.shape, strides, dim, own, steps, by, src.shape]
        if dtype.name in ("float32", "float64") and alpha == 1:
            return call(target, places, source, a, i, o, 1)

        def run(total: Any, a: int, other: Any, o: int, alpha: Any) -> bool:
            return call(total, places, other, a, i, o, alpha)

        add = summed(dtype, out.numel(), run)
        return add(target, a, source, o, factor(alpha, dtype))


def _elements(
    family: Family,
    name: str,
    shape: Ints,
    strides: Ints | None,
    dim: int,
    chosen: Ints,
    steps: Ints | None,
    linear: Ints | None,
    given: Ints,
) -> Call:
    """The walk over the index; the linear operand is of shape `given`, or a larger."""
    by = strides_of(chosen, steps)
    return along(
        family,
        name,
        shape,
        strides_of(shape, strides),
        dim,
        (chosen, by, by),
        strides_of(given, linear),
        chosen,
    )


def _slices(
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


def _moving(family: Family, make: Callable[..., Call]) -> Walks:
    """The walks that move words, by dtype and geometry."""

    def made(dtype: DType, *geometry: Any) -> Call:
        return make(family, WORDS[dtype], *geometry)

    return Walks(made)


_GATHERED, _SCATTERED = _moving(READ, _elements), _moving(WRITE, _elements)
_SELECTED = _moving(READ, _slices)
_ADDED, _ADDED_SLICES = Sums(_elements), Sums(_slices)


def gather(out: Tensor, x: Tensor, dim: int, index: Tensor) -> None:
    """Fill `out` (the shape of `index`) from `x`.

    Raises `IndexOutOfRange`, before anything is written.
    """
    source, a, strides = words(x)
    places, i, steps = integers(index)
    target, o, to = words(out)
    own = index.shape
    call = _GATHERED[x.dtype, x.shape, strides, dim, own, steps, to, own]
    if call(source, places, target, a, i, o, 0):
        raise refused((places, i, steps), own, x.shape, "core::gather", dim)


def _ready_gather(out: Geometry, x: Geometry, dim: int, index: Geometry) -> Run:
    """By an index of int64."""
    own, steps = index.shape, index.strides
    call = _GATHERED[x.dtype, x.shape, x.strides, dim, own, steps, None, own]
    return checked(call, x, dim, index, "core::gather")


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


def _ready_select(out: Geometry, x: Geometry, dim: int, index: Geometry) -> Run:
    """By an index of int64."""
    own, steps = index.shape, index.strides
    call = _SELECTED[x.dtype, x.shape, x.strides, dim, own, steps, None, out.shape]
    return checked(call, x, dim, index, "core::index_select")


def scatter(out: Tensor, dim: int, index: Tensor, src: Tensor | Number) -> None:
    """Write the elements of `src`, or the one number, where `index` says.

    Raises `IndexOutOfRange`, before anything is written.
    """
    places, i, steps = integers(index)
    target, a, strides = words(out)
    given, own = index.shape, index.shape
    if isinstance(src, Tensor):
        source, o, by = words(src)
        given = src.shape
    else:
        source = np.full(1, src, numpy_dtype(out.dtype)).view(WORDS[out.dtype])
        o, by = 0, (0,) * len(own)
    call = _SCATTERED[out.dtype, out.shape, strides, dim, own, steps, by, given]
    if call(target, places, source, a, i, o, 0):
        raise refused((places, i, steps), own, out.shape, "core::scatter", dim)


def scatter_add(out: Tensor, dim: int, index: Tensor, src: Tensor) -> None:
    """Add the elements of `src` where `index` says.

    Raises `IndexOutOfRange`, before anything is written.
    """
    chosen = integers(index)
    if _ADDED.add(out, dim, index.shape, chosen, src):
        raise refused(chosen, index.shape, out.shape, "core::scatter_add", dim)


def index_add(
    out: Tensor, dim: int, index: Tensor, src: Tensor, alpha: Number = 1
) -> None:
    """Add `alpha` times the slices of `src` to the slices of `out` named by `index`.

    `out` comes with a copy of self.  Raises `IndexOutOfRange`, before anything is
    written.
    """
    chosen = integers(index)
    if _ADDED_SLICES.add(out, dim, index.shape, chosen, src, alpha):
        raise refused(chosen, index.shape, out.shape, "core::index_add", dim)


KERNELS: dict[str, Callable[..., Any]] = {
    "gather": gather,
    "index_select": index_select,
    "scatter": scatter,
    "scatter_add": scatter_add,
    "index_add": index_add,
}
READY: dict[str, Callable[..., Any]] = {
    "gather": _ready_gather,
    "index_select": _ready_select,
}
