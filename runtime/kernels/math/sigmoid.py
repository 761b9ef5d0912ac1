"""Curves between two limits: the logistic function and the hyperbolic tangent.

True only here: both are quotients of exponentials that cannot overflow, because the
exponent is made negative, or bounded where the limit is reached.
"""

from typing import Any

from runtime.kernels.math.exponential import exp32, exp64, growth32, growth64
from runtime.kernels.math.polynomial import float32s
from runtime.kernels.math.primitive import by_width, copysign

# From here tanh is 1 in its precision.
LIMIT32, LIMIT64 = *float32s(9.5), 20.0

ZERO32, ONE32, TWO32 = float32s(0.0, 1.0, 2.0)


def sigmoid32(x: Any) -> Any:
    """`sigmoid` in single precision."""
    e = exp32(-abs(x))
    y = ONE32 / (ONE32 + e)
    return e * y if x < ZERO32 else y


def sigmoid64(x: Any) -> Any:
    """`sigmoid` in double precision."""
    e = exp64(-abs(x))
    y = 1.0 / (1.0 + e)
    return e * y if x < 0.0 else y


@by_width(sigmoid32, sigmoid64)
def sigmoid(x: Any) -> Any:
    """1 / (1 + e^-x); at most 3 ulp off, also where it is denormal."""


def tanh32(x: Any) -> Any:
    """`tanh` in single precision."""
    z = abs(x)
    z = LIMIT32 if z > LIMIT32 else z
    e = growth32(TWO32 * z)
    return copysign(e / (e + TWO32), x)


def tanh64(x: Any) -> Any:
    """`tanh` in double precision."""
    z = abs(x)
    z = LIMIT64 if z > LIMIT64 else z
    e = growth64(2.0 * z)
    return copysign(e / (e + 2.0), x)


@by_width(tanh32, tanh64)
def tanh(x: Any) -> Any:
    """The hyperbolic tangent; at most 3 ulp off."""
