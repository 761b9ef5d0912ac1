"""Walks through an index, behind gather, scatter, select and index.

Three operands are walked together.  The *linear* one is visited element by element; the
*index* one determines the position of its counterpart in the *addressed* one: at `walk
+ value * step`, where the walk has stride 0 along the indexed dimension.  The direction
of the data is the only difference between the kernels (`READ`, `WRITE`, `ADD`).

A walk is one table of sizes and steps (`plan`).  Dimensions of one element are removed,
and those that all three operands walk as one are merged; of the remaining ones, the two
innermost are the rows and columns of a *sheet*.  A row with one index value and unit
strides is a plain copy.  A kernel looks its geometry up (shapes, stored strides, the
dimension) and receives one call (`ready`), which checks the index and walks; at 1,000
elements the rest of a call would cost more than the loop.  Long walks are divided among
threads, and NumPy reads many whole rows.

Rules:
- the values of an index are checked before anything is written: by the loop itself if
  they are in a row, else in a separate pass, in which values that strides repeat are
  read once; a call returns True if one is out of range, and only then the first bad
  value is looked up for the error (`refused`);
- duplicated targets are visited in the order of the index, on any number of threads:
  threads share sheets, rows or columns, and for writes only those with different
  targets;
- strides and steps count elements; an empty walk has no sheets; positions are converted
  to unsigned integers where they index, so that signs are not checked.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from everyorder.runtime.base.codegen import block, template
from everyorder.runtime.errors.tensor import IndexOutOfRange
from everyorder.runtime.kernels.compile.jit import Entry, Family
from everyorder.runtime.kernels.shared.operands import (
    FORMS,
    Geometry,
    Ints,
    Run,
    Strided,
    coalesced,
    out_of_range,
    strides_of,
)
from everyorder.runtime.kernels.shared.thread_pool import parallel_for

# Programs use few geometries and indices; an entry is a few hundred bytes.
REMEMBERED = 4096

# (flat array, offset of the first element, strides)
Operand = tuple[Any, int, Ints]


def _outside(index: Any, size: int) -> bool:
    # One of the two is negative if a value is out of range.
    signs = 0
    for j in range(len(index)):
        signs |= index[j] | (size - 1 - index[j])
    return signs < 0


_OUTSIDE = Family("outside", _outside, "boolean(int64[::1], int64)")


def check_values(index: Any, size: int, operator: str, dim: int) -> None:
    """Refuse flat int64 values that are not in `range(size)`.

    Raises:
        IndexOutOfRange: a value is out of range; the error names the first.
    """
    if outside(index, size):
        raise refusal(index, size, operator, dim)


def refusal(
    index: Any, size: int, operator: str, dim: int, wraps: bool = False
) -> IndexOutOfRange:
    """Return the error that names the first bad one of these values.

    With `wraps`, negative values down to `-size` are good.
    """
    bad = index[(index < (-size if wraps else 0)) | (index >= size)]
    # Another thread may have corrected it since; then the bad value is unknown.
    first = int(bad[0]) if len(bad) else size
    return out_of_range(operator, first, size, dim, wraps)


def refused(
    index: Strided, own: Ints, shape: Ints, operator: str, dim: int
) -> IndexOutOfRange:
    """Return the error for an index of shape `own` along `dim` of `shape`."""
    flat, offset, strides = index
    values = values_of((flat, offset, strides_of(own, strides)), own)
    return refusal(values, shape[dim] if shape else 1, operator, dim)


def outside(values: Any, size: int) -> bool:
    """Return True if one of these flat int64 values is not in `range(size)`."""
    result: bool = _OUTSIDE["int64"](values, size)
    return result


def values_of(index: Operand, shape: Ints) -> Any:
    """Return the values of an int64 index, flat, without repetitions."""
    flat, offset, strides = index
    count, sizes, steps = _distinct(shape, strides)
    if sizes:
        return np.ndarray(sizes, np.int64, flat, 8 * offset, steps).flatten()
    return flat if count == len(flat) else flat[offset : offset + count]


@lru_cache(maxsize=REMEMBERED)
def _distinct(shape: Ints, strides: Ints) -> tuple[int, Ints, Ints]:
    """Return the count of distinct places; sizes and byte steps if not in one run."""
    if 0 in shape:
        return 0, (), ()
    stepping = [
        (size, step)
        for size, step in zip(shape, strides, strict=True)
        if step and size != 1
    ]
    count = 1
    for size, step in reversed(stepping):
        if step != count:
            return 0, tuple(n for n, _ in stepping), tuple(8 * s for _, s in stepping)
        count *= size
    return count, (), ()


# The positions in a table: the step of one index value; the values are checked against
# SIZE, COUNT of them in a row; rows and columns are followed by the steps of the
# addressed, the index and the linear operand, and so is each outer dimension.
STEP, SIZE, COUNT, ROWS, COLS, OUTER = 0, 1, 2, 3, 7, 11


@dataclass(frozen=True, slots=True)
class WalkPlan:
    """A walk: its table of sizes and steps, at `STEP` and the other positions."""

    table: "np.ndarray[Any, Any]"
    sheets: int
    elements: int
    # True if the targets of different sheets, rows, columns differ.
    apart: tuple[bool, bool, bool]
    # Sheets that share a place of the outermost dimension.
    together: int


def plan(
    shape: Ints,
    addressed: Ints,
    step: int,
    index: Ints,
    linear: Ints,
    size: int = 0,
    count: int = 0,
) -> WalkPlan:
    """Return the walk over `shape` with these strides of the three operands.

    `step` is the stride of one index value; `addressed` has stride 0 along indexed
    dimensions.  If the walk checks values, they are `count` neighbours, less than
    `size`.
    """
    head = [step, size, count]
    if 0 in shape:
        nothing = np.array([*head, 0, 0, 0, 0, 0, 0, 0, 0], np.int64)
        return WalkPlan(nothing, 0, 0, (False, False, False), 1)
    sizes, strides = coalesced(shape, addressed, index, linear)
    dims = [*zip(sizes, *strides, strict=True)]
    columns = dims.pop()
    rows = dims.pop() if dims else (1, 0, 0, 0)
    sheets = prod(outer[0] for outer in dims)
    return WalkPlan(
        table=np.array([*head, *rows, *columns, *sum(dims, ())], np.int64),
        sheets=sheets,
        elements=sheets * rows[0] * columns[0],
        apart=(bool(dims and dims[0][1]), bool(rows[1]), bool(columns[1])),
        together=sheets // dims[0][0] if dims else 1,
    )


def _shift(table: Any, sheet: int, operand: int) -> int:
    """Return the start of a sheet in an operand (1, 2, 3)."""
    total = 0
    rest = sheet
    at = len(table) - 4
    while at >= OUTER:
        total += rest % table[at] * table[at + operand]
        rest //= table[at]
        at -= 4
    return total


def _strays(index: Any, first: int, table: Any) -> bool:
    """Return True if one of the values that the table counts is not in its range."""
    last = table[SIZE] - 1
    values = index[first : first + table[COUNT]]
    # One of the two is negative if a value is out of range.
    signs = 0
    for j in range(len(values)):
        signs |= values[j] | (last - values[j])
    return signs < 0


@template(
    "walk",
    "",
    np=np,
    shift=_shift,
    strays=_strays,
    STEP=STEP,
    ROWS=ROWS,
    COLS=COLS,
)
def _loop(way: str) -> list[str]:
    """Return the loop of one direction of the data: a statement about two elements."""

    def each(linear: str, addressed: str) -> list[str]:
        move = way.format(linear=linear, addressed=addressed)
        return block("for j in range(len(some)):", [move])

    whole = [
        "at = a + row * a_row + index[np.uint64(i + row * i_row)] * step",
        "to = o + row * o_row",
        "some, here = linear[to : to + n], addressed[at : at + n]",
        *each("some[j]", "here[j]"),
    ]
    values = [
        "at, to, where = i + row * i_row, o + row * o_row, a + row * a_row",
        "some, values = linear[to : to + n], index[at : at + n]",
        *each("some[j]", "addressed[np.uint64(where + values[j] * step)]"),
    ]
    single = [
        "at = index[np.uint64(i + row * i_row + j * i_step)] * step",
        "at += a + row * a_row + j * a_step",
        "to = o + row * o_row + j * o_step",
        way.format(
            linear="linear[np.uint64(to)]", addressed="addressed[np.uint64(at)]"
        ),
    ]
    sheet = [
        "a = begin + shift(table, sheet, 1)",
        "i = first + shift(table, sheet, 2)",
        "o = start + shift(table, sheet, 3)",
        # A row with one index value; a row of values; anything else.
        *block(
            "if i_step == 0 and a_step == 1 and o_step == 1:",
            block("for row in range(rows):", whole),
        ),
        *block(
            "elif i_step == 1 and a_step == 0 and o_step == 1:",
            block("for row in range(rows):", values),
        ),
        *block(
            "else:",
            block("for row in range(rows):", block("for j in range(n):", single)),
        ),
    ]
    parameters = "addressed, index, linear, table, begin, first, start, lo, hi, alpha"
    return block(
        f"def body({parameters}):",
        [
            "if strays(index, first, table): return True",
            "step = table[STEP]",
            *[
                f"{name} = table[{at} + {number}]"
                for at, names in (
                    ("ROWS", ("rows", "a_row", "i_row", "o_row")),
                    ("COLS", ("n", "a_step", "i_step", "o_step")),
                )
                for number, name in enumerate(names)
            ],
            *block("for sheet in range(lo, hi):", sheet),
            "return False",
        ],
    )


# addressed, index, linear, table, their starts, first sheet, end, factor
_SIGNATURE = (
    "boolean(T[::1], int64[::1], T[::1], int64[::1], int64, int64, int64, int64, "
    "int64, T)"
)

# The directions of the data; the first two by words, the others by dtype: the linear
# operand from the addressed one, the reverse, and added with a factor.
READ = Family("lines_read", _loop("{linear} = {addressed}")(), _SIGNATURE)
WRITE = Family("lines_write", _loop("{addressed} = {linear}")(), _SIGNATURE)
ADD = Family("lines_add", _loop("{addressed} += alpha * {linear}")(), _SIGNATURE)


def _combined(name: str, way: str) -> Family:
    """Return the loop that combines both operands in the addressed one."""
    return Family(f"lines_{name}", _loop(way)(), _SIGNATURE)


# Only NaN differs from itself: it is the greatest and the least, wherever it is.
_EXTREME = (
    "{addressed} = {linear} if {linear} SIGN {addressed} or {linear} != {linear} "
    "else {addressed}"
)
COMBINE = {
    "prod": _combined("prod", "{addressed} *= {linear}"),
    "amax": _combined("amax", _EXTREME.replace("SIGN", ">")),
    "amin": _combined("amin", _EXTREME.replace("SIGN", "<")),
}


# addressed, index, linear: flat arrays; their starts; a factor of sums.
Call = Callable[[Any, Any, Any, int, int, int, Any], bool]

# Elements per thread: moving this many takes about as long as two hand-overs.
GRAIN = 65536

# Elements from which on NumPy reads whole rows: with 64 float32 each, it takes 3.6 ms
# for 1e7 elements, and the compiled loop 6.1 ms; for few elements its call costs more
# than it saves.
TAKEN = 1 << 16

# The least number of columns of a sheet for a thread: a few cache lines of any dtype.
COLUMNS = 32


def ready(
    family: Family,
    name: str,
    shape: Ints,
    addressed: Ints,
    step: int,
    index: tuple[Ints, Ints, Ints],
    linear: Ints,
    size: int,
) -> Call:
    """Return the call for one geometry; see `plan`.

    `index` is the shape of the index, its strides, and those by dimension of `shape`.
    """
    own, strides, steps = index
    entry = family[name]
    count, sizes, _ = _distinct(own, strides)
    walk = plan(shape, addressed, step, steps, linear, size, count)
    table, sheets = walk.table, walk.sheets
    if family is READ and walk.elements >= TAKEN and _whole_rows(walk):
        return _taking(size, step, int(table[ROWS]))
    if not sizes and walk.elements < 2 * GRAIN:

        def short(
            source: Any, places: Any, other: Any, a: int, i: int, o: int, alpha: Any
        ) -> bool:
            return entry(source, places, other, table, a, i, o, 0, sheets, alpha)  # type: ignore[no-any-return]  # compiled

        return short
    unchecked = plan(shape, addressed, step, steps, linear)
    share = shared(family is READ, entry, unchecked)

    def call(
        source: Any, places: Any, other: Any, a: int, i: int, o: int, alpha: Any
    ) -> bool:
        if outside(values_of((places, i, strides), own), size):
            return True
        share((source, places, other), (a, i, o), alpha)
        return False

    return call


def run_with_checks(
    call: Call, x: Geometry, dim: int, index: Geometry, operator: str
) -> Run:
    """Return the call from the first elements on, which raises for a bad index."""
    form = FORMS[x.dtype]

    def run(source: Any, places: Any, target: Any) -> None:
        if form is not None:
            source, target = source.view(form), target.view(form)
        if call(source, places, target, 0, 0, 0, 0):
            chosen = places, 0, index.strides
            raise refused(chosen, index.shape, x.shape, operator, dim)

    return run


def _whole_rows(walk: WalkPlan) -> bool:
    """Return True if one list of values selects whole rows of a dense matrix."""
    table: list[int] = walk.table.tolist()
    width = table[COLS]
    rows, columns = table[ROWS + 1 : COLS], table[COLS + 1 :]
    return table[STEP] == width and rows == [0, 1, width] and columns == [1, 0, 1]


def _taking(size: int, width: int, rows: int) -> Call:
    """Return the call that reads rows by NumPy's `take`, which clips unchecked."""

    def call(
        source: Any, places: Any, other: Any, a: int, i: int, o: int, alpha: Any
    ) -> bool:
        chosen = places[i : i + rows]
        if outside(chosen, size):
            return True
        table = source[a : a + size * width].reshape(size, width)
        to = other[o : o + rows * width].reshape(rows, width)

        def run(lo: int, hi: int) -> None:
            table.take(chosen[lo:hi], 0, to[lo:hi], "clip")

        if rows * width < 2 * GRAIN:
            table.take(chosen, 0, to, "clip")
        else:
            parallel_for(rows, max(1, GRAIN // width), run)
        return False

    return call


def shared(
    reads: bool, entry: Entry, walk: WalkPlan
) -> Callable[[tuple[Any, Any, Any], tuple[int, int, int], Any], None]:
    """Return a walk by sheets, or by rows or columns, divided among threads if long.

    If targets may coincide, only a walk that `reads` may be divided.
    """
    table, sheets, elements = walk.table, walk.sheets, walk.elements
    each = walk.together
    apart = (True, True, True) if reads else walk.apart
    # Rows or columns, the larger number among those that may be divided.
    rows, columns = int(table[ROWS]), int(table[COLS])
    at = COLS if apart[2] and (columns > rows or not apart[1]) else ROWS
    by_sheets = sheets >= 2 * each and apart[0]
    serial = elements < 2 * GRAIN or not (by_sheets or apart[2 if at == COLS else 1])
    steps = table[at + 1 : at + 4].tolist()

    def share(
        arrays: tuple[Any, Any, Any], starts: tuple[int, int, int], alpha: Any
    ) -> None:
        def sheet(lo: int, hi: int) -> None:
            entry(*arrays, table, *starts, lo * each, hi * each, alpha)

        def part(lo: int, hi: int) -> None:
            own = table.copy()
            own[at] = hi - lo
            begins = [
                start + lo * step for start, step in zip(starts, steps, strict=True)
            ]
            entry(*arrays, own, *begins, 0, sheets, alpha)

        if serial:
            entry(*arrays, table, *starts, 0, sheets, alpha)
        elif by_sheets:
            grain = max(1, GRAIN * sheets // (elements * each))
            parallel_for(sheets // each, grain, sheet)
        else:
            least = COLUMNS if at == COLS and elements > columns else 1
            count = columns if at == COLS else rows
            parallel_for(count, max(least, GRAIN * count // elements), part)

    return share


def along(
    family: Family,
    name: str,
    slices: bool,
    shape: Ints,
    strides: Ints | None,
    dim: int,
    own: Ints,
    steps: Ints | None,
    other: Ints,
    linear: Ints | None,
) -> Call:
    """Return the call that indexes dimension `dim` by an index of shape `own`.

    It walks over the index, which selects an element each, or over the linear operand,
    of shape `other`, if it selects `slices`; else the linear operand may be larger.  A
    0-dim operand is walked as one of a single element.
    """
    stored, by = strides_of(shape, strides), strides_of(own, steps)
    index = by
    if slices:
        index = (0,) * dim + (by or (0,) * bool(shape)) + (0,) * (len(shape) - dim - 1)
    walked, to = (other if slices else own), strides_of(other, linear)
    ndim = max(map(len, (stored, walked, index, to)))
    size, step = (shape[dim], stored[dim]) if shape else (1, 1)
    none = (0,) * ndim
    return ready(
        family,
        name,
        walked or (1,) * ndim,
        (*stored[:dim], 0, *stored[dim + 1 :]) if shape else none,
        step,
        (own, by, index or none),
        to or none,
        size,
    )
