"""Softmax, its logarithm, the negative log likelihood of classes, and their gradients.

Softmax sweeps three times over data that is still in the cache: greatest element,
exponentials and their sum, quotient.  Along rows, sums are added leaf by leaf to a
float64; along columns, block by block of rows in the same way.  Sums of rows may be
reassociated, differences may not: with numbers like 1e30, the peak must be subtracted
first, in a separate sweep.  A loop that sums does not write: otherwise the compiler
checks if the arrays overlap, and uses another order of the sum where they might, so
that a result would depend on addresses.  The greatest element is computed on the bits
(see `runtime.kernels.shared.reduction_passes`); it may miss a NaN, which then appears
in the sum; a row of -inf yields NaN, as inf - inf does.

The loss reads (batch, classes, positions): a target for each batch entry and position;
log-probabilities of two classes are `positions` apart.  Targets other than
`ignore_index` are classes, which is checked before anything is written; ignored targets
have weight zero.  `total_weight` is the sum of the weights of the targets, and 0
without a reduction; a mean is the loss divided by it, and NaN if nothing was counted.
Sums are float64.
"""

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from everyorder.runtime.kernels.compile.jit import Family
from everyorder.runtime.kernels.cpu.axis import (
    REMEMBERED,
    TILE,
    along,
    by_rows,
    by_tiles,
    result,
)
from everyorder.runtime.kernels.math import bits, exp, from_bits, like, log
from everyorder.runtime.kernels.shared.operands import (
    Geometry,
    Ints,
    Operand,
    Run,
    dense,
    in_rows,
    nothing,
    out_of_range,
)
from everyorder.runtime.kernels.shared.reduction_passes import BLOCK, LEAF, Array
from everyorder.runtime.tensors.tensor import Tensor

Kernel = Callable[..., None]

# After the arrays, of which the output is the last: room for two tiles, for totals,
# first task, end, length, inner.
COLUMNS = "T[::1], float64[::1], int64, int64, int64, int64"


def greatest(row: Any) -> Any:
    """Return the greatest element of a row; it may miss a NaN."""
    top = bits(row[0])
    bottom = top
    for i in range(len(row)):
        top = max(top, bits(row[i]))
        bottom = min(bottom, bits(row[i]))
    return from_bits(top if top >= 0 else bottom)


