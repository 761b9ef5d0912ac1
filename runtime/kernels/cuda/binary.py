"""Functions of two elements: arithmetic, comparisons, logic and bits.

True only here: the table of binary operators, each with the types it is compiled for.

Rules: integers divide towards minus infinity, as Python's do, and their remainder has
the sign of the divisor; a zero divisor among integers, and a negative exponent, are
found before anything is written.  Sums of booleans are `or`, products `and`.  NaN wins
in `maximum` and `minimum`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from runtime.errors.arithmetic import DivisionByZero, NegativeExponent
from runtime.kernels.cuda import scalars
from runtime.kernels.cuda.check import first_zero
from runtime.kernels.cuda.elementwise import ScalarMaker, family, run
from runtime.kernels.cuda.jit import Family, device, number_of
from runtime.kernels.cuda.operand import Number
from runtime.kernels.cuda.scalars import Scalar
from runtime.kernels.cuda.unary import is_complex
from runtime.kernels.math.pairs import (
    ALL,
    DIVIDING,
    FLOATS,
    INTEGERS,
    NUMBERS,
    PAIRS,
    Pair,
    Reals,
)
from runtime.tensors.tensor import Tensor

_I = np.int64


@cache
def _on(kind: Any) -> Reals:
    """What the device has functions of its own for, for elements of a type."""
    return Reals(
        like=device(lambda x, value: kind(value)),
        fmod=scalars.fmod,
        copysign=scalars.copysign,
        floor=scalars.whole("floor", kind),
        hypot=scalars.hypot,
        exp=scalars.exp,
        log=scalars.log,
        log1p=scalars.log1p,
        complex_exp=scalars.plane_of(kind).exp if is_complex(kind) else scalars.exp,
        complex_log=scalars.complex_log,
        complex_divide=scalars.complex_quotient,
    )


def _scalar(pair: Pair) -> ScalarMaker:
    def make(kind: Any) -> Scalar:
        if np.issubdtype(kind, np.integer):
            maker = pair.whole or pair.real
        elif np.issubdtype(kind, np.complexfloating):
            maker = pair.complex or pair.real
        else:
            maker = pair.real
        return maker(_on(kind))

    return make


def _power(kind: Any) -> Scalar:
    if np.issubdtype(kind, np.floating):
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


# name -> scalar by type, dtypes, letter of the result.
_ROWS: dict[str, tuple[ScalarMaker, tuple[str, ...], str]] = {
    **{
        name: (_scalar(pair), pair.dtypes, "bool" if pair.truth else "T")
        for name, pair in PAIRS.items()
    },
    "pow": (_power, NUMBERS, "T"),
    "atan2": (lambda kind: scalars.atan2, FLOATS, "T"),
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
    **{name: _divided(name) for name in DIVIDING},
}

KERNELS: dict[str, Callable[..., None]] = {
    **{name: _plain(name) for name in _ROWS if name not in _OWN},
    **_OWN,
}
