"""Kernels of one operand.

True only here: which function of a number each name stands for, by the kind of its
dtype: real numbers (floating and integer), complex ones, bool.

Rules: a result of bool has its own loop; complex logarithms and roots are NumPy's
scalar ones, which Numba compiles; what an integer cannot change (`floor`, `conj`) is a
copy.
"""

from collections.abc import Callable
from math import erfc
from typing import Any

import numpy as np

from runtime.kernels import math
from runtime.kernels.cpu.copy import contiguous, copy
from runtime.kernels.cpu.elementwise import HEAVIEST, HEAVY, LIGHT, Scalar, Unary
from runtime.kernels.jit import Entry, Family
from runtime.kernels.math import copysign, like, sqrt
from runtime.kernels.math.complex_inverse import RealInverse, inverse
from runtime.kernels.math.complex_plane import Real, plane
from runtime.schema.codes import DType
from runtime.tensors.arrays import flat_of
from runtime.tensors.elements import SUPPORTED, info
from runtime.tensors.tensor import Tensor

# Elements that are looked at before a loop is chosen: 4 KiB of double precision, which
# stay in the first cache.
BLOCK = 512


class Circular(Unary):
    """A function that is vectorised where a whole block of numbers is near zero."""

    def __init__(self, name: str, scalar: Scalar, near: Scalar) -> None:
        self.near = near
        super().__init__(name, scalar, grain=HEAVY)

    def loops(self, scalar: Scalar) -> tuple[Entry, Entry]:
        """The loop from one array to another, and the one within an array."""
        near = self.near
        is_near = math.is_near

        def flat(x: Any, out: Any) -> None:
            for begin in range(0, x.size, BLOCK):
                source, target = x[begin : begin + BLOCK], out[begin : begin + BLOCK]
                far = 0
                for i in range(source.size):
                    far += 0 if is_near(source[i]) else 1
                if far == 0:
                    for i in range(source.size):
                        target[i] = near(source[i])
                else:
                    for i in range(source.size):
                        target[i] = scalar(source[i])

        def onto(out: Any) -> None:
            for begin in range(0, out.size, BLOCK):
                target = out[begin : begin + BLOCK]
                far = 0
                for i in range(target.size):
                    far += 0 if is_near(target[i]) else 1
                if far == 0:
                    for i in range(target.size):
                        target[i] = near(target[i])
                else:
                    for i in range(target.size):
                        target[i] = scalar(target[i])

        return flat, onto


def _neg(x: Any) -> Any:
    return -x


def _abs(x: Any) -> Any:
    return abs(x)


def _sign(x: Any) -> Any:
    # NaN, which is on neither side of zero, gives 0, as it does in torch.
    above = like(x, 1) if x > 0 else like(x, 0)
    return like(x, -1) if x < 0 else above


def _rsqrt(x: Any) -> Any:
    return like(x, 1.0) / sqrt(x)


def _relu(x: Any) -> Any:
    return like(x, 0) if x < 0 else x


def _reciprocal(x: Any) -> Any:
    return like(x, 1.0) / x


def _square(x: Any) -> Any:
    return x * x


def _bitwise_not(x: Any) -> Any:
    return ~x


def _logical_not(x: Any) -> Any:
    return x == 0


def _isnan(x: Any) -> Any:
    return x != x


def _isinf(x: Any) -> Any:
    return abs(x) == np.inf


def _isfinite(x: Any) -> Any:
    return x - x == 0


def complex_divide(a: Any, b: Any) -> Any:
    """The quotient of two complex numbers; by zero it is infinite, or NaN.

    After Smith, "Algorithm 116: Complex division", 1962: the larger part of the divisor
    is divided out first, so that no square overflows.
    """
    if abs(b.real) >= abs(b.imag):
        if b.real == 0:
            nothing = abs(b.real)
            return complex(a.real / nothing, a.imag / nothing)
        ratio = b.imag / b.real
        size = b.real + b.imag * ratio
        return complex(
            (a.real + a.imag * ratio) / size, (a.imag - a.real * ratio) / size
        )
    ratio = b.real / b.imag
    size = b.real * ratio + b.imag
    return complex((a.real * ratio + a.imag) / size, (a.imag * ratio - a.real) / size)


