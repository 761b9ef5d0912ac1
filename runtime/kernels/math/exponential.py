"""The exponential function and its relative that is exact near zero.

True only here: `x = n ln 2 + r` with |r| <= ln 2 / 2 (Cody and Waite, with a fused
multiply-add), `e^r` by a polynomial, and `2^n` put together from its bits.  `n` comes
from adding a number so large that its last bit counts ones; so there is no conversion
to an integer, which has no meaning for NaN.

Rules: no branches, only selections; comparisons are written so that NaN passes.
"""

from typing import Any

import numpy as np

from runtime.kernels.math.polynomial import float32s, horner
from runtime.kernels.math.primitive import bits as bits_of
from runtime.kernels.math.primitive import by_width, copysign, fma, from_bits

# (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2: error 2^-29 and 2^-59.
EXP32 = float32s(
    0.000198909911,
    0.00139336498,
    0.00833331048,
    0.0416664667,
    0.166666672,
    0.5,
)
EXP64 = (
    2.0914686968086876e-09,
    2.5105217004720745e-08,
    2.75572736431103e-07,
    2.7557255400206422e-06,
    2.4801587325547743e-05,
    0.00019841269874820627,
    0.0013888888888883748,
    0.008333333333326136,
    0.04166666666666667,
    0.1666666666666667,
    0.5,
)

# log2(e); ln 2 in two parts; 1.5 * 2^(digits - 1), whose last bit counts ones.
LOG2_E32, LN2_HIGH32, LN2_LOW32, SHIFT32 = float32s(
    1.44269502, 0.693147182, -1.90465421e-09, 12582912.0
)
LOG2_E64 = 1.4426950408889634
LN2_HIGH64, LN2_LOW64 = 0.6931471805599453, 2.3190468138462996e-17
SHIFT64 = 6755399441055744.0

# Beyond these e^x is 0, or infinite; 2^n is still put together from two factors.
LEAST32, MOST32, LEAST64, MOST64 = *float32s(-104.0, 89.0), -746.0, 710.0

# Below these e^x - 1 is -1.
NEGLIGIBLE32, NEGLIGIBLE64 = np.float32(-18.0), -40.0

HALF32, ONE32, TWO32 = float32s(0.5, 1.0, 2.0)


def exp32(x: Any) -> Any:
    """`exp` in single precision."""
    x = MOST32 if x > MOST32 else x
    x = LEAST32 if x < LEAST32 else x
    shifted = fma(x, LOG2_E32, SHIFT32)
    n = shifted - SHIFT32
    r = fma(n, -LN2_LOW32, fma(n, -LN2_HIGH32, x))
    y = ONE32 + fma(r * r, horner(r, EXP32), r)
    k = np.int32(bits_of(shifted)) - 0x4B400000
    half = k >> 1
    low = from_bits(np.int32((half + 127) << 23))
    return y * low * from_bits(np.int32((k - half + 127) << 23))


def exp64(x: Any) -> Any:
    """`exp` in double precision."""
    x = MOST64 if x > MOST64 else x
    x = LEAST64 if x < LEAST64 else x
    shifted = fma(x, LOG2_E64, SHIFT64)
    n = shifted - SHIFT64
    r = fma(n, -LN2_LOW64, fma(n, -LN2_HIGH64, x))
    y = 1.0 + fma(r * r, horner(r, EXP64), r)
    k = bits_of(shifted) - 0x4338000000000000
    half = k >> 1
    low = from_bits(np.int64((half + 1023) << 52))
    return y * low * from_bits(np.int64((k - half + 1023) << 52))


@by_width(exp32, exp64)
def exp(x: Any) -> Any:
    """e to the power x; at most 1.1 ulp off (denormal results: 1.5)."""


def expm1_32(x: Any) -> Any:
    """`expm1` in single precision."""
    z = MOST32 if x > MOST32 else x
    z = NEGLIGIBLE32 if z < NEGLIGIBLE32 else z
    shifted = fma(z, LOG2_E32, SHIFT32)
    n = shifted - SHIFT32
    r = fma(n, -LN2_LOW32, fma(n, -LN2_HIGH32, z))
    y = fma(r * r, horner(r, EXP32), r)
    k = np.int32(bits_of(shifted)) - 0x4B400000
    scale = from_bits(np.int32((k + 126) << 23))
    return copysign(fma(y, scale, scale - HALF32) * TWO32, x)


def expm1_64(x: Any) -> Any:
    """`expm1` in double precision."""
    z = MOST64 if x > MOST64 else x
    z = NEGLIGIBLE64 if z < NEGLIGIBLE64 else z
    shifted = fma(z, LOG2_E64, SHIFT64)
    n = shifted - SHIFT64
    r = fma(n, -LN2_LOW64, fma(n, -LN2_HIGH64, z))
    y = fma(r * r, horner(r, EXP64), r)
    k = bits_of(shifted) - 0x4338000000000000
    scale = from_bits(np.int64((k + 1022) << 52))
    return copysign(fma(y, scale, scale - 0.5) * 2.0, x)


def growth32(x: Any) -> Any:
    """`e^x - 1` for x from 0 to 80 in single precision."""
    shifted = fma(x, LOG2_E32, SHIFT32)
    n = shifted - SHIFT32
    r = fma(n, -LN2_LOW32, fma(n, -LN2_HIGH32, x))
    y = fma(r * r, horner(r, EXP32), r)
    scale = from_bits(np.int32((np.int32(bits_of(shifted)) - 0x4B3FFF81) << 23))
    return fma(y, scale, scale - ONE32)


def growth64(x: Any) -> Any:
    """`e^x - 1` for x from 0 to 700 in double precision."""
    shifted = fma(x, LOG2_E64, SHIFT64)
    n = shifted - SHIFT64
    r = fma(n, -LN2_LOW64, fma(n, -LN2_HIGH64, x))
    y = fma(r * r, horner(r, EXP64), r)
    scale = from_bits(np.int64((bits_of(shifted) - 0x4337FFFFFFFFFC01) << 52))
    return fma(y, scale, scale - 1.0)


@by_width(expm1_32, expm1_64)
def expm1(x: Any) -> Any:
    """e to the power x, less 1; at most 2 ulp off, also next to zero."""
