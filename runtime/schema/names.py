"""The name of an operator: a qualified name and an overload.

True only here: how a name prints (`ns::op`, `ns::op.overload`) and what its parts are.
Names are values; whether text *is* a name is decided by `runtime.schema.parser`.
"""

from dataclasses import dataclass
from functools import total_ordering

# The scope operator between a namespace and a base name; source: the schema grammar.
SCOPE = "::"


@total_ordering
@dataclass(frozen=True, slots=True)
class OperatorName:
    """`name` is the qualified name, `overload` is empty for the usual operator."""

    name: str
    overload: str = ""

    @property
    def namespace(self) -> str | None:
        """The text before `::`, or None where the name is not qualified."""
        head, scope, _ = self.name.partition(SCOPE)
        return head if scope else None

    @property
    def base(self) -> str:
        """The name without its namespace and without its overload."""
        return self.name.rpartition(SCOPE)[2]

    def with_namespace(self, namespace: str) -> "OperatorName":
        """The same operator in `namespace`; a namespace already there is replaced."""
        return OperatorName(f"{namespace}{SCOPE}{self.base}", self.overload)

    def __lt__(self, other: "OperatorName") -> bool:
        return (self.name, self.overload) < (other.name, other.overload)

    def __call__(self) -> str:
        """The full name as text: programs for torch call the name of an operator."""
        return str(self)

    def __str__(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name
