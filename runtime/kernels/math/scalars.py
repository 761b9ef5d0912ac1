"""Functions of one, two and three numbers: one table for all devices.

A row of `UNARY`, `BINARY` or `TERNARY` defines a kernel's result for one element of
each operand.  Each device has its own loops; scripts fuse the same functions.

A function is plain Python that both compilers accept, over `exp`, `like` and their
like. `bound` replaces these names by a device's functions (`Functions`): on the CPU by
the polynomials of `runtime.kernels.math.elementary`, on CUDA by those of libdevice;
`runtime.kernels.math.complex` combines them for complex numbers.

Rules:
- a function is selected by the kind of the dtype; `real` is the default for the others;
- integers wrap, are divided with rounding down, and a divisor of 0 is detected before;
  NaN propagates in `maximum` and `minimum`;
- a constant is made by `like` in the type of an element, or all would be widened; a
  comparison with a literal costs nothing;
- a gradient computes the slope from the result if that suffices (relu, sigmoid, tanh),
  else from the argument; for complex numbers it uses the slope's conjugate.

A new row is a kernel on every device; `runtime.operators` defines the dtypes that its
operator accepts.
"""

import operator
from math import fmod
from typing import Any, NamedTuple

from everyorder.runtime.kernels.math import (
    copysign,
    exp,
    floor,
    like,
    log,
    log1p,
    sqrt,
    tanh,
    weight,
)
from everyorder.runtime.kernels.math.complex import LOG2_E, Scalar, divide
from everyorder.runtime.kernels.math.complex import itself as conj

INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float32", "float64")
COMPLEXES = ("complex64", "complex128")
INEXACT = (*FLOATS, *COMPLEXES)
REALS = (*INTEGERS, *FLOATS)
NUMBERS = (*REALS, *COMPLEXES)
ORDERED = ("bool", *REALS)
ALL = ("bool", *NUMBERS)
BITS = ("bool", *INTEGERS)

# Elements per thread.  Starting a second thread costs 10 us and gains nothing below
# some 40 us of work; float32 loops that read and write process 1e5 elements in 10 us,
# those with an exponential in 20, those with several in 50; others take about 5 ns an
# element or more.
LIGHT, HEAVY, HEAVIEST, SLOW = 500_000, 100_000, 40_000, 20_000

# 1 / sqrt(2) and 1 / sqrt(2 pi); sqrt(2 / pi) and the cubic term of the approximation
# by tanh (Hendrycks and Gimpel, "Gaussian error linear units").
ROOT_HALF, DENSITY = 0.7071067811865476, 0.3989422804014327
ROOT_TWO_BY_PI, CUBIC = 0.7978845608028654, 0.044715

INFINITE, LN_2 = float("inf"), 0.6931471805599453


class ScalarFunction(NamedTuple):
    """A function of numbers.

    Attributes:
        real: the function of elements; a string names a function of the device.
        dtypes: the dtypes of computation that are compiled ahead.
        whole, complex: the functions of integers and of complex numbers, if they
            differ.
        result: the dtype of the result: "T" the operands', "R" the real type of that,
            or "bool".
        grain: the number of elements per thread from which several threads pay off.
    """

    real: Scalar | str
    dtypes: tuple[str, ...]
    whole: Scalar | str | None = None
    complex: Scalar | str | None = None
    result: str = "T"
    grain: int = LIGHT


def _inexact(name: str, grain: int = HEAVY) -> ScalarFunction:
    """Return the row of a function of the device, for real and complex numbers."""
    return ScalarFunction(name, INEXACT, complex=name, grain=grain)


def _everywhere(function: Scalar, grain: int = LIGHT) -> ScalarFunction:
    """Return the row of one formula for real and complex numbers."""
    return ScalarFunction(function, INEXACT, complex=function, grain=grain)


# Functions of one number.


def _abs(x: Any) -> Any:
    return abs(x)


def _square(x: Any) -> Any:
    return x * x


def _logical_not(x: Any) -> Any:
    return x == 0


def _isnan(x: Any) -> Any:
    return x != x


def _isinf(x: Any) -> Any:
    return abs(x) == INFINITE


def _complex_isinf(x: Any) -> Any:
    return (abs(x.real) == INFINITE) | (abs(x.imag) == INFINITE)


def _isfinite(x: Any) -> Any:
    return x - x == 0


def _sign(x: Any) -> Any:
    # NaN is on neither side of zero, and yields 0, as in torch.
    above = like(x, 1) if x > 0 else like(x, 0)
    return like(x, -1) if x < 0 else above


