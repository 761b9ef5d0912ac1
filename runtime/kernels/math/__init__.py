"""Scalar functions for kernel bodies: vectorisable, in single and double precision."""

from runtime.kernels.math.circular import (
    cos,
    cos_near,
    is_near,
    sin,
    sin_near,
    tan,
    tan_near,
)
from runtime.kernels.math.exponential import exp, expm1
from runtime.kernels.math.logarithm import log, log1p, log2, log10
from runtime.kernels.math.normal import (
    erf,
    gelu,
    gelu_slope,
    gelu_tanh,
    gelu_tanh_slope,
    silu,
    silu_slope,
)
from runtime.kernels.math.primitive import (
    bits,
    ceil,
    copysign,
    floor,
    fma,
    from_bits,
    like,
    rint,
    sqrt,
    trunc,
)
from runtime.kernels.math.sigmoid import sigmoid, tanh

__all__ = [
    "bits",
    "ceil",
    "copysign",
    "cos",
    "cos_near",
    "erf",
    "exp",
    "expm1",
    "floor",
    "fma",
    "from_bits",
    "gelu",
    "gelu_slope",
    "gelu_tanh",
    "gelu_tanh_slope",
    "is_near",
    "like",
    "log",
    "log1p",
    "log2",
    "log10",
    "rint",
    "sigmoid",
    "silu",
    "silu_slope",
    "sin",
    "sin_near",
    "sqrt",
    "tan",
    "tan_near",
    "tanh",
    "trunc",
]
