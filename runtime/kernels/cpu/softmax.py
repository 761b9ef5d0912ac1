"""Softmax and its logarithm along one dimension on the CPU, and their gradients.

True only here: three sweeps over data that is still in the cache: greatest element,
exponentials and their sum, quotient.  Along rows, sums are taken leaf by leaf into a
float64; along columns, block by block of rows likewise.

Rules: sums of rows may be reassociated, differences may not: of 1e30 and its like, the
peak must go first, in a sweep of its own.  A loop that adds up writes nothing: where it
does, the compiler asks whether the arrays overlap, and takes another order of the sum
where they might, so that a result would depend on addresses.  The greatest element is
found among the bits (see `runtime.kernels.cpu.reduce_bodies`); it may miss a NaN, which
then comes back through the sum; a row of -inf gives NaN, as inf - inf is.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from runtime.kernels.cpu.operand import Geometry, Ints, Run, in_rows, nothing
from runtime.kernels.cpu.reduce_axis import REMEMBERED, TILE, along, dense, result
from runtime.kernels.cpu.reduce_bodies import BLOCK, LEAF
from runtime.kernels.cpu.reduce_layout import Array
from runtime.kernels.jit import Family
from runtime.kernels.math import bits, exp, from_bits, like, log
from runtime.kernels.threads import parallel_for
from runtime.tensors.tensor import Tensor

Kernel = Callable[..., None]

# input, output, elements of a row
ROWS = "void(T[::1], T[::1], int64)"

# input, output, room for two tiles, for totals, first task, end, length, inner
COLUMNS = "void(T[::1], T[::1], T[::1], float64[::1], int64, int64, int64, int64)"

# output, gradient, result, elements of a row
BACK_ROWS = "void(T[::1], T[::1], T[::1], int64)"

# output, gradient, result, room for a tile, for totals, first task, end, length, inner
BACK_COLUMNS = (
    "void(T[::1], T[::1], T[::1], T[::1], float64[::1], int64, int64, int64, int64)"
)


def greatest(row: Any) -> Any:
    """The greatest element of a row; it may overlook a NaN."""
    top = bits(row[0])
    bottom = top
    for i in range(len(row)):
        top = max(top, bits(row[i]))
        bottom = min(bottom, bits(row[i]))
    return from_bits(top if top >= 0 else bottom)


def rows_of(logarithm: bool) -> Any:
    """Softmax, or its logarithm, of each row."""

    def body(x: Any, out: Any, length: int) -> None:
        for k in range(len(x) // length):
            row = x[k * length : (k + 1) * length]
            made = out[k * length : (k + 1) * length]
            peak = greatest(row)
            total = 0.0
            for first in range(0, length, LEAF):
                part = row[first : first + LEAF]
                to = made[first : first + LEAF]
                some = like(peak, 0.0)
                if logarithm:
                    for i in range(len(part)):
                        some += exp(part[i] - peak)
                    for i in range(len(part)):
                        to[i] = part[i] - peak
                else:
                    for i in range(len(part)):
                        to[i] = exp(part[i] - peak)
                    for i in range(len(part)):
                        some += to[i]
                total += some
            rest = like(peak, log(total) if logarithm else 1.0 / total)
            for i in range(length):
                if logarithm:
                    made[i] -= rest
                else:
                    made[i] *= rest

    return body


def columns_of(logarithm: bool) -> Any:
    """Softmax, or its logarithm, of tiles of columns."""

    def body(
        x: Any,
        out: Any,
        room: Any,
        totals: Any,
        task: int,
        end: int,
        length: int,
        inner: int,
    ) -> None:
        tiles = (inner + TILE - 1) // TILE
        for t in range(task, end):
            column = t % tiles * TILE
            width = min(TILE, inner - column)
            at = t // tiles * length * inner + column
            peak, some, total = room[:width], room[TILE : TILE + width], totals[:width]
            first = x[at : at + width]
            for i in range(width):
                peak[i] = first[i]
                total[i] = 0.0
                some[i] = 0.0
            for r in range(1, length):
                row = x[at + r * inner : at + r * inner + width]
                for i in range(width):
                    peak[i] = row[i] if row[i] > peak[i] else peak[i]
            for r in range(length):
                row = x[at + r * inner : at + r * inner + width]
                to = out[at + r * inner : at + r * inner + width]
                for i in range(width):
                    e = exp(row[i] - peak[i])
                    if not logarithm:
                        to[i] = e
                    some[i] += e
                if r % BLOCK == BLOCK - 1:
                    settle(some, total)
            settle(some, total)
            for i in range(width):
                some[i] = log(total[i]) if logarithm else 1.0 / total[i]
            for r in range(length):
                row = x[at + r * inner : at + r * inner + width]
                to = out[at + r * inner : at + r * inner + width]
                for i in range(width):
                    if logarithm:
                        to[i] = (row[i] - peak[i]) - some[i]
                    else:
                        to[i] *= some[i]

    return body


def settle(some: Any, total: Any) -> None:
    """Add the sums of a block of rows to the totals, and begin the next block."""
    for i in range(len(some)):
        total[i] += some[i]
        some[i] = 0.0


def back_rows_of(logarithm: bool) -> Any:
    """The gradient of each row.

    `(grad - sum(grad * result)) * result`, or `grad - exp(result) * sum(grad)` of the
    logarithm.
    """

    def body(out: Any, grad: Any, result: Any, length: int) -> None:
        for k in range(len(out) // length):
            g = grad[k * length : (k + 1) * length]
            y = result[k * length : (k + 1) * length]
            to = out[k * length : (k + 1) * length]
            total = 0.0
            for first in range(0, length, LEAF):
                p = g[first : first + LEAF]
                q = y[first : first + LEAF]
                some = like(p[0], 0.0)
                for i in range(len(p)):
                    some += p[i] if logarithm else p[i] * q[i]
                total += some
            whole = like(g[0], total)
            for i in range(length):
                if logarithm:
                    to[i] = g[i] - exp(y[i]) * whole
                else:
                    to[i] = (g[i] - whole) * y[i]

    return body


def back_columns_of(logarithm: bool) -> Any:
    """The gradient of softmax, or of its logarithm, of tiles of columns."""

    def body(
        out: Any,
        grad: Any,
        result: Any,
        room: Any,
        totals: Any,
        task: int,
        end: int,
        length: int,
        inner: int,
    ) -> None:
        tiles = (inner + TILE - 1) // TILE
        for t in range(task, end):
            column = t % tiles * TILE
            width = min(TILE, inner - column)
            at = t // tiles * length * inner + column
            some, total = room[:width], totals[:width]
            for i in range(width):
                total[i] = 0.0
                some[i] = 0.0
            for r in range(length):
                g = grad[at + r * inner : at + r * inner + width]
                y = result[at + r * inner : at + r * inner + width]
                for i in range(width):
                    some[i] += g[i] if logarithm else g[i] * y[i]
                if r % BLOCK == BLOCK - 1:
                    settle(some, total)
            settle(some, total)
            for i in range(width):
                some[i] = total[i]
            for r in range(length):
                g = grad[at + r * inner : at + r * inner + width]
                y = result[at + r * inner : at + r * inner + width]
                to = out[at + r * inner : at + r * inner + width]
                for i in range(width):
                    if logarithm:
                        to[i] = g[i] - exp(y[i]) * some[i]
                    else:
                        to[i] = (g[i] - some[i]) * y[i]

    return body


READY: dict[str, Run] = {}


def _forward(name: str, by_rows: Any, by_columns: Any, doc: str) -> Kernel:
    rows = Family(f"{name}_rows", by_rows, ROWS, fastmath=True)
    columns = Family(f"{name}_columns", by_columns, COLUMNS)

    @lru_cache(REMEMBERED)
    def call(shape: Ints, dim: int, name: str) -> Run:
        if 0 in shape:
            return nothing
        outer, length, inner, tasks, grain = along(shape, dim)
        entry = (rows if inner == 1 else columns)[name]

        def by_row(a: Array, to: Array) -> None:
            if outer < 2 * grain:
                entry(a, to, length)
                return

            def run(lo: int, hi: int) -> None:
                some = slice(lo * length, hi * length)
                entry(a[some], to[some], length)

            parallel_for(outer, grain, run)

        def by_column(a: Array, to: Array) -> None:
            def run(lo: int, hi: int) -> None:
                room, totals = np.empty(2 * TILE, to.dtype), np.empty(TILE)
                entry(a, to, room, totals, lo, hi, length, inner)

            parallel_for(tasks, grain, run)

        return by_row if inner == 1 else by_column

    def kernel(out: Tensor, x: Tensor, dim: int) -> None:
        call(x.shape, dim, out.dtype.name)(dense(x), result(out))

    def ready(out: Geometry, x: Geometry, dim: int) -> Run:
        return call(x.shape, dim, out.dtype.name)

    kernel.__doc__ = doc
    READY[name] = in_rows(ready)
    return kernel


def _backward(name: str, by_rows: Any, by_columns: Any, doc: str) -> Kernel:
    rows = Family(f"{name}_rows", by_rows, BACK_ROWS, fastmath=True)
    columns = Family(f"{name}_columns", by_columns, BACK_COLUMNS)

    @lru_cache(REMEMBERED)
    def call(shape: Ints, dim: int, name: str) -> Run:
        if 0 in shape:
            return nothing
        outer, length, inner, tasks, grain = along(shape, dim)
        entry = (rows if inner == 1 else columns)[name]

        def by_row(g: Array, y: Array, to: Array) -> None:
            if outer < 2 * grain:
                entry(to, g, y, length)
                return

            def run(lo: int, hi: int) -> None:
                some = slice(lo * length, hi * length)
                entry(to[some], g[some], y[some], length)

            parallel_for(outer, grain, run)

        def by_column(g: Array, y: Array, to: Array) -> None:
            def run(lo: int, hi: int) -> None:
                room, totals = np.empty(TILE, to.dtype), np.empty(TILE)
                entry(to, g, y, room, totals, lo, hi, length, inner)

            parallel_for(tasks, grain, run)

        return by_row if inner == 1 else by_column

    def kernel(out: Tensor, grad: Tensor, outcome: Tensor, dim: int) -> None:
        run = call(out.shape, dim, out.dtype.name)
        run(dense(grad), dense(outcome), result(out))

    def ready(out: Geometry, grad: Geometry, outcome: Geometry, dim: int) -> Run:
        return call(out.shape, dim, out.dtype.name)

    kernel.__doc__ = doc
    READY[name] = in_rows(ready)
    return kernel


KERNELS = {
    "softmax": _forward(
        "softmax",
        rows_of(False),
        columns_of(False),
        "exp(x) by its sum along `dim`.",
    ),
    "log_softmax": _forward(
        "log_softmax",
        rows_of(True),
        columns_of(True),
        "x less the logarithm of the sum of exp(x) along `dim`.",
    ),
    "softmax_backward": _backward(
        "softmax_backward",
        back_rows_of(False),
        back_columns_of(False),
        "The gradient of softmax from that of its result.",
    ),
    "log_softmax_backward": _backward(
        "log_softmax_backward",
        back_rows_of(True),
        back_columns_of(True),
        "The gradient of log_softmax from that of its result.",
    ),
}
