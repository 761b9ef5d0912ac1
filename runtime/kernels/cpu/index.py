"""index and index_put, nonzero, and the gradient of embedding.

`x[a, :, b]`: the indices broadcast to one shape, which stands where the indices stood
if these are neighbours, and comes first if a dimension without an index lies between
them (NumPy's rule).  They become one array of element offsets, negative values counted
from the end; what is left is a walk through one index (`runtime.kernels.cpu.walks`).  A
single index is tried as it stands; a negative value in it sends it the general way.
Boolean masks have been turned into integers.  `out` of index_put comes with a copy of
self; the values of equal places are met in the order of the index.

nonzero: an element is zero if all its bits are, but for the sign bits of floats; so one
kernel for each item size does, and NaN counts as not zero.  Elements of 16 bytes are
read as two words.

embedding_backward adds each row of the gradient to the row that was looked up, but for
those of `padding_idx`.  Rows that were looked up more than once are added in the order
of the indices, on any number of threads, because threads share columns and not rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from runtime.kernels.cpu.gather import factor, summed
from runtime.kernels.cpu.operand import (
    WORDS,
    Ints,
    dense,
    integers,
    lying,
    strides_of,
    words,
)
from runtime.kernels.cpu.walks import (
    ADD,
    COLUMNS,
    GRAIN,
    READ,
    REMEMBERED,
    WRITE,
    Call,
    Walks,
    check_values,
    plan,
    ready,
    refusal,
    shared,
)
from runtime.kernels.jit import Family
from runtime.kernels.threads import parallel_for
from runtime.schema.codes import DType
from runtime.tensors.arrays import array_of, flat_of
from runtime.tensors.elements import compute_dtype, numpy_dtype
from runtime.tensors.shape import (
    broadcast_shapes,
    broadcast_strides,
    contiguous_strides,
)
from runtime.tensors.tensor import Tensor

Indices = Sequence[Tensor | None]


def _offsets(total: Any, index: Any, size: int, stride: int, kept: int) -> bool:
    bad = 0
    for j in range(len(total)):
        at = index[j]
        at += size if at < 0 else 0
        bad |= (at < 0) | (at >= size)
        total[j] = kept * total[j] + at * stride
    return bad != 0


_OFFSETS = Family(
    "offsets", _offsets, "boolean(int64[::1], int64[::1], int64, int64, int64)"
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the dimensions of x and of the indices are in the result."""

    shape: Ints
    # Strides of x by dimension of the result, 0 where an index decides; and of the
    # offsets, 0 where none does.
    walk: Ints
    steps: Ints
    # The shape of all indices together.
    common: Ints
    # Each dimension with an index, its size and stride.
    indexed: tuple[tuple[int, int, int], ...]


def _single(
    dtype: DType,
    shape: Ints,
    strides: Ints | None,
    dim: int,
    chosen: Ints,
    steps: Ints | None,
    out: Ints | None,
) -> Call:
    """The call for one index, whose values count places of dimension `dim`."""
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


_SINGLE = Walks(_single)


def index(out: Tensor, x: Tensor, indices: Indices) -> None:
    """Fill `out` with `x[indices]`.

    Raises `IndexOutOfRange`, before anything is written.
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
        call = _SINGLE[x.dtype, x.shape, strides, at, chosen.shape, steps, to]
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

    Raises `IndexOutOfRange`, before anything is written.
    """
    read = lying if accumulate else words
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
    layout: "Layout",
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
def layout_of(shape: Ints, strides: Ints, given: tuple[Ints | None, ...]) -> Layout:
    """The layout of the result for indices of the given shapes."""
    common = broadcast_shapes(*(one for one in given if one is not None))
    chosen = [dim for dim, one in enumerate(given) if one is not None]
    free = [dim for dim in range(len(shape)) if dim not in chosen]
    first = min(chosen, default=0)
    neighbours = max(chosen, default=-1) - first + 1 == len(chosen)
    before = sum(dim < first for dim in free) if neighbours else 0
    lead, trail = free[:before], free[before:]

    def around(outer: Ints, inner: Ints) -> Ints:
        return (*(outer[d] for d in lead), *inner, *(outer[d] for d in trail))

    return Layout(
        shape=around(shape, common),
        walk=around(strides, (0,) * len(common)),
        steps=around((0,) * len(shape), contiguous_strides(common)),
        common=common,
        indexed=tuple((dim, shape[dim], strides[dim]) for dim in chosen),
    )


def _places(layout: Layout, indices: Indices, operator: str) -> Any:
    """The indices as one flat array that counts elements of x."""
    total = np.zeros(prod(layout.common), np.int64)
    kept = 0
    for dim, size, stride in layout.indexed:
        one = indices[dim]
        assert one is not None, "only dimensions with an index are listed"
        flat = _broadcast(one, layout.common)
        if _OFFSETS["int64"](total, flat, size, stride, kept):
            raise refusal(flat, size, operator, dim, wraps=True)
        kept = 1
    return total


