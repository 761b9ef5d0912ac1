"""Functions of two elements: arithmetic, comparisons, logic and bits.

True only here: the table of binary operators, each with the types it is compiled for.

Rules: integers divide towards minus infinity, as Python's do, and their remainder has
the sign of the divisor; a zero divisor among integers, and a negative exponent, are
found before anything is written.  Sums of booleans are `or`, products `and`.  NaN wins
in `maximum` and `minimum`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.errors.arithmetic import DivisionByZero, NegativeExponent
from runtime.kernels.cuda import scalars
from runtime.kernels.cuda.check import first_zero
from runtime.kernels.cuda.elementwise import ScalarMaker, family, run
from runtime.kernels.cuda.jit import Family, device, number_of
from runtime.kernels.cuda.operand import Number
from runtime.kernels.cuda.scalars import Scalar
from runtime.kernels.cuda.unary import (
    ALL,
    FLOATS,
    INEXACT,
    INTEGERS,
    NUMBERS,
)
from runtime.tensors.tensor import Tensor

_I = np.int64
REAL = ("bool", *INTEGERS, *FLOATS)


def _is_float(kind: Any) -> bool:
    return bool(np.issubdtype(kind, np.floating))


def _floor_divide(kind: Any) -> Scalar:
    if not _is_float(kind):
        return lambda x, y: x // y
    zero, one, half = kind(0), kind(1), kind(0.5)
    fmod, copysign, floor = scalars.fmod, scalars.copysign, scalars.whole("floor", kind)

    def divide(x, y):  # type: ignore[no-untyped-def]  # compiled for the device
        """Python's: exact where the quotient alone would round up (CPython, float)."""
        if y == zero:
            return kind(x / y)
        rest = kind(fmod(x, y))
        quotient = kind((x - rest) / y)
        if rest != zero and (y < zero) != (rest < zero):
            quotient = kind(quotient - one)
        if quotient == zero:
            return kind(copysign(zero, x / y))
        lower = kind(floor(quotient))
        if quotient - lower > half:
            lower = kind(lower + one)
        return lower

    return divide


def _remainder(kind: Any) -> Scalar:
    if not _is_float(kind):
        return lambda x, y: x % y
    zero, fmod, copysign = kind(0), scalars.fmod, scalars.copysign

    def rest_of(x, y):  # type: ignore[no-untyped-def]  # compiled for the device
        """The rest of C's division, moved to the divisor's side of zero."""
        rest = kind(fmod(x, y))
        if rest == zero:
            return kind(copysign(zero, y))
        if (y < zero) != (rest < zero):
            rest = kind(rest + y)
        return rest

    return rest_of


def _power(kind: Any) -> Scalar:
    if _is_float(kind):
        return scalars.power
    if not np.issubdtype(kind, np.integer):
        return lambda x, y: x**y
    one, minus = kind(1), kind(-1) if np.issubdtype(kind, np.signedinteger) else kind(1)

    def raised(x, y):  # type: ignore[no-untyped-def]  # compiled for the device
        """By squaring; products wrap around like all of integers.

        Of a negative power the whole part is left: of 1 and -1 their powers, else 0.
        """
        result, factor, rest = one, x, _I(y)
        if rest < _I(0):
            if x != one and x != minus:
                return kind(0)
            rest = _I(rest & _I(1))
        while rest > _I(0):
            if rest & _I(1):
                result = kind(result * factor)
            factor = kind(factor * factor)
            rest = _I(rest >> _I(1))
        return result

    return raised


def _maximum(kind: Any) -> Scalar:
    # Whatever differs from itself is NaN; integers never do.
    return lambda x, y: x if (x > y or x != x) else y


def _minimum(kind: Any) -> Scalar:
    return lambda x, y: x if (x < y or x != x) else y


def _logic(combine: Callable[[bool, bool], bool]) -> ScalarMaker:
    def make(kind: Any) -> Scalar:
        zero = kind(0)
        both = device(combine)
        return lambda x, y: both(x != zero, y != zero)

    return make


