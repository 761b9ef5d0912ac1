"""Formulas of reductions, and of running sums.

True only here: how a gradient comes back to the dimensions that were reduced: it is
given these dimensions again, of size 1, and repeated over them.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from runtime.autograd.formulas.unary import conj
from runtime.autograd.modes import GRAD
from runtime.autograd.plan import Formulas
from runtime.operators.call import core
from runtime.tensors.shape import reduced_shape, wrap_dims

Shape = tuple[int, ...]


def restored(value: Any, shape: Shape, dim: Sequence[int] | None, keepdim: bool) -> Any:
    """What a reduction of `shape` gave, with the reduced dimensions of size 1.

    One number stays as it is: it broadcasts to any shape.
    """
    if keepdim or not value.shape:
        return value
    kept = reduced_shape(shape, wrap_dims(dim, len(shape)), True)
    return value if kept == value.shape else core.view(value, kept)


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
    """The product of the others: of all by this one, where none is zero.

    Where one element is zero, only that one has a gradient; where several are, none.
    That has no derivatives at zeros, so what is recorded is made without a division.
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
    """The product of all others over `dims`, of each: of those before and after it."""
    shape = self.shape
    if 0 in shape:
        return core.ones_like(self)
    order = [*(at for at in range(len(shape)) if at not in dims), *dims]
    moved = core.permute(self, order)
    left = moved.shape[: len(shape) - len(dims)]
    rows = core.reshape(moved, [*left, prod(shape[dim] for dim in dims)])
    last = [len(left)]
    after = core.flip(_before(core.flip(rows, last)), last)
    found = core.reshape(core.mul(_before(rows), after), moved.shape)
    back = sorted(range(len(order)), key=order.__getitem__)
    return core.permute(found, back)


def _before(rows: Any) -> Any:
    """The product of the elements before each of a row, in steps that double."""
    at = len(rows.shape) - 1
    size, step = rows.shape[at], 1
    found = _shifted(rows, at, 1)
    while step < size - 1:
        found = core.mul(found, _shifted(found, at, step))
        step *= 2
    return found


def _shifted(rows: Any, at: int, step: int) -> Any:
    """The rows moved on by some places, which become ones."""
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
    """The root of 0 has no slope; equal elements get the gradient 0."""
    by_var = core.div(grad, core.mul(result, 2))
    by_var = core.masked_fill(by_var, core.eq(result, 0), 0)
    return _var(by_var, self, dim, correction, keepdim)


def _extreme(
    grad: Any, self: Any, result: Any, dim: Sequence[int] | None, keepdim: bool
) -> Any:
    """Equal extremes share the gradient; so do NaN, of which each is one."""
    shape = self.shape
    extreme = restored(result, shape, dim, keepdim)
    chosen = core.logical_or(core.eq(self, extreme), core.isnan(self))
    share = core.div(restored(grad, shape, dim, keepdim), core.sum(chosen, dim, True))
    return core.masked_fill(core.expand(share, shape), core.logical_not(chosen), 0)


def _all_extreme(grad: Any, self: Any, result: Any) -> Any:
    return _extreme(grad, self, result, None, False)


def _along(grad: Any, self_shape: Shape, dim: int, keepdim: bool, result1: Any) -> Any:
    """The one that was chosen has the gradient."""
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


FORMULAS: dict[str, Formulas] = {
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
