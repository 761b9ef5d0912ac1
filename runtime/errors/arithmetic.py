"""Errors of integer arithmetic: values for which no integer is the result.

Who must act: the caller.  Both are raised before anything is written; floating-point
numbers never raise them, because they have infinities and NaN.
"""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError
from runtime.errors.call import page


@dataclass(eq=False, kw_only=True)
class DivisionByZero(EveryorderError, ZeroDivisionError, RuntimeError):
    """An integer was to be divided by zero."""

    operator: str
    dtype: str

    def render(self) -> str:
        """The operator, and how to get infinities instead."""
        return page(
            f"`{self.operator}` would divide {self.dtype} by zero: no integer is that.",
            ("fits", "divisors without zeros, or floating-point elements"),
            ("state", "nothing was written"),
        )


@dataclass(eq=False, kw_only=True)
class NegativeExponent(EveryorderError, ValueError, RuntimeError):
    """An integer was to be raised to a negative integer power."""

    operator: str
    dtype: str

    def render(self) -> str:
        """The operator, and how to get fractions instead."""
        return page(
            f"`{self.operator}` was given a negative exponent, and {self.dtype} has no "
            "fractions.",
            ("fits", "exponents from 0 on, or floating-point elements"),
            ("state", "nothing was written"),
        )