def _complex_sign(x: Any) -> Any:
    size = abs(x)
    return x / size if size != 0 else x


def _relu(x: Any) -> Any:
    # NaN is not below zero, and propagates.
    return like(x, 0) if x < 0 else x


def _reciprocal(x: Any) -> Any:
    return divide(like(x, 1), x)


def _rsqrt(x: Any) -> Any:
    return divide(like(x, 1), sqrt(x))


def _sigmoid(x: Any) -> Any:
    # 1 / (1 + e^-x); the exponent is made negative, so that nothing overflows: at most
    # 3 ulp off, also for a denormal result.
    e = exp(-abs(x))
    y = like(x, 1) / (like(x, 1) + e)
    return e * y if x < 0 else y


def _complex_sigmoid(x: Any) -> Any:
    return divide(like(x, 1), like(x, 1) + exp(-x))


def _silu(x: Any) -> Any:
    # At most 4 ulp off; with a denormal weight, plus x times the least number.
    return x * _sigmoid(x)


def _complex_silu(x: Any) -> Any:
    return divide(x, like(x, 1) + exp(-x))


def _gelu(x: Any) -> Any:
    # x (1 + erf(x / sqrt 2)) / 2.  At most 3 ulp off for positive x; else 2 ulp of x,
    # as 1 is added.
    share = like(x, 1) + weight(x * like(x, ROOT_HALF))
    return like(x, 0.5) * x * share


def _gelu_tanh(x: Any) -> Any:
    # At most 2 ulp off for positive x; else 1 ulp of x.
    inner = like(x, ROOT_TWO_BY_PI) * (x + like(x, CUBIC) * x * x * x)
    return like(x, 0.5) * x * (like(x, 1) + tanh(inner))


# Functions that do not change an integer: there they are copies.
ROUNDED = ("floor", "ceil", "round", "trunc")

# `approximate` of gelu -> its row; the row of the gradient has the suffix `_backward`.
GELU = {"none": "gelu", "tanh": "gelu_tanh"}

UNARY: dict[str, ScalarFunction] = {
    "neg": ScalarFunction(operator.neg, NUMBERS, complex=operator.neg),
    "abs": ScalarFunction(_abs, NUMBERS, complex="absolute", result="R"),
    "sign": ScalarFunction(_sign, REALS, complex=_complex_sign),
    "square": ScalarFunction(_square, NUMBERS, complex=_square),
    "relu": ScalarFunction(_relu, REALS),
    "floor": ScalarFunction("floor", FLOATS),
    "ceil": ScalarFunction("ceil", FLOATS),
    "round": ScalarFunction("rint", FLOATS),
    "trunc": ScalarFunction("trunc", FLOATS),
    # For bool it is `logical_not`.
    "bitwise_not": ScalarFunction(operator.invert, INTEGERS),
    # For real numbers it is a copy.
    "conj": ScalarFunction("conj", COMPLEXES, complex="conj"),
    "sqrt": _inexact("sqrt", LIGHT),
    "rsqrt": _everywhere(_rsqrt),
    "reciprocal": _everywhere(_reciprocal),
    **{
        name: _inexact(name)
        for name in (
            *("exp", "expm1", "log", "log1p", "log2", "log10"),
            *("sin", "cos", "tan", "tanh"),
        )
    },
    # The CPU calls the C library for each element.
    **{
        name: _inexact(name, HEAVIEST)
        for name in (
            *("sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh"),
        )
    },
    "erf": ScalarFunction("erf", FLOATS, grain=HEAVIEST),
    "erfc": ScalarFunction("erfc", FLOATS, grain=HEAVIEST),
    "sigmoid": ScalarFunction(_sigmoid, INEXACT, complex=_complex_sigmoid, grain=HEAVY),
    "silu": ScalarFunction(_silu, INEXACT, complex=_complex_silu, grain=HEAVY),
    "gelu": ScalarFunction(_gelu, FLOATS, grain=HEAVIEST),
    "gelu_tanh": ScalarFunction(_gelu_tanh, FLOATS, grain=HEAVIEST),
    "logical_not": ScalarFunction(_logical_not, ALL, result="bool"),
    "isnan": ScalarFunction(_isnan, INEXACT, result="bool"),
    "isinf": ScalarFunction(_isinf, INEXACT, complex=_complex_isinf, result="bool"),
    "isfinite": ScalarFunction(_isfinite, INEXACT, result="bool"),
}

# The result for every integer.
CERTAIN = {"isnan": False, "isinf": False, "isfinite": True}


