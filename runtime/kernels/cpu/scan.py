"""Running sums along one dimension on the CPU.

True only here: the total runs in a wider type than the output: float64 for float32,
complex128 for complex64, int64 for integers; so a long running sum keeps its digits.
Along rows it is one chain of additions (NumPy's too); along columns a row of totals.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from runtime.kernels.cpu.operand import Geometry, Ints, Run, in_rows, nothing
from runtime.kernels.cpu.reduce_axis import REMEMBERED, TILE, along, dense, result
from runtime.kernels.cpu.reduce_layout import Array
from runtime.kernels.jit import Family
from runtime.kernels.threads import parallel_for
from runtime.schema.codes import DType
from runtime.tensors.elements import numpy_dtype
from runtime.tensors.tensor import Tensor

# kind of the output -> the type of its totals
TOTALS = {"f": "float64", "c": "complex128", "i": "int64", "u": "int64"}


def running_rows(x: Any, out: Any, zero: Any, length: int) -> None:
    """Running sums of each row."""
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
    """Running sums of tiles of columns."""
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


# What totals begin with; never written.
_ZEROS = {kind: np.zeros(1, total) for kind, total in TOTALS.items()}

_ROWS = {
    kind: Family(
        f"cumsum_rows_{kind}",
        running_rows,
        f"void(T[::1], U[::1], {total}[::1], int64)",
    )
    for kind, total in TOTALS.items()
}
_COLUMNS = {
    kind: Family(
        f"cumsum_columns_{kind}",
        running_columns,
        f"void(T[::1], U[::1], {total}[::1], int64, int64, int64, int64)",
    )
    for kind, total in TOTALS.items()
}


def cumsum(out: Tensor, x: Tensor, dim: int) -> None:
    """The sum of all elements up to each, along `dim`."""
    _call(x.shape, dim, x.dtype, out.dtype)(dense(x), result(out))


def _ready(out: Geometry, x: Geometry, dim: int) -> Run:
    return _call(x.shape, dim, x.dtype, out.dtype)


@lru_cache(REMEMBERED)
def _call(shape: Ints, dim: int, dtype: DType, wide: DType) -> Run:
    """From the rows of the input to those of the output."""
    if 0 in shape:
        return nothing
    outer, length, inner, tasks, grain = along(shape, dim)
    names = dtype.name, wide.name
    kind = numpy_dtype(wide).kind
    if inner > 1:
        entry, form = _COLUMNS[kind][names], TOTALS[kind]

        def columns(a: Array, to: Array) -> None:
            if tasks < 2 * grain:
                entry(a, to, np.empty(TILE, form), 0, tasks, length, inner)
                return

            def run(lo: int, hi: int) -> None:
                entry(a, to, np.empty(TILE, form), lo, hi, length, inner)

            parallel_for(tasks, grain, run)

        return columns
    entry, zeros = _ROWS[kind][names], _ZEROS[kind]

    def rows(a: Array, to: Array) -> None:
        if outer < 2 * grain:
            entry(a, to, zeros, length)
            return

        def run(lo: int, hi: int) -> None:
            some = slice(lo * length, hi * length)
            entry(a[some], to[some], zeros, length)

        parallel_for(outer, grain, run)

    return rows


KERNELS = {"cumsum": cumsum}
READY = {"cumsum": in_rows(_ready)}
