"""Functions of one, two and three numbers: one table for all devices.

A row of `UNARY`, `BINARY` or `TERNARY` says what a kernel computes of one element of
each operand.  Loops are the devices' own; scripts fuse the same functions.

How it works: a row holds makers.  A maker is given what a device computes by itself,
`Functions` or `Reals`, and gives the function: plain Python that both compilers take.
On the CPU `exp` and its like are our polynomials, on CUDA those of libdevice; of
complex numbers `runtime.kernels.math.complex` puts them together.

Rules:
- a function is given by the kind of the dtype: `real` for what has none of its own;
- integers wrap, are divided downwards, and a divisor of 0 is found before; NaN wins in
  `maximum` and `minimum`;
- a constant is made by `like` in the type of an element, or all would be widened; a
  comparison with a literal costs nothing;
- what a function calls has gone through `compiled`;
- a gradient takes the slope from the result where that is all it takes (relu, sigmoid,
  tanh), else from the argument; of complex numbers it takes the slope's conjugate.

A row that is added here is a kernel on every device; what an operator of it accepts is
said in `runtime.operators`.
"""

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from runtime.kernels.math.complex import LOG2_E, Functions, Reals, Scalar

INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float32", "float64")
COMPLEXES = ("complex64", "complex128")
INEXACT = (*FLOATS, *COMPLEXES)
REALS = (*INTEGERS, *FLOATS)
NUMBERS = (*REALS, *COMPLEXES)
ORDERED = ("bool", *REALS)
ALL = ("bool", *NUMBERS)
BITS = ("bool", *INTEGERS)

# Elements for each thread.  To call a second thread costs 10 us and gains nothing below
# some 40 us of work; float32 loops that read and write do 1e5 elements in 10 us, those
# with an exponential in 20, those with several in 50; others are near or above 5 ns an
# element.
LIGHT, HEAVY, HEAVIEST, SLOW = 500_000, 100_000, 40_000, 20_000

# 1 / sqrt(2) and 1 / sqrt(2 pi); sqrt(2 / pi) and the cubic term of the approximation
# by tanh (Hendrycks and Gimpel, "Gaussian error linear units").
ROOT_HALF, DENSITY = 0.7071067811865476, 0.3989422804014327
ROOT_TWO_BY_PI, CUBIC = 0.7978845608028654, 0.044715

INFINITE, LN_2 = float("inf"), 0.6931471805599453


class Function(NamedTuple):
    """A function of numbers.

    Attributes:
        real: from a device's functions to the one of elements.
        dtypes: what it is computed in where it is compiled ahead.
        whole, complex: of integers and of complex numbers, where it is another one.
        result: the dtype of what it gives: "T" its operands', "R" the real type of
            that, or "bool".
        grain: from how many elements on each of several threads is worth its call.
    """

    real: Callable[[Reals], Scalar]
    dtypes: tuple[str, ...]
    whole: Callable[[Reals], Scalar] | None = None
    complex: Callable[[Functions], Scalar] | None = None
    result: str = "T"
    grain: int = LIGHT


def _alike(scalar: Scalar) -> Callable[[Functions], Scalar]:
    """A function that needs nothing of the device."""
    return lambda on: scalar


def _own(name: str) -> Callable[[Functions], Scalar]:
    """A function that the device has."""

    def make(on: Functions) -> Scalar:
        found: Scalar = getattr(on, name)
        return found

    return make


def _inexact(name: str, grain: int = HEAVY) -> Function:
    """A function that the device has, of real and of complex numbers."""
    return Function(_own(name), INEXACT, complex=_own(name), grain=grain)


def _everywhere(maker: Callable[[Functions], Scalar], grain: int = LIGHT) -> Function:
    """One formula for real and complex numbers."""
    return Function(maker, INEXACT, complex=maker, grain=grain)


# Of one number.


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


