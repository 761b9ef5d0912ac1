"""Sine, cosine and tangent.

`x = n pi/2 + r` with pi/2 in three parts (Cody and Waite; a fused
multiply-add makes each step exact until it cancels), two short polynomials in `r`, and
a selection by the last two bits of n.  That holds up to `NEAR32` and `NEAR64`; beyond
them the functions ask libm, which a loop cannot be vectorised over: such loops look at
a block first and call the `_near` form where all of it is near.
"""

from typing import Any

import numpy as np

from runtime.kernels.math.exponential import SHIFT32, SHIFT64, float32s, horner
from runtime.kernels.math.primitive import bits, by_width, fma

# (sin r - r) / r^3 and (cos r - 1 + r^2 / 2) / r^4 as polynomials in r^2, for |r| up
# to 1.02 pi/4: errors 2^-35 and 2^-38, 2^-66 and 2^-70.
SIN32 = float32s(
    2.72375769e-06,
    -0.000198399895,
    0.00833333191,
    -0.166666672,
)
COS32 = float32s(
    -2.72906533e-07,
    2.48005199e-05,
    -0.00138888881,
    0.0416666679,
)
SIN64 = (
    -7.584263996034166e-13,
    1.605848950955874e-10,
    -2.5052105961377e-08,
    2.7557319218542833e-06,
    -0.0001984126984126402,
    0.008333333333333331,
    -0.16666666666666666,
)
COS64 = (
    4.7445191096480046e-14,
    -1.1470437475266499e-11,
    2.087675564036913e-09,
    -2.755731922096008e-07,
    2.4801587301584066e-05,
    -0.0013888888888888887,
    0.041666666666666664,
)

# 2 / pi; pi/2 in three parts.
TWO_BY_PI32, HALF_PI_HIGH32, HALF_PI_MID32, HALF_PI_LOW32 = float32s(
    0.636619747, 1.57079637, -4.37113883e-08, -1.71512451e-15
)
TWO_BY_PI64, HALF_PI_HIGH64 = 0.6366197723675814, 1.5707963267948966
HALF_PI_MID64, HALF_PI_LOW64 = 6.123233995736766e-17, -1.4973849048591698e-33

# Up to here n is so small that its rounding leaves |r| below 1.02 pi/4 (single), and
# that the third part of pi/2 still reaches the last digit (double).
NEAR32, NEAR64 = np.float32(1e5), 1e9

ONE32, HALF32 = float32s(1.0, 0.5)


def turn32(x: Any) -> Any:
    """n (its last bits), sine and cosine of r; for |x| <= `NEAR32`."""
    shifted = fma(x, TWO_BY_PI32, SHIFT32)
    n = shifted - SHIFT32
    r = fma(n, -HALF_PI_MID32, fma(n, -HALF_PI_HIGH32, x))
    r = fma(n, -HALF_PI_LOW32, r)
    z = r * r
    sine = fma(r * z, horner(z, SIN32), r)
    cosine = fma(z * z, horner(z, COS32), fma(z, -HALF32, ONE32))
    return bits(shifted), sine, cosine


def turn64(x: Any) -> Any:
    """n (its last bits), sine and cosine of r; for |x| <= `NEAR64`."""
    shifted = fma(x, TWO_BY_PI64, SHIFT64)
    n = shifted - SHIFT64
    r = fma(n, -HALF_PI_MID64, fma(n, -HALF_PI_HIGH64, x))
    r = fma(n, -HALF_PI_LOW64, r)
    z = r * r
    sine = fma(r * z, horner(z, SIN64), r)
    cosine = fma(z * z, horner(z, COS64), fma(z, -0.5, 1.0))
    return bits(shifted), sine, cosine


def sin32(x: Any) -> Any:
    """`sin_near` in single precision."""
    n, sine, cosine = turn32(x)
    y = sine if n & 1 == 0 else cosine
    y = -y if n & 2 != 0 else y
    return x if x == 0 else y


def sin64(x: Any) -> Any:
    """`sin_near` in double precision."""
    n, sine, cosine = turn64(x)
    y = sine if n & 1 == 0 else cosine
    y = -y if n & 2 != 0 else y
    return x if x == 0 else y


def cos32(x: Any) -> Any:
    """`cos_near` in single precision."""
    n, sine, cosine = turn32(x)
    y = cosine if n & 1 == 0 else sine
    return -y if (n + 1) & 2 != 0 else y


def cos64(x: Any) -> Any:
    """`cos_near` in double precision."""
    n, sine, cosine = turn64(x)
    y = cosine if n & 1 == 0 else sine
    return -y if (n + 1) & 2 != 0 else y


def tan32(x: Any) -> Any:
    """`tan_near` in single precision."""
    n, sine, cosine = turn32(x)
    above = sine if n & 1 == 0 else -cosine
    below = cosine if n & 1 == 0 else sine
    return x if x == 0 else above / below


def tan64(x: Any) -> Any:
    """`tan_near` in double precision."""
    n, sine, cosine = turn64(x)
    above = sine if n & 1 == 0 else -cosine
    below = cosine if n & 1 == 0 else sine
    return x if x == 0 else above / below


@by_width(sin32, sin64)
def sin_near(x: Any) -> Any:
    """The sine of a number that `is_near`; at most 2 ulp off."""


@by_width(cos32, cos64)
def cos_near(x: Any) -> Any:
    """The cosine of a number that `is_near`; at most 2 ulp off."""


@by_width(tan32, tan64)
def tan_near(x: Any) -> Any:
    """The tangent of a number that `is_near`; at most 4 ulp off."""


def is_near32(x: Any) -> Any:
    """`is_near` in single precision."""
    return abs(x) <= NEAR32


def is_near64(x: Any) -> Any:
    """`is_near` in double precision."""
    return abs(x) <= NEAR64


@by_width(is_near32, is_near64)
def is_near(x: Any) -> Any:
    """Whether the `_near` functions hold: neither huge, nor infinite, nor NaN."""


def sin(x: Any) -> Any:
    """The sine of any number; at most 2 ulp off; NaN of an infinite one."""
    return sin_near(x) if is_near(x) else np.sin(x)


def cos(x: Any) -> Any:
    """The cosine of any number; at most 2 ulp off; NaN of an infinite one."""
    return cos_near(x) if is_near(x) else np.cos(x)


def tan(x: Any) -> Any:
    """The tangent of any number; at most 4 ulp off; NaN of an infinite one."""
    return tan_near(x) if is_near(x) else np.tan(x)
