"""Logarithm, cosine and sine for normal numbers: those of the CPU, bit by bit.

True only here: the device's own functions are as exact as the CPU's, but err elsewhere;
two errors of one or two ulp in a product are four.  So the CPU's polynomials
(`runtime.kernels.math`) are evaluated in the same order, with the fused steps at the
same places, and nothing is left to the compiler to contract: no product is added to
anything but by `fma`.

Rules: `log_of` takes normal numbers up to 1, `circle` angles of [0, pi / 2); both know
nothing of infinities and NaN.

When you change `logarithm` or `circular` of `runtime.kernels.math`, change this too.
"""

from typing import Any

import numpy as np

from runtime.kernels.cuda.jit import device
from runtime.kernels.cuda.scalars import Scalar
from runtime.kernels.cuda.toolkit import SIMULATED
from runtime.kernels.math.circular import (
    COS64,
    HALF_PI_HIGH64,
    HALF_PI_LOW64,
    HALF_PI_MID64,
    SIN64,
    TWO_BY_PI64,
)
from runtime.kernels.math.exponential import LN2_HIGH64, LN2_LOW64, SHIFT64
from runtime.kernels.math.logarithm import LOG64, ROOT64, UNIT64
from runtime.kernels.math.primitive import bits, fma, from_bits

_I = np.int64
_D = np.float64

# The bits of the exponent and the sign.
_ABOVE = _I(-(1 << 52))
_ROOT = _I(ROOT64)


def _native() -> tuple[Scalar, Scalar, Scalar]:
    """fma, the bits of a float64, and the float64 of bits."""
    if SIMULATED:
        return fma, bits, from_bits
    from numba.cuda import libdevice

    library: Any = libdevice
    return library.fma, library.double_as_longlong, library.longlong_as_double


_fma, _bits, _from_bits = _native()


def _polynomial(coefficients: tuple[float, ...]) -> Scalar:
    """Horner's scheme, a function a step: the compiler is left no loop."""
    first = coefficients[0]
    step: Scalar = device(lambda z: first)
    for coefficient in coefficients[1:]:
        step = _step(step, coefficient)
    return step


def _step(before: Scalar, coefficient: float) -> Scalar:
    def step(z):  # type: ignore[no-untyped-def]  # compiled for the device
        return _fma(before(z), z, coefficient)

    return device(step)


_log_rest = _polynomial(LOG64)
_sine_rest = _polynomial(SIN64)
_cosine_rest = _polynomial(COS64)


@device
def log_of(x):  # type: ignore[no-untyped-def]  # compiled for the device
    """The natural logarithm of a normal number up to 1."""
    pattern = _bits(x)
    exponent = _I((pattern - _ROOT) & _ABOVE)
    k = _D(exponent) * UNIT64
    f = _from_bits(_I(pattern - exponent)) - 1.0
    s = f / (2.0 + f)
    z = s * s
    half = 0.5 * f * f
    rest = _fma(s, _fma(z, _log_rest(z), half), -half)
    return _fma(k, LN2_HIGH64, f + _fma(k, LN2_LOW64, rest))


@device
def circle(angle):  # type: ignore[no-untyped-def]  # as above
    """Cosine and sine of an angle of [0, pi / 2)."""
    n = _fma(angle, TWO_BY_PI64, SHIFT64) - SHIFT64
    r = _fma(n, -HALF_PI_MID64, _fma(n, -HALF_PI_HIGH64, angle))
    r = _fma(n, -HALF_PI_LOW64, r)
    z = r * r
    sine = _fma(r * z, _sine_rest(z), r)
    cosine = _fma(z * z, _cosine_rest(z), _fma(z, -0.5, 1.0))
    # The nearest multiple of pi / 2 is the first, or none.
    if n == 1.0:
        return -sine, cosine
    return cosine, sine