def _sign(on: Reals) -> Scalar:
    like = on.like

    def sign(x: Any) -> Any:
        # NaN, which is on neither side of zero, gives 0, as it does in torch.
        above = like(x, 1) if x > 0 else like(x, 0)
        return like(x, -1) if x < 0 else above

    return sign


def _complex_sign(x: Any) -> Any:
    size = abs(x)
    return x / size if size != 0 else x


def _relu(on: Reals) -> Scalar:
    like = on.like

    def relu(x: Any) -> Any:
        # NaN is not below zero and stays.
        return like(x, 0) if x < 0 else x

    return relu


def _reciprocal(on: Functions) -> Scalar:
    like, divide = on.like, on.divide

    def reciprocal(x: Any) -> Any:
        return divide(like(x, 1), x)

    return reciprocal


def _rsqrt(on: Functions) -> Scalar:
    like, divide, sqrt = on.like, on.divide, on.sqrt

    def rsqrt(x: Any) -> Any:
        return divide(like(x, 1), sqrt(x))

    return rsqrt


def _sigmoid(on: Reals) -> Scalar:
    like, exp = on.like, on.exp

    def sigmoid(x: Any) -> Any:
        # 1 / (1 + e^-x); the exponent is made negative, so that nothing overflows: at
        # most 3 ulp off, also where it is denormal.
        e = exp(-abs(x))
        y = like(x, 1) / (like(x, 1) + e)
        return e * y if x < 0 else y

    return sigmoid


def _complex_sigmoid(on: Functions) -> Scalar:
    like, divide, exp = on.like, on.divide, on.exp

    def sigmoid(x: Any) -> Any:
        return divide(like(x, 1), like(x, 1) + exp(-x))

    return sigmoid


def _silu(on: Reals) -> Scalar:
    sigmoid = on.compiled(_sigmoid(on))

    def silu(x: Any) -> Any:
        # At most 4 ulp off; with a denormal weight, x times the least number besides.
        return x * sigmoid(x)

    return silu


def _complex_silu(on: Functions) -> Scalar:
    like, divide, exp = on.like, on.divide, on.exp

    def silu(x: Any) -> Any:
        return divide(x, like(x, 1) + exp(-x))

    return silu


def _gelu(on: Reals) -> Scalar:
    like, weight = on.like, on.weight

    def gelu(x: Any) -> Any:
        # x (1 + erf(x / sqrt 2)) / 2.  At most 3 ulp off where x is positive; where it
        # is not, 2 ulp of x, as 1 is added.
        share = like(x, 1) + weight(x * like(x, ROOT_HALF))
        return like(x, 0.5) * x * share

    return gelu


def _gelu_tanh(on: Reals) -> Scalar:
    like, tanh = on.like, on.tanh

    def gelu_tanh(x: Any) -> Any:
        # At most 2 ulp off where x is positive; where it is not, 1 ulp of x.
        inner = like(x, ROOT_TWO_BY_PI) * (x + like(x, CUBIC) * x * x * x)
        return like(x, 0.5) * x * (like(x, 1) + tanh(inner))

    return gelu_tanh


# What an integer is not changed by: there it is a copy.
ROUNDED = ("floor", "ceil", "round", "trunc")

# `approximate` of gelu -> its row; that of the gradient has `_backward` behind.
GELU = {"none": "gelu", "tanh": "gelu_tanh"}

