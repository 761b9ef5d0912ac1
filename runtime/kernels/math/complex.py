"""Functions of a device, and functions of complex numbers built from them.

`Functions` is the interface of a device to the rows of `runtime.kernels.math.scalars`:
`exp`, `tanh` and their like.  `Reals` is that for real numbers, from which `complexes`
builds the one for complex numbers.

Exponentials and circular functions: a real argument has a real result.  Otherwise the
values at infinity, at NaN, and where a factor overflows and the result does not, are
those of ISO C, Annex G (C17, G.6.2 and G.6.3).  It does not define `expm1`, which
rotates without a limit at infinity, and is NaN there.  The hyperbolic functions are
written out; sin z = -i sinh iz, cos z = cosh iz and tan z = -i tanh iz.

Inverse functions: the sign of a zero determines the continuous side of a cut (Annex G,
G.6.1 and G.6.2).  The formulas are those of Kahan, "Branch Cuts for Complex Elementary
Functions", 1987: they do not subtract nearby numbers, except for 1 and an operand.
asin, acos and atanh are written out; asinh z = i asin(-i z), atan z = i atanh(-i z),
and acosh is acos rotated.

The bodies call functions of real numbers by name, and their own names start with `_`:
`_exp` of a complex number calls `exp` of its parts.  `bound` replaces these names by a
device's functions.

Rules: a body makes its constants with `like`, so that no precision is widened; a part
is classified by expressions that compile everywhere: `y - y != 0` is true for
infinities and NaN.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from math import asinh, atan2, cosh, sinh
from types import FunctionType
from typing import Any

from everyorder.runtime.kernels.math import (
    copysign,
    cos,
    exp,
    expm1,
    like,
    log,
    log1p,
    sin,
    sqrt,
    tanh,
)

Scalar = Callable[..., Any]

# Beyond this the hyperbolic tangent is 1 in double precision: exp(-40) is below half a
# unit in the last place.
FLAT = 20

# 1 / ln 2 and 1 / ln 10.
LOG2_E, LOG10_E = 1.4426950408889634, 0.4342944819032518


@dataclass(frozen=True, slots=True)
class Functions:
    """The functions of numbers on a device.

    Attributes:
        compiled: compiles a function that others call.
        like: `like(x, 1)` is a constant in the type of `x`.
    """

    compiled: Callable[[Scalar], Scalar]
    like: Scalar
    divide: Scalar
    power: Scalar
    conj: Scalar
    absolute: Scalar
    sqrt: Scalar
    exp: Scalar
    expm1: Scalar
    log: Scalar
    log1p: Scalar
    log2: Scalar
    log10: Scalar
    sin: Scalar
    cos: Scalar
    tan: Scalar
    sinh: Scalar
    cosh: Scalar
    tanh: Scalar
    asin: Scalar
    acos: Scalar
    atan: Scalar
    asinh: Scalar
    acosh: Scalar
    atanh: Scalar


@dataclass(frozen=True, slots=True)
class Reals(Functions):
    """The functions of real numbers; `weight` is `erf` for sums of 1 and its result."""

    fmod: Scalar
    hypot: Scalar
    atan2: Scalar
    copysign: Scalar
    floor: Scalar
    ceil: Scalar
    rint: Scalar
    trunc: Scalar
    erf: Scalar
    erfc: Scalar
    weight: Scalar


def itself(x: Any) -> Any:
    """Return the number: a real number is its own conjugate."""
    return x


def bound(function: Scalar | str, on: Functions) -> Scalar:
    """Return a row's function with the names that it calls bound to a device."""
    if isinstance(function, str):
        own: Scalar = getattr(on, function)
        return own
    if not isinstance(function, FunctionType):
        return function
    scope: dict[str, Any] = {}
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if hasattr(on, name):
            scope[name] = getattr(on, name)
        elif isinstance(value, FunctionType):
            scope[name] = bound_call(value, on)
        elif value is not None:
            scope[name] = value
    return FunctionType(function.__code__, scope, function.__name__)


@cache
def bound_call(function: FunctionType, on: Functions) -> Scalar:
    """Return the `bound` function, compiled, for other functions to call."""
    return on.compiled(bound(function, on))


