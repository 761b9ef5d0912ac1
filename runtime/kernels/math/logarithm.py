"""Logarithms to the bases e, 2 and 10, and that of 1 + x.

True only here: `x = 2^k m` with m between sqrt(1/2) and sqrt(2), read off the bits, and
`log(1 + f)` as `f` plus a rest that a polynomial gives; the bases differ only in how
`k` and the two parts are put together.  In double precision the polynomial is one in
`f / (2 + f)` (as in fdlibm), which converges faster.

Rules: no branches; what a logarithm is of zero, of negative numbers, of infinity and
NaN is selected at the end by `settled`.
"""

from typing import Any

import numpy as np

from runtime.kernels.math.exponential import (
    LN2_HIGH32,
    LN2_HIGH64,
    LN2_LOW32,
    LN2_LOW64,
)
from runtime.kernels.math.polynomial import float32s, horner
from runtime.kernels.math.primitive import bits, by_width, fma, from_bits

# (log(1 + f) - f + f^2 / 2) / f^3 for 1 + f between sqrt(1/2) and sqrt(2): error 2^-25
# of a term that is at most 1/14.
LOG32 = float32s(
    0.0697158501,
    -0.114800684,
    0.1168558,
    -0.124256544,
    0.142490402,
    -0.166678026,
    0.200007156,
    -0.24999997,
    0.333333313,
)
# (log((1 + s) / (1 - s)) - 2 s) / s^3 as a polynomial in s^2: error 2^-59.
LOG64 = (
    0.13088034850927555,
    0.13268638369266825,
    0.15386244737621665,
    0.18181795547521137,
    0.22222222392581045,
    0.28571428570799784,
    0.40000000000000885,
    0.6666666666666666,
)

# 1 / ln 2, 1 / ln 10 and log10(2), each in two parts.
LOG2_E_HIGH32, LOG2_E_LOW32 = float32s(1.44269502, 1.92596303e-08)
LOG2_E_HIGH64, LOG2_E_LOW64 = 1.4426950408889634, 2.0355273740931033e-17
LOG10_E_HIGH32, LOG10_E_LOW32 = float32s(0.434294492, -1.010305e-08)
LOG10_E_HIGH64, LOG10_E_LOW64 = 0.4342944819032518, 1.098319650216765e-17
LOG10_2_HIGH32, LOG10_2_LOW32 = float32s(0.30103001, -1.43209888e-08)
LOG10_2_HIGH64, LOG10_2_LOW64 = 0.3010299956639812, -2.8037281277851704e-18

# The bits of sqrt(1/2).
ROOT32, ROOT64 = 0x3F3504F3, 0x3FE6A09E667F3BCD

# 2^-23 and 2^-52: from the bits of an exponent to its value, exactly.
UNIT32, UNIT64 = np.float32(2.0**-23), 2.0**-52

# The least normal numbers, and what lifts a denormal above them.
NORMAL32, LIFT32 = float32s(1.17549435e-38, 8388608.0)
NORMAL64, LIFT64 = 2.2250738585072014e-308, 18014398509481984.0

# From here 1 + x is x, to the last digit that matters.
ALL32, ALL64 = *float32s(1e30), 1e300

ZERO32, HALF32, ONE32, LIFTED32 = float32s(0.0, 0.5, 1.0, 23.0)
INFINITE32, MISSING32 = float32s(float("inf"), float("nan"))
INFINITE64, MISSING64 = float("inf"), float("nan")


def settled32(x: Any, y: Any) -> Any:
    """The logarithm of `x`, where `y` is it if x is positive and finite."""
    y = y if x < INFINITE32 else x
    y = -INFINITE32 if x == ZERO32 else y
    return MISSING32 if x < ZERO32 else y


def settled64(x: Any, y: Any) -> Any:
    """The logarithm of `x`, where `y` is it if x is positive and finite."""
    y = y if x < INFINITE64 else x
    y = -INFINITE64 if x == 0.0 else y
    return MISSING64 if x < 0.0 else y


def exponent32(x: Any) -> Any:
    """k of `x = 2^k m`, times 2^23, for a normal x."""
    return np.int32((bits(x) - ROOT32) & -(1 << 23))


def exponent64(x: Any) -> Any:
    """k of `x = 2^k m`, times 2^52, for a normal x."""
    return (bits(x) - ROOT64) & -(1 << 52)


def rest32(f: Any) -> Any:
    """`log(1 + f) - f`."""
    return f * f * fma(f, horner(f, LOG32), -HALF32)


