"""Formulas of functions of one tensor, element by element.

True only here: the derivative of each function, times the gradient; of complex
functions the conjugate of it, so that the gradient is the direction of steepest ascent
of a real result (Wirtinger calculus; Kreutz-Delgado, "The Complex Gradient Operator and
the CR-Calculus", 2009).

Rules: a formula uses the result where that is cheaper than the argument; a function
that is constant between its steps has the gradient zero.
"""

from math import inf, pi, sqrt
from math import log as ln
from typing import Any

from runtime.autograd.plan import Formulas
from runtime.operators.call import core


def conj(tensor: Any) -> Any:
    """The conjugate of a complex tensor; a real one as it is."""
    return core.conj(tensor) if tensor.dtype.is_complex else tensor


def nothing(grad: Any) -> Any:
    """The gradient of what does not change: zero."""
    return core.zeros_like(grad)


def nothing_of(grad0: Any) -> Any:
    """As `nothing`, of an operator that has an argument `grad`."""
    return core.zeros_like(grad0)


def _abs(grad: Any, self: Any) -> Any:
    if not self.dtype.is_complex:
        return core.mul(grad, core.sign(self))
    # The direction of each number; 0 has none: its gradients are 0, to any order.
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
    """The number with the square of each element added, or taken away."""
    square = core.mul(self, self)
    return core.add(square if sign > 0 else core.neg(square), number)


def _acosh(grad: Any, self: Any) -> Any:
    if not self.dtype.is_complex:
        return core.mul(grad, core.rsqrt(_square_and(self, -1)))
    # The root of a product is on another side of the cut than the product of roots.
    slope = core.mul(core.rsqrt(core.sub(self, 1)), core.rsqrt(core.add(self, 1)))
    return core.mul(grad, conj(slope))


FORMULAS: dict[str, Formulas] = {
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
