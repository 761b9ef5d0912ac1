"""Gradient formulas of elementwise functions of one, two or three tensors.

Each formula multiplies the derivative by the gradient. For complex functions it uses
the conjugate of the derivative, so that the gradient is the direction of steepest
ascent of a real result (Wirtinger calculus; Kreutz-Delgado, "The Complex Gradient
Operator and the CR-Calculus", 2009).

An operator `f_backward(grad, x)` is a gradient itself, and linear in `grad`. Its
gradient by `grad` is therefore the operator again; its gradient by `x` needs the second
derivative of `f`. For complex numbers `f_backward` multiplies `grad` by the conjugate
of the slope, so the conjugates change sides: the gradient by `grad` contains the slope
itself.

Rules:
- a formula uses the result where that is cheaper than the argument; a function that is
  constant between its steps has the gradient zero;
- formulas do not undo broadcasting: the engine sums the broadcast dimensions; Python
  numbers among the arguments are tensors of one element, and never require grad;
- where two arguments are equal, `maximum` and `minimum` give each half of the gradient.
"""

from math import inf, pi, sqrt
from math import log as ln
from typing import Any

from everyorder.runtime.autograd.gradient_plan import Formulas
from everyorder.runtime.operators.declare.handles import core


def conj(tensor: Any) -> Any:
    """Return the conjugate of a complex tensor; return a real tensor unchanged."""
    return core.conj(tensor) if tensor.dtype.is_complex else tensor


def nothing(grad: Any) -> Any:
    """Return zero, the gradient of a piecewise constant function."""
    return core.zeros_like(grad)


def nothing_of(grad0: Any) -> Any:
    """Return zero, like `nothing`, for an operator that has an argument `grad`."""
    return core.zeros_like(grad0)


def _abs(grad: Any, self: Any) -> Any:
    if not self.dtype.is_complex:
        return core.mul(grad, core.sign(self))
    # The slope is the direction of each number. 0 has no direction: its gradients are
    # 0, to any order.
    length = core.abs(self)
    length = core.masked_fill(length, core.eq(length, 0), inf)
    return core.mul(grad, core.div(self, length))


def _rsqrt(grad: Any, result: Any) -> Any:
    cube = core.mul(core.mul(result, result), result)
    return core.mul(grad, core.mul(conj(cube), -0.5))


def _erf(grad: Any, self: Any) -> Any:
    slope = core.exp(core.neg(core.mul(self, self)))
    return core.mul(grad, core.mul(slope, 2 / sqrt(pi)))


def _square_and(self: Any, number: int, sign: int = 1) -> Any:
    """Return `number` plus (or, for a negative `sign`, minus) the square of each
    element.
    """
    square = core.mul(self, self)
    return core.add(square if sign > 0 else core.neg(square), number)


def _acosh(grad: Any, self: Any) -> Any:
    if not self.dtype.is_complex:
        return core.mul(grad, core.rsqrt(_square_and(self, -1)))
    # rsqrt of the product lies on the other side of the branch cut than this product.
    slope = core.mul(core.rsqrt(core.sub(self, 1)), core.rsqrt(core.add(self, 1)))
    return core.mul(grad, conj(slope))


