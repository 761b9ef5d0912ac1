"""Formulas of reductions, products, and neural network functions.

The gradient of a reduction is expanded over the reduced dimensions: these are restored
with size 1, and repeated. Matrix products, linear layers and convolutions are linear in
each argument, so that every gradient is another product of the same kind. Softmax,
normalisation, losses, dropout, embedding and pooling have a kernel for their gradient;
where that kernel does not have a formula (layer_norm), a recorded backward pass
computes the gradient from plain operators, which can be differentiated any number of
times.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from everyorder.runtime.autograd.elementwise_formulas import conj, nothing_of
from everyorder.runtime.autograd.grad_mode import GRAD
from everyorder.runtime.autograd.gradient_plan import Formulas
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.tensors.shape import reduced_shape, wrap_dims

Shape = tuple[int, ...]


def restored(value: Any, shape: Shape, dim: Sequence[int] | None, keepdim: bool) -> Any:
    """Return the result of a reduction of `shape` with the reduced dimensions of size
    1.

    A single number is returned unchanged: it broadcasts to any shape.
    """
    if keepdim or not value.shape:
        return value
    kept_shape = reduced_shape(shape, wrap_dims(dim, len(shape)), True)
    return value if kept_shape == value.shape else core.view(value, kept_shape)


def _repeated(grad: Any, shape: Shape, dim: Sequence[int] | None, keepdim: bool) -> Any:
    return core.expand(restored(grad, shape, dim, keepdim), shape)


def _count(shape: Shape, dim: Sequence[int] | None) -> int:
    return prod(shape[d] for d in wrap_dims(dim, len(shape)))


def _mean(
    grad: Any, self_shape: Shape, dim: Sequence[int] | None, keepdim: bool
) -> Any:
    share = core.div(grad, max(_count(self_shape, dim), 1))
    return _repeated(share, self_shape, dim, keepdim)


def _prod(grad: Any, self: Any, dim: Sequence[int] | None, keepdim: bool) -> Any:
    """Return the product of the other elements: the full product divided by each.

    Where one element is zero, only that one has a gradient; where several are zero, no
    element has one. This form has no derivatives at zeros, so a recorded pass computes
    the product without a division.
    """
    shape = self.shape
    if GRAD.enabled:
        slope = _others(self, wrap_dims(dim, len(shape)))
        return core.mul(restored(grad, shape, dim, keepdim), conj(slope))
    zero = core.eq(self, 0)
    others = core.masked_fill(self, zero, 1)
    dims = wrap_dims(dim, len(shape))
    count = core.sum(zero, dims, True)
    product = core.prod(others, dims, True)
    by_zero = core.masked_fill(product, core.ne(count, 1), 0)
    by_other = core.div(core.masked_fill(product, core.ne(count, 0), 0), others)
    slope = core.where(zero, by_zero, by_other)
    return core.mul(restored(grad, shape, dim, keepdim), conj(slope))


def _others(self: Any, dims: tuple[int, ...]) -> Any:
    """Return, for each element, the product of those before and after it over
    `dims`.
    """
    shape = self.shape
    if 0 in shape:
        return core.ones_like(self)
    order = [*(at for at in range(len(shape)) if at not in dims), *dims]
    moved = core.permute(self, order)
    left = moved.shape[: len(shape) - len(dims)]
    rows = core.reshape(moved, [*left, prod(shape[dim] for dim in dims)])
    last = [len(left)]
    after = core.flip(_before(core.flip(rows, last)), last)
    products = core.reshape(core.mul(_before(rows), after), moved.shape)
    back = sorted(range(len(order)), key=order.__getitem__)
    return core.permute(products, back)


def _before(rows: Any) -> Any:
    """Return the product of the elements before each of a row, in doubling steps."""
    at = len(rows.shape) - 1
    size, step = rows.shape[at], 1
    products = _shifted(rows, at, 1)
    while step < size - 1:
        products = core.mul(products, _shifted(products, at, step))
        step *= 2
    return products


def _shifted(rows: Any, at: int, step: int) -> Any:
    """Return the rows shifted by `step` places and filled with ones."""
    ones = core.ones_like(core.slice(rows, at, 0, step))
    return core.cat([ones, core.slice(rows, at, 0, rows.shape[at] - step)], at)


def _var(
    grad: Any,
    self: Any,
    dim: Sequence[int] | None,
    correction: Any,
    keepdim: bool,
) -> Any:
    shape = self.shape
    degrees = _count(shape, dim) - (1 if correction is None else correction)
    scale = 2 / degrees if degrees > 0 else float("nan")
    centred = core.sub(self, core.mean(self, dim, True))
    return core.mul(restored(grad, shape, dim, keepdim), core.mul(centred, scale))


def _std(
    grad: Any,
    self: Any,
    result: Any,
    dim: Sequence[int] | None,
    correction: Any,
    keepdim: bool,
) -> Any:
    """Return the gradient of std; 0 for equal elements, where the root has no slope."""
    by_var = core.div(grad, core.mul(result, 2))
    by_var = core.masked_fill(by_var, core.eq(result, 0), 0)
    return _var(by_var, self, dim, correction, keepdim)


def _extreme(
    grad: Any, self: Any, result: Any, dim: Sequence[int] | None, keepdim: bool
) -> Any:
    """Return the gradient, shared among equal extremes; each NaN is an extreme."""
    shape = self.shape
    extreme = restored(result, shape, dim, keepdim)
    chosen = core.logical_or(core.eq(self, extreme), core.isnan(self))
    share = core.div(restored(grad, shape, dim, keepdim), core.sum(chosen, dim, True))
    return core.masked_fill(core.expand(share, shape), core.logical_not(chosen), 0)


def _all_extreme(grad: Any, self: Any, result: Any) -> Any:
    return _extreme(grad, self, result, None, False)


def _along(grad: Any, self_shape: Shape, dim: int, keepdim: bool, result1: Any) -> Any:
    """Return the gradient at the chosen element, and zero elsewhere."""
    if not self_shape:
        return grad
    if not keepdim:
        grad, result1 = core.unsqueeze(grad, dim), core.unsqueeze(result1, dim)
    zeros = core.zeros(self_shape, dtype=grad.dtype, device=grad.device)
    return core.scatter(zeros, dim, result1, grad)


def _cumsum(grad: Any, dim: int) -> Any:
    if not grad.shape:
        return grad
    return core.flip(core.cumsum(core.flip(grad, [dim]), dim), [dim])


REDUCTIONS: dict[str, Formulas] = {
    "sum": {
        "self": lambda grad, self_shape, dim, keepdim: _repeated(
            grad, self_shape, dim, keepdim
        )
    },
    "mean": {"self": _mean},
    "prod": {"self": _prod},
    "var": {"self": _var},
    "std": {"self": _std},
    **{name: {"self": _all_extreme} for name in ("max", "min")},
    **{name: {"self": _along} for name in ("max.dim", "min.dim")},
    **{name: {"self": _extreme} for name in ("amax", "amin")},
    "cumsum": {"self": _cumsum},
}


Needs = tuple[bool, ...]


def _turned(matrices: Any) -> Any:
    if matrices.dtype.is_complex:
        matrices = core.conj(matrices)
    if len(matrices.shape) == 2:
        return core.t(matrices)
    return core.transpose(matrices, -2, -1)


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


PRODUCTS: dict[str, Formulas] = {
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


NETWORKS: dict[str, Formulas] = {
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

# Results that only the backward pass uses.
CONSTANT_RESULTS = {
    "native_layer_norm": frozenset({1, 2}),
    "nll_loss_forward": frozenset({1}),
}