# name -> scalar by type, dtypes, letter of the result.
_ROWS: dict[str, tuple[ScalarMaker, tuple[str, ...], str]] = {
    "add": (lambda kind: lambda x, y: x + y, ALL, "T"),
    "sub": (lambda kind: lambda x, y: x - y, NUMBERS, "T"),
    "mul": (lambda kind: lambda x, y: x * y, ALL, "T"),
    "div": (scalars.quotient, INEXACT, "T"),
    "floor_divide": (_floor_divide, (*INTEGERS, *FLOATS), "T"),
    "remainder": (_remainder, (*INTEGERS, *FLOATS), "T"),
    "pow": (_power, NUMBERS, "T"),
    "maximum": (_maximum, REAL, "T"),
    "minimum": (_minimum, REAL, "T"),
    "atan2": (lambda kind: scalars.atan2, FLOATS, "T"),
    "eq": (lambda kind: lambda x, y: x == y, ALL, "bool"),
    "ne": (lambda kind: lambda x, y: x != y, ALL, "bool"),
    "lt": (lambda kind: lambda x, y: x < y, REAL, "bool"),
    "le": (lambda kind: lambda x, y: x <= y, REAL, "bool"),
    "gt": (lambda kind: lambda x, y: x > y, REAL, "bool"),
    "ge": (lambda kind: lambda x, y: x >= y, REAL, "bool"),
    "logical_and": (_logic(lambda a, b: a and b), ALL, "bool"),
    "logical_or": (_logic(lambda a, b: a or b), ALL, "bool"),
    "logical_xor": (_logic(lambda a, b: a != b), ALL, "bool"),
    "bitwise_and": (lambda kind: lambda x, y: x & y, ("bool", *INTEGERS), "T"),
    "bitwise_or": (lambda kind: lambda x, y: x | y, ("bool", *INTEGERS), "T"),
    "bitwise_xor": (lambda kind: lambda x, y: x ^ y, ("bool", *INTEGERS), "T"),
}

FAMILIES: dict[str, Family] = {
    name: family(name, scalar, dtypes, operands="TT", result=result)
    for name, (scalar, dtypes, result) in _ROWS.items()
}

_SCALED = family(
    "add_scaled", lambda kind: lambda x, y, k: x + kind(k * y), ALL, operands="TTT"
)

Operand = Tensor | Number


def name_of(*given: Operand) -> str:
    """The dtype that the operands are read as: that of the tensors among them."""
    return next(item.dtype.name for item in given if isinstance(item, Tensor))


def _plain(name: str) -> Callable[..., None]:
    kernels = FAMILIES[name]

    def kernel(out: Tensor, a: Operand, b: Operand) -> None:
        read = name_of(a, b)
        run(kernels, (read,), out, (a, read), (b, read))

    kernel.__name__ = kernel.__qualname__ = name
    return kernel


def add(out: Tensor, a: Operand, b: Operand, alpha: Number) -> None:
    """`a + alpha * b`."""
    if alpha == 1:
        _ADD(out, a, b)
        return
    read = name_of(a, b)
    run(_SCALED, (read,), out, (a, read), (b, read), (alpha, read))


def sub(out: Tensor, a: Operand, b: Operand, alpha: Number) -> None:
    """`a - alpha * b`."""
    if alpha == 1:
        _SUB(out, a, b)
    else:
        add(out, a, b, -alpha)


def _divided(name: str) -> Callable[..., None]:
    plain = _plain(name)

    def kernel(out: Tensor, a: Operand, b: Operand) -> None:
        read = name_of(a, b)
        if read in INTEGERS:
            _require_divisor(name, b, read)
        plain(out, a, b)

    kernel.__name__ = kernel.__qualname__ = name
    return kernel


def pow_(out: Tensor, a: Operand, b: Operand) -> None:
    """`a` to the power `b`.

    Raises `NegativeExponent` for a negative number as the exponent of integers.
    """
    read = name_of(a, b)
    if read in INTEGERS and not isinstance(b, Tensor) and number_of(b, read) < 0:
        raise NegativeExponent(operator="core::pow", dtype=read)
    run(FAMILIES["pow"], (read,), out, (a, read), (b, read))


def _require_divisor(name: str, divisor: Operand, read: str) -> None:
    if isinstance(divisor, Tensor):
        found = first_zero(divisor) is not None
    else:
        found = number_of(divisor, read) == 0
    if found:
        raise DivisionByZero(operator=f"core::{name}", dtype=read)


_ADD, _SUB = _plain("add"), _plain("sub")

_OWN: dict[str, Callable[..., None]] = {
    "add": add,
    "sub": sub,
    "pow": pow_,
    "floor_divide": _divided("floor_divide"),
    "remainder": _divided("remainder"),
}

KERNELS: dict[str, Callable[..., None]] = {
    **{name: _plain(name) for name in _ROWS if name not in _OWN},
    **_OWN,
}
