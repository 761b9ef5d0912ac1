"""Choice: which of several primitives a program means, by the types of its operands.

True only here: what a number of one kind may stand for where another kind is asked for.

Rules:
- the rows are tried in the order of the table, first with the types as they are, then
  with narrower numbers in place of wider ones: bool, int, float, complex, and a Scalar
  only where there is no row of the kind itself;
- a number that is widened is converted by a primitive of its own (`float.int`), so that
  the row's function gets exactly what its schema says;
- the narrowest row that all operands fit is chosen, which is how Python itself has it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from runtime.schema.types import (
    BoolType,
    ComplexType,
    FloatType,
    IntType,
    NumberType,
    Type,
)
from runtime.schema.unify import Mismatch, match
from runtime.script.primitives.row import NAMESPACE, Row

# Narrowest first.
KINDS = (BoolType, IntType, FloatType, ComplexType)


@dataclass(frozen=True, slots=True)
class Choice:
    """A row, what its variables stand for, and how each operand is converted first.

    A conversion is the name of a primitive of one operand, or None.
    """

    row: Row
    bound: Mapping[str, Type]
    conversions: tuple[str | None, ...]


def widened(actual: Type, formal: Type) -> str | None:
    """The primitive that makes a `formal` of an `actual`; None if there is none."""
    if actual not in KINDS or formal not in KINDS:
        return None
    if KINDS.index(actual) >= KINDS.index(formal):
        return None
    return f"{NAMESPACE}::{formal}.{actual}"


def choose(rows: Iterable[Row], actuals: Sequence[Type]) -> Choice | None:
    """The row that positional operands of these types mean, or None.

    Raises nothing; which rows there were is known to whoever asked.
    """
    fitting = [row for row in rows if _takes(row, len(actuals))]
    for row in fitting:
        bound = None if _loses_kind(row, actuals) else _match(row, actuals)
        if bound is not None:
            return Choice(row, bound, (None,) * len(actuals))
    for row in fitting:
        formals = [argument.type for argument in row.schema.arguments]
        pairs = list(zip(actuals, formals, strict=False))
        conversions = [widened(actual, formal) for actual, formal in pairs]
        converted = [
            formal if conversion else actual
            for (actual, formal), conversion in zip(pairs, conversions, strict=True)
        ]
        converted += actuals[len(pairs) :]
        bound = _match(row, converted)
        if bound is not None:
            rest = (None,) * (len(actuals) - len(pairs))
            return Choice(row, bound, (*conversions, *rest))
    return None


def _loses_kind(row: Row, actuals: Sequence[Type]) -> bool:
    """Whether a number of a known kind would become a `Scalar`."""
    pairs = zip(row.schema.arguments, actuals, strict=False)
    return any(
        formal.type is NumberType and actual is not NumberType
        for formal, actual in pairs
    )


def _takes(row: Row, count: int) -> bool:
    """Whether the row can be called with so many positional operands."""
    schema = row.schema
    places = [a for a in schema.arguments if not a.kwarg_only]
    required = sum(not a.has_default for a in schema.arguments)
    return required <= count and (schema.is_vararg or count <= len(places))


def _match(row: Row, actuals: Sequence[Type]) -> Mapping[str, Type] | None:
    formals = [argument.type for argument in row.schema.arguments][: len(actuals)]
    found = match(formals, actuals[: len(formals)])
    return None if isinstance(found, Mismatch) else found
