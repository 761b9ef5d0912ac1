"""Functions of one number on the device: libdevice's, or NumPy's in the simulator.

True only here: that a body names one function and gets the right one.  Compiled, they
are those of `math` and `cmath`, which numba-cuda lowers to libdevice (errors in ulp:
CUDA C++ Programming Guide, mathematical functions).  Simulated, they are NumPy's, which
answer with infinities and NaN where Python's would raise.

Rules: arguments and results have the element's own type; a literal beside them must be
made of that type (`T(1)`), or all is widened to float64.
"""

import cmath
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from runtime.kernels.cuda.jit import device
from runtime.kernels.cuda.toolkit import SIMULATED
from runtime.kernels.math.complex_inverse import Inverse, RealInverse, inverse
from runtime.kernels.math.complex_plane import Plane, Real, plane

Scalar = Callable[..., Any]


def _simulated(function: Callable[[Any], Any]) -> Scalar:
    return lambda x: type(x)(function(x))


def _pick(compiled: Any, simulated: Any) -> Scalar:
    chosen: Scalar = simulated if SIMULATED else compiled
    return chosen


exp = _pick(math.exp, np.exp)
expm1 = _pick(math.expm1, np.expm1)
log = _pick(math.log, np.log)
log1p = _pick(math.log1p, np.log1p)
log2 = _pick(math.log2, np.log2)
log10 = _pick(math.log10, np.log10)
sqrt = _pick(math.sqrt, np.sqrt)
sin = _pick(math.sin, np.sin)
cos = _pick(math.cos, np.cos)
tan = _pick(math.tan, np.tan)
sinh = _pick(math.sinh, np.sinh)
cosh = _pick(math.cosh, np.cosh)
tanh = _pick(math.tanh, np.tanh)
asin = _pick(math.asin, np.arcsin)
acos = _pick(math.acos, np.arccos)
atan = _pick(math.atan, np.arctan)
asinh = _pick(math.asinh, np.arcsinh)
acosh = _pick(math.acosh, np.arccosh)
atanh = _pick(math.atanh, np.arctanh)
erf = _pick(math.erf, _simulated(math.erf))
erfc = _pick(math.erfc, _simulated(math.erfc))
fabs = _pick(math.fabs, np.abs)
fmod = _pick(math.fmod, np.fmod)
hypot = _pick(math.hypot, np.hypot)
power = _pick(math.pow, np.power)
atan2 = _pick(math.atan2, np.arctan2)
copysign = _pick(math.copysign, np.copysign)
isnan = _pick(math.isnan, np.isnan)
isinf = _pick(math.isinf, np.isinf)
isfinite = _pick(math.isfinite, np.isfinite)

complex_log = _pick(cmath.log, np.log)
complex_sqrt = _pick(cmath.sqrt, np.sqrt)


@cache
def plane_of(kind: Any) -> Plane:
    """The functions of complex numbers of a type, of those of its parts."""
    part = kind(0.5).real
    half = device(lambda x: x * part)
    return plane(Real(exp, expm1, sin, cos, sinh, cosh, tanh, half), compiled=device)


@cache
def inverse_of(kind: Any) -> Inverse:
    """The inverse functions of complex numbers of a type."""
    part = type(kind(0).real)
    like = device(lambda x, value: part(value))
    own = RealInverse(like, copysign, asinh, atan2, log, log1p, complex_sqrt)
    return inverse(own, compiled=device)


def _complex_quotient(x, y):  # type: ignore[no-untyped-def]  # compiled for the device
    """Infinite or NaN by zero, where the compiler's own quotient ends the thread.

    After Smith, "Algorithm 116: Complex division", 1962: the larger part of the divisor
    is divided out first, so that no square overflows.
    """
    if abs(y.real) >= abs(y.imag):
        if y.real == 0:
            nothing = abs(y.real)
            return complex(x.real / nothing, x.imag / nothing)
        ratio = y.imag / y.real
        size = y.real + y.imag * ratio
        return complex(
            (x.real + x.imag * ratio) / size, (x.imag - x.real * ratio) / size
        )
    ratio = y.real / y.imag
    size = y.real * ratio + y.imag
    return complex((x.real * ratio + x.imag) / size, (x.imag * ratio - x.real) / size)


complex_quotient = _pick(device(_complex_quotient), np.divide)


def quotient(kind: Any) -> Scalar:
    """The quotient of two numbers of a type; only integers are refused a zero."""
    if np.issubdtype(kind, np.complexfloating):
        return complex_quotient
    return lambda x, y: x / y


def whole(how: str, kind: Any) -> Scalar:
    """`floor`, `ceil`, `trunc` or `rint` (of two the even one) of a floating type.

    Those of `math` would give integers, which large numbers do not fit.
    """
    if SIMULATED:
        simulated: Scalar = getattr(np, how)
        return simulated
    from numba.cuda import libdevice

    native = getattr(libdevice, how + ("f" if kind is np.float32 else ""))
    return device(lambda x: native(x))
