"""16-bit floats on the device: their bits to float32 and back, by integers.

True only here: the two formats.  float16 is IEEE 754 binary16, bfloat16 the upper half
of a float32.  Numbers are rounded to the nearest, of two to the even one; what is too
large becomes infinite; every NaN becomes the quiet one.  The device has instructions
for this, but the same integers run in the simulator and for every capability.

Rules: all sums are brought back to 32 bits by `_U`, because mixed widths widen.  For
the small float16 numbers the sum `x + 0.5` does the rounding: 0.5 is the number whose
last bit is worth 2**-24, as theirs is (F. Giesen, float->half variants).
"""

import numpy as np

from runtime.kernels.cuda.jit import device

_U = np.uint32
_F = np.float32
_H = np.uint16

# 2**-24, what the last bit of a small float16 is worth.
_LAST = _F(2.0**-24)
_HALF = _F(0.5)


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
