"""Operations of the processor that Python lacks, and choices by width.

Two tables map plain functions to their compiled counterparts.  The functions themselves
are ordinary Python over NumPy scalars, so that every kernel also runs uncompiled;
`runtime.kernels.compile.jit` replaces them by instructions.

Rules: a primitive names the LLVM intrinsic that it compiles to, and both return the
same bits; only `fma` rounds once when compiled, and here first to the next wider type;
a choice takes one number and only selects one of two functions, for float32 or for
float64.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Scalar = Callable[..., Any]

# primitive -> LLVM intrinsic; None: a cast that the compiler generates.
PRIMITIVES: dict[Scalar, str | None] = {}

# choice -> (for float32, for float64 and everything else)
CHOICES: dict[Scalar, tuple[Scalar, Scalar]] = {}


def rint(x: Any) -> Any:
    """Return the nearest integer as a float, ties to even."""
    return np.rint(x)


def floor(x: Any) -> Any:
    """Return the greatest integer not above x, as a float."""
    return np.floor(x)


def ceil(x: Any) -> Any:
    """Return the least integer not below x, as a float."""
    return np.ceil(x)


def trunc(x: Any) -> Any:
    """Return the integer part as a float."""
    return np.trunc(x)


def sqrt(x: Any) -> Any:
    """Return the square root, rounded once; NaN of a negative number."""
    return np.sqrt(x)


def fma(a: Any, b: Any, c: Any) -> Any:
    """Return `a * b + c` without rounding the product."""
    if type(a) is np.float32:
        return np.float32(np.float64(a) * np.float64(b) + np.float64(c))
    return np.float64(np.longdouble(a) * np.longdouble(b) + np.longdouble(c))


def copysign(x: Any, sign: Any) -> Any:
    """Return the magnitude of `x` with the sign of `sign`."""
    return np.copysign(x, sign)


def bits(x: Any) -> Any:
    """Return the bits of a float as a signed integer of the same width."""
    if type(x) is np.float32:
        return x.view(np.int32)
    return np.float64(x).view(np.int64)


def from_bits(i: Any) -> Any:
    """Return the float with the bits of a signed integer (int32 or int64)."""
    return i.view(np.float32 if type(i) is np.int32 else np.float64)


def like(x: Any, value: float) -> Any:
    """Return a constant in the type of `x`: a literal would widen single precision."""
    return type(x)(value)


def rounded(x: Any, y: Any) -> Any:
    """Return `x * y`, rounded before it is added to anything, on every device."""
    return x * y


PRIMITIVES.update(
    {
        rint: "llvm.rint",
        floor: "llvm.floor",
        ceil: "llvm.ceil",
        trunc: "llvm.trunc",
        sqrt: "llvm.sqrt",
        fma: "llvm.fma",
        copysign: "llvm.copysign",
        bits: None,
        from_bits: None,
        like: None,
    }
)


def by_width(narrow: Scalar, wide: Scalar) -> Callable[[Scalar], Scalar]:
    """Return a decorator: the function is `narrow` for float32 and `wide` for float64.

    The decorated function provides only the name and the docstring.
    """

    def decorate(function: Scalar) -> Scalar:
        def choice(x: Any) -> Any:
            return narrow(x) if type(x) is np.float32 else wide(x)

        choice.__name__ = choice.__qualname__ = function.__name__
        choice.__module__ = function.__module__
        choice.__doc__ = function.__doc__
        CHOICES[choice] = (narrow, wide)
        return choice

    return decorate