UNARY: dict[str, Formulas] = {
    "sinh": {"self": lambda grad, self: core.mul(grad, conj(core.cosh(self)))},
    "cosh": {"self": lambda grad, self: core.mul(grad, conj(core.sinh(self)))},
    "asin": {
        "self": lambda grad, self: core.mul(
            grad, conj(core.rsqrt(_square_and(self, 1, -1)))
        )
    },
    "acos": {
        "self": lambda grad, self: core.neg(
            core.mul(grad, conj(core.rsqrt(_square_and(self, 1, -1))))
        )
    },
    "atan": {"self": lambda grad, self: core.div(grad, conj(_square_and(self, 1)))},
    "asinh": {
        "self": lambda grad, self: core.mul(
            grad, conj(core.rsqrt(_square_and(self, 1)))
        )
    },
    "acosh": {"self": _acosh},
    "atanh": {
        "self": lambda grad, self: core.div(grad, conj(_square_and(self, 1, -1)))
    },
    "erfc": {"self": lambda grad, self: core.neg(_erf(grad, self))},
    "neg": {"self": lambda grad: core.neg(grad)},
    "abs": {"self": _abs},
    "exp": {"self": lambda grad, result: core.mul(grad, conj(result))},
    "expm1": {"self": lambda grad, result: core.mul(grad, core.add(conj(result), 1))},
    "log": {"self": lambda grad, self: core.div(grad, conj(self))},
    "log1p": {"self": lambda grad, self: core.div(grad, core.add(conj(self), 1))},
    "log2": {"self": lambda grad, self: core.div(grad, core.mul(conj(self), ln(2)))},
    "log10": {"self": lambda grad, self: core.div(grad, core.mul(conj(self), ln(10)))},
    "sqrt": {"self": lambda grad, result: core.div(grad, core.mul(conj(result), 2))},
    "rsqrt": {"self": _rsqrt},
    "sin": {"self": lambda grad, self: core.mul(grad, conj(core.cos(self)))},
    "cos": {"self": lambda grad, self: core.neg(core.mul(grad, conj(core.sin(self))))},
    "tan": {
        "self": lambda grad, result: core.mul(
            grad, conj(core.add(core.mul(result, result), 1))
        )
    },
    "tanh": {"self": lambda grad, result: core.tanh_backward(grad, result)},
    "sigmoid": {"self": lambda grad, result: core.sigmoid_backward(grad, result)},
    "leaky_relu": {
        "self": lambda grad, self, negative_slope: core.leaky_relu_backward(
            grad, self, negative_slope, False
        )
    },
    "relu": {"self": lambda grad, result: core.relu_backward(grad, result)},
    "silu": {"self": lambda grad, self: core.silu_backward(grad, self)},
    "gelu": {
        "self": lambda grad, self, approximate: core.gelu_backward(
            grad, self, approximate=approximate
        )
    },
    "erf": {"self": _erf},
    "reciprocal": {
        "self": lambda grad, result: core.neg(
            core.mul(grad, conj(core.mul(result, result)))
        )
    },
    "square": {"self": lambda grad, self: core.mul(grad, core.mul(conj(self), 2))},
    "conj": {"self": lambda grad: conj(grad)},
    **{name: {"self": nothing} for name in ("sign", "floor", "ceil", "round", "trunc")},
    "bernoulli": {"self": nothing},
}


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
    # xlogy keeps the dtype: `log` of an integer alone would be of single precision.
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
    """Return the gradient of the logarithm of a sum of exponentials.

    Two equal infinities get half of the gradient each.
    """
    same = core.logical_and(core.eq(self, other), core.isinf(self))
    apart = core.masked_fill(core.sub(self, other), same, 0)
    apart = apart if scale == 1 else core.mul(apart, scale)
    return core.mul(grad, conj(core.sigmoid(apart)))


def _square(value: Any) -> Any:
    # Python numbers would become tensors of single precision.
    return core.mul(value, value) if value.number is None else value.number**2


def _over_square(grad: Any, self: Any, other: Any) -> Any:
    length = core.add(_square(self), _square(other))
    # The origin has no angle. Any other length will do: both gradients are 0 there.
    return core.div(grad, core.masked_fill(length, core.eq(length, 0), 1))


def _clamp(grad: Any, self: Any, min_: Any, max_: Any) -> Any:
    """Return the gradient of the elements within the bounds, and 0 for the others.

    NaN is not within any bounds.
    """
    if min_ is None:
        inside = core.le(self, max_)
    elif max_ is None:
        inside = core.ge(self, min_)
    else:
        inside = core.logical_and(core.ge(self, min_), core.le(self, max_))
    return core.masked_fill(grad, core.logical_not(inside), 0)


def _clamp_min(grad: Any, self: Any, min_: Any, max_: Any) -> Any:
    clamped = core.lt(self, min_)
    if max_ is not None:
        clamped = core.logical_and(clamped, core.lt(min_, max_))
    return core.masked_fill(grad, core.logical_not(clamped), 0)


def _clamp_max(grad: Any, self: Any, min_: Any, max_: Any) -> Any:
    clamped = core.gt(self, max_)
    if min_ is not None:
        clamped = core.logical_or(clamped, core.lt(max_, min_))
    return core.masked_fill(grad, core.logical_not(clamped), 0)


