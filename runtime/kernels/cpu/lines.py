"""Loops through an index, behind gather, scatter, select and index.

True only here: three operands are walked together.  The *linear* one is met element by
element; the *index* one says where in the *addressed* one its counterpart lies: at
`walk + value * step`, where the walk has stride 0 along the indexed dimension.  Which
way the data goes is the only difference between the kernels.

How it works: a walk (`runtime.kernels.cpu.lines_plan`) is sheets of rows and columns; a
row with one index value and unit strides is a plain copy.  First of all the values of
the index are looked at, if the table says how many; the answer of a loop is whether one
of them lies outside, and then nothing has been written.

Rules: positions are made unsigned where they index, so that no sign is looked at.
"""

from typing import Any

import numpy as np

from runtime.kernels.cpu.lines_plan import COLS, COUNT, OUTER, ROWS, SIZE, STEP
from runtime.kernels.jit import Family


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


def _outside(index: Any, first: int, table: Any) -> bool:
    """Whether one of the values that the table counts is not in its range."""
    last = table[SIZE] - 1
    values = index[first : first + table[COUNT]]
    # One of the two is negative where a value lies outside.
    signs = 0
    for j in range(len(values)):
        signs |= values[j] | (last - values[j])
    return signs < 0


def _loop(along: Any, through: Any, one: Any) -> Any:
    """The loop of one way for the data to go.

    `along(linear, addressed, alpha)` moves a row of as many elements on either side,
    `through(linear, addressed, values, a, step, alpha)` one through `values` of the
    index, and `one(linear, o, addressed, a, alpha)` a single element.
    """

    def body(
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
    ) -> bool:
        if _outside(index, first, table):
            return True
        step = table[STEP]
        rows, a_row, i_row, o_row = (
            table[ROWS],
            table[ROWS + 1],
            table[ROWS + 2],
            table[ROWS + 3],
        )
        n, a_step, i_step, o_step = (
            table[COLS],
            table[COLS + 1],
            table[COLS + 2],
            table[COLS + 3],
        )
        for sheet in range(lo, hi):
            a = begin + _shift(table, sheet, 1)
            i = first + _shift(table, sheet, 2)
            o = start + _shift(table, sheet, 3)
            if i_step == 0 and a_step == 1 and o_step == 1:
                for row in range(rows):
                    at = a + row * a_row + index[np.uint64(i + row * i_row)] * step
                    to = o + row * o_row
                    along(linear[to : to + n], addressed[at : at + n], alpha)
            elif i_step == 1 and a_step == 0 and o_step == 1:
                for row in range(rows):
                    at, to = i + row * i_row, o + row * o_row
                    values, where = index[at : at + n], a + row * a_row
                    through(linear[to : to + n], addressed, values, where, step, alpha)
            else:
                for row in range(rows):
                    for j in range(n):
                        at = index[np.uint64(i + row * i_row + j * i_step)] * step
                        at += a + row * a_row + j * a_step
                        to = o + row * o_row + j * o_step
                        one(linear, to, addressed, at, alpha)
        return False

    return body


def _read_along(linear: Any, addressed: Any, alpha: Any) -> None:
    for j in range(len(linear)):
        linear[j] = addressed[j]


def _read_through(
    linear: Any, addressed: Any, values: Any, a: int, step: int, alpha: Any
) -> None:
    for j in range(len(linear)):
        linear[j] = addressed[np.uint64(a + values[j] * step)]


def _read_one(linear: Any, o: int, addressed: Any, a: int, alpha: Any) -> None:
    linear[np.uint64(o)] = addressed[np.uint64(a)]


def _write_along(linear: Any, addressed: Any, alpha: Any) -> None:
    for j in range(len(linear)):
        addressed[j] = linear[j]


def _write_through(
    linear: Any, addressed: Any, values: Any, a: int, step: int, alpha: Any
) -> None:
    for j in range(len(linear)):
        addressed[np.uint64(a + values[j] * step)] = linear[j]


def _write_one(linear: Any, o: int, addressed: Any, a: int, alpha: Any) -> None:
    addressed[np.uint64(a)] = linear[np.uint64(o)]


def _add_along(linear: Any, addressed: Any, alpha: Any) -> None:
    for j in range(len(linear)):
        addressed[j] += alpha * linear[j]


def _add_through(
    linear: Any, addressed: Any, values: Any, a: int, step: int, alpha: Any
) -> None:
    for j in range(len(linear)):
        addressed[np.uint64(a + values[j] * step)] += alpha * linear[j]


def _add_one(linear: Any, o: int, addressed: Any, a: int, alpha: Any) -> None:
    addressed[np.uint64(a)] += alpha * linear[np.uint64(o)]


# addressed, index, linear, table, where each begins, first sheet, end, factor
_SIGNATURE = (
    "boolean(T[::1], int64[::1], T[::1], int64[::1], int64, int64, int64, int64, "
    "int64, T)"
)

# The three ways the data can go; the first two by words, the last by dtype: the linear
# operand from the addressed one, the other way round, and by a factor onto it.
READ = Family("lines_read", _loop(_read_along, _read_through, _read_one), _SIGNATURE)
WRITE = Family(
    "lines_write", _loop(_write_along, _write_through, _write_one), _SIGNATURE
)
ADD = Family("lines_add", _loop(_add_along, _add_through, _add_one), _SIGNATURE)
