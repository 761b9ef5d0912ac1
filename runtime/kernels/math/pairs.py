"""Functions of two numbers, for every device that has kernels.

True only here: what arithmetic, comparison, logic and bits of two elements are.  The
compilers of both devices take one body: what a device has functions of its own for
comes in by `Reals`.

Rules: a function is given by the kind of the dtype, `real` for what has none of its
own; integers wrap, are divided downwards, and a divisor of 0 is found before; NaN wins
in `maximum` and `minimum`; constants are made of an element's own type by `like`, or
all is widened.  Adding an operator here gives it kernels on every device.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

Scalar = Callable[..., Any]

INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float32", "float64")
COMPLEXES = ("complex64", "complex128")
INEXACT = (*FLOATS, *COMPLEXES)
REALS = (*INTEGERS, *FLOATS)
NUMBERS = (*REALS, *COMPLEXES)
ORDERED = ("bool", *REALS)
ALL = ("bool", *NUMBERS)
BITS = ("bool", *INTEGERS)


class Reals(NamedTuple):
    """The functions of a device; `like(x, 1)` is a constant in the type of `x`."""

    like: Scalar
    fmod: Scalar
    copysign: Scalar
    floor: Scalar
    hypot: Scalar
    exp: Scalar
    log: Scalar
    log1p: Scalar
    complex_exp: Scalar
    complex_log: Scalar
    complex_divide: Scalar


Maker = Callable[[Reals], Scalar]


class Pair(NamedTuple):
    """A function of two numbers.

    Attributes:
        real: from a device's functions to the one of elements.
        dtypes: what it is computed in.
        whole, complex: of integers and of complex numbers, where it is another one.
        truth: whether the result is a bool.
        grain: from how many elements on each of several threads is worth its call; 0
            for the ordinary number.
    """

    real: Maker
    dtypes: tuple[str, ...]
    whole: Maker | None = None
    complex: Maker | None = None
    truth: bool = False
    grain: int = 0


def _add(a: Any, b: Any) -> Any:
    return a + b


def _sub(a: Any, b: Any) -> Any:
    return a - b


def _mul(a: Any, b: Any) -> Any:
    return a * b


def _div(a: Any, b: Any) -> Any:
    return a / b


def _maximum(a: Any, b: Any) -> Any:
    # Whatever differs from itself is NaN.
    return a if (a > b) | (a != a) else b


def _minimum(a: Any, b: Any) -> Any:
    return a if (a < b) | (a != a) else b


def _eq(a: Any, b: Any) -> Any:
    return a == b


def _ne(a: Any, b: Any) -> Any:
    return a != b


def _lt(a: Any, b: Any) -> Any:
    return a < b


def _le(a: Any, b: Any) -> Any:
    return a <= b


def _gt(a: Any, b: Any) -> Any:
    return a > b


def _ge(a: Any, b: Any) -> Any:
    return a >= b


def _logical_and(a: Any, b: Any) -> Any:
    return (a != 0) & (b != 0)


def _logical_or(a: Any, b: Any) -> Any:
    return (a != 0) | (b != 0)


def _logical_xor(a: Any, b: Any) -> Any:
    return (a != 0) != (b != 0)


def _bitwise_and(a: Any, b: Any) -> Any:
    return a & b


def _bitwise_or(a: Any, b: Any) -> Any:
    return a | b


def _bitwise_xor(a: Any, b: Any) -> Any:
    return a ^ b


def _remainder(on: Reals) -> Scalar:
    fmod, copysign = on.fmod, on.copysign

    def remainder(a: Any, b: Any) -> Any:
        # What C's division leaves, moved to the divisor's side of zero.
        rest = fmod(a, b)
        if rest == 0:
            return copysign(rest, b)
        return rest + b if (rest < 0) != (b < 0) else rest

    return remainder


def _floor_divide(on: Reals) -> Scalar:
    fmod, copysign, floor, like = on.fmod, on.copysign, on.floor, on.like

    def floor_divide(a: Any, b: Any) -> Any:
        if b == 0:
            return a / b
        rest = fmod(a, b)
        # Exact up to rounding: `a - rest` is a multiple of `b`.
        quotient = (a - rest) / b
        if (rest != 0) & ((rest < 0) != (b < 0)):
            quotient = quotient - like(quotient, 1)
        if quotient == 0:
            return copysign(quotient, a / b)
        below = floor(quotient)
        return below + like(below, 1) if quotient - below > 0.5 else below

    return floor_divide


def _whole_remainder(a: Any, b: Any) -> Any:
    return a % b


def _whole_divide(a: Any, b: Any) -> Any:
    # The least integer has no opposite: it wraps, where dividing would trap.
    return -a if b == -1 else a // b


def _whole_fmod(a: Any, b: Any) -> Any:
    rest = a % b
    return rest - b if (rest != 0) & ((a < 0) != (b < 0)) else rest


def _logaddexp(on: Reals) -> Scalar:
    exp, log1p, log, like = on.exp, on.log1p, on.log, on.like

    def logaddexp(a: Any, b: Any) -> Any:
        # Equal infinities have no difference; of other numbers one exponential is 1.
        if a == b:
            return a + log(like(a, 2))
        apart = a - b
        return (b if apart < 0 else a) + log1p(exp(-abs(apart)))

    return logaddexp


def _complex_logaddexp(on: Reals) -> Scalar:
    exp, log, like = on.complex_exp, on.complex_log, on.like

    def logaddexp(a: Any, b: Any) -> Any:
        if (a != a) | (b != b):
            parts = a.real + a.imag + b.real + b.imag
            return complex(parts, parts)
        least, most = (a, b) if a.real < b.real else (b, a)
        if (least.real == most.real) & (most.real - most.real != 0):
            # Both vanish, or both are infinite, each in a direction of its own.
            return most if most.real < 0 else log(exp(a) + exp(b))
        return most + log(like(a, 1) + exp(least - most))

    return logaddexp


def _xlogy(log: Scalar) -> Scalar:
    def xlogy(a: Any, b: Any) -> Any:
        # 0 even where the logarithm is infinite; a logarithm of NaN is NaN.
        return a - a if (a == 0) & (b == b) else a * log(b)

    return xlogy


def _alike(scalar: Scalar) -> Maker:
    """A function that needs nothing of the device."""
    return lambda on: scalar


# What is divided by is no 0 among integers: whoever runs these looks first.
DIVIDING = ("remainder", "floor_divide", "fmod")

PAIRS: dict[str, Pair] = {
    "add": Pair(_alike(_add), ALL),
    "sub": Pair(_alike(_sub), NUMBERS),
    "mul": Pair(_alike(_mul), ALL),
    "div": Pair(_alike(_div), INEXACT, complex=lambda on: on.complex_divide),
    # fmod costs about 5 ns an element.
    "remainder": Pair(_remainder, REALS, whole=_alike(_whole_remainder), grain=20_000),
    "floor_divide": Pair(
        _floor_divide, REALS, whole=_alike(_whole_divide), grain=20_000
    ),
    "fmod": Pair(lambda on: on.fmod, REALS, whole=_alike(_whole_fmod), grain=20_000),
    "hypot": Pair(lambda on: on.hypot, FLOATS, grain=20_000),
    "logaddexp": Pair(_logaddexp, INEXACT, complex=_complex_logaddexp, grain=20_000),
    "maximum": Pair(_alike(_maximum), ORDERED),
    "minimum": Pair(_alike(_minimum), ORDERED),
    "eq": Pair(_alike(_eq), ALL, truth=True),
    "ne": Pair(_alike(_ne), ALL, truth=True),
    "lt": Pair(_alike(_lt), ORDERED, truth=True),
    "le": Pair(_alike(_le), ORDERED, truth=True),
    "gt": Pair(_alike(_gt), ORDERED, truth=True),
    "ge": Pair(_alike(_ge), ORDERED, truth=True),
    "logical_and": Pair(_alike(_logical_and), ALL, truth=True),
    "logical_or": Pair(_alike(_logical_or), ALL, truth=True),
    "logical_xor": Pair(_alike(_logical_xor), ALL, truth=True),
    "bitwise_and": Pair(_alike(_bitwise_and), BITS),
    "bitwise_or": Pair(_alike(_bitwise_or), BITS),
    "bitwise_xor": Pair(_alike(_bitwise_xor), BITS),
    "xlogy": Pair(
        lambda on: _xlogy(on.log),
        INEXACT,
        complex=lambda on: _xlogy(on.complex_log),
        grain=100_000,
    ),
}
