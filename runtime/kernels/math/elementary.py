"""Elementary functions: exponentials, logarithms, erf, sine, cosine and tangent.

Every function is vectorisable: no branches, only selections, and comparisons written so
that NaN propagates.  A function is written once: its code computes in double precision;
in single precision it is the same code over the constants of `SINGLE` (`single`), and
`both` gives the two one name.  Only functions with another polynomial in single
precision are written separately.

- A polynomial is a tuple of coefficients, highest power first; the loop over it has a
  constant length, so that the compiler unrolls it and vectorises the enclosing loop.
  The coefficients were computed for this module: Chebyshev interpolation at 50 digits,
  then rounded; the comment at each states the remaining error.
- e^x: `x = n ln 2 + r` with |r| <= ln 2 / 2 (Cody and Waite, with a fused
  multiply-add), `e^r` by a polynomial, and `2^n` built from its bits.  `n` is computed
  by adding a number so large that its last bit counts ones, which avoids a conversion
  to an integer; that is undefined for NaN.
- tanh is a quotient of exponentials whose exponent is clamped where the limit is
  reached.
- Logarithms: `x = 2^k m` with m between sqrt(1/2) and sqrt(2), from the bits, and
  `log(1 + f)` as `f` plus a rest computed by a polynomial; the bases differ only in how
  `k` and the two parts are combined.  In double precision the polynomial is one in `f /
  (2 + f)` (as in fdlibm), which converges faster.  `settled` selects the result for
  zero, negative numbers, infinity and NaN at the end.
- erf: below 1 it is `x` times a polynomial in `x^2`; above, it is one less the tail. In
  single precision the tail is e to a polynomial, in double precision `e^(-x^2)` times a
  polynomial in `1 / (x + 2)`.  Both are computed and one selected.
- Circular functions: `x = n pi/2 + r` with pi/2 in three parts (Cody and Waite again),
  two short polynomials in `r`, and a selection by the last two bits of n.  That holds
  up to `NEAR`; beyond, they call libm, which prevents the vectorisation of a loop: such
  loops check a block first and call the `_near` form if all of it is near.
"""

from types import FunctionType
from typing import Any

import numpy as np

from everyorder.runtime.kernels.math.primitive import (
    Scalar,
    by_width,
    copysign,
    fma,
    from_bits,
)
from everyorder.runtime.kernels.math.primitive import bits as bits_of

# The values of this module's names in single precision.
SINGLE: dict[str, Any] = {}


def singles(*values: float) -> tuple[Any, ...]:
    """Return constants that keep a calculation in single precision."""
    return tuple(np.float32(value) for value in values)


def constants(**values: Any) -> None:
    """Set the values of names in single precision; integers and types do not change."""
    for name, value in values.items():
        if isinstance(value, tuple):
            SINGLE[name] = singles(*value)
        else:
            SINGLE[name] = np.float32(value) if isinstance(value, float) else value


def single(function: Any) -> Scalar:
    """Return a function of this module in single precision."""
    scope = {**globals(), **SINGLE}
    return FunctionType(function.__code__, scope, f"{function.__name__}32")


def part(function: Scalar) -> Scalar:
    """Register a function that functions of either precision call in their own."""
    SINGLE[function.__name__] = single(function)
    return function


def both(function: Scalar) -> Scalar:
    """Return the function that computes in the precision of its argument."""
    return by_width(single(function), function)(function)


def horner(x: Any, coefficients: Any) -> Any:
    """Return the polynomial at `x`, each step rounded once."""
    return horner_on(coefficients[0], x, coefficients[1:])


def horner_on(y: Any, x: Any, coefficients: Any) -> Any:
    """Return the polynomial that starts with `y`.

    Long polynomials are split, or the compiler does not unroll their loops.
    """
    for k in range(len(coefficients)):
        y = fma(y, x, coefficients[k])
    return y


# The integer as wide as the float; digits of the significand after the first, and the
# bias of the exponent.
FLOAT, INTEGER, DIGITS, BIAS = np.float64, np.int64, 52, 1023
constants(FLOAT=np.float32, INTEGER=np.int32, DIGITS=23, BIAS=127)

