"""One row: an operator that scripts call on values of Python, and how Python spells it.

A row says of a primitive all there is to say, with the ways in which programs reach it.

    Row       a schema, the way to it, the function that does it, samples for its test
    Way       how a program spells it: by an operator, a function, a method, ...
    Samples   arguments as a program writes them, with "; " between them

Rules:
- `function` takes every argument of the schema by position, in the order of the schema,
  and gives the value, or a tuple for several;
- what Python refuses raises what Python raises; where Python has a result of which the
  schema has none, a `RunningError` is raised;
- `raises` says that it may raise for values of the right types; running out of memory
  does not count;
- the schema's annotations say what is written and what is shared with the result: a
  list that is copied shares only what its elements share by their types;
- a sample is read with the names `inf`, `nan`, `LEAST` and `MOST` (the ends of an int),
  `T0` and `T1` (tensors of one element), `T2` and `T3` (of two), `META` (one
  without elements in memory), `tensor` and `device`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from runtime.schema.parser import parse_schema
from runtime.schema.schema import Schema

NAMESPACE = "script"

Kind = Literal["operator", "function", "method", "attribute", "form"]
Function = Callable[..., Any]


class Way(NamedTuple):
    """How programs reach a primitive.

    `key` is the operator as the language writes it, the function object, the name of
    the method or attribute, or the pattern of the form.  `pattern` is the expression
    (or statement) with a place `{0}`, `{1}` ... for each argument; a call has none, as
    its arguments are listed.
    """

    kind: Kind
    key: Any
    pattern: str

    def expression(
        self, positional: Sequence[str], named: Mapping[str, str] | None = None
    ) -> str:
        """The text that does this in Python with the texts of the arguments."""
        rest = [*positional, *(f"{k}={v}" for k, v in (named or {}).items())]
        if self.kind == "function":
            return f"{self.pattern}({', '.join(rest)})"
        if self.kind == "method":
            return f"{rest[0]}.{self.pattern}({', '.join(rest[1:])})"
        return self.pattern.format(*rest)


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A primitive; `name` is its own, with the namespace and the overload."""

    schema: Schema
    way: Way
    function: Function
    samples: tuple[str, ...]
    raises: bool
    tags: tuple[str, ...]

    @property
    def name(self) -> str:
        """`script::append.t`."""
        return str(self.schema.name)

    @property
    def writes(self) -> bool:
        """Whether it changes one of its arguments."""
        return any(argument.is_write for argument in self.schema.arguments)


def row(
    schema: str,
    way: Way,
    function: Function,
    samples: str,
    *,
    raises: bool = False,
    tags: tuple[str, ...] = (),
) -> Row:
    """A row of a table, its schema without the namespace, its samples in one text."""
    parsed = parse_schema(f"{NAMESPACE}::{schema}")
    return Row(parsed, way, function, tuple(samples.split("; ")), raises, tags)


def binary(symbol: str) -> Way:
    """An operator between two operands."""
    return Way("operator", symbol, f"{{0}} {symbol} {{1}}")


def prefix(symbol: str) -> Way:
    """An operator before its operand, under the name `x-` to tell it from `-`."""
    return Way("operator", f"{symbol}x", f"{symbol} {{0}}")


def special(symbol: str, pattern: str) -> Way:
    """An operator of a form of its own: subscripts, `in`, augmented assignments."""
    return Way("operator", symbol, pattern)


def call(function: Function) -> Way:
    """The call of a function of Python."""
    module = function.__module__
    name = function.__name__
    return Way(
        "function", function, name if module == "builtins" else f"{module}.{name}"
    )


def method(name: str) -> Way:
    """The call of a method; the object is the first argument."""
    return Way("method", name, name)


def attribute(name: str) -> Way:
    """An attribute that is read."""
    return Way("attribute", name, f"{{0}}.{name}")


def form(pattern: str) -> Way:
    """An expression that is more than one call in Python, and one step in a script."""
    return Way("form", pattern, pattern)
