"""Formulas of functions of two or three tensors, element by element.

True only here: nothing is broadcast back; the engine sums what was broadcast.  Python
numbers among the arguments are tensors of one element, and never require grad.

Where two arguments are equal, `maximum` and `minimum` give each half of the gradient.
"""

from math import log
from typing import Any

from runtime.autograd.formulas.unary import conj, nothing
from runtime.autograd.plan import Formulas
from runtime.operators.call import core


def _div_other(grad: Any, self: Any, other: Any, rounding_mode: str | None) -> Any:
    if rounding_mode is not None:
        return core.zeros_like(grad)
    slope = core.div(core.div(self, other), other)
    return core.neg(core.mul(grad, conj(slope)))


def _div_self(grad: Any, other: Any, rounding_mode: str | None) -> Any:
    if rounding_mode is not None:
        return core.zeros_like(grad)
    return core.div(grad, conj(other))


def _remainder_other(grad: Any, self: Any, other: Any) -> Any:
    return core.neg(core.mul(grad, core.div(self, other, rounding_mode="floor")))


def _pow_self(grad: Any, self: Any, other: Any) -> Any:
    exponent = other.number
    if exponent == 2:
        return core.mul(grad, core.mul(conj(self), 2))
    # The power 0 is constant, though 0 ** -1 has no value.
    if exponent == 0:
        return core.zeros_like(grad)
    if exponent is None:
        slope = core.mul(other, core.pow(self, core.sub(other, 1)))
        slope = core.masked_fill(slope, core.eq(other, 0), 0)
    else:
        slope = core.mul(core.pow(self, exponent - 1), exponent)
    return core.mul(grad, conj(slope))


def _pow_exponent(grad: Any, self: Any, other: Any, result: Any) -> Any:
    # The logarithm of an integer, by itself, would be one of single precision.
    slope = core.xlogy(result, self)
    # 0 to a power that is not negative stays 0, though log(0) has no value.
    stays = core.eq(self, 0)
    if not other.dtype.is_complex:
        stays = core.logical_and(stays, core.ge(other, 0))
    return core.mul(grad, conj(core.masked_fill(slope, stays, 0)))


def _larger(grad: Any, self: Any, other: Any) -> Any:
    shared = core.where(core.eq(self, other), core.mul(grad, 0.5), grad)
    return core.masked_fill(shared, core.lt(self, other), 0)


def _smaller(grad: Any, self: Any, other: Any) -> Any:
    shared = core.where(core.eq(self, other), core.mul(grad, 0.5), grad)
    return core.masked_fill(shared, core.gt(self, other), 0)


def _share(grad: Any, self: Any, other: Any, scale: float = 1.0) -> Any:
    """That of the logarithm of a sum; of equal infinities each has half."""
    same = core.logical_and(core.eq(self, other), core.isinf(self))
    apart = core.masked_fill(core.sub(self, other), same, 0)
    apart = apart if scale == 1 else core.mul(apart, scale)
    return core.mul(grad, conj(core.sigmoid(apart)))


def _square(value: Any) -> Any:
    # Numbers, by themselves, are of single precision.
    return core.mul(value, value) if value.number is None else value.number**2


def _over_square(grad: Any, self: Any, other: Any) -> Any:
    length = core.add(_square(self), _square(other))
    # The origin has no angle; by any other length both gradients are 0 there.
    return core.div(grad, core.masked_fill(length, core.eq(length, 0), 1))


def _clamp(grad: Any, self: Any, min_: Any, max_: Any) -> Any:
    """That of what lies within the bounds, which NaN does not."""
    if min_ is None:
        inside = core.le(self, max_)
    elif max_ is None:
        inside = core.ge(self, min_)
    else:
        inside = core.logical_and(core.ge(self, min_), core.le(self, max_))
    return core.masked_fill(grad, core.logical_not(inside), 0)


def _clamp_min(grad: Any, self: Any, min_: Any, max_: Any) -> Any:
    held = core.lt(self, min_)
    if max_ is not None:
        held = core.logical_and(held, core.lt(min_, max_))
    return core.masked_fill(grad, core.logical_not(held), 0)


def _clamp_max(grad: Any, self: Any, min_: Any, max_: Any) -> Any:
    held = core.gt(self, max_)
    if min_ is not None:
        held = core.logical_or(held, core.lt(max_, min_))
    return core.masked_fill(grad, core.logical_not(held), 0)


FORMULAS: dict[str, Formulas] = {
    "add": {
        "self": lambda grad: grad,
        "other": lambda grad, alpha: (
            grad if alpha == 1 else core.mul(grad, conj_number(alpha))
        ),
    },
    "sub": {
        "self": lambda grad: grad,
        "other": lambda grad, alpha: (
            core.neg(grad) if alpha == 1 else core.mul(grad, -conj_number(alpha))
        ),
    },
    "mul": {
        "self": lambda grad, other: core.mul(grad, conj(other)),
        "other": lambda grad, self: core.mul(grad, conj(self)),
    },
    "div": {"self": _div_self, "other": _div_other},
    "remainder": {"self": lambda grad: grad, "other": _remainder_other},
    "fmod": {
        "self": lambda grad: grad,
        "other": lambda grad, self, other: core.neg(
            core.mul(grad, core.div(self, other, rounding_mode="trunc"))
        ),
    },
    "hypot": {
        "self": lambda grad, self, result: core.mul(grad, core.div(self, result)),
        "other": lambda grad, other, result: core.mul(grad, core.div(other, result)),
    },
    "logaddexp": {
        "self": _share,
        "other": lambda grad, self, other: _share(grad, other, self),
    },
    "logaddexp2": {
        "self": lambda grad, self, other: _share(grad, self, other, log(2)),
        "other": lambda grad, self, other: _share(grad, other, self, log(2)),
    },
    "xlogy": {
        "self": lambda grad, self, other: core.masked_fill(
            # As in `_pow_exponent`.
            core.xlogy(grad, conj(other)),
            core.logical_and(core.eq(self, 0), core.eq(other, 0)),
            0,
        ),
        "other": lambda grad, self, other: core.mul(grad, conj(core.div(self, other))),
    },
    "pow": {"self": _pow_self, "other": _pow_exponent},
    "maximum": {
        "self": _larger,
        "other": lambda grad, self, other: _larger(grad, other, self),
    },
    "minimum": {
        "self": _smaller,
        "other": lambda grad, self, other: _smaller(grad, other, self),
    },
    "atan2": {
        "self": lambda grad, self, other: core.mul(
            _over_square(grad, self, other), other
        ),
        "other": lambda grad, self, other: core.neg(
            core.mul(_over_square(grad, self, other), self)
        ),
    },
    "where": {
        "self": lambda grad, condition: core.masked_fill(
            grad, core.logical_not(condition), 0
        ),
        "other": lambda grad, condition: core.masked_fill(grad, condition, 0),
    },
    "clamp": {"self": _clamp},
    "clamp.Tensor": {"self": _clamp, "min": _clamp_min, "max": _clamp_max},
    "masked_fill": {"self": lambda grad, mask: core.masked_fill(grad, mask, 0)},
    "floor_divide": {"self": nothing, "other": nothing},
}


def conj_number(number: Any) -> Any:
    """The conjugate of a Python number."""
    return number.conjugate()