ZERO, HALF, ONE, TWO = 0.0, 0.5, 1.0, 2.0
constants(ZERO=0.0, HALF=0.5, ONE=1.0, TWO=2.0)

# (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2: error 2^-59; 2^-29 in single precision.
EXP = (
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
constants(
    EXP=(
        0.000198909911,
        0.00139336498,
        0.00833331048,
        0.0416664667,
        0.166666672,
        0.5,
    )
)

# log2(e); ln 2 in two parts; 1.5 * 2^(digits - 1), whose last bit counts ones, and its
# bits.
LOG2_E, LN2_HIGH, LN2_LOW = (
    1.4426950408889634,
    0.6931471805599453,
    2.3190468138462996e-17,
)
SHIFT, SHIFT_BITS = 6755399441055744.0, 0x4338000000000000
constants(LOG2_E=1.44269502, LN2_HIGH=0.693147182, LN2_LOW=-1.90465421e-09)
constants(SHIFT=12582912.0, SHIFT_BITS=0x4B400000)

# Beyond these e^x is 0, or infinite, and 2^n is still the product of two factors. Below
# the last, e^x - 1 is -1.
LEAST, MOST, NEGLIGIBLE = -746.0, 710.0, -40.0
constants(LEAST=-104.0, MOST=89.0, NEGLIGIBLE=-18.0)


@both
def exp(x: Any) -> Any:
    """Return e to the power x; at most 1.1 ulp off (denormal results: 1.5)."""
    x = MOST if x > MOST else x
    x = LEAST if x < LEAST else x
    shifted = fma(x, LOG2_E, SHIFT)
    n = shifted - SHIFT
    r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, x))
    y = ONE + fma(r * r, horner(r, EXP), r)
    k = INTEGER(bits_of(shifted)) - SHIFT_BITS
    half = k >> 1
    low = from_bits(INTEGER((half + BIAS) << DIGITS))
    return y * low * from_bits(INTEGER((k - half + BIAS) << DIGITS))


@both
def expm1(x: Any) -> Any:
    """Return e to the power x, less 1; at most 2 ulp off, also next to zero."""
    z = MOST if x > MOST else x
    z = NEGLIGIBLE if z < NEGLIGIBLE else z
    shifted = fma(z, LOG2_E, SHIFT)
    n = shifted - SHIFT
    r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, z))
    y = fma(r * r, horner(r, EXP), r)
    k = INTEGER(bits_of(shifted)) - SHIFT_BITS
    scale = from_bits(INTEGER((k + BIAS - 1) << DIGITS))
    return copysign(fma(y, scale, scale - HALF) * TWO, x)


@part
def growth(x: Any) -> Any:
    """Return `e^x - 1` for x from 0 to 700, or to 80 in single precision."""
    shifted = fma(x, LOG2_E, SHIFT)
    n = shifted - SHIFT
    r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, x))
    y = fma(r * r, horner(r, EXP), r)
    k = INTEGER(bits_of(shifted)) - SHIFT_BITS
    scale = from_bits(INTEGER((k + BIAS) << DIGITS))
    return fma(y, scale, scale - ONE)


# From here on, tanh is 1 in its precision.
FLAT = 20.0
constants(FLAT=9.5)


