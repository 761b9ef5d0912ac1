"""Polynomials of fixed degree, and constants of single precision.

True only here: a polynomial is a tuple of coefficients, highest power first.  The loop
has a constant length, so that the compiler unrolls it and vectorises what is around.
The coefficients in this folder are our own: Chebyshev interpolation at 50 digits, then
rounded; the error that is left is said beside each.
"""

from typing import Any

import numpy as np

from runtime.kernels.math.primitive import fma


def float32s(*values: float) -> tuple[Any, ...]:
    """Constants that keep a calculation in single precision."""
    return tuple(np.float32(value) for value in values)


def horner(x: Any, coefficients: Any) -> Any:
    """The polynomial at `x`, each step rounded once."""
    return horner_on(coefficients[0], x, coefficients[1:])


def horner_on(y: Any, x: Any, coefficients: Any) -> Any:
    """The polynomial that begins with `y`: long ones are cut, or they stay loops."""
    for k in range(len(coefficients)):
        y = fma(y, x, coefficients[k])
    return y