UNARY: dict[str, Function] = {
    "neg": Function(_alike(operator.neg), NUMBERS, complex=_alike(operator.neg)),
    "abs": Function(_alike(_abs), NUMBERS, complex=_own("absolute"), result="R"),
    "sign": Function(_sign, REALS, complex=_alike(_complex_sign)),
    "square": Function(_alike(_square), NUMBERS, complex=_alike(_square)),
    "relu": Function(_relu, REALS),
    "floor": Function(_own("floor"), FLOATS),
    "ceil": Function(_own("ceil"), FLOATS),
    "round": Function(_own("rint"), FLOATS),
    "trunc": Function(_own("trunc"), FLOATS),
    # Of bool it is `logical_not`.
    "bitwise_not": Function(_alike(operator.invert), INTEGERS),
    # Of real numbers it is a copy.
    "conj": Function(_own("conj"), COMPLEXES, complex=_own("conj")),
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
    # What the CPU asks the C library for, one by one.
    **{
        name: _inexact(name, HEAVIEST)
        for name in (
            *("sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh"),
        )
    },
    "erf": Function(_own("erf"), FLOATS, grain=HEAVIEST),
    "erfc": Function(_own("erfc"), FLOATS, grain=HEAVIEST),
    "sigmoid": Function(_sigmoid, INEXACT, complex=_complex_sigmoid, grain=HEAVY),
    "silu": Function(_silu, INEXACT, complex=_complex_silu, grain=HEAVY),
    "gelu": Function(_gelu, FLOATS, grain=HEAVIEST),
    "gelu_tanh": Function(_gelu_tanh, FLOATS, grain=HEAVIEST),
    "logical_not": Function(_alike(_logical_not), ALL, result="bool"),
    "isnan": Function(_alike(_isnan), INEXACT, result="bool"),
    "isinf": Function(
        _alike(_isinf), INEXACT, complex=_alike(_complex_isinf), result="bool"
    ),
    "isfinite": Function(_alike(_isfinite), INEXACT, result="bool"),
}

# What every integer answers.
CERTAIN = {"isnan": False, "isinf": False, "isfinite": True}


# Of two numbers.


def greatest(a: Any, b: Any) -> Any:
    """The greater of two numbers, or the NaN: whatever differs from itself."""
    return a if (a > b) | (a != a) else b


def least(a: Any, b: Any) -> Any:
    """The less of two numbers, or the NaN."""
    return a if (a < b) | (a != a) else b


def _logical_and(a: Any, b: Any) -> Any:
    return (a != 0) & (b != 0)


def _logical_or(a: Any, b: Any) -> Any:
    return (a != 0) | (b != 0)


def _logical_xor(a: Any, b: Any) -> Any:
    return (a != 0) != (b != 0)


def _remainder(on: Reals) -> Scalar:
    fmod, copysign = on.fmod, on.copysign

    def remainder(a: Any, b: Any) -> Any:
        # What C's division leaves, moved to the divisor's side of zero.
        rest = fmod(a, b)
        if rest == 0:
            return copysign(rest, b)
        return rest + b if (rest < 0) != (b < 0) else rest

    return remainder


def _floor_divide(on: Reals) -> Scalar:
    fmod, copysign, floor, like = on.fmod, on.copysign, on.floor, on.like

    def floor_divide(a: Any, b: Any) -> Any:
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

    return floor_divide


def _whole_divide(a: Any, b: Any) -> Any:
    # The least integer has no opposite: it wraps, where dividing would trap.
    return -a if b == -1 else a // b


def _whole_fmod(a: Any, b: Any) -> Any:
    rest = a % b
    return rest - b if (rest != 0) & ((a < 0) != (b < 0)) else rest


def _whole_power(on: Reals) -> Scalar:
    like = on.like

    def power(a: Any, b: Any) -> Any:
        result, base, rest = like(a, 1), a, b
        if rest < 0:
            # The whole part of a negative power: of 1 and -1 their powers, else 0.
            if base != 1 and base != -1:
                return like(a, 0)
            rest = rest & 1
        while rest > 0:
            if rest & 1:
                result = result * base
            base = base * base
            rest = rest >> 1
        return result

    return power


def _logaddexp(on: Reals) -> Scalar:
    exp, log1p, log, like = on.exp, on.log1p, on.log, on.like

    def logaddexp(a: Any, b: Any) -> Any:
        # Equal infinities have no difference; of other numbers one exponential is 1.
        if a == b:
            return a + log(like(a, 2))
        apart = a - b
        return (b if apart < 0 else a) + log1p(exp(-abs(apart)))

    return logaddexp