@both
def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent; at most 3 ulp off."""
    z = abs(x)
    z = FLAT if z > FLAT else z
    e = growth(TWO * z)
    return copysign(e / (e + TWO), x)


# (log((1 + s) / (1 - s)) - 2 s) / s^3 as a polynomial in s^2: error 2^-59.  In single
# precision (log(1 + f) - f + f^2 / 2) / f^3 for 1 + f between sqrt(1/2) and sqrt(2):
# error 2^-25 of a term that is at most 1/14.
LOG = (
    0.13088034850927555,
    0.13268638369266825,
    0.15386244737621665,
    0.18181795547521137,
    0.22222222392581045,
    0.28571428570799784,
    0.40000000000000885,
    0.6666666666666666,
)
constants(
    LOG=(
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
)

# 1 / ln 2, 1 / ln 10 and log10(2), each in two parts.
LOG2_E_HIGH, LOG2_E_LOW = 1.4426950408889634, 2.0355273740931033e-17
LOG10_E_HIGH, LOG10_E_LOW = 0.4342944819032518, 1.098319650216765e-17
LOG10_2_HIGH, LOG10_2_LOW = 0.3010299956639812, -2.8037281277851704e-18
constants(LOG2_E_HIGH=1.44269502, LOG2_E_LOW=1.92596303e-08)
constants(LOG10_E_HIGH=0.434294492, LOG10_E_LOW=-1.010305e-08)
constants(LOG10_2_HIGH=0.30103001, LOG10_2_LOW=-1.43209888e-08)

# The bits of sqrt(1/2) and of 1, and those of the exponent and the sign.
ROOT, ONE_BITS, ABOVE = 0x3FE6A09E667F3BCD, 0x3FF0000000000000, -(1 << 52)
constants(ROOT=0x3F3504F3, ONE_BITS=0x3F800000, ABOVE=-(1 << 23))

# The factor from the bits of an exponent to its value, exact; the least normal number;
# the factor that makes a denormal normal, and its power of two.
UNIT, NORMAL, LIFT, LIFTED = (
    2.0**-52,
    2.2250738585072014e-308,
    18014398509481984.0,
    54.0,
)
constants(UNIT=2.0**-23, NORMAL=1.17549435e-38, LIFT=8388608.0, LIFTED=23.0)

# From here on, 1 + x is x, to the last digit that matters.
ALL = 1e300
constants(ALL=1e30)

INFINITE, MISSING = float("inf"), float("nan")
constants(INFINITE=INFINITE, MISSING=MISSING)


@part
def settled(x: Any, y: Any) -> Any:
    """Return the logarithm of `x`: `y` if x is positive and finite."""
    y = y if x < INFINITE else x
    y = -INFINITE if x == ZERO else y
    return MISSING if x < ZERO else y


@part
def exponent(x: Any) -> Any:
    """Return k of `x = 2^k m`, at the bits of the exponent, for a normal x."""
    return INTEGER((bits_of(x) - ROOT) & ABOVE)


def rest(f: Any) -> Any:
    """Return `log(1 + f) - f`."""
    s = f / (2.0 + f)
    z = s * s
    half = 0.5 * f * f
    return fma(s, fma(z, horner(z, LOG), half), -half)


def rest32(f: Any) -> Any:
    """Return `log(1 + f) - f` in single precision."""
    return f * f * fma(f, horner(f, LOG), -HALF)


constants(rest=single(rest32))


@part
def split(x: Any) -> Any:
    """Return k and f of `x = 2^k (1 + f)`."""
    tiny = x < NORMAL
    x = x * LIFT if tiny else x
    e = exponent(x)
    k = FLOAT(e) * UNIT
    k = k - LIFTED if tiny else k
    return k, from_bits(INTEGER(bits_of(x) - e)) - ONE


@both
def log(x: Any) -> Any:
    """Return the natural logarithm; at most 1.2 ulp off."""
    k, f = split(x)
    return settled(x, fma(k, LN2_HIGH, f + fma(k, LN2_LOW, rest(f))))


@both
def log2(x: Any) -> Any:
    """Return the logarithm to base 2; at most 2 ulp off, exact for powers of two."""
    k, f = split(x)
    less = fma(rest(f), LOG2_E_HIGH, f * LOG2_E_LOW)
    return settled(x, k + fma(f, LOG2_E_HIGH, less))


@both
def log10(x: Any) -> Any:
    """Return the logarithm to base 10; at most 2 ulp off."""
    k, f = split(x)
    less = fma(k, LOG10_2_LOW, fma(rest(f), LOG10_E_HIGH, f * LOG10_E_LOW))
    return settled(x, fma(k, LOG10_2_HIGH, fma(f, LOG10_E_HIGH, less)))


@both
def log1p(x: Any) -> Any:
    """Return the logarithm of 1 + x; at most 2 ulp off, also next to zero."""
    u = ONE + x
    lost = ONE - (u - x) if x > ONE else x - (u - ONE)
    e = exponent(u)
    k = FLOAT(e) * UNIT
    # The rounding error of 1 + x, on the scale of m.
    lost = lost * from_bits(INTEGER(ONE_BITS - e)) if u < ALL else ZERO
    f = (from_bits(INTEGER(bits_of(u) - e)) - ONE) + lost
    y = settled(u, fma(k, LN2_HIGH, f + fma(k, LN2_LOW, rest(f))))
    return x if x == ZERO else y


# erf(x) / x - 1 as a polynomial in x^2, for |x| <= 1: error 2^-63, 2^-30 in single
# precision.
ERF = (
    5.957176147748911e-11,
    -1.1372848856791674e-09,
    1.4659775274047436e-08,
    -1.6350312701054695e-07,
    1.6461000484121368e-06,
    -1.4925595266831182e-05,
    0.0001205533111164271,
)
ERF_ON = (
    -0.000854832698083379,
    0.0052239776248180145,
    -0.026866170645076792,
    0.11283791670954879,
    -0.3761263890318375,
    0.1283791670955126,
)
# e^(x^2) erfc(x) as a polynomial in 1 / (x + 2), for x from 1 to 6: error 2^-58.  In
# single precision -log(erfc(x)) for x from 1 to 4: error 2^-26.
TAIL = (
    -4803.770716329471,
    17876.325234577533,
    -29929.119303807376,
    29383.419827191232,
    -18446.858693821014,
    7607.836556028748,
    -2111.689474320681,
    450.1357150939454,
    -81.28283280844045,
)
TAIL_ON = (
    -0.5763034102623621,
    -0.5776319934126216,
    2.653108133912676,
    2.8272747646961314,
    1.9740678635418445,
    1.1284117931424096,
    0.5641885657660911,
    1.4107529632304767e-08,
)
constants(
    ERF=(
        7.87587487e-05,
        -0.00080168643,
        0.00518908724,
        -0.0268542115,
        0.112835944,
        -0.37612626,
        0.128379166,
    ),
    TAIL=(
        -1.63863729e-06,
        4.60874471e-05,
        -0.000597052975,
        0.00476074778,
        -0.0264243707,
        0.110085681,
        0.631820261,
        1.13023674,
        -0.000320914376,
    ),
)
# erf(x) / x as a quotient of polynomials in x^2, for |x| <= 3.95: error 2^-25.
OVER = singles(
    2.02590904e-06,
    0.000284688209,
    0.00380817352,
    0.0528754851,
    0.191550559,
    1.12837914,
)
UNDER = singles(
    3.78318364e-05,
    0.00117072903,
    0.0150551140,
    0.114559732,
    0.503089939,
    1.0,
)
FITTED = np.float32(3.95)

# From here on, erf is 1 in its precision.
LIMIT = 6.0
constants(LIMIT=4.0)


def erf64(x: Any) -> Any:
    """Return `erf` in double precision."""
    z = abs(x)
    z = LIMIT if z > LIMIT else z
    t = 1.0 / (z + 2.0)
    tail = 1.0 - exp(-z * z) * horner_on(horner(t, TAIL), t, TAIL_ON)
    square = z * z
    near = fma(z, horner_on(horner(square, ERF), square, ERF_ON), z)
    return copysign(near if z < 1.0 else tail, x)


def erf32(x: Any) -> Any:
    """Return `erf` in single precision."""
    z = abs(x)
    z = LIMIT if z > LIMIT else z
    tail = ONE - exp(-horner(z, TAIL))
    near = fma(z, horner(z * z, ERF), z)
    return copysign(near if z < ONE else tail, x)


@by_width(single(erf32), erf64)
def erf(x: Any) -> Any:
    """Return the error function; at most 2 ulp off."""


def weight32(x: Any) -> Any:
    """Return `weight` in single precision, twice as fast as `erf`: 6 ulp off."""
    z = abs(x)
    z = FITTED if z > FITTED else z
    square = z * z
    y = z * horner(square, OVER) / horner(square, UNDER)
    return copysign(ONE if y > ONE else y, x)


@by_width(single(weight32), erf64)
def weight(x: Any) -> Any:
    """Return the error function with the precision that `gelu` needs to add 1 to it."""


# (sin r - r) / r^3 and (cos r - 1 + r^2 / 2) / r^4 as polynomials in r^2, for |r| up
# to 1.02 pi/4: errors 2^-66 and 2^-70; 2^-35 and 2^-38 in single precision.
SIN = (
    -7.584263996034166e-13,
    1.605848950955874e-10,
    -2.5052105961377e-08,
    2.7557319218542833e-06,
    -0.0001984126984126402,
    0.008333333333333331,
    -0.16666666666666666,
)
COS = (
    4.7445191096480046e-14,
    -1.1470437475266499e-11,
    2.087675564036913e-09,
    -2.755731922096008e-07,
    2.4801587301584066e-05,
    -0.0013888888888888887,
    0.041666666666666664,
)
constants(
    SIN=(
        2.72375769e-06,
        -0.000198399895,
        0.00833333191,
        -0.166666672,
    ),
    COS=(
        -2.72906533e-07,
        2.48005199e-05,
        -0.00138888881,
        0.0416666679,
    ),
)

# 2 / pi; pi/2 in three parts.
TWO_BY_PI, HALF_PI_HIGH = 0.6366197723675814, 1.5707963267948966
HALF_PI_MID, HALF_PI_LOW = 6.123233995736766e-17, -1.4973849048591698e-33
constants(TWO_BY_PI=0.636619747, HALF_PI_HIGH=1.57079637)
constants(HALF_PI_MID=-4.37113883e-08, HALF_PI_LOW=-1.71512451e-15)

# Up to here, the third part of pi/2 reaches the last digit; in single precision n is so
# small that its rounding leaves |r| below 1.02 pi/4.
NEAR = 1e9
constants(NEAR=1e5)


@part
def turn(x: Any) -> Any:
    """Return n (its last bits), sine and cosine of r; for |x| <= `NEAR`."""
    shifted = fma(x, TWO_BY_PI, SHIFT)
    n = shifted - SHIFT
    r = fma(n, -HALF_PI_MID, fma(n, -HALF_PI_HIGH, x))
    r = fma(n, -HALF_PI_LOW, r)
    z = r * r
    sine = fma(r * z, horner(z, SIN), r)
    cosine = fma(z * z, horner(z, COS), fma(z, -HALF, ONE))
    return bits_of(shifted), sine, cosine


@both
def sin_near(x: Any) -> Any:
    """Return the sine of a number that `is_near`; at most 2 ulp off."""
    n, sine, cosine = turn(x)
    y = sine if n & 1 == 0 else cosine
    y = -y if n & 2 != 0 else y
    return x if x == 0 else y


@both
def cos_near(x: Any) -> Any:
    """Return the cosine of a number that `is_near`; at most 2 ulp off."""
    n, sine, cosine = turn(x)
    y = cosine if n & 1 == 0 else sine
    return -y if (n + 1) & 2 != 0 else y


@both
def tan_near(x: Any) -> Any:
    """Return the tangent of a number that `is_near`; at most 4 ulp off."""
    n, sine, cosine = turn(x)
    above = sine if n & 1 == 0 else -cosine
    below = cosine if n & 1 == 0 else sine
    return x if x == 0 else above / below


@both
def is_near(x: Any) -> Any:
    """Return True if the `_near` functions are valid: |x| is small, and not NaN."""
    return abs(x) <= NEAR


def sin(x: Any) -> Any:
    """Return the sine of any number; at most 2 ulp off; NaN of an infinite one."""
    return sin_near(x) if is_near(x) else np.sin(x)


def cos(x: Any) -> Any:
    """Return the cosine of any number; at most 2 ulp off; NaN of an infinite one."""
    return cos_near(x) if is_near(x) else np.cos(x)


def tan(x: Any) -> Any:
    """Return the tangent of any number; at most 4 ulp off; NaN of an infinite one."""
    return tan_near(x) if is_near(x) else np.tan(x)
