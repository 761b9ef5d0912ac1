"""Walks through an index: the one loop behind gather, scatter, select and index.

True only here: three operands are walked together.  The *linear* one is met element by
element; the *index* one says where in the *addressed* one its counterpart lies: at
`walk + value * step`, where the walk has stride 0 along the indexed dimension.  Which
way the data goes is the only difference between the kernels.

How it works: `plan` drops dimensions of one element, joins those that all three walk
as one, and keeps the two innermost as rows and columns of a *sheet*; a row with one
index value and unit strides is a plain copy.  Duplicated targets are met in the order
of the index, on any number of threads: threads share sheets, rows or columns, and when
they write, only such as have different targets.

Rules: index values have been checked (see `runtime.kernels.cpu.bounds`).  Positions are
made unsigned where they index, so that no sign is looked at.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from runtime.kernels.jit import Family
from runtime.kernels.threads import parallel_for

Ints = tuple[int, ...]

# (flat array, offset of the first element, strides)
Operand = tuple[Any, int, Ints]

# Elements for a thread: moving this many takes about as long as two hand-overs.
GRAIN = 65536

# Columns of a sheet that a thread takes at least: a few cache lines of any dtype.
COLUMNS = 32

# Programs see few geometries; a plan is a few hundred bytes.
REMEMBERED = 4096

# Where the numbers of a plan's table are; rows and columns are followed by the steps of
# the addressed, the index and the linear operand, and so is each outer dimension.
STEP, ROWS, COLS, OUTER = 0, 1, 5, 9


@dataclass(frozen=True, slots=True)
class Plan:
    """A walk: its table of sizes and steps, see `STEP` and the others."""

    table: "np.ndarray[Any, Any]"
    sheets: int
    elements: int
    # Whether the targets of different sheets, rows, columns differ.
    apart: tuple[bool, bool, bool]
    # Sheets that share a place of the outermost dimension.
    together: int


@lru_cache(maxsize=REMEMBERED)
def plan(shape: Ints, addressed: Ints, dim: int, index: Ints, linear: Ints) -> Plan:
    """The walk over `shape` with these strides of the three operands.

    `dim` is the indexed dimension; -1 if the values of the index count elements.
    """
    if not (shape and addressed and index and linear):
        # A tensor without dimensions is walked as one of a single element.
        ones = max(map(len, (shape, addressed, index, linear)))
        shape = shape or (1,) * ones
        addressed, index, linear = (
            strides or (0,) * ones for strides in (addressed, index, linear)
        )
    step = 1
    if dim >= 0 and addressed:
        step = addressed[dim]
        addressed = (*addressed[:dim], 0, *addressed[dim + 1 :])
    dims: list[Ints] = []
    for row in zip(shape, addressed, index, linear, strict=True):
        if row[0] == 1:
            continue
        if dims and all(
            outer == row[0] * inner
            for outer, inner in zip(dims[-1][1:], row[1:], strict=True)
        ):
            dims[-1] = (dims[-1][0] * row[0], *row[1:])
        else:
            dims.append(row)
    columns = dims.pop() if dims else (1, 0, 0, 0)
    rows = dims.pop() if dims else (1, 0, 0, 0)
    sheets = prod(outer[0] for outer in dims)
    return Plan(
        table=np.array([step, *rows, *columns, *sum(dims, ())], np.int64),
        sheets=sheets,
        elements=sheets * rows[0] * columns[0],
        apart=(bool(dims and dims[0][1]), bool(rows[1]), bool(columns[1])),
        together=sheets // dims[0][0] if dims else 1,
    )


def _shift(table: Any, sheet: int, operand: int) -> int:
    """How far into an operand (1, 2, 3) a sheet begins."""
    total = 0
    rest = sheet
    at = len(table) - 4
    while at >= OUTER:
        total += rest % table[at] * table[at + operand]
        rest //= table[at]
        at -= 4
    return total


def _read(
    addressed: Any,
    index: Any,
    linear: Any,
    table: Any,
    begin: int,
    first: int,
    start: int,
    lo: int,
    hi: int,
    alpha: Any,
) -> None:
    step = table[STEP]
    n, a_step = table[COLS], table[COLS + 1]
    i_step, o_step = table[COLS + 2], table[COLS + 3]
    for sheet in range(lo, hi):
        a = begin + _shift(table, sheet, 1)
        i = first + _shift(table, sheet, 2)
        o = start + _shift(table, sheet, 3)
        for _ in range(table[ROWS]):
            if i_step == 0 and a_step == 1 and o_step == 1:
                at = a + index[np.uint64(i)] * step
                source = addressed[at : at + n]
                target = linear[o : o + n]
                for j in range(n):
                    target[j] = source[j]
            elif i_step == 1 and a_step == 0 and o_step == 1:
                for j in range(n):
                    at = a + index[np.uint64(i + j)] * step
                    linear[np.uint64(o + j)] = addressed[np.uint64(at)]
            else:
                for j in range(n):
                    at = a + j * a_step + index[np.uint64(i + j * i_step)] * step
                    linear[np.uint64(o + j * o_step)] = addressed[np.uint64(at)]
            a += table[ROWS + 1]
            i += table[ROWS + 2]
            o += table[ROWS + 3]


def _write(
    addressed: Any,
    index: Any,
    linear: Any,
    table: Any,
    begin: int,
    first: int,
    start: int,
    lo: int,
    hi: int,
    alpha: Any,
) -> None:
    step = table[STEP]
    n, a_step = table[COLS], table[COLS + 1]
    i_step, o_step = table[COLS + 2], table[COLS + 3]
    for sheet in range(lo, hi):
        a = begin + _shift(table, sheet, 1)
        i = first + _shift(table, sheet, 2)
        o = start + _shift(table, sheet, 3)
        for _ in range(table[ROWS]):
            if i_step == 0 and a_step == 1 and o_step == 1:
                at = a + index[np.uint64(i)] * step
                target = addressed[at : at + n]
                source = linear[o : o + n]
                for j in range(n):
                    target[j] = source[j]
            else:
                for j in range(n):
                    at = a + j * a_step + index[np.uint64(i + j * i_step)] * step
                    addressed[np.uint64(at)] = linear[np.uint64(o + j * o_step)]
            a += table[ROWS + 1]
            i += table[ROWS + 2]
            o += table[ROWS + 3]


def _add(
    addressed: Any,
    index: Any,
    linear: Any,
    table: Any,
    begin: int,
    first: int,
    start: int,
    lo: int,
    hi: int,
    alpha: Any,
) -> None:
    step = table[STEP]
    n, a_step = table[COLS], table[COLS + 1]
    i_step, o_step = table[COLS + 2], table[COLS + 3]
    for sheet in range(lo, hi):
        a = begin + _shift(table, sheet, 1)
        i = first + _shift(table, sheet, 2)
        o = start + _shift(table, sheet, 3)
        for _ in range(table[ROWS]):
            if i_step == 0 and a_step == 1 and o_step == 1:
                at = a + index[np.uint64(i)] * step
                target = addressed[at : at + n]
                source = linear[o : o + n]
                for j in range(n):
                    target[j] += alpha * source[j]
            else:
                for j in range(n):
                    at = a + j * a_step + index[np.uint64(i + j * i_step)] * step
                    value = alpha * linear[np.uint64(o + j * o_step)]
                    addressed[np.uint64(at)] += value
            a += table[ROWS + 1]
            i += table[ROWS + 2]
            o += table[ROWS + 3]


_SIGNATURE = (
    "void(T[::1], int64[::1], T[::1], int64[::1], int64, int64, int64, int64, int64, T)"
)

# The three ways the data can go; the first two by words, the last by dtype.
READ = Family("lines_read", _read, _SIGNATURE)
WRITE = Family("lines_write", _write, _SIGNATURE)
ADD = Family("lines_add", _add, _SIGNATURE)


def run_lines(
    family: Family,
    dtype: str,
    shape: Ints,
    addressed: Operand,
    dim: int,
    index: Operand,
    linear: Operand,
    alpha: Any = 0,
) -> None:
    """Walk over `shape` on as many threads as it is worth; see `plan`.

    `alpha` is a number of the dtype and matters to `ADD` only.
    """
    source, a, addressed_strides = addressed
    places, i, index_strides = index
    other, o, linear_strides = linear
    walk = plan(shape, addressed_strides, dim, index_strides, linear_strides)
    if walk.elements >= 2 * GRAIN:
        _share(family, dtype, walk, (source, places, other), (a, i, o), alpha)
    elif walk.elements:
        entry = family[dtype]
        entry(source, places, other, walk.table, a, i, o, 0, walk.sheets, alpha)


def _share(
    family: Family,
    dtype: str,
    walk: Plan,
    arrays: tuple[Any, Any, Any],
    starts: tuple[int, int, int],
    alpha: Any,
) -> None:
    """A long walk: by sheets, or by rows or columns of all sheets."""
    entry, table = family[dtype], walk.table
    sheets, elements, each = walk.sheets, walk.elements, walk.together
    apart = (True, True, True) if family is READ else walk.apart
    if sheets >= 2 * each and apart[0]:

        def run(lo: int, hi: int) -> None:
            entry(*arrays, table, *starts, lo * each, hi * each, alpha)

        parallel_for(sheets // each, max(1, GRAIN * sheets // (elements * each)), run)
        return
    # Rows or columns, whichever are more among those that may be shared.
    rows, columns = int(table[ROWS]), int(table[COLS])
    at = COLS if apart[2] and (columns > rows or not apart[1]) else ROWS
    if not apart[2 if at == COLS else 1]:
        entry(*arrays, table, *starts, 0, sheets, alpha)
        return

    def part(lo: int, hi: int) -> None:
        own = table.copy()
        own[at] = hi - lo
        steps = table[at + 1 : at + 4]
        begins = [
            start + lo * int(step) for start, step in zip(starts, steps, strict=True)
        ]
        entry(*arrays, own, *begins, 0, sheets, alpha)

    least = COLUMNS if at == COLS and elements > columns else 1
    count = columns if at == COLS else rows
    parallel_for(count, max(least, GRAIN * count // elements), part)