def _complex_reciprocal(x: Any) -> Any:
    return complex_divide(like(x, 1.0), x)


def _complex_sign(x: Any) -> Any:
    size = abs(x)
    return x / size if size != 0 else x


def _complex_isinf(x: Any) -> Any:
    return (abs(x.real) == np.inf) | (abs(x.imag) == np.inf)


def _half(x: Any) -> Any:
    return x * like(x, 0.5)


PLANE = plane(
    Real(np.exp, np.expm1, np.sin, np.cos, np.sinh, np.cosh, np.tanh, _half),
    compiled=lambda function: function,
)
INVERSE = inverse(
    RealInverse(like, copysign, np.arcsinh, np.arctan2, np.log, np.log1p, np.sqrt),
    compiled=lambda function: function,
)
complex_exp = PLANE.exp


def _complex_log2(x: Any) -> Any:
    found, scale = np.log(x), like(x.real, 1.4426950408889634)
    return complex(found.real * scale, found.imag * scale)


def _complex_sigmoid(x: Any) -> Any:
    return complex_divide(like(x, 1.0), like(x, 1.0) + complex_exp(-x))


def _complex_silu(x: Any) -> Any:
    return complex_divide(x, like(x, 1.0) + complex_exp(-x))


def _complex_rsqrt(x: Any) -> Any:
    return complex_divide(like(x, 1.0), np.sqrt(x))


def _conj(x: Any) -> Any:
    return np.conj(x)


def _numpy_scalar(function: Any) -> Scalar:
    """NumPy's function as one of our scalars."""

    def scalar(x: Any) -> Any:
        return function(x)

    return scalar


def _named(name: str, scalar: Scalar, grain: int) -> tuple[str, Unary]:
    return name, Unary(name, scalar, grain=grain)


# 1e5 float32 take 10 to 15 us: these run at the speed of memory.
_LIGHT = {
    "neg": _neg,
    "abs": _abs,
    "sign": _sign,
    "sqrt": math.sqrt,
    "rsqrt": _rsqrt,
    "relu": _relu,
    "reciprocal": _reciprocal,
    "square": _square,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": math.rint,
    "trunc": math.trunc,
    "bitwise_not": _bitwise_not,
}

# What the vector library has no polynomials of: those of the C library, one by one.
_OF_C = {
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erfc": erfc,
}

# 1e5 float32 take 20 to 100 us.
_HEAVY = {
    "exp": math.exp,
    "expm1": math.expm1,
    "log": math.log,
    "log1p": math.log1p,
    "log2": math.log2,
    "log10": math.log10,
    "tanh": math.tanh,
    "sigmoid": math.sigmoid,
    "silu": math.silu,
}

REAL: dict[str, Unary] = {
    **dict(_named(name, scalar, LIGHT) for name, scalar in _LIGHT.items()),
    **dict(_named(name, scalar, HEAVY) for name, scalar in _HEAVY.items()),
    "erf": Unary("erf", math.erf, grain=HEAVIEST),
    **dict(_named(n, _numpy_scalar(f), HEAVIEST) for n, f in _OF_C.items()),
    "sin": Circular("sin", math.sin, math.sin_near),
    "cos": Circular("cos", math.cos, math.cos_near),
    "tan": Circular("tan", math.tan, math.tan_near),
}

