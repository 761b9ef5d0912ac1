"""Formulas of softmax, normalisation, losses, dropout, embedding and pooling.

True only here: functions that have a kernel for their gradient.  Where that kernel has
no formula of its own (layer_norm), a recorded backward pass computes the gradient from
plain operators instead, which can be differentiated any number of times.
"""

from collections.abc import Sequence
from typing import Any

from runtime.autograd.formulas.unary import nothing_of
from runtime.autograd.modes import GRAD
from runtime.autograd.plan import Formulas
from runtime.operators.call import core

Needs = tuple[bool, ...]


def _softmax_second(grad0: Any, grad: Any, result: Any, dim: int) -> Any:
    inner = core.sum(core.mul(grad, result), [dim], True)
    outer = core.sum(core.mul(grad0, result), [dim], True)
    return core.sub(core.mul(grad0, core.sub(grad, inner)), core.mul(grad, outer))


def _log_softmax_first(grad0: Any, result: Any, dim: int) -> Any:
    part = core.sum(core.mul(grad0, core.exp(result)), [dim], True)
    return core.sub(grad0, part)


def _log_softmax_second(grad0: Any, grad: Any, result: Any, dim: int) -> Any:
    total = core.sum(grad, [dim], True)
    return core.neg(core.mul(grad0, core.mul(core.exp(result), total)))


def _layer_norm(
    grad: Any,
    input_: Any,
    normalized_shape: Sequence[int],
    weight: Any,
    bias: Any,
    eps: float,
    result1: Any,
    result2: Any,
    needs: Needs,
) -> Any:
    if not GRAD.enabled:
        return core.native_layer_norm_backward(
            grad, input_, normalized_shape, result1, result2, weight, bias, [*needs]
        )
    inner = [*range(-len(normalized_shape), 0)]
    outer = [*range(len(input_.shape) - len(normalized_shape))]
    centred = core.sub(input_, core.mean(input_, inner, True))
    spread = core.mean(core.mul(centred, centred), inner, True)
    rstd = core.rsqrt(core.add(spread, eps))
    normal = core.mul(centred, rstd)
    by_input = by_weight = by_bias = None
    if needs[0]:
        scaled = grad if weight is None else core.mul(grad, weight)
        along = core.mul(normal, core.mean(core.mul(scaled, normal), inner, True))
        level = core.mean(scaled, inner, True)
        by_input = core.mul(rstd, core.sub(core.sub(scaled, level), along))
    if needs[1]:
        product = core.mul(grad, normal)
        by_weight = core.sum(product, outer) if outer else product
    if needs[2]:
        by_bias = core.sum(grad, outer) if outer else grad
    return by_input, by_weight, by_bias


def _dropout(grad: Any, p: float, train: bool, result1: Any) -> Any:
    if not train:
        return grad
    scale = 0.0 if p >= 1 else 1 / (1 - p)
    return core.mul(core.mul(grad, result1), scale)


def _embedding_backward(grad0: Any, indices: Any, padding_idx: int) -> Any:
    rows = core.embedding(grad0, indices, padding_idx)
    if padding_idx < 0:
        return rows
    padding = core.unsqueeze(core.eq(indices, padding_idx), -1)
    return core.masked_fill(rows, padding, 0)


def _max_pool2d_backward(grad0: Any, indices: Any) -> Any:
    shape = indices.shape
    planes = core.flatten(grad0, -2, -1)
    places = core.flatten(indices, -2, -1)
    return core.reshape(core.gather(planes, -1, places), shape)


FORMULAS: dict[str, Formulas] = {
    "softmax": {
        "self": lambda grad, result, dim: core.softmax_backward(grad, result, dim)
    },
    "softmax_backward": {
        "grad": lambda grad0, result, dim: core.softmax_backward(grad0, result, dim),
        "result": _softmax_second,
    },
    "log_softmax": {
        "self": lambda grad, result, dim: core.log_softmax_backward(grad, result, dim)
    },
    "log_softmax_backward": {
        "grad": _log_softmax_first,
        "result": _log_softmax_second,
    },
    "native_layer_norm": {("input", "weight", "bias"): _layer_norm},
    "nll_loss_forward": {
        "self": lambda grad, self, target, weight, reduction, ignore_index, result1: (
            core.nll_loss_backward(
                grad, self, target, weight, reduction, ignore_index, result1
            )
        )
    },
    "nll_loss_backward": {
        "grad": lambda grad0, target, weight, reduction, ignore_index: core.nll_loss(
            grad0, target, weight, reduction, ignore_index
        ),
        "self": nothing_of,
    },
    "native_dropout": {"input": _dropout},
    "embedding": {
        "weight": lambda grad, indices, weight_shape, padding_idx: (
            core.embedding_backward(grad, indices, weight_shape[0], padding_idx)
        )
    },
    "embedding_backward": {"grad": _embedding_backward},
    "max_pool2d_with_indices": {
        "self": lambda grad, self, result1: core.max_pool2d_backward(
            grad, self, result1
        )
    },
    "max_pool2d_backward": {"grad": _max_pool2d_backward, "self": nothing_of},
}

# Results that are computed for the backward pass only.
CONSTANT = {"native_layer_norm": frozenset({1, 2}), "nll_loss_forward": frozenset({1})}
