"""Formulas of matrix products, linear layers and convolutions.

True only here: all of these are linear in each argument, so that every gradient is
another product of the same kind.
"""

from collections.abc import Sequence
from typing import Any

from runtime.autograd.formulas.unary import conj
from runtime.autograd.plan import Formulas
from runtime.operators.call import core

Needs = tuple[bool, ...]


def _turned(matrices: Any) -> Any:
    if matrices.dtype.is_complex:
        matrices = core.conj(matrices)
    if len(matrices.shape) == 2:
        return core.t(matrices)
    return core.transpose(matrices, -2, -1)


def _rows(tensor: Any) -> Any:
    """All dimensions but the last as one."""
    shape = tensor.shape
    return tensor if len(shape) == 2 else core.reshape(tensor, [-1, shape[-1]])


def _linear(grad: Any, input_: Any, weight: Any, needs: Needs) -> tuple[Any, Any, Any]:
    rows = _rows(grad)
    by_input = by_weight = by_bias = None
    if needs[0]:
        by_input = core.mm(rows, conj(weight))
        if len(input_.shape) != 2:
            by_input = core.reshape(by_input, input_.shape)
    if needs[1]:
        by_weight = core.mm(core.t(rows), conj(_rows(input_)))
    if needs[2]:
        by_bias = core.sum(rows, [0])
    return by_input, by_weight, by_bias


def _conv2d(
    grad: Any,
    input_: Any,
    weight: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    needs: Needs,
) -> Any:
    return core.conv2d_backward(
        grad, input_, weight, needs[2], stride, padding, dilation, groups, [*needs]
    )


def _conv2d_backward(
    grads: Sequence[Any],
    grad: Any,
    input_: Any,
    weight: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    needs: Needs,
) -> tuple[Any, Any, Any]:
    """The three gradients of a convolution are linear in grad, input and weight."""
    by_input, by_weight, by_bias = grads
    how = (stride, padding, dilation, groups)
    found: list[Any] = [None, None, None]
    if needs[0]:
        parts = []
        if by_input is not None:
            parts.append(core.conv2d(by_input, weight, None, *how))
        if by_weight is not None:
            parts.append(core.conv2d(input_, by_weight, None, *how))
        if by_bias is not None:
            parts.append(core.expand(core.view(by_bias, [-1, 1, 1]), grad.shape))
        found[0] = _sum(parts)
    if needs[1] and by_weight is not None:
        mask = [True, False, False]
        found[1] = core.conv2d_backward(grad, input_, by_weight, False, *how, mask)[0]
    if needs[2] and by_input is not None:
        mask = [False, True, False]
        found[2] = core.conv2d_backward(grad, by_input, weight, False, *how, mask)[1]
    return found[0], found[1], found[2]


def _sum(parts: Sequence[Any]) -> Any:
    total = None
    for part in parts:
        total = part if total is None else core.add(total, part)
    return total


FORMULAS: dict[str, Formulas] = {
    "mm": {
        "self": lambda grad, mat2: core.mm(grad, _turned(mat2)),
        "mat2": lambda grad, self: core.mm(_turned(self), grad),
    },
    "bmm": {
        "self": lambda grad, mat2: core.bmm(grad, _turned(mat2)),
        "mat2": lambda grad, self: core.bmm(_turned(self), grad),
    },
    "dot": {
        "self": lambda grad, other: core.mul(grad, conj(other)),
        "other": lambda grad, self: core.mul(grad, conj(self)),
    },
    "linear": {("input", "weight", "bias"): _linear},
    "conv2d": {("input", "weight", "bias"): _conv2d},
    "conv2d_backward": {("grad", "input", "weight"): _conv2d_backward},
}