_COMPLEX: dict[str, Scalar] = {
    "neg": _neg,
    "sign": _complex_sign,
    "rsqrt": _complex_rsqrt,
    "reciprocal": _complex_reciprocal,
    "square": _square,
    "log2": _complex_log2,
    "sigmoid": _complex_sigmoid,
    "silu": _complex_silu,
    "conj": _conj,
    **{
        name: getattr(PLANE, name)
        for name in ("exp", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh")
    },
    **INVERSE._asdict(),
    **{
        function.__name__: _numpy_scalar(function)
        for function in (np.log, np.log1p, np.log10, np.sqrt)
    },
}

COMPLEX: dict[str, Unary] = {
    name: Unary(f"{name}_complex", scalar, grain=20_000)
    for name, scalar in _COMPLEX.items()
}

TESTS: dict[str, tuple[Unary, Unary]] = {
    name: (
        Unary(name, real, result="boolean"),
        Unary(f"{name}_complex", complex_, result="boolean"),
    )
    for name, real, complex_ in (
        ("logical_not", _logical_not, _logical_not),
        ("isnan", _isnan, _isnan),
        ("isinf", _isinf, _complex_isinf),
        ("isfinite", _isfinite, _isfinite),
    )
}

GELU = {
    "none": Unary("gelu", math.gelu, grain=HEAVIEST),
    "tanh": Unary("gelu_tanh", math.gelu_tanh, grain=HEAVIEST),
}

# What an integer is not changed by.
_WHOLE = frozenset(("floor", "ceil", "round", "trunc"))


def _size(x: Any, out: Any) -> None:
    for i in range(x.size):
        out[i] = abs(x[i])


COMPLEX_ABS = Family("abs_complex", _size, "void(T[::1], U[::1])")


def complex_abs(out: Tensor, x: Tensor) -> None:
    """The sizes of complex numbers, which are real."""
    COMPLEX_ABS[x.dtype.name, out.dtype.name](flat_of(contiguous(x)), flat_of(out))


def _kernel(name: str) -> Callable[[Tensor, Tensor], None]:
    """The kernel that looks at the dtype first."""
    by_dtype: dict[str, Callable[[Tensor, Tensor], None]] = {}
    for dtype in SUPPORTED:
        kind = info(DType.named(dtype)).kind
        if kind == "c":
            by_dtype[dtype] = COMPLEX.get(name, complex_abs)
        elif name not in REAL or (name in _WHOLE and kind != "f"):
            by_dtype[dtype] = copy
        else:
            by_dtype[dtype] = REAL[name]

    def kernel(out: Tensor, x: Tensor) -> None:
        by_dtype[x.dtype.name](out, x)

    kernel.__name__ = kernel.__qualname__ = name
    return kernel


def _test(name: str) -> Callable[[Tensor, Tensor], None]:
    """The kernel of a question, whose answer is known for integers."""
    real, of_complex = TESTS[name]

    def kernel(out: Tensor, x: Tensor) -> None:
        if x.dtype.is_complex:
            of_complex(out, x)
        elif name == "logical_not" or x.dtype.is_floating:
            real(out, x)
        else:
            target = flat_of(out)
            assert target is not None, "outputs are contiguous"
            target.fill(name == "isfinite")

    kernel.__name__ = kernel.__qualname__ = name
    return kernel


def bitwise_not(out: Tensor, x: Tensor) -> None:
    """Every bit turned; for bool the opposite."""
    if x.dtype.name == "bool":
        TESTS["logical_not"][0](out, x)
    else:
        REAL["bitwise_not"](out, x)


def gelu(out: Tensor, x: Tensor, approximate: str) -> None:
    """x weighed by the normal distribution, or ("tanh") by an approximation of it."""
    GELU[approximate](out, x)


KERNELS: dict[str, Callable[..., None]] = {
    **{name: _kernel(name) for name in (*REAL, "conj")},
    **{name: _test(name) for name in TESTS},
    "bitwise_not": bitwise_not,
    "gelu": gelu,
}


def direct_unary(name: str, dtype_name: str) -> Entry:
    """The compiled loop `entry(x, out)` over flat arrays of that dtype; no checks.

    For dtypes that are computed in; `gelu` is the exact one.  Raises KeyError for a
    name that has no such loop.
    """
    if name == "gelu":
        return GELU["none"].flat[dtype_name]
    kind = info(DType.named(dtype_name)).kind
    if name in TESTS:
        return TESTS[name][kind == "c"].flat[dtype_name]
    return (COMPLEX if kind == "c" else REAL)[name].flat[dtype_name]
