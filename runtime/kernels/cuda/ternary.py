"""Functions of three elements: where and clamp; and the gradients of activations.

True only here: choices between elements, and derivatives from results.

Rules: `where` moves elements of every dtype, 16-bit floats as their bits.  `clamp`
with one bound is `maximum` or `minimum`; NaN among the elements or the bounds wins.
The gradients take what the forward function left: its result, or its argument.
"""

import math
from collections.abc import Callable
from typing import Any

from runtime.kernels.cuda import scalars
from runtime.kernels.cuda.binary import FAMILIES
from runtime.kernels.cuda.copy import bits_of
from runtime.kernels.cuda.elementwise import family, run
from runtime.kernels.cuda.operand import Number, form
from runtime.kernels.cuda.scalars import Scalar
from runtime.kernels.cuda.unary import (
    ALL,
    CUBIC,
    FLOATS,
    INEXACT,
    INTEGERS,
    SQRT_2_PI,
    SQRT_HALF,
    is_complex,
)
from runtime.tensors.tensor import Tensor

Operand = Tensor | Number

# The density of the normal distribution at 0.
DENSITY = 1 / math.sqrt(2 * math.pi)


def _clamp(kind: Any) -> Scalar:
    def clamped(x, low, high):  # type: ignore[no-untyped-def]  # compiled for the device
        """The greater of the element and `low`, and the lesser of that and `high`."""
        y = x if (x > low or x != x) else low
        return y if (y < high or y != y) else high

    return clamped


def _relu_backward(kind: Any) -> Scalar:
    zero = kind(0)
    return lambda grad, result: zero if result <= zero else grad


def _sigmoid_backward(kind: Any) -> Scalar:
    one = kind(1)
    if is_complex(kind):
        return lambda grad, result: grad * ((one - result) * result).conjugate()
    return lambda grad, result: grad * (one - result) * result


def _tanh_backward(kind: Any) -> Scalar:
    one = kind(1)
    if is_complex(kind):
        return lambda grad, result: grad * (one - result * result).conjugate()
    return lambda grad, result: grad * (one - result * result)


def _gelu_backward(kind: Any) -> Scalar:
    half, one, scale, density = kind(0.5), kind(1), kind(SQRT_HALF), kind(DENSITY)
    exp, erf = scalars.exp, scalars.erf

    def gradient(grad, x):  # type: ignore[no-untyped-def]  # compiled for the device
        """The distribution plus the element times its density."""
        below = half * (one + erf(x * scale))
        return grad * (below + x * density * exp(-half * x * x))

    return gradient


def _gelu_tanh_backward(kind: Any) -> Scalar:
    half, one, scale, cubic = kind(0.5), kind(1), kind(SQRT_2_PI), kind(CUBIC)
    three, tanh = kind(3), scalars.tanh

    def gradient(grad, x):  # type: ignore[no-untyped-def]  # compiled for the device
        """The product rule on the tanh form."""
        square = x * x
        bent = tanh(scale * (x + cubic * x * square))
        slope = scale * (one + three * cubic * square)
        return grad * half * ((one + bent) + x * (one - bent * bent) * slope)

    return gradient


def _silu_backward(kind: Any) -> Scalar:
    one = kind(1)
    if is_complex(kind):
        over, complex_exp = scalars.complex_quotient, scalars.plane_of(kind).exp

        def turned(grad, x):  # type: ignore[no-untyped-def]  # compiled for the device
            """The same with the conjugate of the slope."""
            share = over(one, one + complex_exp(-x))
            return grad * (share * (one + x * (one - share))).conjugate()

        return turned
    exp = scalars.exp

    def gradient(grad, x):  # type: ignore[no-untyped-def]  # compiled for the device
        """The product rule on the element times its sigmoid."""
        share = one / (one + exp(-x))
        return grad * share * (one + x * (one - share))

    return gradient


_WHERE = family(
    "where",
    lambda kind: lambda chosen, x, y: x if chosen else y,
    (*ALL, "uint16"),
    operands="BTT",
)
_CLAMP = family("clamp", _clamp, (*INTEGERS, *FLOATS), operands="TTT")

_GRADIENTS = {
    "relu_backward": family("relu_backward", _relu_backward, FLOATS, operands="TT"),
    "sigmoid_backward": family(
        "sigmoid_backward", _sigmoid_backward, INEXACT, operands="TT"
    ),
    "tanh_backward": family("tanh_backward", _tanh_backward, INEXACT, operands="TT"),
    "silu_backward": family("silu_backward", _silu_backward, INEXACT, operands="TT"),
    "gelu_none_backward": family(
        "gelu_none_backward", _gelu_backward, FLOATS, operands="TT"
    ),
    "gelu_tanh_backward": family(
        "gelu_tanh_backward", _gelu_tanh_backward, FLOATS, operands="TT"
    ),
}


def where(out: Tensor, cond: Tensor, a: Operand, b: Operand) -> None:
    """`a` where the condition holds, else `b`."""
    name = form(out)
    first, second = (
        item if isinstance(item, Tensor) else bits_of(item, out.dtype)
        for item in (a, b)
    )
    run(_WHERE, (name,), out, (cond, "bool"), (first, name), (second, name))


def clamp(out: Tensor, x: Operand, low: Operand | None, high: Operand | None) -> None:
    """`x`, but not below `low` and not above `high`."""
    name = out.dtype.name
    if high is None or low is None:
        bound = low if high is None else high
        kernels = FAMILIES["maximum" if high is None else "minimum"]
        assert bound is not None, "the operator asks for one bound at least"
        run(kernels, (name,), out, (x, name), (bound, name))
        return
    run(_CLAMP, (name,), out, (x, name), (low, name), (high, name))


def gelu_backward(out: Tensor, grad: Tensor, x: Tensor, approximate: str) -> None:
    """The gradient of gelu, by erf (`none`) or by `tanh`."""
    name = x.dtype.name
    kernels = _GRADIENTS[f"gelu_{approximate}_backward"]
    run(kernels, (name,), out, (grad, name), (x, name))


def _gradient(name: str) -> Callable[[Tensor, Tensor, Tensor], None]:
    kernels = _GRADIENTS[name]

    def kernel(out: Tensor, grad: Tensor, given: Tensor) -> None:
        read = given.dtype.name
        run(kernels, (read,), out, (grad, read), (given, read))

    kernel.__name__ = kernel.__qualname__ = name
    return kernel


KERNELS: dict[str, Callable[..., None]] = {
    "where": where,
    "clamp": clamp,
    "gelu_backward": gelu_backward,
    **{name: _gradient(name) for name in _GRADIENTS if not name.startswith("gelu")},
}