BINARY: dict[str, Formulas] = {
    "addcmul": {
        "self": lambda grad: grad,
        "tensor1": lambda grad, tensor2, value: core.mul(
            grad, core.mul(conj(tensor2), conj_number(value))
        ),
        "tensor2": lambda grad, tensor1, value: core.mul(
            grad, core.mul(conj(tensor1), conj_number(value))
        ),
    },
    "lerp.Scalar": {
        "self": lambda grad, weight: core.mul(grad, 1 - conj_number(weight)),
        "end": lambda grad, weight: core.mul(grad, conj_number(weight)),
    },
    "lerp.Tensor": {
        "self": lambda grad, weight: core.mul(
            grad, core.add(core.neg(conj(weight)), 1)
        ),
        "end": lambda grad, weight: core.mul(grad, conj(weight)),
        "weight": lambda grad, self, end: core.mul(grad, conj(core.sub(end, self))),
    },
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
        "self": lambda grad, self, other: _share(grad, self, other),
        "other": lambda grad, self, other: _share(grad, other, self),
    },
    "logaddexp2": {
        "self": lambda grad, self, other: _share(grad, self, other, ln(2)),
        "other": lambda grad, self, other: _share(grad, other, self, ln(2)),
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
    """Return the conjugate of a Python number."""
    return number.conjugate()


# sqrt(2 / pi) and the cubic coefficient of the tanh form of gelu.  Source: Hendrycks
# and Gimpel, "Gaussian Error Linear Units", 2016.
_SLOPE, _CUBIC = sqrt(2 / pi), 0.044715


def _bent(grad0: Any, grad: Any, bend: Any) -> Any:
    """Return the gradient by `x`, where `bend` is the second derivative of `f` at
    `x`.
    """
    return core.mul(core.mul(conj(grad0), grad), conj(bend))


def _sigmoid_second(grad0: Any, grad: Any, result: Any) -> Any:
    return _bent(grad0, grad, core.sub(1, core.mul(result, 2)))


def _tanh_second(grad0: Any, grad: Any, result: Any) -> Any:
    return _bent(grad0, grad, core.mul(result, -2))


def _silu_second(grad0: Any, grad: Any, self: Any) -> Any:
    s = core.sigmoid(self)
    slope = core.mul(s, core.sub(1, s))
    bend = core.add(core.mul(self, core.sub(1, core.mul(s, 2))), 2)
    return _bent(grad0, grad, core.mul(slope, bend))


def _gelu_second(grad0: Any, grad: Any, self: Any, approximate: str) -> Any:
    square = core.mul(self, self)
    if approximate == "none":
        density = core.mul(core.exp(core.mul(square, -0.5)), 1 / sqrt(2 * pi))
        bend = core.mul(density, core.sub(2, square))
    else:
        inner = core.mul(core.add(core.mul(square, _CUBIC), 1), core.mul(self, _SLOPE))
        t = core.tanh(inner)
        fall = core.sub(1, core.mul(t, t))
        first = core.mul(core.add(core.mul(square, 3 * _CUBIC), 1), _SLOPE)
        second = core.mul(self, 6 * _CUBIC * _SLOPE)
        curve = core.sub(second, core.mul(core.mul(t, core.mul(first, first)), 2))
        bend = core.mul(fall, core.add(first, core.mul(core.mul(self, 0.5), curve)))
    return core.mul(core.mul(grad0, grad), bend)


OF_GRADIENTS: dict[str, Formulas] = {
    # The slope of relu is constant wherever it is defined.
    "relu_backward": {
        "grad": lambda grad0, result: core.relu_backward(grad0, result),
        "result": nothing_of,
    },
    "threshold_backward": {
        "grad_output": lambda grad, self, threshold: core.threshold_backward(
            grad, self, threshold
        ),
        "self": nothing,
    },
    "leaky_relu_backward": {
        "grad_output": lambda grad, self, negative_slope: core.leaky_relu_backward(
            grad, self, negative_slope, False
        ),
        "self": nothing,
    },
    "sigmoid_backward": {
        "grad": lambda grad0, result: conj(core.sigmoid_backward(conj(grad0), result)),
        "result": _sigmoid_second,
    },
    "tanh_backward": {
        "grad": lambda grad0, result: conj(core.tanh_backward(conj(grad0), result)),
        "result": _tanh_second,
    },
    "silu_backward": {
        "grad": lambda grad0, self: conj(core.silu_backward(conj(grad0), self)),
        "self": _silu_second,
    },
    "gelu_backward": {
        "grad": lambda grad0, self, approximate: core.gelu_backward(
            grad0, self, approximate=approximate
        ),
        "self": _gelu_second,
    },
}