def _complex_logaddexp(on: Functions) -> Scalar:
    exp, log, like = on.exp, on.log, on.like

    def logaddexp(a: Any, b: Any) -> Any:
        if (a != a) | (b != b):
            parts = a.real + a.imag + b.real + b.imag
            return complex(parts, parts)
        less, most = (a, b) if a.real < b.real else (b, a)
        if (less.real == most.real) & (most.real - most.real != 0):
            # Both vanish, or both are infinite, each in a direction of its own.
            return most if most.real < 0 else log(exp(a) + exp(b))
        return most + log(like(a, 1) + exp(less - most))

    return logaddexp


def _logaddexp2(on: Reals) -> Scalar:
    exp, log1p, like = on.exp, on.log1p, on.like

    def logaddexp2(a: Any, b: Any) -> Any:
        # As `logaddexp`; that of two equal numbers is 1 more.
        if a == b:
            return a + like(a, 1)
        apart = a - b
        more = log1p(exp(-abs(apart) * like(a, LN_2)))
        return (b if apart < 0 else a) + more * like(a, LOG2_E)

    return logaddexp2


def _complex_logaddexp2(on: Functions) -> Scalar:
    like, natural = on.like, on.compiled(_complex_logaddexp(on))

    def logaddexp2(a: Any, b: Any) -> Any:
        # Part by part: infinity by a complex number is NaN.
        to, back = like(a, LN_2).real, like(a, LOG2_E).real
        found = natural(
            complex(a.real * to, a.imag * to), complex(b.real * to, b.imag * to)
        )
        return complex(found.real * back, found.imag * back)

    return logaddexp2


def _xlogy(on: Functions) -> Scalar:
    log = on.log

    def xlogy(a: Any, b: Any) -> Any:
        # 0 even where the logarithm is infinite; a logarithm of NaN is NaN.
        return a - a if (a == 0) & (b == b) else a * log(b)

    return xlogy


# Gradients of activations.


def _relu_backward(on: Reals) -> Scalar:
    like = on.like

    def relu_backward(grad: Any, result: Any) -> Any:
        # NaN passed relu, and so does its gradient.
        return like(grad, 0) if result <= 0 else grad

    return relu_backward


def _sigmoid_backward(on: Functions) -> Scalar:
    like, conj = on.like, on.compiled(on.conj)

    def sigmoid_backward(grad: Any, result: Any) -> Any:
        return grad * conj((like(result, 1) - result) * result)

    return sigmoid_backward


def _tanh_backward(on: Functions) -> Scalar:
    like, conj = on.like, on.compiled(on.conj)

    def tanh_backward(grad: Any, result: Any) -> Any:
        return grad * conj(like(result, 1) - result * result)

    return tanh_backward


def _silu_slope(on: Functions, sigmoid: Scalar) -> Scalar:
    like, conj, sigmoid = on.like, on.compiled(on.conj), on.compiled(sigmoid)

    def silu_backward(grad: Any, x: Any) -> Any:
        s = sigmoid(x)
        return grad * conj(s * (like(x, 1) + x * (like(x, 1) - s)))

    return silu_backward


def _silu_backward(on: Reals) -> Scalar:
    return _silu_slope(on, _sigmoid(on))


def _complex_silu_backward(on: Functions) -> Scalar:
    return _silu_slope(on, _complex_sigmoid(on))


def _gelu_backward(on: Reals) -> Scalar:
    like, weight, exp = on.like, on.weight, on.exp

    def gelu_backward(grad: Any, x: Any) -> Any:
        # The distribution plus the element times its density.
        share = like(x, 0.5) * (like(x, 1) + weight(x * like(x, ROOT_HALF)))
        slope = share + x * (exp(like(x, -0.5) * x * x) * like(x, DENSITY))
        return grad * slope

    return gelu_backward


