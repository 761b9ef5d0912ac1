"""Exponentials and circular functions of complex numbers, of those of real ones.

True only here: what they are where a part is infinite, NaN or so large that a factor
overflows and the result does not.  Of a real number they are real; else the special
values are those of ISO C, Annex G (C17, G.6.2 and G.6.3), which has no `expm1`: that
turns for ever at infinity, and is NaN.  The hyperbolic functions are written out;
sin z = -i sinh iz, cos z = cosh iz and tan z = -i tanh iz.

Rules: a body names no constant but what `Real` gives it, so that no precision is
widened; what a part is, is asked by what compiles everywhere: `y - y != 0` is true of
infinities and NaN.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

Scalar = Callable[..., Any]

# From here on the hyperbolic tangent is 1 in double precision: exp(-40) is below half
# of a unit in the last place.
FLAT = 20


class Real(NamedTuple):
    """The functions of real numbers on a device; `half` is half of a number."""

    exp: Scalar
    expm1: Scalar
    sin: Scalar
    cos: Scalar
    sinh: Scalar
    cosh: Scalar
    tanh: Scalar
    half: Scalar


class Plane(NamedTuple):
    """Functions of complex numbers."""

    exp: Scalar
    expm1: Scalar
    sin: Scalar
    cos: Scalar
    tan: Scalar
    sinh: Scalar
    cosh: Scalar
    tanh: Scalar


def plane(real: Real, compiled: Callable[[Scalar], Scalar]) -> Plane:
    """The functions of complex numbers; `compiled` makes one that others call."""
    real_exp, real_expm1, real_sin, real_cos = real[:4]
    real_sinh, real_cosh, real_tanh, half = real[4:]

    def exp(z: Any) -> Any:
        x, y = z.real, z.imag
        size = real_exp(x)
        if y == 0:
            return complex(size, y)
        if y - y != 0:
            if x - x != 0 and size == 0:
                return complex(size, size)
            if x - x != 0 and x == size:
                return complex(size, y - y)
            return complex(y - y, y - y)
        if size - size != 0 and x - x == 0:
            root = real_exp(half(x))
            return complex(root * real_cos(y) * root, root * real_sin(y) * root)
        return complex(size * real_cos(y), size * real_sin(y))

    exp = compiled(exp)

    def expm1(z: Any) -> Any:
        x, y = z.real, z.imag
        less = real_expm1(x)
        if y == 0:
            return complex(less, y)
        if less - less != 0 and x - x == 0:
            return exp(z)
        # cos y - 1 = -2 sin^2(y / 2), which no difference of equals spoils.
        sine = real_sin(half(y))
        return complex(
            less * real_cos(y) - (sine + sine) * sine, real_exp(x) * real_sin(y)
        )

    def sinh(z: Any) -> Any:
        x, y = z.real, z.imag
        if y == 0:
            return complex(real_sinh(x), y)
        if x == 0:
            return complex(x, real_sin(y))
        if y - y != 0:
            return complex(x if x + x == x else y - y, y - y)
        even, odd = real_cosh(x), real_sinh(x)
        if even - even != 0 and x - x == 0:
            root = real_exp(half(abs(x)))
            most, side = half(root), root if x > 0 else -root
            return complex(most * real_cos(y) * side, most * real_sin(y) * root)
        return complex(odd * real_cos(y), even * real_sin(y))

    sinh = compiled(sinh)

    def cosh(z: Any) -> Any:
        x, y = z.real, z.imag
        if y == 0:
            return complex(real_cosh(x), y if x > 0 else -y)
        if y - y != 0:
            # Infinite, or NaN; the other part of an imaginary number is 0.
            size = abs(x) if x + x == x and x != 0 else y - y
            return complex(size, x if x == 0 else y - y)
        even, odd = real_cosh(x), real_sinh(x)
        if even - even != 0 and x - x == 0:
            root = real_exp(half(abs(x)))
            most, side = half(root), root if x > 0 else -root
            return complex(most * real_cos(y) * root, most * real_sin(y) * side)
        return complex(even * real_cos(y), odd * real_sin(y))

    cosh = compiled(cosh)

    def tanh(z: Any) -> Any:
        x, y = z.real, z.imag
        size = abs(x)
        if y == 0:
            return complex(real_tanh(x), y)
        if x == 0:
            return complex(x, real_sin(y) / real_cos(y))
        if y - y != 0:
            if x + x == x:
                return complex(real_tanh(x), real_exp(-size))
            return complex(y - y, y - y)
        sine, cosine = real_sin(y), real_cos(y)
        if size > FLAT:
            # 1 + 4 i sin y cos y exp(-2 |x|), where a quotient has infinities.
            bend = sine * cosine * real_exp(-(size + size))
            return complex(real_tanh(x), (bend + bend) + (bend + bend))
        odd = real_sinh(x)
        under = odd * odd + cosine * cosine
        return complex(odd * real_cosh(x) / under, sine * cosine / under)

    tanh = compiled(tanh)

    def sin(z: Any) -> Any:
        turned = sinh(complex(-z.imag, z.real))
        return complex(turned.imag, -turned.real)

    def cos(z: Any) -> Any:
        return cosh(complex(-z.imag, z.real))

    def tan(z: Any) -> Any:
        turned = tanh(complex(-z.imag, z.real))
        return complex(turned.imag, -turned.real)

    return Plane(
        exp,
        compiled(expm1),
        compiled(sin),
        compiled(cos),
        compiled(tan),
        sinh,
        cosh,
        tanh,
    )