# Functions of two numbers.


def greatest(a: Any, b: Any) -> Any:
    """Return the greater of two numbers, or the NaN: a value unequal to itself."""
    return a if (a > b) | (a != a) else b


def least(a: Any, b: Any) -> Any:
    """Return the lesser of two numbers, or the NaN."""
    return a if (a < b) | (a != a) else b


def _logical_and(a: Any, b: Any) -> Any:
    return (a != 0) & (b != 0)


def _logical_or(a: Any, b: Any) -> Any:
    return (a != 0) | (b != 0)


def _logical_xor(a: Any, b: Any) -> Any:
    return (a != 0) != (b != 0)


def _remainder(a: Any, b: Any) -> Any:
    # The remainder of C's division, moved to the divisor's side of zero.
    rest = fmod(a, b)
    if rest == 0:
        return copysign(rest, b)
    return rest + b if (rest < 0) != (b < 0) else rest


def _floor_divide(a: Any, b: Any) -> Any:
    if b == 0:
        return a / b
    rest = fmod(a, b)
    # Exact up to rounding: `a - rest` is a multiple of `b`.
    quotient = (a - rest) / b
    if (rest != 0) & ((rest < 0) != (b < 0)):
        quotient = quotient - like(quotient, 1)
    if quotient == 0:
        return copysign(quotient, a / b)
    below = floor(quotient)
    return below + like(below, 1) if quotient - below > 0.5 else below


def _whole_divide(a: Any, b: Any) -> Any:
    # The least integer has no opposite: it wraps, where a division would trap.
    return -a if b == -1 else a // b


def _whole_fmod(a: Any, b: Any) -> Any:
    rest = a % b
    return rest - b if (rest != 0) & ((a < 0) != (b < 0)) else rest


def _whole_power(a: Any, b: Any) -> Any:
    result, base, rest = like(a, 1), a, b
    if rest < 0:
        # The whole part of a negative power: for 1 and -1 their powers, else 0.
        if base != 1 and base != -1:
            return like(a, 0)
        rest = rest & 1
    while rest > 0:
        if rest & 1:
            result = result * base
        base = base * base
        rest = rest >> 1
    return result


def _logaddexp(a: Any, b: Any) -> Any:
    # Equal infinities have no difference; for other numbers one exponential is 1.
    if a == b:
        return a + log(like(a, 2))
    apart = a - b
    return (b if apart < 0 else a) + log1p(exp(-abs(apart)))


def _complex_logaddexp(a: Any, b: Any) -> Any:
    if (a != a) | (b != b):
        parts = a.real + a.imag + b.real + b.imag
        return complex(parts, parts)
    less, most = (a, b) if a.real < b.real else (b, a)
    if (less.real == most.real) & (most.real - most.real != 0):
        # Both vanish, or both are infinite, in different directions.
        return most if most.real < 0 else log(exp(a) + exp(b))
    return most + log(like(a, 1) + exp(less - most))


def _logaddexp2(a: Any, b: Any) -> Any:
    # As `logaddexp`; for two equal numbers, the result is 1 more.
    if a == b:
        return a + like(a, 1)
    apart = a - b
    more = log1p(exp(-abs(apart) * like(a, LN_2)))
    return (b if apart < 0 else a) + more * like(a, LOG2_E)


def _complex_logaddexp2(a: Any, b: Any) -> Any:
    # Part by part: the product of infinity and a complex number is NaN.
    to, back = like(a, LN_2).real, like(a, LOG2_E).real
    total = _complex_logaddexp(
        complex(a.real * to, a.imag * to), complex(b.real * to, b.imag * to)
    )
    return complex(total.real * back, total.imag * back)


def _xlogy(a: Any, b: Any) -> Any:
    # 0 even if the logarithm is infinite; a logarithm of NaN is NaN.
    return a - a if (a == 0) & (b == b) else a * log(b)


# Gradients of activations.


def _relu_backward(grad: Any, result: Any) -> Any:
    # NaN passed relu, and so does its gradient.
    return like(grad, 0) if result <= 0 else grad


def _sigmoid_backward(grad: Any, result: Any) -> Any:
    return grad * conj((like(result, 1) - result) * result)


def _tanh_backward(grad: Any, result: Any) -> Any:
    return grad * conj(like(result, 1) - result * result)


def _silu_slope(grad: Any, x: Any, s: Any) -> Any:
    return grad * conj(s * (like(x, 1) + x * (like(x, 1) - s)))


