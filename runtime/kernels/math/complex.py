"""What a device computes by itself, and functions of complex numbers made of it.

`Functions` is what the rows of `runtime.kernels.math.scalars` ask of a device: `exp`,
`tanh` and their like; of real numbers it is `Reals`, of which `complexes` makes that of
complex numbers.

Exponentials and circular functions: of a real number they are real; else the values at
infinity, at NaN, and where a factor overflows and the result does not, are those of ISO
C, Annex G (C17, G.6.2 and G.6.3), which has no `expm1`: that turns for ever at
infinity, and is NaN.  The hyperbolic functions are written out; sin z = -i sinh iz, cos
z = cosh iz and tan z = -i tanh iz.

Inverse functions: on which side of their cuts they are continuous is said by the sign
of a zero (Annex G, G.6.1 and G.6.2).  The formulas are those of Kahan, "Branch Cuts for
Complex Elementary Functions", 1987: no difference of near numbers, but for those of 1
and an operand.  Written out are asin, acos and atanh; asinh z = i asin(-i z), atan z =
i atanh(-i z), and acosh is acos turned.

Rules: a body makes its constants by `like`, so that no precision is widened; what a
part is, is asked by what compiles everywhere: `y - y != 0` is true of infinities and
NaN.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Scalar = Callable[..., Any]

# From here on the hyperbolic tangent is 1 in double precision: exp(-40) is below half
# of a unit in the last place.
FLAT = 20

# 1 / ln 2 and 1 / ln 10.
LOG2_E, LOG10_E = 1.4426950408889634, 0.4342944819032518


@dataclass(frozen=True, slots=True)
class Functions:
    """The functions of numbers on a device.

    Attributes:
        compiled: makes a function that others call.
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
    """Those of real numbers; `weight` is `erf`, where 1 is added to it."""

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
    """A real number is its own conjugate."""
    return x


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
    """The functions of complex numbers, of those of their parts, which `on` has.

    `like` makes a constant in the type of a complex number; the others are those that
    the device has, or is to have, of its own.
    """
    compiled, part = on.compiled, on.like
    plane, inverse = _plane(on), _inverse(on, sqrt)

    def scaled_log(scale: float) -> Scalar:
        # Part by part: infinity by a complex number is NaN.
        def scaled(z: Any) -> Any:
            found, by = log(z), part(z.real, scale)
            return complex(found.real * by, found.imag * by)

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
        **plane,
        **inverse,
    )


def conjugate(z: Any) -> Any:
    """The number with the imaginary part of the other sign."""
    return z.conjugate()


def divide(a: Any, b: Any) -> Any:
    """The quotient of two complex numbers; by zero it is infinite, or NaN.

    After Smith, "Algorithm 116: Complex division", 1962: the larger part of the divisor
    is divided out first, so that no square overflows.
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


def _plane(on: Reals) -> dict[str, Scalar]:
    """Exponentials and circular functions."""
    compiled, like = on.compiled, on.like
    real_exp, real_expm1, real_sin, real_cos = on.exp, on.expm1, on.sin, on.cos
    real_sinh, real_cosh, real_tanh = on.sinh, on.cosh, on.tanh

    def half(x: Any) -> Any:
        return x * like(x, 0.5)

    half = compiled(half)

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

    return {
        "exp": exp,
        "expm1": compiled(expm1),
        "sin": compiled(sin),
        "cos": compiled(cos),
        "tan": compiled(tan),
        "sinh": sinh,
        "cosh": cosh,
        "tanh": tanh,
    }


def _inverse(on: Reals, sqrt: Scalar) -> dict[str, Scalar]:
    """Inverse circular and hyperbolic functions; `sqrt` is of complex numbers."""
    compiled, like, copysign = on.compiled, on.like, on.copysign
    real_asinh, real_atan2 = on.asinh, on.atan2
    real_log, real_log1p = on.log, on.log1p

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
        less = sqrt(complex(like(x, 1) - x, -y))
        more = sqrt(complex(like(x, 1) + x, y))
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
        less = sqrt(complex(like(x, 1) - x, -y))
        more = sqrt(complex(like(x, 1) + x, y))
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

    return {
        "asin": asin,
        "acos": acos,
        "atan": compiled(atan),
        "asinh": compiled(asinh),
        "acosh": compiled(acosh),
        "atanh": atanh,
    }
