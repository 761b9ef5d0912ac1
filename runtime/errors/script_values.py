"""Errors of values in scripts: results that no value of the declared type can be.

Who must act: the author of the script, or whoever calls it with these values.  Whatever
Python itself refuses raises what Python raises; these are the cases in which Python has
a result and a script, whose types are settled before it runs, has none.

Rules: operands are kept as short texts; each class is also the builtin exception that
programs expect of such a case.
"""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError
from runtime.errors.call import page


@dataclass(eq=False, kw_only=True)
class ScriptValueError(EveryorderError):
    """Base: `operator` has no result for `operands`, in the order of its arguments."""

    operator: str
    operands: tuple[str, ...]

    def _page(self, head: str, *rows: tuple[str, str]) -> str:
        return page(head, ("operands", ", ".join(self.operands)), *rows)


@dataclass(eq=False, kw_only=True)
class IntegerOverflow(ScriptValueError, OverflowError):
    """The result is an integer that 64 bits with a sign do not hold."""

    def render(self) -> str:
        """The operator, its operands, and the range."""
        return self._page(
            f"`{self.operator}` gives an integer that does not fit 64 bits.",
            ("fits", "integers from -2**63 to 2**63 - 1"),
            ("to do", "use smaller operands, or floats"),
        )


@dataclass(eq=False, kw_only=True)
class ResultOfOtherType(ScriptValueError, ValueError):
    """Python gives a value of another type (`found`) than the script has (`expected`).

    So for `2 ** -1`, a fraction, and for `(-8.0) ** 0.5`, a complex number.
    """

    expected: str
    found: str

    def render(self) -> str:
        """The operator, its operands, and both types."""
        return self._page(
            f"`{self.operator}` gives {self.found} for these operands, where the "
            f"script has {self.expected}.",
            ("to do", f"convert an operand first, so that the result is {self.found}"),
        )


@dataclass(eq=False, kw_only=True)
class AttributeInFormat(ScriptValueError, ValueError):
    """A format asks for the attribute of a value (`{0.real}`), by `field`."""

    field: str

    def render(self) -> str:
        """The field, and what to write instead."""
        return self._page(
            f"`{self.operator}` was given the field {{{self.field}}}: a format shows "
            "values, and looks into none.",
            ("to do", "pass the attribute itself as an argument"),
        )
