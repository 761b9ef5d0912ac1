"""The error function and the activations that weigh a number by a distribution.

True only here: below 1 `erf` is `x` times a polynomial in `x^2`; above, it is one less
the tail.  In single precision the tail is e to a polynomial, in double precision
`e^(-x^2)` times a polynomial in `1 / (x + 2)`.  Both are computed and one selected.

`gelu` and `silu` are x times a weight; the derivatives are those of the formulas.
"""

from typing import Any

from runtime.kernels.math.exponential import exp, exp32, exp64
from runtime.kernels.math.polynomial import float32s, horner, horner_on
from runtime.kernels.math.primitive import by_width, copysign, fma, like
from runtime.kernels.math.sigmoid import sigmoid, tanh

# erf(x) / x - 1 as a polynomial in x^2, for |x| <= 1: errors 2^-30 and 2^-63.
ERF32 = float32s(
    7.87587487e-05,
    -0.00080168643,
    0.00518908724,
    -0.0268542115,
    0.112835944,
    -0.37612626,
    0.128379166,
)
ERF64 = (
    5.957176147748911e-11,
    -1.1372848856791674e-09,
    1.4659775274047436e-08,
    -1.6350312701054695e-07,
    1.6461000484121368e-06,
    -1.4925595266831182e-05,
    0.0001205533111164271,
)
ERF64_ON = (
    -0.000854832698083379,
    0.0052239776248180145,
    -0.026866170645076792,
    0.11283791670954879,
    -0.3761263890318375,
    0.1283791670955126,
)
# -log(erfc(x)) for x from 1 to 4: error 2^-26.
TAIL32 = float32s(
    -1.63863729e-06,
    4.60874471e-05,
    -0.000597052975,
    0.00476074778,
    -0.0264243707,
    0.110085681,
    0.631820261,
    1.13023674,
    -0.000320914376,
)
# e^(x^2) erfc(x) as a polynomial in 1 / (x + 2), for x from 1 to 6: error 2^-58.
TAIL64 = (
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
TAIL64_ON = (
    -0.5763034102623621,
    -0.5776319934126216,
    2.653108133912676,
    2.8272747646961314,
    1.9740678635418445,
    1.1284117931424096,
    0.5641885657660911,
    1.4107529632304767e-08,
)

# erf(x) / x as a quotient of polynomials in x^2, for |x| <= 3.95: error 2^-25.
ABOVE32 = float32s(
    2.02590904e-06,
    0.000284688209,
    0.00380817352,
    0.0528754851,
    0.191550559,
    1.12837914,
)
BELOW32 = float32s(
    3.78318364e-05,
    0.00117072903,
    0.0150551140,
    0.114559732,
    0.503089939,
    1.0,
)
FITTED32 = float32s(3.95)[0]

# From here erf is 1 in its precision.
LIMIT32, LIMIT64 = *float32s(4.0), 6.0

ONE32 = float32s(1.0)[0]

# 1 / sqrt(2) and 1 / sqrt(2 pi); sqrt(2 / pi) and the cubic term of the approximation
# by tanh (Hendrycks and Gimpel, "Gaussian error linear units").
ROOT_HALF, DENSITY = 0.7071067811865476, 0.3989422804014327
ROOT_TWO_BY_PI, CUBIC = 0.7978845608028654, 0.044715


def erf32(x: Any) -> Any:
    """`erf` in single precision."""
    z = abs(x)
    z = LIMIT32 if z > LIMIT32 else z
    tail = ONE32 - exp32(-horner(z, TAIL32))
    near = fma(z, horner(z * z, ERF32), z)
    return copysign(near if z < ONE32 else tail, x)


def erf64(x: Any) -> Any:
    """`erf` in double precision."""
    z = abs(x)
    z = LIMIT64 if z > LIMIT64 else z
    t = 1.0 / (z + 2.0)
    tail = 1.0 - exp64(-z * z) * horner_on(horner(t, TAIL64), t, TAIL64_ON)
    square = z * z
    near = fma(z, horner_on(horner(square, ERF64), square, ERF64_ON), z)
    return copysign(near if z < 1.0 else tail, x)


@by_width(erf32, erf64)
def erf(x: Any) -> Any:
    """The error function; at most 2 ulp off."""


def weight32(x: Any) -> Any:
    """`weight` in single precision, in half the time of `erf`: at most 6 ulp off it."""
    z = abs(x)
    z = FITTED32 if z > FITTED32 else z
    square = z * z
    y = z * horner(square, ABOVE32) / horner(square, BELOW32)
    return copysign(ONE32 if y > ONE32 else y, x)


@by_width(weight32, erf64)
def weight(x: Any) -> Any:
    """The error function as `gelu` needs it, where 1 is added to it."""


def gelu(x: Any) -> Any:
    """x weighed by the normal distribution: `x (1 + erf(x / sqrt 2)) / 2`.

    At most 3 ulp off where x is positive; where it is not, 2 ulp of x, as 1 is added.
    """
    share = like(x, 1.0) + weight(x * like(x, ROOT_HALF))
    return like(x, 0.5) * x * share


def gelu_slope(x: Any) -> Any:
    """The derivative of `gelu`."""
    share = like(x, 0.5) * (like(x, 1.0) + weight(x * like(x, ROOT_HALF)))
    return share + x * (exp(like(x, -0.5) * x * x) * like(x, DENSITY))


def gelu_tanh(x: Any) -> Any:
    """`gelu` with the distribution approximated by a hyperbolic tangent.

    At most 2 ulp off where x is positive; where it is not, 1 ulp of x.
    """
    inner = like(x, ROOT_TWO_BY_PI) * (x + like(x, CUBIC) * x * x * x)
    return like(x, 0.5) * x * (like(x, 1.0) + tanh(inner))


def gelu_tanh_slope(x: Any) -> Any:
    """The derivative of `gelu_tanh`."""
    one, half = like(x, 1.0), like(x, 0.5)
    square = like(x, CUBIC) * x * x
    t = tanh(like(x, ROOT_TWO_BY_PI) * x * (one + square))
    inner = like(x, ROOT_TWO_BY_PI) * (one + like(x, 3.0) * square)
    return half * (one + t) + half * x * (one - t * t) * inner


def silu(x: Any) -> Any:
    """x weighed by the logistic function: `x sigmoid(x)`.

    At most 4 ulp off; with a denormal weight, x times the least number besides.
    """
    return x * sigmoid(x)


def silu_slope(x: Any) -> Any:
    """The derivative of `silu`."""
    s = sigmoid(x)
    return s * (like(x, 1.0) + x * (like(x, 1.0) - s))