def complexes(
    on: Reals,
    like: Scalar,
    *,
    power: Scalar,
    absolute: Scalar,
    sqrt: Scalar,
    log: Scalar,
    log1p: Scalar | None = None,
    log10: Scalar | None = None,
) -> Functions:
    """Return the functions of complex numbers, from those of their parts in `on`.

    `like` makes a constant in the type of a complex number; the other arguments are
    functions of complex numbers that the device provides.
    """
    compiled, part = on.compiled, on.like
    # `sqrt` in the bodies is that of a complex number.
    parts = replace(on, sqrt=sqrt)

    def scaled_log(scale: float) -> Scalar:
        # Part by part: the product of infinity and a complex number is NaN.
        def scaled(z: Any) -> Any:
            logarithm, by = log(z), part(z.real, scale)
            return complex(logarithm.real * by, logarithm.imag * by)

        return compiled(scaled)

    def log_of_more(z: Any) -> Any:
        return log(like(z, 1) + z)

    return Functions(
        compiled=compiled,
        like=like,
        divide=compiled(divide),
        power=power,
        conj=compiled(conjugate),
        absolute=absolute,
        sqrt=sqrt,
        log=log,
        log1p=log1p or compiled(log_of_more),
        log2=scaled_log(LOG2_E),
        log10=log10 or scaled_log(LOG10_E),
        **{name: bound_call(each, parts) for name, each in _OF_PARTS.items()},
    )


def conjugate(z: Any) -> Any:
    """Return the number with the sign of its imaginary part inverted."""
    return z.conjugate()


def divide(a: Any, b: Any) -> Any:
    """Return the quotient of two complex numbers; by zero it is infinite, or NaN.

    After Smith, "Algorithm 116: Complex division", 1962: divides by the larger part of
    the divisor first, so that no square overflows.
    """
    if abs(b.real) >= abs(b.imag):
        if b.real == 0:
            nothing = abs(b.real)
            return complex(a.real / nothing, a.imag / nothing)
        ratio = b.imag / b.real
        size = b.real + b.imag * ratio
        return complex(
            (a.real + a.imag * ratio) / size, (a.imag - a.real * ratio) / size
        )
    ratio = b.real / b.imag
    size = b.real * ratio + b.imag
    return complex((a.real * ratio + a.imag) / size, (a.imag * ratio - a.real) / size)


def _half(x: Any) -> Any:
    return x * like(x, 0.5)


def _exp(z: Any) -> Any:
    x, y = z.real, z.imag
    size = exp(x)
    if y == 0:
        return complex(size, y)
    if y - y != 0:
        if x - x != 0 and size == 0:
            return complex(size, size)
        if x - x != 0 and x == size:
            return complex(size, y - y)
        return complex(y - y, y - y)
    if size - size != 0 and x - x == 0:
        root = exp(_half(x))
        return complex(root * cos(y) * root, root * sin(y) * root)
    return complex(size * cos(y), size * sin(y))


def _expm1(z: Any) -> Any:
    x, y = z.real, z.imag
    less = expm1(x)
    if y == 0:
        return complex(less, y)
    if less - less != 0 and x - x == 0:
        return _exp(z)
    # cos y - 1 = -2 sin^2(y / 2), which avoids the cancellation.
    sine = sin(_half(y))
    return complex(less * cos(y) - (sine + sine) * sine, exp(x) * sin(y))


def _sinh(z: Any) -> Any:
    x, y = z.real, z.imag
    if y == 0:
        return complex(sinh(x), y)
    if x == 0:
        return complex(x, sin(y))
    if y - y != 0:
        return complex(x if x + x == x else y - y, y - y)
    even, odd = cosh(x), sinh(x)
    if even - even != 0 and x - x == 0:
        root = exp(_half(abs(x)))
        most, side = _half(root), root if x > 0 else -root
        return complex(most * cos(y) * side, most * sin(y) * root)
    return complex(odd * cos(y), even * sin(y))


def _cosh(z: Any) -> Any:
    x, y = z.real, z.imag
    if y == 0:
        return complex(cosh(x), y if x > 0 else -y)
    if y - y != 0:
        # Infinite, or NaN; the other part of an imaginary number is 0.
        size = abs(x) if x + x == x and x != 0 else y - y
        return complex(size, x if x == 0 else y - y)
    even, odd = cosh(x), sinh(x)
    if even - even != 0 and x - x == 0:
        root = exp(_half(abs(x)))
        most, side = _half(root), root if x > 0 else -root
        return complex(most * cos(y) * root, most * sin(y) * side)
    return complex(even * cos(y), odd * sin(y))


def _tanh(z: Any) -> Any:
    x, y = z.real, z.imag
    size = abs(x)
    if y == 0:
        return complex(tanh(x), y)
    if x == 0:
        return complex(x, sin(y) / cos(y))
    if y - y != 0:
        if x + x == x:
            return complex(tanh(x), exp(-size))
        return complex(y - y, y - y)
    sine, cosine = sin(y), cos(y)
    if size > FLAT:
        # 1 + 4 i sin y cos y exp(-2 |x|), where a quotient would have infinities.
        bend = sine * cosine * exp(-(size + size))
        return complex(tanh(x), (bend + bend) + (bend + bend))
    odd = sinh(x)
    under = odd * odd + cosine * cosine
    return complex(odd * cosh(x) / under, sine * cosine / under)


