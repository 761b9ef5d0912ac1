"""Integers of scripts: 64 bits with a sign, and nothing beyond.

True only here: how an operator of Python on integers becomes one that stays within 64
bits, or raises.  What would take long before it is refused (`2 ** 10**9`) is refused
before it is computed.
"""

from collections.abc import Callable
from typing import Any

from runtime.errors.arithmetic import NegativeExponent
from runtime.errors.script_values import IntegerOverflow, ResultOfOtherType
from runtime.schema.excerpt import described, shortened
from runtime.schema.numbers import INT_END, INT_FIRST

# From this many bits on, only 0, 1 and -1 have a power that fits, and only 0 a shift.
BITS = 64


def overflow(operator: str, *operands: object) -> IntegerOverflow:
    """The error for a result outside of 64 bits."""
    return IntegerOverflow(operator=operator, operands=tuple(map(shortened, operands)))


def other_result(
    operator: str, expected: str, result: object, *operands: object
) -> ResultOfOtherType:
    """The error for a result of another type than the schema's."""
    return ResultOfOtherType(
        operator=operator,
        operands=tuple(map(shortened, operands)),
        expected=expected,
        found=described(result),
    )


def bounded(operator: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of Python, for results that fit."""

    def run(*operands: Any) -> Any:
        result = function(*operands)
        if INT_FIRST <= result < INT_END:
            return result
        raise overflow(operator, *operands)

    run.__name__ = run.__qualname__ = getattr(function, "__name__", "bounded")
    return run


def add(a: int, b: int) -> int:
    """`a + b`; raises `IntegerOverflow`."""
    result = a + b
    if INT_FIRST <= result < INT_END:
        return result
    raise overflow("+", a, b)


def sub(a: int, b: int) -> int:
    """`a - b`; raises `IntegerOverflow`."""
    result = a - b
    if INT_FIRST <= result < INT_END:
        return result
    raise overflow("-", a, b)


def mul(a: int, b: int) -> int:
    """`a * b`; raises `IntegerOverflow`."""
    result = a * b
    if INT_FIRST <= result < INT_END:
        return result
    raise overflow("*", a, b)


def floordiv(a: int, b: int) -> int:
    """`a // b`; raises `IntegerOverflow` for the least integer by -1."""
    result = a // b
    if result < INT_END:
        return result
    raise overflow("//", a, b)


def both(a: int, b: int) -> tuple[int, int]:
    """`divmod(a, b)`; raises `IntegerOverflow` for the least integer by -1."""
    result = divmod(a, b)
    if result[0] < INT_END:
        return result
    raise overflow("divmod", a, b)


def power(a: int, b: int) -> int:
    """`a ** b`; raises `IntegerOverflow`, and `NegativeExponent` for a fraction."""
    if b < 0:
        if a == 0:
            raise ZeroDivisionError("0.0 cannot be raised to a negative power")
        raise NegativeExponent(operator="**", dtype="int")
    if b >= BITS and not -1 <= a <= 1:
        raise overflow("**", a, b)
    result: int = a**b
    if INT_FIRST <= result < INT_END:
        return result
    raise overflow("**", a, b)


def shift_left(a: int, b: int) -> int:
    """`a << b`; raises `IntegerOverflow`, and `ValueError` for a negative count."""
    if b >= BITS:
        if a:
            raise overflow("<<", a, b)
        return 0
    result = a << b
    if INT_FIRST <= result < INT_END:
        return result
    raise overflow("<<", a, b)
