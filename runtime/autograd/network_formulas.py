"""Formulas of products and of neural network functions.

Matrix products, linear layers and convolutions are linear in each argument, so that
every gradient is another product of the same kind.  Softmax, normalisation, losses,
dropout, embedding, pooling and attention have an operator for their gradient; where
that one does not have a formula (normalisation, attention), a recorded backward pass
computes the gradient from plain operators, which can be differentiated any number of
times.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from everyorder.runtime.autograd.elementwise_formulas import (
    conj,
    conj_number,
    nothing,
    nothing_of,
)
from everyorder.runtime.autograd.grad_mode import GRAD
from everyorder.runtime.autograd.gradient_plan import Formulas
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.decompositions import attention_gradients
from everyorder.runtime.operators.nn_layers import (
    batch_norm_gradients,
    batch_statistics,
)

Shape = tuple[int, ...]
Needs = tuple[bool, ...]


def _turned(matrices: Any) -> Any:
    if matrices.dtype.is_complex:
        matrices = core.conj(matrices)
    if len(matrices.shape) == 2:
        return core.t(matrices)
    return core.transpose(matrices, -2, -1)


Layout = tuple[Shape, Shape, int]


def _by_columns(layout: Layout) -> bool:
    """Return True for a matrix that is stored column by column, as `weight.t()`."""
    (rows, _), strides, _ = layout
    return strides == (1, rows)


def _by_left(grad: Any, right: Any, layout: Layout) -> Any:
    """Return the gradient of the left matrix of a product, stored as it is."""
    if _by_columns(layout):
        return core.t(core.mm(conj(right), core.t(grad)))
    return core.mm(grad, _turned(right))


def _by_right(grad: Any, left: Any, layout: Layout) -> Any:
    """Return the gradient of the right matrix of a product, stored as it is."""
    if _by_columns(layout):
        return core.t(core.mm(core.t(grad), conj(left)))
    return core.mm(_turned(left), grad)


def _rows(tensor: Any) -> Any:
    """Return the matrix with all dimensions but the last combined."""
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
    """Return the gradients of the three gradients of a convolution.

    They are linear in grad, input and weight.
    """
    by_input, by_weight, by_bias = grads
    how = (stride, padding, dilation, groups)
    gradients: list[Any] = [None, None, None]
    if needs[0]:
        parts = []
        if by_input is not None:
            parts.append(core.conv2d(by_input, weight, None, *how))
        if by_weight is not None:
            parts.append(core.conv2d(input_, by_weight, None, *how))
        if by_bias is not None:
            parts.append(core.expand(core.view(by_bias, [-1, 1, 1]), grad.shape))
        gradients[0] = _sum(parts)
    if needs[1] and by_weight is not None:
        mask = [True, False, False]
        gradients[1] = core.conv2d_backward(grad, input_, by_weight, False, *how, mask)[
            0
        ]
    if needs[2] and by_input is not None:
        mask = [False, True, False]
        gradients[2] = core.conv2d_backward(grad, by_input, weight, False, *how, mask)[
            1
        ]
    return gradients[0], gradients[1], gradients[2]


def _sum(parts: Sequence[Any]) -> Any:
    total = None
    for part in parts:
        total = part if total is None else core.add(total, part)
    return total


def _convolution(
    grad: Any,
    input_: Any,
    weight: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    output_padding: Sequence[int],
    groups: int,
    needs: Needs,
) -> Any:
    sizes = [weight.shape[0]] if needs[2] else None
    how = (stride, padding, dilation, False, output_padding, groups)
    return core.convolution_backward(grad, input_, weight, sizes, *how, [*needs])


def _convolution_backward(
    grads: Sequence[Any],
    grad_output: Any,
    input_: Any,
    weight: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    needs: Needs,
) -> Any:
    how = (groups, needs)
    if len(weight.shape) == 4:
        return _conv2d_backward(
            grads, grad_output, input_, weight, stride, padding, dilation, *how
        )
    # Signals are images of one row.
    *flat, by_bias = grads
    high = [None if each is None else core.unsqueeze(each, -2) for each in flat]
    found = _conv2d_backward(
        [*high, by_bias],
        core.unsqueeze(grad_output, -2),
        core.unsqueeze(input_, -2),
        core.unsqueeze(weight, -2),
        [1, *stride],
        [0, *padding],
        [1, *dilation],
        *how,
    )
    return tuple(None if each is None else core.squeeze(each, [-2]) for each in found)


def _times(tensor: Any, factor: Any) -> Any:
    return tensor if factor == 1 else core.mul(tensor, conj_number(factor))


PRODUCTS: dict[str, Formulas] = {
    "mm": {
        "self": lambda grad, mat2, self_layout: _by_left(grad, mat2, self_layout),
        "mat2": lambda grad, self, mat2_layout: _by_right(grad, self, mat2_layout),
    },
    "bmm": {
        "self": lambda grad, mat2: core.bmm(grad, _turned(mat2)),
        "mat2": lambda grad, self: core.bmm(_turned(self), grad),
    },
    "addmm": {
        "self": lambda grad, beta: _times(grad, beta),
        "mat1": lambda grad, mat2, mat1_layout, alpha: _times(
            _by_left(grad, mat2, mat1_layout), alpha
        ),
        "mat2": lambda grad, mat1, mat2_layout, alpha: _times(
            _by_right(grad, mat1, mat2_layout), alpha
        ),
    },
    "mv": {
        "self": lambda grad, vec: core.outer(grad, conj(vec)),
        "vec": lambda grad, self: core.mv(_turned(self), grad),
    },
    "dot": {
        "self": lambda grad, other: core.mul(grad, conj(other)),
        "other": lambda grad, self: core.mul(grad, conj(self)),
    },
    "linear": {("input", "weight", "bias"): _linear},
    "conv2d": {("input", "weight", "bias"): _conv2d},
    "conv2d_backward": {("grad", "input", "weight"): _conv2d_backward},
    "convolution": {("input", "weight", "bias"): _convolution},
    "convolution_backward": {
        ("grad_output", "input", "weight"): _convolution_backward,
    },
}


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


def _batch_norm(
    grad: Any,
    input_: Any,
    weight: Any,
    training: bool,
    eps: float,
    result1: Any,
    result2: Any,
    needs: Needs,
) -> Any:
    # Not by the running ones, which a call in training changes.
    mean, rstd = result1, result2
    if not GRAD.enabled:
        how = (None, None, mean, rstd, training, eps, [*needs])
        return core.native_batch_norm_backward(grad, input_, weight, *how)
    if training:
        mean, var = batch_statistics(input_)
        rstd = core.rsqrt(core.add(var, eps))
    return batch_norm_gradients(grad, input_, weight, mean, rstd, training, needs)


def _attention(
    grad0: Any,
    query: Any,
    key: Any,
    value: Any,
    is_causal: bool,
    attn_mask: Any,
    scale: float | None,
    result0: Any,
    result1: Any,
    needs: Needs,
) -> Any:
    tensors, masking = (query, key, value), {"attn_mask": attn_mask, "scale": scale}
    if GRAD.enabled:
        return attention_gradients(grad0, *tensors, is_causal, **masking)
    run = core._scaled_dot_product_flash_attention_for_cpu_backward
    return run(grad0, *tensors, result0, result1, 0.0, is_causal, **masking)


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


def _max_pool2d(
    grad: Any,
    self: Any,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    result1: Any,
) -> Any:
    how = (kernel_size, stride, padding, dilation, ceil_mode)
    return core.max_pool2d_with_indices_backward(grad, self, *how, result1)


def _max_pool2d_backward(grad: Any, indices: Any) -> Any:
    shape = indices.shape
    planes = core.flatten(grad, -2, -1)
    places = core.flatten(indices, -2, -1)
    return core.reshape(core.gather(planes, -1, places), shape)


def _mse_by_gradient(
    grad: Any, grad_output: Any, self: Any, target: Any, reduction: str
) -> Any:
    """Return the slope of the gradient by the gradient of the loss, a linear form."""
    slopes = core.mul(grad, core.mul(core.sub(self, target), 2))
    if reduction == "none":
        return slopes
    return core.mean(slopes) if reduction == "mean" else core.sum(slopes)


def _mse_second(grad: Any, grad_output: Any, self_shape: Shape, reduction: str) -> Any:
    product = core.mul(core.mul(grad, grad_output), 2)
    return core.div(product, prod(grad.shape)) if reduction == "mean" else product


def _shared(grad: Any, slopes: Any, weight: Any, reduction: str) -> Any:
    """Return the gradient of a loss from the slope of each element."""
    gradient = core.mul(grad, slopes)
    if weight is not None:
        gradient = core.mul(gradient, weight)
    if reduction != "mean":
        return gradient
    return core.div(gradient, max(prod(gradient.shape), 1))


def _bce_self(
    grad: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: str
) -> Any:
    if pos_weight is None:
        slopes = core.sub(core.sigmoid(self), target)
    else:
        hits = core.mul(pos_weight, target)
        both = core.add(core.sub(hits, target), 1)
        slopes = core.sub(core.mul(both, core.sigmoid(self)), hits)
    return _shared(grad, slopes, weight, reduction)


def _certain(self: Any) -> Any:
    """Return -log(sigmoid(x))."""
    return core.logaddexp(core.neg(self), core.zeros_like(self))


def _bce_target(
    grad: Any, self: Any, weight: Any, pos_weight: Any, reduction: str
) -> Any:
    slopes = core.neg(self)
    if pos_weight is not None:
        slopes = core.add(slopes, core.mul(core.sub(pos_weight, 1), _certain(self)))
    return _shared(grad, slopes, weight, reduction)


def _bce_weight(
    grad: Any, self: Any, target: Any, pos_weight: Any, reduction: str
) -> Any:
    how = {"pos_weight": pos_weight, "reduction": "none"}
    losses = core.binary_cross_entropy_with_logits(self, target, **how)
    return _shared(grad, losses, None, reduction)


def _bce_pos_weight(
    grad: Any, self: Any, target: Any, weight: Any, reduction: str
) -> Any:
    return _shared(grad, core.mul(target, _certain(self)), weight, reduction)


NETWORKS: dict[str, Formulas] = {
    "binary_cross_entropy_with_logits": {
        "self": _bce_self,
        "target": _bce_target,
        "weight": _bce_weight,
        "pos_weight": _bce_pos_weight,
    },
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
    "_softmax": {
        "self": lambda grad, result, dim, self_dtype: core._softmax_backward_data(
            grad, result, dim, self_dtype
        )
    },
    "_softmax_backward_data": {
        "grad_output": lambda grad, output, dim: core.softmax_backward(
            grad, output, dim
        ),
        "output": lambda grad, grad_output, output, dim: _softmax_second(
            grad, grad_output, output, dim
        ),
    },
    "_log_softmax": {
        "self": lambda grad, result, dim, self_dtype: core._log_softmax_backward_data(
            grad, result, dim, self_dtype
        )
    },
    "_log_softmax_backward_data": {
        "grad_output": lambda grad, output, dim: _log_softmax_first(grad, output, dim),
        "output": lambda grad, grad_output, output, dim: _log_softmax_second(
            grad, grad_output, output, dim
        ),
    },
    "native_layer_norm": {("input", "weight", "bias"): _layer_norm},
    "_scaled_dot_product_flash_attention_for_cpu": {
        ("query", "key", "value"): _attention
    },
    "native_batch_norm": {("input", "weight", "bias"): _batch_norm},
    "mse_loss": {
        "self": lambda grad, self, target, reduction: core.mse_loss_backward(
            grad, self, target, reduction
        ),
        "target": lambda grad, self, target, reduction: core.mse_loss_backward(
            grad, target, self, reduction
        ),
    },
    "mse_loss_backward": {
        "grad_output": _mse_by_gradient,
        "self": _mse_second,
        "target": lambda grad, grad_output, self_shape, reduction: core.neg(
            _mse_second(grad, grad_output, self_shape, reduction)
        ),
    },
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
    "embedding_dense_backward": {
        "grad_output": lambda grad, indices, padding_idx: _embedding_backward(
            grad, indices, padding_idx
        )
    },
    "max_pool2d_with_indices": {"self": _max_pool2d},
    "max_pool2d_with_indices_backward": {
        "grad_output": _max_pool2d_backward,
        "self": nothing,
    },
}

# Results that only the backward pass uses.
CONSTANT_RESULTS = {
    "native_layer_norm": frozenset({1, 2}),
    "native_batch_norm": frozenset({1, 2}),
    "_scaled_dot_product_flash_attention_for_cpu": frozenset({1}),
    "nll_loss_forward": frozenset({1}),
}