def _sin(z: Any) -> Any:
    turned = _sinh(complex(-z.imag, z.real))
    return complex(turned.imag, -turned.real)


def _cos(z: Any) -> Any:
    return _cosh(complex(-z.imag, z.real))


def _tan(z: Any) -> Any:
    turned = _tanh(complex(-z.imag, z.real))
    return complex(turned.imag, -turned.real)


def _far(x: Any, y: Any) -> Any:
    """Return log(2 |z|), also if the square of |z| overflows."""
    longer, shorter = (y, x) if x < y else (x, y)
    part = shorter / longer if shorter < longer else like(x, 1)
    return log(longer) + log(like(x, 2)) + like(x, 0.5) * log1p(part * part)


def _asin(z: Any) -> Any:
    x, y = z.real, z.imag
    square = x * x + y * y
    if square != square:
        if y + y == y and y != 0:
            return complex(x, y)
        if x + x == x and x != 0:
            return complex(y, copysign(x, y))
        # The real part of an imaginary number stays 0.
        return complex(x if x == 0 else square, square)
    if square - square != 0:
        return complex(atan2(x, abs(y)), copysign(_far(abs(x), abs(y)), y))
    less = sqrt(complex(like(x, 1) - x, -y))
    more = sqrt(complex(like(x, 1) + x, y))
    return complex(
        atan2(x, less.real * more.real - less.imag * more.imag),
        copysign(asinh(less.real * more.imag - less.imag * more.real), y),
    )


def _acos(z: Any) -> Any:
    x, y = z.real, z.imag
    square = x * x + y * y
    if square != square:
        if y + y == y and y != 0:
            return complex(x, -y)
        if x + x == x and x != 0:
            return complex(y, -copysign(x, y))
        right = atan2(like(x, 1), like(x, 0))
        return complex(right if x == 0 else square, square)
    if square - square != 0:
        return complex(atan2(abs(y), x), -copysign(_far(abs(x), abs(y)), y))
    less = sqrt(complex(like(x, 1) - x, -y))
    more = sqrt(complex(like(x, 1) + x, y))
    angle = atan2(less.real, more.real)
    size = asinh(more.real * less.imag - more.imag * less.real)
    return complex(angle + angle, copysign(size, -y))


def _atanh(z: Any) -> Any:
    x, y, one = abs(z.real), abs(z.imag), like(z.real, 1)
    nothing, half = like(x, 0), like(x, 0.5)
    if x != x or y != y:
        if y + y == y and y != 0:
            right = atan2(one, nothing)
            return complex(copysign(nothing, z.real), copysign(right, z.imag))
        if x == 0 or (x + x == x):
            return complex(copysign(nothing, z.real), y)
        return complex(x - x + y - y, x - x + y - y)
    apart = (one - x) * (one - x) + y * y
    if apart - apart != 0:
        # Far from 0 the result is near 1 / z, plus a quarter turn.
        longer = x if x > y else y
        if longer + longer == longer:
            size = nothing
        else:
            part, other = x / longer, y / longer
            size = part / (part * part + other * other) / longer
        right = atan2(one, nothing)
        return complex(copysign(size, z.real), copysign(right, z.imag))
    if apart == 0 and y != 0:
        # So close to 1 that the square of the distance underflows.
        size = half * (log(one + one) - log(y))
    else:
        size = half * half * log1p((x + x + x + x) / apart)
    angle = half * atan2(y + y, (one - x) * (one + x) - y * y)
    return complex(copysign(size, z.real), copysign(angle, z.imag))


def _atan(z: Any) -> Any:
    turned = _atanh(complex(-z.imag, z.real))
    return complex(turned.imag, -turned.real)


def _asinh(z: Any) -> Any:
    turned = _asin(complex(-z.imag, z.real))
    return complex(turned.imag, -turned.real)


def _acosh(z: Any) -> Any:
    angle = _acos(z)
    return complex(abs(angle.imag), copysign(angle.real, z.imag))


_OF_PARTS = {
    "exp": _exp,
    "expm1": _expm1,
    "sin": _sin,
    "cos": _cos,
    "tan": _tan,
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "asin": _asin,
    "acos": _acos,
    "atan": _atan,
    "asinh": _asinh,
    "acosh": _acosh,
    "atanh": _atanh,
}
