"""The table of primitives: all rows, by their names and by the ways to them.

True only here: the order of the chapters, and the look-ups.

Rules:
- rows of one way stand in the order in which they are tried: numbers come before
  containers, and what takes any type comes last;
- a function of Python is looked up as an object, so an alias of it is the same, and
  something of the same name is not;
- `pow(a, b)` is `a ** b`;
- an augmented assignment that has no rows for its operands (`+=` of numbers) is the
  operator, and an assignment;
- a look-up gives no rows, an empty tuple, for what is no primitive.
"""

from collections.abc import Callable, Iterable
from typing import Any

from runtime.schema.types import NumberType, Type, TypeVariable
from runtime.schema.unify import Mismatch, match
from runtime.script.primitives import (
    dicts,
    lists,
    mathematics,
    numbers,
    objects,
    strings,
    tensors,
)
from runtime.script.primitives.choice import widened
from runtime.script.primitives.row import Kind, Row

Rows = tuple[Row, ...]

_CHAPTERS = (
    numbers.ROWS,
    strings.ROWS,
    tensors.ROWS,
    lists.ROWS,
    dicts.ROWS,
    mathematics.ROWS,
    objects.ROWS,
)


def _width(row: Row) -> int:
    """Rows of a Scalar are tried after those of one kind of number, `t` at last."""
    types = {argument.type for argument in row.schema.arguments}
    if any(isinstance(each, TypeVariable) for each in types):
        return 2
    return 1 if NumberType in types else 0


ROWS: Rows = tuple(sorted((r for rows in _CHAPTERS for r in rows), key=_width))

BY_NAME: dict[str, Row] = {row.name: row for row in ROWS}
# Each name and overload once: a second one would hide the first.
assert len(BY_NAME) == len(ROWS)


def _grouped(kind: Kind) -> dict[Any, Rows]:
    groups: dict[Any, list[Row]] = {}
    for row in ROWS:
        if row.way.kind == kind:
            groups.setdefault(row.way.key, []).append(row)
    return {key: tuple(rows) for key, rows in groups.items()}


# Symbol (`+`, `-x`, `in`, `[]`, `[:]=`, `+=`, ...) -> rows.
OPERATORS = _grouped("operator")
# Function object -> rows.
FUNCTIONS: dict[Any, Rows] = _grouped("function") | {pow: OPERATORS["**"]}
METHODS = _grouped("method")
ATTRIBUTES = _grouped("attribute")
# Pattern (`len(range({0}, {1}, {2}))`, ...) -> rows.
FORMS = _grouped("form")


def by_name(name: str) -> Row | None:
    """The row of `script::append.t`."""
    return BY_NAME.get(name)


def by_operator(symbol: str) -> Rows:
    """The rows of an operator of the language, as the module `row` writes it."""
    return OPERATORS.get(symbol, ())


def by_function(function: Callable[..., Any]) -> Rows:
    """The rows of a function or class of Python, by its identity."""
    try:
        return FUNCTIONS.get(function, ())
    except TypeError:  # what has no hash is no function of Python's own
        return ()


def by_form(pattern: str) -> Rows:
    """The rows of an expression that is one step."""
    return FORMS.get(pattern, ())


def by_method(name: str, self: Type) -> Rows:
    """The rows of a method of an object of the type `self`."""
    return _of(METHODS.get(name, ()), self)


def by_attribute(name: str, self: Type) -> Rows:
    """The rows of an attribute of an object of the type `self`."""
    return _of(ATTRIBUTES.get(name, ()), self)


def methods_of(self: Type) -> tuple[str, ...]:
    """The names of all methods of objects of the type `self`, in order."""
    return tuple(sorted(name for name in METHODS if by_method(name, self)))


def _of(rows: Iterable[Row], self: Type) -> Rows:
    """The rows whose first argument takes the type, as it is or widened."""
    exact = tuple(row for row in rows if _first_takes(row, self))
    return exact or tuple(
        row for row in rows if widened(self, row.schema.arguments[0].type)
    )


def _first_takes(row: Row, self: Type) -> bool:
    return not isinstance(match((row.schema.arguments[0].type,), (self,)), Mismatch)