def _gelu_tanh_backward(on: Reals) -> Scalar:
    like, tanh = on.like, on.tanh

    def gelu_tanh_backward(grad: Any, x: Any) -> Any:
        one, half = like(x, 1), like(x, 0.5)
        square = like(x, CUBIC) * x * x
        t = tanh(like(x, ROOT_TWO_BY_PI) * x * (one + square))
        inner = like(x, ROOT_TWO_BY_PI) * (one + like(x, 3) * square)
        return grad * (half * (one + t) + half * x * (one - t * t) * inner)

    return gelu_tanh_backward


# What is divided by is no 0 among integers: whoever runs these looks first.
DIVIDING = ("remainder", "floor_divide", "fmod")

BINARY: dict[str, Function] = {
    "add": Function(_alike(operator.add), ALL),
    "sub": Function(_alike(operator.sub), NUMBERS),
    "mul": Function(_alike(operator.mul), ALL),
    "div": _inexact("divide", LIGHT),
    "remainder": Function(_remainder, REALS, whole=_alike(operator.mod), grain=SLOW),
    "floor_divide": Function(
        _floor_divide, REALS, whole=_alike(_whole_divide), grain=SLOW
    ),
    "fmod": Function(_own("fmod"), REALS, whole=_alike(_whole_fmod), grain=SLOW),
    # A negative exponent of integers, as a number, is found before.
    "pow": Function(
        _own("power"), NUMBERS, whole=_whole_power, complex=_own("power"), grain=50_000
    ),
    "atan2": Function(_own("atan2"), FLOATS),
    "hypot": Function(_own("hypot"), FLOATS, grain=SLOW),
    "logaddexp": Function(_logaddexp, INEXACT, complex=_complex_logaddexp, grain=SLOW),
    "logaddexp2": Function(
        _logaddexp2, INEXACT, complex=_complex_logaddexp2, grain=SLOW
    ),
    "xlogy": _everywhere(_xlogy, HEAVY),
    "maximum": Function(_alike(greatest), ORDERED),
    "minimum": Function(_alike(least), ORDERED),
    "eq": Function(_alike(operator.eq), ALL, result="bool"),
    "ne": Function(_alike(operator.ne), ALL, result="bool"),
    "lt": Function(_alike(operator.lt), ORDERED, result="bool"),
    "le": Function(_alike(operator.le), ORDERED, result="bool"),
    "gt": Function(_alike(operator.gt), ORDERED, result="bool"),
    "ge": Function(_alike(operator.ge), ORDERED, result="bool"),
    "logical_and": Function(_alike(_logical_and), ALL, result="bool"),
    "logical_or": Function(_alike(_logical_or), ALL, result="bool"),
    "logical_xor": Function(_alike(_logical_xor), ALL, result="bool"),
    "bitwise_and": Function(_alike(operator.and_), BITS),
    "bitwise_or": Function(_alike(operator.or_), BITS),
    "bitwise_xor": Function(_alike(operator.xor), BITS),
    "relu_backward": Function(_relu_backward, FLOATS),
    "sigmoid_backward": _everywhere(_sigmoid_backward),
    "tanh_backward": _everywhere(_tanh_backward),
    "silu_backward": Function(
        _silu_backward, INEXACT, complex=_complex_silu_backward, grain=HEAVY
    ),
    "gelu_backward": Function(_gelu_backward, FLOATS, grain=HEAVIEST),
    "gelu_tanh_backward": Function(_gelu_tanh_backward, FLOATS, grain=HEAVIEST),
}


# Of three numbers.


def select(mask: Any, x: Any, y: Any) -> Any:
    """What `where` gives."""
    return x if mask else y


def bounded(x: Any, low: Any, high: Any) -> Any:
    """What `clamp` gives between two numbers that are not NaN; NaN stays."""
    v = low if x < low else x
    return high if v > high else v


def scaled(a: Any, b: Any, factor: Any) -> Any:
    """What `add` gives with a factor."""
    return a + factor * b
