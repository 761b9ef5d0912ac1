"""What bodies call: functions of numbers, 16-bit floats, and what a block finds out.

Mathematics: `reals` and `complexes_of` bind the functions that
`runtime.kernels.math.scalars` asks of a device.  Compiled, they are those of `math` and
`cmath`, which numba-cuda lowers to libdevice (errors in ulp: CUDA C++ Programming
Guide, mathematical functions).  Simulated, they are NumPy's, which answer with
infinities and NaN where Python's would raise.  Arguments and results have the element's
own type.

16-bit floats are bits of uint16: float16 is IEEE 754 binary16, bfloat16 the upper half
of a float32.  Numbers are rounded to the nearest, of two to the even one; what is too
large becomes infinite; every NaN becomes the quiet one.  The device has instructions
for this, but the same integers run in the simulator and for every capability.  All sums
are brought back to 32 bits by `_U`, because mixed widths widen.  For the small float16
numbers the sum `x + 0.5` does the rounding: 0.5 is the number whose last bit is worth
2**-24, as theirs is (F. Giesen, float->half variants).

Blocks: every thread of a block calls, each with its value, and all get the result;
`shared` has `BLOCK` elements and is free again afterwards.  The tree is the same on
every device, and so are the sums.
"""

import cmath
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from runtime.kernels.cuda.device import BLOCK, SIMULATED
from runtime.kernels.cuda.device import running as cuda
from runtime.kernels.cuda.jit import device
from runtime.kernels.math.complex import Complexes, Reals, Scalar, complexes

_U = np.uint32
_F = np.float32
_H = np.uint16

# 2**-24, what the last bit of a small float16 is worth.
_LAST = _F(2.0**-24)
_HALF = _F(0.5)


def _simulated(function: Callable[[Any], Any]) -> Scalar:
    return lambda x: type(x)(function(x))


def _pick(compiled: Any, simulated: Any) -> Scalar:
    chosen: Scalar = simulated if SIMULATED else compiled
    return chosen


# By name: compiled, and simulated.
_FUNCTIONS: dict[str, Scalar] = {
    **{
        name: _pick(getattr(math, name), getattr(np, name))
        for name in (
            *("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt"),
            *("sin", "cos", "tan", "sinh", "cosh", "tanh"),
            *("fmod", "hypot", "copysign"),
        )
    },
    **{
        f"a{name}": _pick(getattr(math, f"a{name}"), getattr(np, f"arc{name}"))
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")
    },
    **{
        name: _pick(function, _simulated(function))
        for name, function in (("erf", math.erf), ("erfc", math.erfc))
    },
}


def is_complex(kind: Any) -> bool:
    """Whether a scalar type is complex."""
    return bool(np.issubdtype(kind, np.complexfloating))


def _whole(how: str, kind: Any) -> Scalar:
    """`floor`, `ceil`, `trunc` or `rint` (of two the even one) of a floating type.

    Those of `math` would give integers, which large numbers do not fit.
    """
    if SIMULATED:
        simulated: Scalar = getattr(np, how)
        return simulated
    from numba.cuda import libdevice

    native = getattr(libdevice, how + ("f" if kind is np.float32 else ""))
    return device(lambda x: native(x))


@device
def _quotient(x, y):  # type: ignore[no-untyped-def]  # compiled for the device
    return x / y


@device
def _complex_power(x, y):  # type: ignore[no-untyped-def]  # as above
    return x**y


@device
def _length(x):  # type: ignore[no-untyped-def]  # as above
    """The size of a complex number, in the type of its parts."""
    return _hypot(x.real, x.imag)


_hypot = _FUNCTIONS["hypot"]


@cache
def reals(kind: Any) -> Reals:
    """The functions of real numbers of a type."""
    return Reals(
        compiled=device,
        like=device(lambda x, value: kind(value)),
        divide=_quotient,
        power=_pick(math.pow, np.power),
        **{how: _whole(how, kind) for how in ("floor", "ceil", "rint", "trunc")},
        weight=_FUNCTIONS["erf"],
        **_FUNCTIONS,
    )


