"""Variance on the CPU, in two passes: the mean, then the squares of what is off it.

True only here: the two-pass algorithm (Chan, Golub, LeVeque 1983): no digits are lost
where the mean is large beside the spread.  Both passes go leaf by leaf, or block by
block, as sums do (see `runtime.kernels.cpu.reduce_bodies`).

Rules: means and squares are float64, also of float32, whose own squares would overflow
at the root of its range; an output may be either.  Axes that do not reduce in one pass
are copied to (kept, reduced) first; the divisor is the number of elements less
`correction`, and never negative: nothing over nothing is NaN.
"""

from math import prod
from typing import Any

import numpy as np

from runtime.kernels.cpu.operand import Geometry
from runtime.kernels.cpu.reduce import (
    GRAIN,
    REMEMBERED,
    SUM,
    WIDE_MEAN,
    Call,
    Ints,
    flat_input,
    planned,
)
from runtime.kernels.cpu.reduce_axis import result
from runtime.kernels.cpu.reduce_bodies import BLOCK, LEAF, TILE, block_of
from runtime.kernels.cpu.reduce_layout import Array, Pass, moved_last, passes
from runtime.kernels.jit import Family
from runtime.kernels.threads import parallel_for
from runtime.tensors.shape import contiguous_strides
from runtime.tensors.tensor import Tensor


def square_rows(
    a: Any,
    means: Any,
    out: Any,
    task: int,
    leaves: int,
    length: int,
    stride: int,
    leaf: int,
) -> None:
    """Sums of squared differences from the row's mean, leaf by leaf."""
    for k in range(len(out)):
        # As `leaf_of`, whose division would be a second one for every short row.
        row = (task + k) // leaves
        first = (task + k - row * leaves) * leaf
        at = row * stride + first
        part = a[at : at + min(leaf, length - first)]
        mean = means[row]
        total = mean - mean
        for i in range(len(part)):
            total += (part[i] - mean) * (part[i] - mean)
        out[k] = total


def square_columns(
    a: Any,
    means: Any,
    out: Any,
    task: int,
    end: int,
    length: int,
    row_step: int,
    stride: int,
    inner: int,
) -> None:
    """Sums of squared differences from the column's mean, block by block of rows."""
    for t in range(task, end):
        part, outer, row, column = block_of(t, length, inner)
        width = min(TILE, inner - column)
        acc = out[part * inner + column : part * inner + column + width]
        mean = means[outer * inner + column : outer * inner + column + width]
        at = outer * stride + row * row_step + column
        for i in range(width):
            acc[i] = 0
        for _ in range(min(BLOCK, length - row)):
            p = a[at : at + width]
            at += row_step
            for i in range(width):
                acc[i] += (p[i] - mean[i]) * (p[i] - mean[i])


def narrow(a: Any, out: Any) -> None:
    """Numbers in the dtype of the output; infinite beyond its range."""
    for i in range(len(out)):
        out[i] = a[i]


_ROWS = Family(
    "variance_rows",
    square_rows,
    "void(T[::1], float64[::1], float64[::1], int64, int64, int64, int64, int64)",
    fastmath=True,
)
_COLUMNS = Family(
    "variance_columns",
    square_columns,
    "void(T[::1], float64[::1], float64[::1],"
    " int64, int64, int64, int64, int64, int64)",
)
_NARROW = Family("variance_narrow", narrow, "void(float64[::1], T[::1])")
_WIDE = np.dtype("float64")
_READY: dict[Any, Call] = {}


def _by_rows(name: str, step: Pass, divisor: float) -> Call:
    length, stride = step.reduced, step.outer_stride
    leaves = -(-length // LEAF)
    count = step.outer * leaves
    grain = -(-GRAIN // min(length, LEAF))
    entry = _ROWS[name]
    mean = planned(WIDE_MEAN, name, _WIDE, (step,), length)
    left = Pass(step.outer, leaves, leaves, 1, 1)
    rest = planned(SUM, _WIDE.name, _WIDE, (left,), divisor)

    def call(a: Array, out: Array) -> None:
        means = np.empty(step.outer, _WIDE)
        mean(a, means)
        squares = np.empty(count, _WIDE)

        def run(lo: int, hi: int) -> None:
            entry(a, means, squares[lo:hi], lo, leaves, length, stride, LEAF)

        parallel_for(count, grain, run)
        rest(squares, out)

    return call


def _by_columns(name: str, step: Pass, divisor: float) -> Call:
    outer, stride, length, row, inner = step
    blocks = -(-length // BLOCK)
    grain = -(-GRAIN // (min(length, BLOCK) * min(inner, TILE)))
    entry = _COLUMNS[name]
    mean = planned(WIDE_MEAN, name, _WIDE, (step,), length)
    left = Pass(outer, blocks * inner, blocks, inner, inner)
    rest = planned(SUM, _WIDE.name, _WIDE, (left,), divisor)

    def call(a: Array, out: Array) -> None:
        means = np.empty(outer * inner, _WIDE)
        mean(a, means)
        squares = np.empty(outer * blocks * inner, _WIDE)

        def run(lo: int, hi: int) -> None:
            entry(a, means, squares, lo, hi, length, row, stride, inner)

        parallel_for(outer * blocks * -(-inner // TILE), grain, run)
        rest(squares, out)

    return call


def _make_ready(
    shape: Ints,
    strides: Ints | None,
    dims: Ints,
    name: str,
    out_name: str,
    correction: float,
) -> Call:
    """Make the call for a geometry, and remember it."""
    length = prod(shape[dim] for dim in dims)
    divisor = float(max(length - correction, 0))
    steps = contiguous_strides(shape) if strides is None else strides
    plan = None if 0 in shape else passes(shape, steps, dims)
    call: Call
    if 0 in shape:
        call = _nothing
    elif plan is not None and len(plan) == 1:
        by_rows = plan[0].inner == 1 and plan[0].reduced_stride == 1
        call = (_by_rows if by_rows else _by_columns)(name, plan[0], divisor)
    else:
        rows = prod(shape) // length
        whole = _by_rows(name, Pass(rows, length, length, 1, 1), divisor)

        def call(a: Array, out: Array) -> None:
            whole(moved_last(a, shape, steps, dims), out)

    if out_name != _WIDE.name and 0 not in shape:
        call = _narrowed(call, out_name)
    if len(_READY) >= REMEMBERED:
        _READY.clear()
    _READY[shape, strides, dims, name, out_name, correction] = call
    return call


def _narrowed(call: Call, name: str) -> Call:
    """The call, for an output of less than float64."""
    entry = _NARROW[name]

    def narrowed(a: Array, out: Array) -> None:
        wide = np.empty(len(out), _WIDE)
        call(a, wide)
        entry(wide, out)

    return narrowed


def _nothing(a: Array, out: Array) -> None:
    out.fill(np.nan)


def var(out: Tensor, x: Tensor, dims: Ints, correction: float) -> None:
    """The variance over `dims` of floats: squares off the mean by n - correction.

    The output is of the dtype of `x`, or float64.
    """
    place = x._place
    names = x.dtype.name, out.dtype.name
    key = x.shape, place and place[2], dims, *names, correction
    call = _READY.get(key) or _make_ready(*key)
    call(flat_input(x), result(out))


def _ready(out: Geometry, x: Geometry, dims: Ints, correction: float) -> Call:
    names = x.dtype.name, out.dtype.name
    return _make_ready(x.shape, x.strides, dims, *names, correction)


KERNELS = {"var": var}
READY = {"var": _ready}
