"""Indexed access: gather, scatter, index_select, index_add, index, embedding.

gather and scatter index each element: `out[.., i, ..] = x[.., index[.., i, ..], ..]`
and `out[.., index[.., i, ..], ..] = src[.., i, ..]`; index_select and index_add index
whole slices by a list (or one number).  Each is a walk
(`runtime.kernels.cpu.index_loops`), built once for a geometry.  Elements that are only
moved are moved as words, so few kernels serve every dtype; an index that repeats along
the inner dimensions (stride 0) moves whole rows.

`x[a, :, b]`: the indices broadcast to one shape, which replaces the indexed dimensions
if these are adjacent, and precedes all others if a dimension without an index is
between them (NumPy's rule).  They become one array of element offsets, negative values
counted from the end; the rest is a walk through one index.  A single index is tried
unchanged; a negative value in it requires the general path.  Boolean masks have been
converted to integers.

embedding_backward adds each row of the gradient to the row that was looked up, except
for those of `padding_idx`; threads share columns and not rows.

Rules:
- a written output `out` starts as a copy of self;
- of several values for one place, scatter and index_put keep the last in the order of
  the index; sums and products combine them in that order, on any number of threads;
- 16-bit floats are summed in a float32 copy of the whole target, rounded once when it
  is written back; integers wrap around; the sum of booleans is "any" (`factor`,
  `summed`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from everyorder.runtime.kernels.compile.jit import Family
from everyorder.runtime.kernels.cpu.index_loops import (
    ADD,
    COLUMNS,
    COMBINE,
    GRAIN,
    READ,
    REMEMBERED,
    WRITE,
    Call,
    along,
    check_values,
    plan,
    ready,
    refusal,
    refused,
    run_with_checks,
    shared,
)
from everyorder.runtime.kernels.shared.operands import (
    WORDS,
    Geometry,
    Ints,
    Number,
    Run,
    dense,
    integers,
    strided,
    strides_of,
    words,
)
from everyorder.runtime.kernels.shared.thread_pool import parallel_for
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.dtype_info import compute_dtype, numpy_dtype
from everyorder.runtime.tensors.shape import (
    broadcast_shapes,
    broadcast_strides,
    contiguous_strides,
)
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import array_of, flat_of

# flat target, its start, flat source, its start, factor
Sum = Callable[[Any, int, Any, int, Any], bool]


def factor(alpha: Number, dtype: DType) -> Number:
    """Return the factor as a number of the dtype of sums."""
    wide = compute_dtype(dtype)
    if type(alpha) is int and alpha == 1 and wide.name != "bool":
        return alpha
    number: Number = numpy_dtype(wide).type(alpha).item()
    return number


def summed(dtype: DType, count: int, run: Sum) -> Sum:
    """Return `run` on arrays of the dtype of sums; the target has `count` elements."""
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


def _calls(
    family: Family, slices: bool, words: Callable[[DType], str]
) -> Callable[..., Call]:
    """Return the cached calls of a kernel along a dimension; see `along`."""

    @lru_cache(REMEMBERED)
    def call(dtype: DType, *geometry: Any) -> Call:
        return along(family, words(dtype), slices, *geometry)

    return call


def _reading(name: str, slices: bool) -> tuple[Callable[..., None], Callable[..., Run]]:
    """Return a kernel that fills its output along a dimension, and its `ready`."""
    operator = f"core::{name}"
    calls = _calls(READ, slices, WORDS.__getitem__)

    def kernel(out: Tensor, x: Tensor, dim: int, index: Tensor) -> None:
        source, a, strides = words(x)
        places, i, steps = integers(index)
        target, o, to = words(out)
        own = index.shape
        call = calls(x.dtype, x.shape, strides, dim, own, steps, out.shape, to)
        if call(source, places, target, a, i, o, 0):
            raise refused((places, i, steps), own, x.shape, operator, dim)

    def ready(out: Geometry, x: Geometry, dim: int, index: Geometry) -> Run:
        """Return the call for an index of int64."""
        own, steps = index.shape, index.strides
        call = calls(x.dtype, x.shape, x.strides, dim, own, steps, out.shape, None)
        return run_with_checks(call, x, dim, index, operator)

    kernel.__name__ = kernel.__qualname__ = name
    return kernel, ready


def _adding(name: str, slices: bool) -> Callable[..., None]:
    """Return a kernel that adds `alpha` times `src` into `out` along a dimension."""
    operator = f"core::{name}"
    calls = _calls(ADD, slices, lambda dtype: compute_dtype(dtype).name)

    def kernel(
        out: Tensor, dim: int, index: Tensor, src: Tensor, alpha: Number = 1
    ) -> None:
        places, i, steps = integers(index)
        target, a, strides = strided(out)
        source, o, by = strided(src)
        dtype, own = out.dtype, index.shape
        call = calls(dtype, out.shape, strides, dim, own, steps, src.shape, by)
        if dtype.name in ("float32", "float64") and alpha == 1:
            bad = call(target, places, source, a, i, o, 1)
        else:

            def run(total: Any, a: int, other: Any, o: int, alpha: Any) -> bool:
                failed: bool = call(total, places, other, a, i, o, alpha)
                return failed

            add = summed(dtype, out.numel(), run)
            bad = add(target, a, source, o, factor(alpha, dtype))
        if bad:
            raise refused((places, i, steps), own, out.shape, operator, dim)

    kernel.__name__ = kernel.__qualname__ = name
    return kernel


gather, _ready_gather = _reading("gather", slices=False)
index_select, _ready_select = _reading("index_select", slices=True)
scatter_add = _adding("scatter_add", slices=False)
index_add = _adding("index_add", slices=True)
_SCATTERED = _calls(WRITE, False, WORDS.__getitem__)


def scatter(out: Tensor, dim: int, index: Tensor, src: Tensor | Number) -> None:
    """Write the elements of `src`, or the one number, at `index`.

    Raises:
        IndexOutOfRange: an index is out of range; nothing is written.
    """
    places, i, steps = integers(index)
    target, a, strides = words(out)
    other, own = index.shape, index.shape
    if isinstance(src, Tensor):
        source, o, by = words(src)
        other = src.shape
    else:
        source = np.full(1, src, numpy_dtype(out.dtype)).view(WORDS[out.dtype])
        o, by = 0, (0,) * len(own)
    call = _SCATTERED(out.dtype, out.shape, strides, dim, own, steps, other, by)
    if call(target, places, source, a, i, o, 0):
        raise refused((places, i, steps), own, out.shape, "core::scatter", dim)


_COMBINED = {
    how: _calls(family, False, lambda dtype: compute_dtype(dtype).name)
    for how, family in COMBINE.items()
}


def scatter_reduce(
    out: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str
) -> None:
    """Combine the elements of `src` with those of `out` at `index`.

    `reduce` is prod, amax or amin.

    Raises:
        IndexOutOfRange: an index is out of range; nothing is written.
    """
    places, i, steps = integers(index)
    target, a, strides = strided(out)
    source, o, by = strided(src)
    dtype, own = out.dtype, index.shape
    call = _COMBINED[reduce](dtype, out.shape, strides, dim, own, steps, src.shape, by)

    def run(total: Any, a: int, other: Any, o: int, alpha: Any) -> bool:
        failed: bool = call(total, places, other, a, i, o, alpha)
        return failed

    combine = summed(dtype, out.numel(), run)
    if combine(target, a, source, o, factor(1, dtype)):
        raise refused((places, i, steps), own, out.shape, "core::scatter_reduce", dim)


Indices = Sequence[Tensor | None]


def _offsets(total: Any, index: Any, size: int, stride: int, scale: int) -> bool:
    bad = 0
    for j in range(len(total)):
        at = index[j]
        at += size if at < 0 else 0
        bad |= (at < 0) | (at >= size)
        total[j] = scale * total[j] + at * stride
    return bad != 0


_OFFSETS = Family(
    "offsets", _offsets, "boolean(int64[::1], int64[::1], int64, int64, int64)"
)


@dataclass(frozen=True, slots=True)
class GatherLayout:
    """The dimensions of x and of the indices in the result."""

    shape: Ints
    # Strides of x by dimension of the result, 0 for indexed ones; and of the offsets, 0
    # for others.
    walk: Ints
    steps: Ints
    # The shape of all indices together.
    common: Ints
    # Each dimension with an index, its size and stride.
    indexed: tuple[tuple[int, int, int], ...]


@lru_cache(REMEMBERED)
def _single(
    dtype: DType,
    shape: Ints,
    strides: Ints | None,
    dim: int,
    chosen: Ints,
    steps: Ints | None,
    out: Ints | None,
) -> Call:
    """Return the call for one index, whose values are places of dimension `dim`."""
    x, own = strides_of(shape, strides), strides_of(chosen, steps)
    walked = (*shape[:dim], *chosen, *shape[dim + 1 :])
    by = ((0,) * dim, own, (0,) * (len(shape) - dim - 1))
    return ready(
        READ,
        WORDS[dtype],
        walked,
        (*x[:dim], *(0,) * len(chosen), *x[dim + 1 :]),
        x[dim],
        (chosen, own, sum(by, ())),
        strides_of(walked, out),
        shape[dim],
    )


def index(out: Tensor, x: Tensor, indices: Indices) -> None:
    """Fill `out` with `x[indices]`.

    Raises:
        IndexOutOfRange: an index is out of range; nothing is written.
    """
    source, a, strides = words(x)
    target, o, to = words(out)
    chosen: Tensor | None = None
    for dim, one in enumerate(indices):
        if one is not None:
            if chosen is not None:
                chosen = None
                break
            chosen, at = one, dim
    if chosen is not None:
        places, i, steps = integers(chosen)
        call = _single(x.dtype, x.shape, strides, at, chosen.shape, steps, to)
        if not call(source, places, target, a, i, o, 0):
            return
    shapes = tuple([None if one is None else one.shape for one in indices])
    layout = layout_of(x.shape, strides_of(x.shape, strides), shapes)
    offsets = _places(layout, indices, "core::index")
    linear = strides_of(layout.shape, to)
    _walk(READ, WORDS[x.dtype], layout, (source, a), offsets, (target, o, linear))


def index_put(
    out: Tensor, indices: Indices, values: Tensor, accumulate: bool = False
) -> None:
    """Write, or add, `values` (broadcast) to the places `out[indices]`.

    Raises:
        IndexOutOfRange: an index is out of range; nothing is written.
    """
    read = strided if accumulate else words
    target, a, strides = read(out)
    source, o, by = read(values)
    shapes = tuple([None if one is None else one.shape for one in indices])
    layout = layout_of(out.shape, strides_of(out.shape, strides), shapes)
    offsets = _places(layout, indices, "core::index_put")
    stored = strides_of(values.shape, by)
    linear = broadcast_strides(values.shape, stored, layout.shape)
    if not accumulate:
        name = WORDS[out.dtype]
        _walk(WRITE, name, layout, (target, a), offsets, (source, o, linear))
        return
    name = compute_dtype(out.dtype).name

    def run(total: Any, a: int, other: Any, o: int, alpha: Any) -> bool:
        _walk(ADD, name, layout, (total, a), offsets, (other, o, linear), alpha)
        return False

    add = summed(out.dtype, out.numel(), run)
    add(target, a, source, o, factor(1, out.dtype))


def _walk(
    family: Family,
    name: str,
    layout: "GatherLayout",
    addressed: tuple[Any, int],
    offsets: Any,
    linear: tuple[Any, int, Ints],
    alpha: Any = 0,
) -> None:
    """Walk over the result; the offsets have been checked."""
    walk = plan(layout.shape, layout.walk, 1, layout.steps, linear[2])
    share = shared(family is READ, family[name], walk)
    share((addressed[0], offsets, linear[0]), (addressed[1], 0, linear[1]), alpha)


@lru_cache(maxsize=REMEMBERED)
def layout_of(
    shape: Ints, strides: Ints, shapes: tuple[Ints | None, ...]
) -> GatherLayout:
    """Return the layout of the result for indices of these shapes."""
    common = broadcast_shapes(*(one for one in shapes if one is not None))
    chosen = [dim for dim, one in enumerate(shapes) if one is not None]
    free = [dim for dim in range(len(shape)) if dim not in chosen]
    first = min(chosen, default=0)
    neighbours = max(chosen, default=-1) - first + 1 == len(chosen)
    before = sum(dim < first for dim in free) if neighbours else 0
    lead, trail = free[:before], free[before:]

    def around(outer: Ints, inner: Ints) -> Ints:
        return (*(outer[d] for d in lead), *inner, *(outer[d] for d in trail))

    return GatherLayout(
        shape=around(shape, common),
        walk=around(strides, (0,) * len(common)),
        steps=around((0,) * len(shape), contiguous_strides(common)),
        common=common,
        indexed=tuple((dim, shape[dim], strides[dim]) for dim in chosen),
    )


def _places(layout: GatherLayout, indices: Indices, operator: str) -> Any:
    """Return the indices as one flat array that counts elements of x."""
    total = np.zeros(prod(layout.common), np.int64)
    scale = 0
    for dim, size, stride in layout.indexed:
        one = indices[dim]
        assert one is not None, "only dimensions with an index are listed"
        flat = _broadcast(one, layout.common)
        if _OFFSETS["int64"](total, flat, size, stride, scale):
            raise refusal(flat, size, operator, dim, wraps=True)
        scale = 1
    return total


def _broadcast(one: Tensor, common: Ints) -> Any:
    """Return the values of an index in the common shape, flat and contiguous, int64."""
    if one.shape == common:
        values: Any = dense(one)
    else:
        # With one value, `reshape` alone would return a row of stride 0.
        wide = np.broadcast_to(array_of(one), common)
        values = np.ascontiguousarray(wide).reshape(-1)
    return values.astype(np.int64, copy=False)


def _rows(
    total: Any, grad: Any, index: Any, padding: int, width: int, lo: int, hi: int
) -> None:
    for row in range(len(index)):
        at = index[row]
        if at != padding:
            target = total[at * width + lo : at * width + hi]
            source = grad[row * width + lo : row * width + hi]
            for j in range(hi - lo):
                target[j] += source[j]


_ROWS = Family(
    "embedding_rows",
    _rows,
    "void(T[::1], T[::1], int64[::1], int64, int64, int64, int64)",
)


def embedding_backward(
    dweight: Tensor, grad: Tensor, indices: Tensor, padding_idx: int
) -> None:
    """Write the gradient of the table: (rows, width) from (.., width) and (..).

    16-bit floats are summed in float32.  A negative `padding_idx` excludes no row.

    Raises:
        IndexOutOfRange: an index is out of range; nothing is written.
    """
    rows, width = dweight.shape
    index = dense(indices).astype(np.int64, copy=False)
    check_values(index, rows, "core::embedding_backward", 0)
    wide = compute_dtype(dweight.dtype)
    total: Any = flat_of(dweight)
    source = dense(grad)
    if wide is not dweight.dtype:
        total = np.zeros(rows * width, numpy_dtype(wide))
        source = source.astype(total.dtype)
    else:
        total.fill(0)
    entry = _ROWS[wide.name]

    def columns(lo: int, hi: int) -> None:
        entry(total, source, index, padding_idx, width, lo, hi)

    grain = max(COLUMNS, GRAIN // max(1, len(index)))
    parallel_for(width, grain, columns)
    if wide is not dweight.dtype:
        with np.errstate(all="ignore"):
            flat: Any = flat_of(dweight)
            flat[:] = total


KERNELS: dict[str, Callable[..., Any]] = {
    "gather": gather,
    "index_select": index_select,
    "scatter": scatter,
    "scatter_add": scatter_add,
    "scatter_reduce": scatter_reduce,
    "index_add": index_add,
    "index": index,
    "index_put": index_put,
    "embedding_backward": embedding_backward,
}
READY: dict[str, Callable[..., Any]] = {
    "gather": _ready_gather,
    "index_select": _ready_select,
}
