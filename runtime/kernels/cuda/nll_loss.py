"""The negative log likelihood of classes on CUDA, and its gradient.

True only here: the layout (batch, classes, positions): a target for each batch entry
and position; log-probabilities of two classes lie `positions` apart.

Rules: targets other than `ignore_index` are classes, which is checked before anything
is written; what is ignored has weight zero.  `total_weight` is the sum of the weights
of the targets, and 0 where nothing is reduced; a mean is the loss by it, and NaN if
nothing was counted.  Losses and weights are summed as trees, like every sum
(`runtime.kernels.cuda.reduce`).
"""

from collections.abc import Callable
from math import prod
from typing import Any

from runtime.errors.operator import IndexOutOfRange
from runtime.kernels.cuda.binary import KERNELS as BINARY
from runtime.kernels.cuda.check import first_outside
from runtime.kernels.cuda.copy import fill
from runtime.kernels.cuda.jit import Body, Family
from runtime.kernels.cuda.launch import spread
from runtime.kernels.cuda.lines import integers
from runtime.kernels.cuda.operand import flat, index_of
from runtime.kernels.cuda.reduce import KERNELS as REDUCE
from runtime.kernels.cuda.ternary import KERNELS as TERNARY
from runtime.kernels.cuda.toolkit import cuda
from runtime.kernels.cuda.unary import FLOATS
from runtime.schema.codes import DType
from runtime.tensors.making import empty_tensor
from runtime.tensors.tensor import Tensor


def _losses(kind: Any) -> Body:
    zero, one = kind(0), kind(1)

    def body(  # type: ignore[no-untyped-def]  # compiled for the device
        out, weights, logp, target, weight, weighted, count, classes, positions, ignored
    ):
        i = cuda.grid(1)
        step = cuda.gridsize(1)
        while i < count:
            name = target[i]
            value, by = zero, zero
            if name != ignored:
                by = one
                if weighted:
                    by = weight[name]
                batch = i // positions
                place = i - batch * positions
                value = -by * logp[(batch * classes + name) * positions + place]
            out[i] = value
            weights[i] = by
            i += step

    return body


def _gradients(kind: Any) -> Body:
    one = kind(1)

    def body(  # type: ignore[no-untyped-def]  # compiled for the device
        out,
        grad,
        grad_by,
        total,
        divides,
        target,
        weight,
        weighted,
        count,
        classes,
        positions,
        ignored,
    ):
        i = cuda.grid(1)
        step = cuda.gridsize(1)
        divisor = one
        if divides:
            divisor = total[0]
        while i < count:
            name = target[i]
            if name != ignored:
                by = one
                if weighted:
                    by = weight[name]
                batch = i // positions
                at = (batch * classes + name) * positions + (i - batch * positions)
                out[at] = -by * grad[i * grad_by] / divisor
            i += step

    return body


_LOSSES = Family(
    "nll_loss",
    _losses,
    "T[::1], T[::1], T[::1], int64[::1], T[::1]" + ", int64" * 5,
    FLOATS,
)
_GRADIENTS = Family(
    "nll_loss_gradients",
    _gradients,
    "T[::1], T[::1], int64, T[::1], int64, int64[::1], T[::1]" + ", int64" * 5,
    FLOATS,
)


def _layout(shape: tuple[int, ...]) -> tuple[int, int]:
    """(classes, positions) of log-probabilities (N, C, ...) or (C)."""
    if len(shape) == 1:
        return shape[0], 1
    return shape[1], prod(shape[2:])


def _checked(target: Tensor, classes: int, ignored: int) -> Tensor:
    """The targets as int64.  Raises `IndexOutOfRange` for what is no class."""
    targets = integers(target)
    found = first_outside(targets, 0, classes - 1)
    if found is not None and not 0 <= ignored < classes:
        # What is ignored may be what was found: everything else is looked at again.
        meant = empty_tensor(targets.shape, DType.named("bool"), targets.device)
        BINARY["ne"](meant, targets, ignored)
        others = empty_tensor(targets.shape, targets.dtype, targets.device)
        TERNARY["where"](others, meant, targets, 0)
        found = first_outside(others, 0, max(classes - 1, 0))
    if found is not None:
        raise IndexOutOfRange(operator="nll_loss", index=found[1], size=classes, dim=1)
    return targets


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
    classes, positions = _layout(logp.shape)
    targets = _checked(target, classes, ignore_index)
    count = target.numel()
    each = empty_tensor((count,), out.dtype, out.device)
    losses = out if reduction == "none" else each
    weights = empty_tensor((count,), out.dtype, out.device)
    if count:
        array = flat(logp)
        _LOSSES[out.dtype.name](
            spread(count, index_of(out)),
            *(flat(losses), flat(weights), array, flat(targets)),
            array if weight is None else flat(weight),
            *(int(weight is not None), count, classes, positions, ignore_index),
        )
    if reduction == "none":
        fill(total_weight, 0)
        return
    REDUCE["sum"](total_weight, weights, (0,))
    REDUCE["sum"](out, losses, (0,))
    if reduction == "mean":
        BINARY["div"](out, out, total_weight)


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
    classes, positions = _layout(dx.shape)
    targets = _checked(target, classes, ignore_index)
    fill(dx, 0)
    count = target.numel()
    if not count or not dx.numel():
        return
    array = flat(grad)
    _GRADIENTS[dx.dtype.name](
        spread(count, index_of(dx)),
        *(flat(dx), array, int(reduction == "none")),
        *(flat(total_weight), int(reduction == "mean"), flat(targets)),
        array if weight is None else flat(weight),
        *(int(weight is not None), count, classes, positions, ignore_index),
    )


KERNELS: dict[str, Callable[..., None]] = {
    "nll_loss": nll_loss,
    "nll_loss_backward": nll_loss_backward,
}