def rows_of(logarithm: bool) -> Any:
    """Return the body for softmax, or its logarithm, of each row."""

    def body(x: Any, out: Any, length: int) -> None:
        for k in range(len(x) // length):
            row = x[k * length : (k + 1) * length]
            target = out[k * length : (k + 1) * length]
            peak = greatest(row)
            total = 0.0
            for first in range(0, length, LEAF):
                part = row[first : first + LEAF]
                to = target[first : first + LEAF]
                block_sum = like(peak, 0.0)
                if logarithm:
                    for i in range(len(part)):
                        block_sum += exp(part[i] - peak)
                    for i in range(len(part)):
                        to[i] = part[i] - peak
                else:
                    for i in range(len(part)):
                        to[i] = exp(part[i] - peak)
                    for i in range(len(part)):
                        block_sum += to[i]
                total += block_sum
            rest = like(peak, log(total) if logarithm else 1.0 / total)
            for i in range(length):
                if logarithm:
                    target[i] -= rest
                else:
                    target[i] *= rest

    return body


def columns_of(logarithm: bool) -> Any:
    """Return the body for softmax, or its logarithm, of tiles of columns."""

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
            peak, block_sum, total = (
                room[:width],
                room[TILE : TILE + width],
                totals[:width],
            )
            first = x[at : at + width]
            for i in range(width):
                peak[i] = first[i]
                total[i] = 0.0
                block_sum[i] = 0.0
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
                    block_sum[i] += e
                if r % BLOCK == BLOCK - 1:
                    settle(block_sum, total)
            settle(block_sum, total)
            for i in range(width):
                block_sum[i] = log(total[i]) if logarithm else 1.0 / total[i]
            for r in range(length):
                row = x[at + r * inner : at + r * inner + width]
                to = out[at + r * inner : at + r * inner + width]
                for i in range(width):
                    if logarithm:
                        to[i] = (row[i] - peak[i]) - block_sum[i]
                    else:
                        to[i] *= block_sum[i]

    return body


def settle(block_sum: Any, total: Any) -> None:
    """Add the sums of a block of rows to the totals, and clear them."""
    for i in range(len(block_sum)):
        total[i] += block_sum[i]
        block_sum[i] = 0.0


def back_rows_of(logarithm: bool) -> Any:
    """Return the body of the gradient of each row.

    `(grad - sum(grad * result)) * result`, or `grad - exp(result) * sum(grad)` for the
    logarithm.
    """

    def body(grad: Any, result: Any, out: Any, length: int) -> None:
        for k in range(len(out) // length):
            g = grad[k * length : (k + 1) * length]
            y = result[k * length : (k + 1) * length]
            to = out[k * length : (k + 1) * length]
            total = 0.0
            for first in range(0, length, LEAF):
                p = g[first : first + LEAF]
                q = y[first : first + LEAF]
                block_sum = like(p[0], 0.0)
                for i in range(len(p)):
                    block_sum += p[i] if logarithm else p[i] * q[i]
                total += block_sum
            whole = like(g[0], total)
            for i in range(length):
                if logarithm:
                    to[i] = g[i] - exp(y[i]) * whole
                else:
                    to[i] = (g[i] - whole) * y[i]

    return body


def back_columns_of(logarithm: bool) -> Any:
    """Return the body of the gradient of softmax, or its logarithm, of columns."""

    def body(
        grad: Any,
        result: Any,
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
            block_sum, total = room[:width], totals[:width]
            for i in range(width):
                total[i] = 0.0
                block_sum[i] = 0.0
            for r in range(length):
                g = grad[at + r * inner : at + r * inner + width]
                y = result[at + r * inner : at + r * inner + width]
                for i in range(width):
                    block_sum[i] += g[i] if logarithm else g[i] * y[i]
                if r % BLOCK == BLOCK - 1:
                    settle(block_sum, total)
            settle(block_sum, total)
            for i in range(width):
                block_sum[i] = total[i]
            for r in range(length):
                g = grad[at + r * inner : at + r * inner + width]
                y = result[at + r * inner : at + r * inner + width]
                to = out[at + r * inner : at + r * inner + width]
                for i in range(width):
                    if logarithm:
                        to[i] = g[i] - exp(y[i]) * block_sum[i]
                    else:
                        to[i] = (g[i] - block_sum[i]) * y[i]

    return body


def _kernel(name: str, bodies: tuple[Any, Any], arrays: int) -> None:
    """Register the kernel with so many arrays, the output the last, and its `ready`."""
    types = "T[::1], " * arrays
    rows = Family(f"{name}_rows", bodies[0], f"void({types}int64)", fastmath=True)
    columns = Family(f"{name}_columns", bodies[1], f"void({types}{COLUMNS})")

    @lru_cache(REMEMBERED)
    def call(shape: Ints, dim: int, name: str) -> Run:
        """From the arrays of the inputs to that of the output, the last."""
        if 0 in shape:
            return nothing
        geometry = outer, length, inner, _, grain = along(shape, dim)
        if inner > 1:
            rooms = [(2 * TILE, name), (TILE, np.float64)]
            return by_tiles(columns[name], geometry, rooms, arrays)
        return by_rows(rows[name], outer, grain, (length,) * arrays, length)

    def forward(out: Tensor, x: Tensor, dim: int) -> None:
        call(out.shape, dim, out.dtype.name)(dense(x), result(out))

    def backward(out: Tensor, grad: Tensor, outcome: Tensor, dim: int) -> None:
        run = call(out.shape, dim, out.dtype.name)
        run(dense(grad), dense(outcome), result(out))

    def ready(out: Geometry, *arguments: Any) -> Run:
        return call(out.shape, arguments[-1], out.dtype.name)

    kernel: Kernel = forward if arrays == 2 else backward
    SOFTMAX[name], SOFTMAX_READY[name] = kernel, in_rows(ready)


SOFTMAX: dict[str, Kernel] = {}
SOFTMAX_READY: dict[str, Callable[..., Run]] = {}
for _name, _log in (("softmax", False), ("log_softmax", True)):
    _kernel(_name, (rows_of(_log), columns_of(_log)), 2)
    _kernel(f"{_name}_backward", (back_rows_of(_log), back_columns_of(_log)), 3)

# losses, total weight, log-probabilities, targets, weights, classes, positions, the
# ignored index, reduction; or the input's gradient, with the gradient and the total
# weight first; returns the first position of a bad target, or -1
LOSS = "int64(T[::1], T[::1], T[::1], int64[::1], T[::1], int64, int64, int64, int64)"

NONE, MEAN, SUM = 0, 1, 2
REDUCTIONS = {"none": NONE, "mean": MEAN, "sum": SUM}


def bad_target(target: Any, classes: int, ignored: int) -> int:
    """Return the first position of a target that is not a class nor ignored, or -1."""
    bad = 0
    for i in range(len(target)):
        c = target[i]
        bad |= ((c < 0) | (c >= classes)) & (c != ignored)
    if bad:
        for i in range(len(target)):
            c = target[i]
            if (c < 0 or c >= classes) and c != ignored:
                return i
    return -1


def losses(
    out: Any,
    total_weight: Any,
    logp: Any,
    target: Any,
    weight: Any,
    classes: int,
    positions: int,
    ignored: int,
    reduction: int,
) -> int:
    """Compute losses, their sum or their mean, and the sum of weights."""
    bad = bad_target(target, classes, ignored)
    if bad >= 0:
        return bad
    loss, total = 0.0, 0.0
    weighted = len(weight) > 0
    for batch in range(len(target) // max(positions, 1)):
        for j in range(positions):
            i = batch * positions + j
            c = target[i]
            value, w = 0.0, 0.0
            if c != ignored:
                w = weight[c] if weighted else 1.0
                value = -w * logp[(batch * classes + c) * positions + j]
            if reduction == NONE:
                out[i] = value
            loss += value
            total += w
    total_weight[0] = total if reduction != NONE else 0.0
    if reduction == MEAN:
        out[0] = np.float64(loss) / np.float64(total)
    elif reduction == SUM:
        out[0] = loss
    return -1


def gradients(
    out: Any,
    grad: Any,
    total_weight: Any,
    target: Any,
    weight: Any,
    classes: int,
    positions: int,
    ignored: int,
    reduction: int,
) -> int:
    """Compute the gradients of the targets' log-probabilities, zeros elsewhere."""
    bad = bad_target(target, classes, ignored)
    if bad >= 0:
        return bad
    for i in range(len(out)):
        out[i] = 0
    divisor = total_weight[0] if reduction == MEAN else 1.0
    step = 1 if reduction == NONE else 0
    weighted = len(weight) > 0
    for batch in range(len(target) // max(positions, 1)):
        for j in range(positions):
            i = batch * positions + j
            c = target[i]
            if c != ignored:
                w = weight[c] if weighted else 1.0
                at = (batch * classes + c) * positions + j
                out[at] = -w * grad[i * step] / divisor
    return -1


_LOSSES = Family("nll_loss", losses, LOSS)
_GRADIENTS = Family("nll_loss_backward", gradients, LOSS)


def layout_of(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return (classes, positions) of log-probabilities (N, C, ...) or (C)."""
    if len(shape) == 1:
        return shape[0], 1
    return shape[1], prod(shape[2:])


def _targets(target: Tensor) -> Array:
    flat: Array = dense(target)
    return flat if target.dtype.name == "int64" else flat.astype(np.int64)


def _checked(
    family: Family, name: str, shape: Ints, reduction: str, ignored: int
) -> Callable[..., None]:
    """Return the loop over scores of that shape, of the arrays in `LOSS`."""
    entry, way = family[name], REDUCTIONS[reduction]
    classes, positions = layout_of(shape)

    def run(out: Array, first: Array, second: Array, targets: Array, w: Array) -> None:
        bad = entry(out, first, second, targets, w, classes, positions, ignored, way)
        if bad >= 0:
            raise out_of_range("nll_loss", int(targets[bad]), classes, 1)

    return run


def nll_loss(
    out: Tensor,
    total_weight: Tensor,
    logp: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
) -> None:
    """Write the negated log-probabilities of the targets, their mean or their sum.

    Raises:
        IndexOutOfRange: a target is not a class; nothing is written.
    """
    run = _ready_loss(out, total_weight, logp, target, weight, reduction, ignore_index)
    weights = () if weight is None else (dense(weight),)
    run(dense(logp), _targets(target), *weights, result(out), result(total_weight))


def _ready_loss(
    out: Operand,
    total_weight: Operand,
    logp: Operand,
    target: Operand,
    weight: Operand | None,
    reduction: str,
    ignore_index: int,
) -> Run:
    """Prepare the loss for targets in int64."""
    run = _checked(_LOSSES, out.dtype.name, logp.shape, reduction, ignore_index)
    if weight is None:
        return lambda a, targets, to, total: run(to, total, a, targets, a[:0])
    return lambda a, targets, w, to, total: run(to, total, a, targets, w)


def nll_loss_backward(
    dx: Tensor,
    grad: Tensor,
    target: Tensor,
    weight: Tensor | None,
    total_weight: Tensor,
    reduction: str,
    ignore_index: int,
) -> None:
    """Write the gradient of the log-probabilities: zeros except for the targets.

    Raises:
        IndexOutOfRange: a target is not a class; nothing is written.
    """
    run = _ready_loss_back(
        dx, grad, target, weight, total_weight, reduction, ignore_index
    )
    weights = () if weight is None else (dense(weight),)
    run(dense(grad), _targets(target), *weights, dense(total_weight), result(dx))


def _ready_loss_back(
    dx: Operand,
    grad: Operand,
    target: Operand,
    weight: Operand | None,
    total_weight: Operand,
    reduction: str,
    ignore_index: int,
) -> Run:
    """Prepare the gradient for targets in int64."""
    run = _checked(_GRADIENTS, dx.dtype.name, dx.shape, reduction, ignore_index)
    if weight is None:
        return lambda g, targets, total, to: run(to, g, total, targets, to[:0])
    return lambda g, targets, w, total, to: run(to, g, total, targets, w)


KERNELS: dict[str, Callable[..., Any]] = {
    **SOFTMAX,
    "nll_loss": nll_loss,
    "nll_loss_backward": nll_loss_backward,
}
READY: dict[str, Callable[..., Any]] = {
    **SOFTMAX_READY,
    "nll_loss": in_rows(_ready_loss, outputs=2),
    "nll_loss_backward": in_rows(_ready_loss_back),
}