def _broadcast(one: Tensor, common: Ints) -> Any:
    """The values of an index in the common shape, flat and in a row, int64."""
    if one.shape == common:
        values: Any = dense(one)
    else:
        # Of one value, `reshape` alone would give a row without a step.
        wide = np.broadcast_to(array_of(one), common)
        values = np.ascontiguousarray(wide).reshape(-1)
    return values.astype(np.int64, copy=False)


def _count(words: Any, mask: int, each: int) -> int:
    found = 0
    if each == 1:
        for j in range(len(words)):
            found += (words[j] & mask) != 0
    else:
        for j in range(len(words) // 2):
            found += ((words[2 * j] | words[2 * j + 1]) & mask) != 0
    return found


def _positions(
    out: Any, columns: Any, words: Any, mask: int, each: int, shape: Any
) -> None:
    ndim = len(shape)
    width = shape[ndim - 1]
    found = 0
    for row in range(len(words) // each // width):
        begin = found
        line = words[row * width * each : (row + 1) * width * each]
        # Always written, kept if it counts: no branch to guess wrong.
        for j in range(width):
            bits = line[j * each] | line[j * each + each - 1]
            columns[np.uint64(found)] = j
            found += (bits & mask) != 0
        for at in range(begin, found):
            out[np.uint64(at * ndim + ndim - 1)] = columns[np.uint64(at)]
        rest = row
        for dim in range(ndim - 2, -1, -1):
            place = rest % shape[dim]
            rest //= shape[dim]
            for at in range(begin, found):
                out[np.uint64(at * ndim + dim)] = place


def _row(out: Any, words: Any, mask: int) -> None:
    """The places in one row of one-word elements; `out` has as many as there are."""
    last = len(words)
    while last and not words[last - 1] & mask:
        last -= 1
    # Always written, kept if it counts; what follows the last one is not looked at, so
    # that there is room each time.
    line = words[:last]
    found = 0
    for j in range(len(line)):
        out[np.uint64(found)] = j
        found += (line[j] & mask) != 0


_COUNT = Family("nonzero_count", _count, "int64(T[::1], T, int64)")
_POSITIONS = Family(
    "nonzero",
    _positions,
    "void(int64[::1], int64[::1], T[::1], T, int64, int64[::1])",
)
_ROW = Family("nonzero_row", _row, "void(int64[::1], T[::1], T)")

# dtype name -> the words it is read as, the bits of a word that count, and how many
# words make up an element.
_READ_AS = {
    "bool": ("uint8", 0xFF, 1),
    "uint8": ("uint8", 0xFF, 1),
    "int8": ("uint8", 0xFF, 1),
    "int16": ("uint16", 0xFFFF, 1),
    "int32": ("uint32", 0xFFFFFFFF, 1),
    "int64": ("uint64", 0xFFFFFFFFFFFFFFFF, 1),
    "float16": ("uint16", 0x7FFF, 1),
    "bfloat16": ("uint16", 0x7FFF, 1),
    "float32": ("uint32", 0x7FFFFFFF, 1),
    "float64": ("uint64", 0x7FFFFFFFFFFFFFFF, 1),
    "complex64": ("uint64", 0x7FFFFFFF7FFFFFFF, 1),
    "complex128": ("uint64", 0x7FFFFFFFFFFFFFFF, 2),
}


def nonzero_count(mask: Tensor) -> int:
    """The number of elements that are not zero."""
    name, counted, each = _READ_AS[mask.dtype.name]
    count: int = _COUNT[name](dense(mask).view(name), counted, each)
    return int(count)


def nonzero(out: Tensor, x: Tensor) -> None:
    """Write the positions, one row each in row-major order.

    `out` has as many rows as `nonzero_count` said, and a column for each dimension.
    """
    if 0 in out.shape:
        return
    name, counted, each = _READ_AS[x.dtype.name]
    elements = dense(x).view(name)
    if len(x.shape) == 1 and each == 1:
        _ROW[name](flat_of(out), elements, counted)
        return
    shape = np.array(x.shape, np.int64)
    columns = np.empty(out.shape[0] + 1, np.int64)
    _POSITIONS[name](flat_of(out), columns, elements, counted, each, shape)


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

    16-bit floats are summed in float32.  A negative `padding_idx` leaves nothing out.
    Raises `IndexOutOfRange`, before anything is written.
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
    "index": index,
    "index_put": index_put,
    "nonzero": nonzero,
    "nonzero_count": nonzero_count,
    "embedding_backward": embedding_backward,
}
