"""Formulas of operators that are themselves gradients: what double backward needs.

True only here: second derivatives.  An operator `f_backward(grad, x)` is linear in
`grad`, so that its gradient by `grad` is the operator itself; by `x` it takes the
second derivative of `f`.  Of complex numbers it is `grad` by the conjugate of the
slope, so that the conjugates change sides: the slope itself comes back by `grad`.
"""

from math import pi, sqrt
from typing import Any

from runtime.autograd.formulas.unary import conj, nothing_of
from runtime.autograd.plan import Formulas
from runtime.operators.call import core

# sqrt(2 / pi) and the cubic coefficient of the tanh form of gelu.  Source: Hendrycks
# and Gimpel, "Gaussian Error Linear Units", 2016.
_SLOPE, _CUBIC = sqrt(2 / pi), 0.044715


def _bent(grad0: Any, grad: Any, bend: Any) -> Any:
    """The gradient by `x`, given the second derivative of `f` at `x`."""
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


FORMULAS: dict[str, Formulas] = {
    # The slope of relu does not change where it has one.
    "relu_backward": {
        "grad": lambda grad0, result: core.relu_backward(grad0, result),
        "result": nothing_of,
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
