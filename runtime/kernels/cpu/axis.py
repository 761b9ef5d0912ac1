"""Kernels along one axis: running sums and indices of extremes; indices of nonzeros.

Kernels along an axis read (outer, length, inner), row-major; other layouts are copied
first.  With `inner == 1` the axis is innermost and a kernel works row by row; otherwise
it works on tiles of columns, `inner` apart, so that memory is read in its own order
either way.  Softmax, sorting and others divide their work in the same way (`along`,
`grain_of`).

Running sums: the total has a wider type than the output: float64 for float32,
complex128 for complex64, int64 for integers; so a long running sum keeps its digits.
Along rows it is one chain of additions (as in NumPy); along columns a row of totals.

Extremes: rows use NumPy, columns a compiled loop.  NumPy searches a row of 1,000
float32 in 0.3 us and of 1e5 in 4 us, where the best compiled kernel took 2.9 us and 5
us; along columns it is 2.5 times slower than the loop here, which carries a row of
extremes and of indices.  A whole tensor is cut into pieces, searched in parallel, and
the pieces' extremes are searched again.  The first of equal elements counts (-0.0
equals 0.0); a NaN is more extreme than any number, and the first NaN counts.

nonzero: an element is zero if all its bits are, except the sign bits of floats; so one
kernel for each item size suffices, and NaN counts as nonzero.  Elements of 16 bytes are
read as two words.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import starmap
from math import prod
from typing import Any, Literal

import numpy as np

from everyorder.runtime.base.codegen import block, numbered, template
from everyorder.runtime.kernels.compile.jit import Entry, Family
from everyorder.runtime.kernels.shared.operands import (
    Geometry,
    Ints,
    Run,
    dense,
    in_rows,
    nothing,
)
from everyorder.runtime.kernels.shared.reduction_passes import Array
from everyorder.runtime.kernels.shared.thread_pool import parallel_for
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.dtype_info import numpy_dtype
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import flat_of

# Columns of one task: with three rows of float64 in use, 12 KiB of a small L1 cache.
TILE = 512

# Elements per thread: 10 us or more of any kernel along an axis.
GRAIN = 1 << 15

# Cached geometries of each kernel; programs use few.
REMEMBERED = 1024


def result(out: Tensor) -> Array:
    """Return the flat array of an output."""
    flat: Array | None = flat_of(out)
    assert flat is not None, "outputs are contiguous and have elements in memory"
    return flat


def around(shape: tuple[int, ...], dim: int) -> tuple[int, int, int]:
    """Return (outer, length, inner) of a dimension; (1, 1, 1) for a 0-dim tensor."""
    if not shape:
        return 1, 1, 1
    return prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :])


@lru_cache(REMEMBERED)
def along(shape: tuple[int, ...], dim: int) -> tuple[int, int, int, int, int]:
    """Return (outer, length, inner, tasks, grain): `around`, and the division of work.

    A task is a row, or a tile of columns; a thread receives at least `grain` of them.
    """
    outer, length, inner = around(shape, dim)
    tasks = outer * -(-inner // TILE)
    return outer, length, inner, tasks, grain_of(length * min(inner, TILE))


def grain_of(work: int) -> int:
    """Return the least number of tasks of `work` elements for a thread."""
    return -(-GRAIN // max(work, 1))


def by_rows(
    entry: Entry, count: int, grain: int, sizes: Ints, *others: Any
) -> Callable[..., None]:
    """Return the call `entry(*arrays, *others)` of `count` rows, on threads if many.

    `sizes` are the elements of a row in each array, 0 for an array shared by all rows.
    """

    def run(*arrays: Array) -> None:
        def part(lo: int, hi: int) -> None:
            cut = [
                array[lo * size : hi * size] if size else array
                for array, size in zip(arrays, sizes, strict=True)
            ]
            entry(*cut, *others)

        parallel_for(count, grain, part)

    if count < 2 * grain:
        return _once(len(sizes), 0, len(others))(entry, (), others)
    return run


def by_tiles(
    entry: Entry,
    geometry: tuple[int, int, int, int, int],
    rooms: Sequence[tuple[int, Any]],
    arrays: int = 2,
) -> Callable[..., None]:
    """Return the call of tiles of columns, on threads if many; see `along`.

    `rooms` are sizes and dtypes of arrays that each thread allocates; `arrays` is the
    number of arrays of the call.
    """
    _, length, inner, tasks, grain = geometry
    rooms = [(size, np.dtype(form)) for size, form in rooms]

    def run(*arrays: Array) -> None:
        def part(lo: int, hi: int) -> None:
            entry(*arrays, *starmap(np.empty, rooms), lo, hi, length, inner)

        parallel_for(tasks, grain, part)

    if tasks < 2 * grain:
        return _once(arrays, len(rooms), 4)(entry, rooms, (0, tasks, length, inner))
    return run


@template("kernel call", "entry, rooms, others", empty=np.empty)
def _once(arrays: int, rooms: int, others: int) -> list[str]:
    """Return the text of the call on one thread, by the numbers of its arguments."""
    parameters, fresh, more = numbered(arrays), range(rooms), range(others)
    passed = [parameters, *[f"empty(size{n}, form{n})" for n in fresh]]
    return [
        *[f"size{n}, form{n} = rooms[{n}]" for n in fresh],
        *[f"other{n} = others[{n}]" for n in more],
        *block(
            f"def once({parameters}):",
            [f"entry({', '.join([*passed, *[f'other{n}' for n in more]])})"],
        ),
    ]


# kind of the output -> the type of its totals
TOTALS = {"f": "float64", "c": "complex128", "i": "int64", "u": "int64"}


def running_rows(x: Any, out: Any, zero: Any, length: int) -> None:
    """Compute running sums of each row."""
    for k in range(len(x) // length):
        row = x[k * length : (k + 1) * length]
        to = out[k * length : (k + 1) * length]
        total = zero[0]
        for i in range(length):
            total += row[i]
            to[i] = total


def running_columns(
    x: Any, out: Any, totals: Any, task: int, end: int, length: int, inner: int
) -> None:
    """Compute running sums of tiles of columns."""
    tiles = (inner + TILE - 1) // TILE
    for t in range(task, end):
        column = t % tiles * TILE
        width = min(TILE, inner - column)
        at = t // tiles * length * inner + column
        total = totals[:width]
        for i in range(width):
            total[i] = 0
        for r in range(length):
            row = x[at + r * inner : at + r * inner + width]
            to = out[at + r * inner : at + r * inner + width]
            for i in range(width):
                total[i] += row[i]
                to[i] = total[i]


# The initial value of totals; never written.
_ZEROS = {kind: np.zeros(1, total) for kind, total in TOTALS.items()}

_RUNNING_ROWS = {
    kind: Family(
        f"cumsum_rows_{kind}",
        running_rows,
        f"void(T[::1], U[::1], {total}[::1], int64)",
    )
    for kind, total in TOTALS.items()
}
_RUNNING_COLUMNS = {
    kind: Family(
        f"cumsum_columns_{kind}",
        running_columns,
        f"void(T[::1], U[::1], {total}[::1], int64, int64, int64, int64)",
    )
    for kind, total in TOTALS.items()
}


def cumsum(out: Tensor, x: Tensor, dim: int) -> None:
    """Write the sum of all elements up to each, along `dim`."""
    _running(x.shape, dim, x.dtype, out.dtype)(dense(x), result(out))


def _ready_cumsum(out: Geometry, x: Geometry, dim: int) -> Run:
    return _running(x.shape, dim, x.dtype, out.dtype)


@lru_cache(REMEMBERED)
def _running(shape: Ints, dim: int, dtype: DType, wide: DType) -> Run:
    """Return the call from the rows of the input to those of the output."""
    if 0 in shape:
        return nothing
    geometry = outer, length, inner, _, grain = along(shape, dim)
    names, kind = (dtype.name, wide.name), numpy_dtype(wide).kind
    if inner > 1:
        rooms = [(TILE, TOTALS[kind])]
        return by_tiles(_RUNNING_COLUMNS[kind][names], geometry, rooms)
    sizes = length, length
    return by_rows(
        _RUNNING_ROWS[kind][names], outer, grain, sizes, _ZEROS[kind], length
    )


# Elements of a piece of a whole tensor: 10 us for NumPy.
PIECE = 1 << 18

# input, places, room for a tile of values, first task, end, elements of a column, inner
COLUMNS = "void(T[::1], int64[::1], T[::1], int64, int64, int64, int64)"


def above(a: Any, b: Any) -> Any:
    """Return True if `a` is greater than `b`, or only `a` is NaN."""
    return (a > b) | ((a != a) & (b == b))


def under(a: Any, b: Any) -> Any:
    """Return True if `a` is less than `b`, or only `a` is NaN."""
    return (a < b) | ((a != a) & (b == b))


def columns_of(beats: Any) -> Any:
    """Return the body that computes the indices of the extremes of tiles of columns."""

    def body(
        x: Any, out: Any, room: Any, task: int, end: int, length: int, inner: int
    ) -> None:
        tiles = (inner + TILE - 1) // TILE
        for t in range(task, end):
            column = t % tiles * TILE
            width = min(TILE, inner - column)
            outer = t // tiles
            best = room[:width]
            at = outer * length * inner + column
            row = x[at : at + width]
            to = out[outer * inner + column : outer * inner + column + width]
            for i in range(width):
                best[i] = row[i]
                to[i] = 0
            for r in range(1, length):
                row = x[at + r * inner : at + r * inner + width]
                for i in range(width):
                    better = beats(row[i], best[i])
                    best[i] = row[i] if better else best[i]
                    to[i] = r if better else to[i]

    return body


class _Search:
    """A kernel that searches extremes: NumPy's method, and a loop over columns."""

    def __init__(self, name: Literal["argmax", "argmin"], beats: Any) -> None:
        self.search = getattr(np.ndarray, name)
        self.columns = Family(f"{name}_columns", columns_of(beats), COLUMNS)
        self.call = lru_cache(REMEMBERED)(self._call)

    def __call__(self, out: Tensor, x: Tensor, dim: int | None) -> None:
        """Write the indices along `dim`, or in the whole tensor, into `out`."""
        self.call(x.shape, dim, x.dtype.name)(dense(x), result(out))

    def ready(self, out: Geometry, x: Geometry, dim: int | None) -> Run:
        """Return the kernel prepared for these geometries."""
        return self.call(x.shape, dim, x.dtype.name)

    def _call(self, shape: Ints, dim: int | None, name: str) -> Run:
        """Return the call from the rows of the input to the indices."""
        search = self.search
        if dim is None or len(shape) <= 1:

            def whole(a: Array, to: Array) -> None:
                to[0] = search(a) if a.size < 2 * PIECE else self.whole(a)

            return whole
        if 0 in shape:
            return nothing
        geometry = outer, length, inner, _, grain = along(shape, dim)
        if inner == 1:

            def rows(a: Array, to: Array) -> None:
                table = a.reshape(outer, length)
                if outer < 2 * grain:
                    search(table, 1, to)
                    return

                def run(lo: int, hi: int) -> None:
                    search(table[lo:hi], 1, to[lo:hi])

                parallel_for(outer, grain, run)

            return rows
        return by_tiles(self.columns[name], geometry, [(TILE, name)])

    def whole(self, a: Array) -> int:
        """Return the index in a flat array."""
        places = np.empty(-(-a.size // PIECE), np.int64)

        def run(lo: int, hi: int) -> None:
            for k in range(lo, hi):
                part = a[k * PIECE : (k + 1) * PIECE]
                places[k] = k * PIECE + self.search(part)

        parallel_for(places.size, 1, run)
        return int(places[self.search(a[places])])


def _count(words: Any, mask: int, each: int) -> int:
    count = 0
    if each == 1:
        for j in range(len(words)):
            count += (words[j] & mask) != 0
    else:
        for j in range(len(words) // 2):
            count += ((words[2 * j] | words[2 * j + 1]) & mask) != 0
    return count


def _positions(
    out: Any, columns: Any, words: Any, mask: int, each: int, shape: Any
) -> None:
    ndim = len(shape)
    width = shape[ndim - 1]
    count = 0
    for row in range(len(words) // each // width):
        begin = count
        line = words[row * width * each : (row + 1) * width * each]
        # Always written, counted if nonzero: no branch to mispredict.
        for j in range(width):
            bits = line[j * each] | line[j * each + each - 1]
            columns[np.uint64(count)] = j
            count += (bits & mask) != 0
        for at in range(begin, count):
            out[np.uint64(at * ndim + ndim - 1)] = columns[np.uint64(at)]
        rest = row
        for dim in range(ndim - 2, -1, -1):
            place = rest % shape[dim]
            rest //= shape[dim]
            for at in range(begin, count):
                out[np.uint64(at * ndim + dim)] = place


def _row(out: Any, words: Any, mask: int) -> None:
    """Write the indices in one row of one-word elements; `out` has that many."""
    last = len(words)
    while last and not words[last - 1] & mask:
        last -= 1
    # Always written, counted if nonzero; elements after the last nonzero are skipped,
    # so that each write is inside of `out`.
    line = words[:last]
    count = 0
    for j in range(len(line)):
        out[np.uint64(count)] = j
        count += (line[j] & mask) != 0


_COUNT = Family("nonzero_count", _count, "int64(T[::1], T, int64)")
_POSITIONS = Family(
    "nonzero",
    _positions,
    "void(int64[::1], int64[::1], T[::1], T, int64, int64[::1])",
)
_ROW = Family("nonzero_row", _row, "void(int64[::1], T[::1], T)")

# dtype name -> the words that it is read as, the significant bits of a word, and the
# number of words per element.
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
    """Return the number of nonzero elements."""
    name, counted, each = _READ_AS[mask.dtype.name]
    count: int = _COUNT[name](dense(mask).view(name), counted, each)
    return int(count)


def nonzero(out: Tensor, x: Tensor) -> None:
    """Write the indices of nonzero elements, one row each in row-major order.

    `out` has `nonzero_count` rows, and a column for each dimension.
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


_ARGMAX, _ARGMIN = _Search("argmax", above), _Search("argmin", under)

KERNELS: dict[str, Callable[..., Any]] = {
    "cumsum": cumsum,
    "argmax": _ARGMAX,
    "argmin": _ARGMIN,
    "nonzero": nonzero,
    "nonzero_count": nonzero_count,
}
READY: dict[str, Callable[..., Any]] = {
    "cumsum": in_rows(_ready_cumsum),
    "argmax": in_rows(_ARGMAX.ready),
    "argmin": in_rows(_ARGMIN.ready),
}
