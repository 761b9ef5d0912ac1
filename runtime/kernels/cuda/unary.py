"""Functions of one element: neg to isfinite, and gelu.

True only here: the table of unary operators, each with the types it is compiled for.

Rules: a row is name, scalar function by type, dtypes, and the letter of the result.
Operators that the identity serves for a dtype (`floor` of integers, `conj` of real
numbers) copy.  Complex functions are built of the few that `cmath` has.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.kernels.cuda import scalars
from runtime.kernels.cuda.copy import copy, fill
from runtime.kernels.cuda.elementwise import ScalarMaker, family, run
from runtime.kernels.cuda.jit import Family
from runtime.kernels.cuda.scalars import Scalar
from runtime.tensors.tensor import Tensor

SIGNED = ("int8", "int16", "int32", "int64")
INTEGERS = ("uint8", *SIGNED)
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
INEXACT = (*FLOATS, *COMPLEX)
NUMBERS = (*INTEGERS, *INEXACT)
ALL = ("bool", *NUMBERS)

# 1 / ln 2 and 1 / ln 10, 1 / sqrt 2, sqrt(2 / pi), and the cubic term of the tanh form
# of gelu (Hendrycks and Gimpel, 2016).
LOG2_E = 1 / math.log(2.0)
LOG10_E = 1 / math.log(10.0)
SQRT_HALF = math.sqrt(0.5)
SQRT_2_PI = math.sqrt(2 / math.pi)
CUBIC = 0.044715


def is_complex(kind: Any) -> bool:
    """Whether a scalar type is complex."""
    return bool(np.issubdtype(kind, np.complexfloating))


def _by_kind(real: Scalar, over: Scalar) -> ScalarMaker:
    return lambda kind: over if is_complex(kind) else real


def _of_plane(name: str, plane: Callable[[Any], Any] = scalars.plane_of) -> ScalarMaker:
    def make(kind: Any) -> Scalar:
        owner = plane(kind) if is_complex(kind) else scalars
        made: Scalar = getattr(owner, name)
        return made

    return make


def _sign(kind: Any) -> Scalar:
    zero, one = kind(0), kind(1)
    if kind is np.uint8:
        return lambda x: one if x > zero else zero
    minus = kind(-1)
    # NaN, which is on neither side of zero, gives 0, as it does in torch.
    return lambda x: one if x > zero else (minus if x < zero else zero)


def _absolute(kind: Any) -> Scalar:
    if is_complex(kind):
        length = scalars.hypot
        return lambda x: length(x.real, x.imag)
    zero = kind(0)
    if np.issubdtype(kind, np.floating):
        return scalars.fabs
    return lambda x: kind(zero - x) if x < zero else x


def _sigmoid(kind: Any) -> Scalar:
    one = kind(1)
    if is_complex(kind):
        over, complex_exp = scalars.complex_quotient, scalars.plane_of(kind).exp
        return lambda x: over(one, one + complex_exp(-x))
    exp = scalars.exp
    return lambda x: one / (one + exp(-x))


def _silu(kind: Any) -> Scalar:
    one = kind(1)
    if is_complex(kind):
        over, complex_exp = scalars.complex_quotient, scalars.plane_of(kind).exp
        return lambda x: over(x, one + complex_exp(-x))
    exp = scalars.exp
    return lambda x: x / (one + exp(-x))


def _rsqrt(kind: Any) -> Scalar:
    one = kind(1)
    if is_complex(kind):
        over, complex_sqrt = scalars.complex_quotient, scalars.complex_sqrt
        return lambda x: over(one, complex_sqrt(x))
    sqrt = scalars.sqrt
    return lambda x: one / sqrt(x)


def _reciprocal(kind: Any) -> Scalar:
    one = kind(1)
    if is_complex(kind):
        over = scalars.complex_quotient
        return lambda x: over(one, x)
    return lambda x: one / x


def _relu(kind: Any) -> Scalar:
    zero = kind(0)
    # NaN is not below zero and stays.
    return lambda x: zero if x < zero else x


def _log_by(factor: float, real: Scalar) -> ScalarMaker:
    def make(kind: Any) -> Scalar:
        if not is_complex(kind):
            return real
        scale, log = kind(factor).real, scalars.complex_log

        def scaled(x):  # type: ignore[no-untyped-def]  # compiled for the device
            """Part by part: infinity by a complex number is NaN."""
            found = log(x)
            return complex(found.real * scale, found.imag * scale)

        return scaled

    return make


def _log1p(kind: Any) -> Scalar:
    if not is_complex(kind):
        return scalars.log1p
    one, log = kind(1), scalars.complex_log
    return lambda x: log(one + x)


def _gelu(kind: Any) -> Scalar:
    half, one, scale, erf = kind(0.5), kind(1), kind(SQRT_HALF), scalars.erf
    return lambda x: half * x * (one + erf(x * scale))


def _gelu_tanh(kind: Any) -> Scalar:
    half, one, scale, cubic = kind(0.5), kind(1), kind(SQRT_2_PI), kind(CUBIC)
    tanh = scalars.tanh
    return lambda x: half * x * (one + tanh(scale * (x + cubic * x * x * x)))


def _each_part(test: Scalar, both: bool) -> ScalarMaker:
    def make(kind: Any) -> Scalar:
        if not is_complex(kind):
            return test
        if both:
            return lambda x: test(x.real) and test(x.imag)
        return lambda x: test(x.real) or test(x.imag)

    return make


def _whole(how: str) -> ScalarMaker:
    return lambda kind: scalars.whole(how, kind)


def _logical_not(kind: Any) -> Scalar:
    zero = kind(0)
    return lambda x: x == zero


def _bitwise_not(kind: Any) -> Scalar:
    if kind is np.bool_:
        return lambda x: not x
    return lambda x: ~x


# name -> scalar by type, dtypes, letter of the result.
_ROWS: dict[str, tuple[ScalarMaker, tuple[str, ...], str]] = {
    "neg": (lambda kind: lambda x: -x, NUMBERS, "T"),
    "abs": (_absolute, NUMBERS, "R"),
    "sign": (_sign, (*INTEGERS, *FLOATS), "T"),
    "exp": (_of_plane("exp"), INEXACT, "T"),
    "expm1": (_of_plane("expm1"), INEXACT, "T"),
    "log": (_by_kind(scalars.log, scalars.complex_log), INEXACT, "T"),
    "log1p": (_log1p, INEXACT, "T"),
    "log2": (_log_by(LOG2_E, scalars.log2), INEXACT, "T"),
    "log10": (_log_by(LOG10_E, scalars.log10), INEXACT, "T"),
    "sqrt": (_by_kind(scalars.sqrt, scalars.complex_sqrt), INEXACT, "T"),
    "rsqrt": (_rsqrt, INEXACT, "T"),
    "sin": (_of_plane("sin"), INEXACT, "T"),
    "cos": (_of_plane("cos"), INEXACT, "T"),
    "tan": (_of_plane("tan"), INEXACT, "T"),
    "tanh": (_of_plane("tanh"), INEXACT, "T"),
    "sigmoid": (_sigmoid, INEXACT, "T"),
    "relu": (_relu, (*INTEGERS, *FLOATS), "T"),
    "silu": (_silu, INEXACT, "T"),
    "sinh": (_of_plane("sinh"), INEXACT, "T"),
    "cosh": (_of_plane("cosh"), INEXACT, "T"),
    **{
        name: (_of_plane(name, scalars.inverse_of), INEXACT, "T")
        for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")
    },
    "erf": (_by_kind(scalars.erf, scalars.erf), FLOATS, "T"),
    "erfc": (_by_kind(scalars.erfc, scalars.erfc), FLOATS, "T"),
    "reciprocal": (_reciprocal, INEXACT, "T"),
    "square": (lambda kind: lambda x: x * x, NUMBERS, "T"),
    "floor": (_whole("floor"), FLOATS, "T"),
    "ceil": (_whole("ceil"), FLOATS, "T"),
    "round": (_whole("rint"), FLOATS, "T"),
    "trunc": (_whole("trunc"), FLOATS, "T"),
    "logical_not": (_logical_not, ALL, "bool"),
    "bitwise_not": (_bitwise_not, ("bool", *INTEGERS), "T"),
    "isnan": (_each_part(scalars.isnan, both=False), INEXACT, "bool"),
    "isinf": (_each_part(scalars.isinf, both=False), INEXACT, "bool"),
    "isfinite": (_each_part(scalars.isfinite, both=True), INEXACT, "bool"),
    "conj": (lambda kind: lambda x: x.conjugate(), COMPLEX, "T"),
    "gelu_none": (_gelu, FLOATS, "T"),
    "gelu_tanh": (_gelu_tanh, FLOATS, "T"),
}

FAMILIES: dict[str, Family] = {
    name: family(name, scalar, dtypes, result=result)
    for name, (scalar, dtypes, result) in _ROWS.items()
}

# Of numbers without a fraction or an imaginary part these are the number itself.
_IDENTITY = ("abs", "floor", "ceil", "round", "trunc", "conj", "relu")

# What every integer answers to these questions.
_CERTAIN = {"isnan": False, "isinf": False, "isfinite": True}


def _unary(name: str) -> Callable[[Tensor, Tensor], None]:
    family_of = FAMILIES[name]
    known = frozenset(family_of.keys)

    def kernel(out: Tensor, x: Tensor) -> None:
        key = (x.dtype.name,)
        if key in known:
            run(family_of, key, out, (x, key[0]))
        elif name in _CERTAIN:
            fill(out, _CERTAIN[name])
        else:
            assert name in _IDENTITY, f"no CUDA kernel of {name} for {key[0]}"
            copy(out, x)

    kernel.__name__ = kernel.__qualname__ = name
    return kernel


def gelu(out: Tensor, x: Tensor, approximate: str) -> None:
    """The Gaussian error linear unit, by erf (`none`) or by `tanh`."""
    name = x.dtype.name
    run(FAMILIES[f"gelu_{approximate}"], (name,), out, (x, name))


KERNELS: dict[str, Callable[..., None]] = {
    **{name: _unary(name) for name in _ROWS if not name.startswith("gelu")},
    "gelu": gelu,
}
