"""The geometry of a walk through an index: one table of sizes and steps.

True only here: which dimensions become one.  Dimensions of one element vanish, those
that all three operands walk as one are joined; of what is left, the two innermost are
the rows and columns of a *sheet* (see `runtime.kernels.cpu.lines`).

Rules: strides and steps count elements; a walk over nothing has no sheets.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

Ints = tuple[int, ...]

# Where the numbers of a table are: the step of one index value; the values are checked
# against SIZE, COUNT of them in a row; rows and columns are followed by the steps of
# the addressed, the index and the linear operand, and so is each outer dimension.
STEP, SIZE, COUNT, ROWS, COLS, OUTER = 0, 1, 2, 3, 7, 11


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


def plan(
    shape: Ints,
    addressed: Ints,
    step: int,
    index: Ints,
    linear: Ints,
    size: int = 0,
    count: int = 0,
) -> Plan:
    """The walk over `shape` with these strides of the three operands.

    `step` is what one index value is worth; `addressed` has stride 0 where the index
    decides.  Where the walk is to check values, they are `count` neighbours, and less
    than `size`.
    """
    head = [step, size, count]
    if 0 in shape:
        nothing = np.array([*head, 0, 0, 0, 0, 0, 0, 0, 0], np.int64)
        return Plan(nothing, 0, 0, (False, False, False), 1)
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
        table=np.array([*head, *rows, *columns, *sum(dims, ())], np.int64),
        sheets=sheets,
        elements=sheets * rows[0] * columns[0],
        apart=(bool(dims and dims[0][1]), bool(rows[1]), bool(columns[1])),
        together=sheets // dims[0][0] if dims else 1,
    )