@cache
def complexes_of(kind: Any) -> Complexes:
    """The functions of complex numbers of a type."""
    part: Any = type(kind(0).real)
    return complexes(
        reals(part),
        device(lambda x, value: kind(value)),
        power=_complex_power,
        absolute=_length,
        sqrt=_pick(cmath.sqrt, np.sqrt),
        log=_pick(cmath.log, np.log),
    )


def functions(kind: Any) -> Reals | Complexes:
    """The functions of numbers of a type."""
    return complexes_of(kind) if is_complex(kind) else reals(kind)


@device
def from_bfloat16(bits):  # type: ignore[no-untyped-def]  # compiled for the device
    """The float32 of the bits of a bfloat16."""
    return _U(_U(bits) << _U(16)).view(_F)


@device
def to_bfloat16(x):  # type: ignore[no-untyped-def]  # as above
    """The bits of the bfloat16 nearest to a float32."""
    bits = _F(x).view(_U)
    if _U(bits & _U(0x7FFFFFFF)) > _U(0x7F800000):
        return _H(0x7FC0)
    odd = _U(_U(bits >> _U(16)) & _U(1))
    return _H(_U(_U(bits + _U(0x7FFF)) + odd) >> _U(16))


@device
def from_float16(bits):  # type: ignore[no-untyped-def]  # as above
    """The float32 of the bits of a float16."""
    wide = _U(bits)
    sign = _U(_U(wide & _U(0x8000)) << _U(16))
    power = _U(_U(wide >> _U(10)) & _U(31))
    digits = _U(wide & _U(0x3FF))
    if power == _U(0):
        small = _F(_F(digits) * _LAST).view(_U)
        return _U(small | sign).view(_F)
    # The bias of the power differs by 112; 31 means infinite or NaN, as 255 does.
    power = _U(255) if power == _U(31) else _U(power + _U(112))
    whole = _U(_U(power << _U(23)) | _U(digits << _U(13)))
    return _U(whole | sign).view(_F)


@device
def to_float16(x):  # type: ignore[no-untyped-def]  # as above
    """The bits of the float16 nearest to a float32."""
    bits = _F(x).view(_U)
    sign = _U(_U(bits >> _U(16)) & _U(0x8000))
    size = _U(bits & _U(0x7FFFFFFF))
    if size > _U(0x7F800000):
        return _H(0x7E00)
    # 65520, from which on the nearest float16 is infinite.
    if size >= _U(0x477FF000):
        return _H(_U(sign | _U(0x7C00)))
    # 2**-14, below which float16 has a fixed point.
    if size < _U(0x38800000):
        fixed = _F(size.view(_F) + _HALF).view(_U)
        return _H(_U(sign | _U(fixed - _U(0x3F000000))))
    odd = _U(_U(size >> _U(13)) & _U(1))
    # The bias of the power differs by 112.
    rounded = _U(_U(_U(size - _U(0x38000000)) + _U(0xFFF)) + odd)
    return _H(_U(sign | _U(rounded >> _U(13))))


@device
def block_sum(shared, value):  # type: ignore[no-untyped-def]  # compiled for the device
    """The sum of the values of all threads."""
    thread = cuda.threadIdx.x
    shared[thread] = value
    cuda.syncthreads()
    half = BLOCK // 2
    while half > 0:
        if thread < half:
            shared[thread] += shared[thread + half]
        cuda.syncthreads()
        half = half // 2
    result = shared[0]
    cuda.syncthreads()
    return result


@device
def block_greatest(shared, value):  # type: ignore[no-untyped-def]  # as above
    """The greatest of the values of all threads; it may miss a NaN."""
    thread = cuda.threadIdx.x
    shared[thread] = value
    cuda.syncthreads()
    half = BLOCK // 2
    while half > 0:
        if thread < half and shared[thread + half] > shared[thread]:
            shared[thread] = shared[thread + half]
        cuda.syncthreads()
        half = half // 2
    result = shared[0]
    cuda.syncthreads()
    return result