def _silu_backward(grad: Any, x: Any) -> Any:
    return _silu_slope(grad, x, _sigmoid(x))


def _complex_silu_backward(grad: Any, x: Any) -> Any:
    return _silu_slope(grad, x, _complex_sigmoid(x))


def _gelu_backward(grad: Any, x: Any) -> Any:
    # The distribution plus the element times its density.
    share = like(x, 0.5) * (like(x, 1) + weight(x * like(x, ROOT_HALF)))
    slope = share + x * (exp(like(x, -0.5) * x * x) * like(x, DENSITY))
    return grad * slope


def _gelu_tanh_backward(grad: Any, x: Any) -> Any:
    one, half = like(x, 1), like(x, 0.5)
    square = like(x, CUBIC) * x * x
    t = tanh(like(x, ROOT_TWO_BY_PI) * x * (one + square))
    inner = like(x, ROOT_TWO_BY_PI) * (one + like(x, 3) * square)
    return grad * (half * (one + t) + half * x * (one - t * t) * inner)


# The divisor must not be 0 among integers: callers check it first.
DIVIDING = ("remainder", "floor_divide", "fmod")

BINARY: dict[str, ScalarFunction] = {
    "add": ScalarFunction(operator.add, ALL),
    "sub": ScalarFunction(operator.sub, NUMBERS),
    "mul": ScalarFunction(operator.mul, ALL),
    "div": _inexact("divide", LIGHT),
    "remainder": ScalarFunction(_remainder, REALS, whole=operator.mod, grain=SLOW),
    "floor_divide": ScalarFunction(
        _floor_divide, REALS, whole=_whole_divide, grain=SLOW
    ),
    "fmod": ScalarFunction("fmod", REALS, whole=_whole_fmod, grain=SLOW),
    # A negative number as the exponent of integers is refused before.
    "pow": ScalarFunction(
        "power", NUMBERS, whole=_whole_power, complex="power", grain=50_000
    ),
    "atan2": ScalarFunction("atan2", FLOATS),
    "hypot": ScalarFunction("hypot", FLOATS, grain=SLOW),
    "logaddexp": ScalarFunction(
        _logaddexp, INEXACT, complex=_complex_logaddexp, grain=SLOW
    ),
    "logaddexp2": ScalarFunction(
        _logaddexp2, INEXACT, complex=_complex_logaddexp2, grain=SLOW
    ),
    "xlogy": _everywhere(_xlogy, HEAVY),
    "maximum": ScalarFunction(greatest, ORDERED),
    "minimum": ScalarFunction(least, ORDERED),
    "eq": ScalarFunction(operator.eq, ALL, result="bool"),
    "ne": ScalarFunction(operator.ne, ALL, result="bool"),
    "lt": ScalarFunction(operator.lt, ORDERED, result="bool"),
    "le": ScalarFunction(operator.le, ORDERED, result="bool"),
    "gt": ScalarFunction(operator.gt, ORDERED, result="bool"),
    "ge": ScalarFunction(operator.ge, ORDERED, result="bool"),
    "logical_and": ScalarFunction(_logical_and, ALL, result="bool"),
    "logical_or": ScalarFunction(_logical_or, ALL, result="bool"),
    "logical_xor": ScalarFunction(_logical_xor, ALL, result="bool"),
    "bitwise_and": ScalarFunction(operator.and_, BITS),
    "bitwise_or": ScalarFunction(operator.or_, BITS),
    "bitwise_xor": ScalarFunction(operator.xor, BITS),
    "relu_backward": ScalarFunction(_relu_backward, FLOATS),
    "sigmoid_backward": _everywhere(_sigmoid_backward),
    "tanh_backward": _everywhere(_tanh_backward),
    "silu_backward": ScalarFunction(
        _silu_backward, INEXACT, complex=_complex_silu_backward, grain=HEAVY
    ),
    "gelu_backward": ScalarFunction(_gelu_backward, FLOATS, grain=HEAVIEST),
    "gelu_tanh_backward": ScalarFunction(_gelu_tanh_backward, FLOATS, grain=HEAVIEST),
}


# Functions of three numbers.


def select(mask: Any, x: Any, y: Any) -> Any:
    """Return the result of `where`."""
    return x if mask else y


def bounded(x: Any, low: Any, high: Any) -> Any:
    """Return the result of `clamp` between numbers that are not NaN; NaN propagates."""
    v = low if x < low else x
    return high if v > high else v


def scaled(a: Any, b: Any, factor: Any) -> Any:
    """Return the result of `add` with a factor."""
    return a + factor * b
