"""Formulas of reductions.

The gradient of a reduction is expanded over the reduced dimensions: these are restored
with size 1, and repeated.
"""

from collections.abc import Sequence
from math import inf, prod
from typing import Any

from everyorder.runtime.autograd.elementwise_formulas import conj
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
    dims = wrap_dims(dim, len(shape))
    if len(dims) == 1:
        return core.unsqueeze(value, dims[0])
    kept_shape = reduced_shape(shape, dims, True)
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
        slope = products_of_others(self, wrap_dims(dim, len(shape)))
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


def products_of_others(self: Any, dims: tuple[int, ...]) -> Any:
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


def _logsumexp(grad: Any, self: Any, dim: Sequence[int] | None, keepdim: bool) -> Any:
    """Return the gradient, shared by the exponentials.

    They are computed again from differences: those of the result have lost digits.
    """
    dims = wrap_dims(dim, len(self.shape))
    powers = self
    if self.numel():
        real = core.real(self) if self.dtype.is_complex else self
        most = core.amax(core.detach(real), dims, True)
        infinite = core.eq(core.abs(most), inf)
        powers = core.sub(self, core.masked_fill(most, infinite, 0))
    powers = core.exp(powers)
    total = core.sum(powers, dims, True)
    # Without any element above -inf no element has a slope.
    shares = core.div(powers, core.masked_fill(total, core.eq(total, 0), 1))
    return core.mul(restored(grad, self.shape, dim, keepdim), conj(shares))


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
    "logsumexp": {"self": _logsumexp},
}
