"""The negative log likelihood of classes on the CPU, and its gradient.

True only here: the layout (batch, classes, positions): a target for each batch entry
and position; log-probabilities of two classes lie `positions` apart.

Rules: targets other than `ignore_index` are classes, which is checked before anything
is written; what is ignored has weight zero.  `total_weight` is the sum of the weights
of the targets, and 0 where nothing is reduced; a mean is the loss by it, and NaN if
nothing was counted.  Sums run in float64.
"""

from math import prod
from typing import Any

import numpy as np

from runtime.errors.operator import IndexOutOfRange
from runtime.kernels.cpu.operand import Operand, Run, in_rows
from runtime.kernels.cpu.reduce_axis import dense, result
from runtime.kernels.cpu.reduce_layout import Array
from runtime.kernels.jit import Family
from runtime.tensors.tensor import Tensor

# losses, total weight, log-probabilities, targets, weights, classes, positions, what is
# ignored, reduction; returns the first position of a bad target, or -1
FORWARD = (
    "int64(T[::1], T[::1], T[::1], int64[::1], T[::1], int64, int64, int64, int64)"
)

# The same with the input's gradient, the gradient and the total weight in front.
BACKWARD = FORWARD

NONE, MEAN, SUM = 0, 1, 2
REDUCTIONS = {"none": NONE, "mean": MEAN, "sum": SUM}


def bad_target(target: Any, classes: int, ignored: int) -> int:
    """The first position of what is neither a class nor ignored, or -1."""
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
    """Losses, their sum or their mean, and the sum of weights."""
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
    """The gradients of the targets' log-probabilities, zeros elsewhere."""
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


_LOSSES = Family("nll_loss", losses, FORWARD)
_GRADIENTS = Family("nll_loss_backward", gradients, BACKWARD)


def _layout(shape: tuple[int, ...]) -> tuple[int, int]:
    """(classes, positions) of log-probabilities (N, C, ...) or (C)."""
    if len(shape) == 1:
        return shape[0], 1
    return shape[1], prod(shape[2:])


def _targets(target: Tensor) -> Array:
    flat = dense(target)
    return flat if target.dtype.name == "int64" else flat.astype(np.int64)


def _refusal(bad: int, targets: Array, classes: int) -> IndexOutOfRange:
    """What says that the target at a position is bad."""
    index = int(targets[bad])
    return IndexOutOfRange(operator="nll_loss", index=index, size=classes, dim=1)


def nll_loss(
    out: Tensor,
    total_weight: Tensor,
    logp: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
) -> None:
    """The negated log-probabilities of the targets: each, their mean or their sum.

    Raises `IndexOutOfRange` for a target that is no class; nothing is written then.
    """
    run = _ready(out, total_weight, logp, target, weight, reduction, ignore_index)
    given = () if weight is None else (dense(weight),)
    run(dense(logp), _targets(target), *given, result(out), result(total_weight))


def _ready(
    out: Operand,
    total_weight: Operand,
    logp: Operand,
    target: Operand,
    weight: Operand | None,
    reduction: str,
    ignore_index: int,
) -> Run:
    """Of targets in int64."""
    entry, way = _LOSSES[out.dtype.name], REDUCTIONS[reduction]
    classes, positions = _layout(logp.shape)

    def run(a: Array, targets: Array, w: Array, to: Array, total: Array) -> None:
        bad = entry(to, total, a, targets, w, classes, positions, ignore_index, way)
        if bad >= 0:
            raise _refusal(bad, targets, classes)

    if weight is not None:
        return run
    return lambda a, targets, *outputs: run(a, targets, a[:0], *outputs)


def nll_loss_backward(
    dx: Tensor,
    grad: Tensor,
    target: Tensor,
    weight: Tensor | None,
    total_weight: Tensor,
    reduction: str,
    ignore_index: int,
) -> None:
    """The gradient of the log-probabilities: the target's entries, zeros elsewhere.

    Raises `IndexOutOfRange` for a target that is no class; nothing is written then.
    """
    run = _ready_back(dx, grad, target, weight, total_weight, reduction, ignore_index)
    given = () if weight is None else (dense(weight),)
    run(dense(grad), _targets(target), *given, dense(total_weight), result(dx))


def _ready_back(
    dx: Operand,
    grad: Operand,
    target: Operand,
    weight: Operand | None,
    total_weight: Operand,
    reduction: str,
    ignore_index: int,
) -> Run:
    """Of targets in int64."""
    entry, way = _GRADIENTS[dx.dtype.name], REDUCTIONS[reduction]
    classes, positions = _layout(dx.shape)

    def run(g: Array, targets: Array, w: Array, total: Array, to: Array) -> None:
        bad = entry(to, g, total, targets, w, classes, positions, ignore_index, way)
        if bad >= 0:
            raise _refusal(bad, targets, classes)

    if weight is not None:
        return run
    return lambda g, targets, total, to: run(g, targets, to[:0], total, to)


KERNELS = {"nll_loss": nll_loss, "nll_loss_backward": nll_loss_backward}
READY = {
    "nll_loss": in_rows(_ready, outputs=2),
    "nll_loss_backward": in_rows(_ready_back),
}