def rest64(f: Any) -> Any:
    """`log(1 + f) - f`."""
    s = f / (2.0 + f)
    z = s * s
    half = 0.5 * f * f
    return fma(s, fma(z, horner(z, LOG64), half), -half)


def split32(x: Any) -> Any:
    """k and f of `x = 2^k (1 + f)`."""
    tiny = x < NORMAL32
    x = x * LIFT32 if tiny else x
    e = exponent32(x)
    k = np.float32(e) * UNIT32
    k = k - LIFTED32 if tiny else k
    return k, from_bits(np.int32(bits(x) - e)) - ONE32


def split64(x: Any) -> Any:
    """k and f of `x = 2^k (1 + f)`."""
    tiny = x < NORMAL64
    x = x * LIFT64 if tiny else x
    e = exponent64(x)
    k = np.float64(e) * UNIT64
    k = k - 54.0 if tiny else k
    return k, from_bits(np.int64(bits(x) - e)) - 1.0


def log32(x: Any) -> Any:
    """`log` in single precision."""
    k, f = split32(x)
    return settled32(x, fma(k, LN2_HIGH32, f + fma(k, LN2_LOW32, rest32(f))))


def log64(x: Any) -> Any:
    """`log` in double precision."""
    k, f = split64(x)
    return settled64(x, fma(k, LN2_HIGH64, f + fma(k, LN2_LOW64, rest64(f))))


@by_width(log32, log64)
def log(x: Any) -> Any:
    """The natural logarithm; at most 1.2 ulp off."""


def log2_32(x: Any) -> Any:
    """`log2` in single precision."""
    k, f = split32(x)
    rest = fma(rest32(f), LOG2_E_HIGH32, f * LOG2_E_LOW32)
    return settled32(x, k + fma(f, LOG2_E_HIGH32, rest))


def log2_64(x: Any) -> Any:
    """`log2` in double precision."""
    k, f = split64(x)
    rest = fma(rest64(f), LOG2_E_HIGH64, f * LOG2_E_LOW64)
    return settled64(x, k + fma(f, LOG2_E_HIGH64, rest))


@by_width(log2_32, log2_64)
def log2(x: Any) -> Any:
    """The logarithm to base 2; at most 2 ulp off, exact for powers of two."""


def log10_32(x: Any) -> Any:
    """`log10` in single precision."""
    k, f = split32(x)
    rest = fma(k, LOG10_2_LOW32, fma(rest32(f), LOG10_E_HIGH32, f * LOG10_E_LOW32))
    return settled32(x, fma(k, LOG10_2_HIGH32, fma(f, LOG10_E_HIGH32, rest)))


def log10_64(x: Any) -> Any:
    """`log10` in double precision."""
    k, f = split64(x)
    rest = fma(k, LOG10_2_LOW64, fma(rest64(f), LOG10_E_HIGH64, f * LOG10_E_LOW64))
    return settled64(x, fma(k, LOG10_2_HIGH64, fma(f, LOG10_E_HIGH64, rest)))


@by_width(log10_32, log10_64)
def log10(x: Any) -> Any:
    """The logarithm to base 10; at most 2 ulp off."""


def log1p_32(x: Any) -> Any:
    """`log1p` in single precision."""
    u = ONE32 + x
    lost = ONE32 - (u - x) if x > ONE32 else x - (u - ONE32)
    e = exponent32(u)
    k = np.float32(e) * UNIT32
    # What rounding 1 + x lost, on the scale of m.
    lost = lost * from_bits(np.int32(0x3F800000 - e)) if u < ALL32 else ZERO32
    f = (from_bits(np.int32(bits(u) - e)) - ONE32) + lost
    y = settled32(u, fma(k, LN2_HIGH32, f + fma(k, LN2_LOW32, rest32(f))))
    return x if x == ZERO32 else y


def log1p_64(x: Any) -> Any:
    """`log1p` in double precision."""
    u = 1.0 + x
    lost = 1.0 - (u - x) if x > 1.0 else x - (u - 1.0)
    e = exponent64(u)
    k = np.float64(e) * UNIT64
    lost = lost * from_bits(np.int64(0x3FF0000000000000 - e)) if u < ALL64 else 0.0
    f = (from_bits(np.int64(bits(u) - e)) - 1.0) + lost
    y = settled64(u, fma(k, LN2_HIGH64, f + fma(k, LN2_LOW64, rest64(f))))
    return x if x == 0.0 else y


@by_width(log1p_32, log1p_64)
def log1p(x: Any) -> Any:
    """The logarithm of 1 + x; at most 2 ulp off, also next to zero."""
