"""Inverse circular and hyperbolic functions of complex numbers, of those of real ones.

True only here: on which side of their cuts they are continuous, which the sign of a
zero says, and what they are where a part is infinite or NaN: as ISO C, Annex G (C17,
G.6.1 and G.6.2).  The formulas are those of Kahan, "Branch Cuts for Complex Elementary
Functions", 1987: no difference of near numbers, but for those of 1 and an operand.

Rules: as those of `runtime.kernels.math.complex_plane`.  Written out are asin, acos and
atanh; asinh z = i asin(-i z), atan z = i atanh(-i z), and acosh is acos turned.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

Scalar = Callable[..., Any]


class RealInverse(NamedTuple):
    """The functions of real numbers on a device, and the root of complex ones.

    `like(x, 1)` is a constant in the type of `x`.
    """

    like: Scalar
    copysign: Scalar
    asinh: Scalar
    atan2: Scalar
    log: Scalar
    log1p: Scalar
    root: Scalar


class Inverse(NamedTuple):
    """Functions of complex numbers."""

    asin: Scalar
    acos: Scalar
    atan: Scalar
    asinh: Scalar
    acosh: Scalar
    atanh: Scalar


def inverse(real: RealInverse, compiled: Callable[[Scalar], Scalar]) -> Inverse:
    """The functions of complex numbers; `compiled` makes one that others call."""
    like, copysign, real_asinh, real_atan2, real_log, real_log1p, root = real

    def far(x: Any, y: Any) -> Any:
        """log(2 |z|), where the square of |z| overflows."""
        longer, shorter = (y, x) if x < y else (x, y)
        part = shorter / longer if shorter < longer else like(x, 1)
        return (
            real_log(longer)
            + real_log(like(x, 2))
            + like(x, 0.5) * real_log1p(part * part)
        )

    far = compiled(far)

    def asin(z: Any) -> Any:
        x, y = z.real, z.imag
        square = x * x + y * y
        if square != square:
            if y + y == y and y != 0:
                return complex(x, y)
            if x + x == x and x != 0:
                return complex(y, copysign(x, y))
            # Of an imaginary number the real part stays 0.
            return complex(x if x == 0 else square, square)
        if square - square != 0:
            return complex(real_atan2(x, abs(y)), copysign(far(abs(x), abs(y)), y))
        less = root(complex(like(x, 1) - x, -y))
        more = root(complex(like(x, 1) + x, y))
        return complex(
            real_atan2(x, less.real * more.real - less.imag * more.imag),
            copysign(real_asinh(less.real * more.imag - less.imag * more.real), y),
        )

    asin = compiled(asin)

    def acos(z: Any) -> Any:
        x, y = z.real, z.imag
        square = x * x + y * y
        if square != square:
            if y + y == y and y != 0:
                return complex(x, -y)
            if x + x == x and x != 0:
                return complex(y, -copysign(x, y))
            right = real_atan2(like(x, 1), like(x, 0))
            return complex(right if x == 0 else square, square)
        if square - square != 0:
            return complex(real_atan2(abs(y), x), -copysign(far(abs(x), abs(y)), y))
        less = root(complex(like(x, 1) - x, -y))
        more = root(complex(like(x, 1) + x, y))
        angle = real_atan2(less.real, more.real)
        size = real_asinh(more.real * less.imag - more.imag * less.real)
        return complex(angle + angle, copysign(size, -y))

    acos = compiled(acos)

    def atanh(z: Any) -> Any:
        x, y, one = abs(z.real), abs(z.imag), like(z.real, 1)
        nothing, half = like(x, 0), like(x, 0.5)
        if x != x or y != y:
            if y + y == y and y != 0:
                right = real_atan2(one, nothing)
                return complex(copysign(nothing, z.real), copysign(right, z.imag))
            if x == 0 or (x + x == x):
                return complex(copysign(nothing, z.real), y)
            return complex(x - x + y - y, x - x + y - y)
        apart = (one - x) * (one - x) + y * y
        if apart - apart != 0:
            # Far out it is 1 / z, and a quarter of a turn.
            longer = x if x > y else y
            if longer + longer == longer:
                size = nothing
            else:
                part, other = x / longer, y / longer
                size = part / (part * part + other * other) / longer
            right = real_atan2(one, nothing)
            return complex(copysign(size, z.real), copysign(right, z.imag))
        if apart == 0 and y != 0:
            # So near 1 that the square of what is apart is nothing.
            size = half * (real_log(one + one) - real_log(y))
        else:
            size = half * half * real_log1p((x + x + x + x) / apart)
        angle = half * real_atan2(y + y, (one - x) * (one + x) - y * y)
        return complex(copysign(size, z.real), copysign(angle, z.imag))

    atanh = compiled(atanh)

    def atan(z: Any) -> Any:
        turned = atanh(complex(-z.imag, z.real))
        return complex(turned.imag, -turned.real)

    def asinh(z: Any) -> Any:
        turned = asin(complex(-z.imag, z.real))
        return complex(turned.imag, -turned.real)

    def acosh(z: Any) -> Any:
        angle = acos(z)
        return complex(abs(angle.imag), copysign(angle.real, z.imag))

    return Inverse(asin, acos, compiled(atan), compiled(asinh), compiled(acosh), atanh)
