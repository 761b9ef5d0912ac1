"""Rows of the table of primitives: operators of scripts on Python values.

A row is the complete description of a primitive, including its spelling in programs.

    PrimitiveRow    a schema, its spelling, its function, samples for its test
    Way             the spelling in a program: an operator, a function, a method, ...
    row             one row with an explicit `Way`
    operators, functions, methods, attributes    the rows of a table in text

A row of a table is a line with the schema, and lines below it with the samples:

    pop.t(t[](a!) self, int index=-1) -> t(*)  raises
        [1, 2]; [1, 2], 0; [1], 1; []

Rules of tables:
- the name in the schema is the Python name: of a function of the module `operator`, of
  a function of a module, or of a method;
- the row's function is the object of this name, unless `kernels` has another one, by
  the name or by the name with the overload;
- `raises` follows the schema.

Rules of rows:
- `function` takes every argument of the schema by position, in the order of the schema,
  and returns the value, or a tuple for several;
- an operation that raises in Python raises the same error; if Python's result is not of
  the schema's type, a `RunningError` is raised;
- `raises` means that the primitive may raise for values of the right types; running out
  of memory does not count;
- the schema's annotations declare writes and memory shared with the result: a list that
  is copied shares only the memory of its elements, by their types;
- a sample is read with the names `inf`, `nan`, `LEAST` and `MOST` (the ends of an int),
  `T0` and `T1` (tensors of one element), `T2` and `T3` (of two), `META` (one
  without elements in memory), `tensor` and `device`.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.schema.schema import Schema

NAMESPACE = "script"

Kind = Literal["operator", "function", "method", "attribute", "form"]
Function = Callable[..., Any]


class Way(NamedTuple):
    """The spelling of a primitive in programs.

    `key` is the operator as the language writes it, the function object, the name of
    the method or attribute, or the pattern of the form.  `pattern` is the expression
    (or statement) with a field `{0}`, `{1}` ... for each argument; for a call it is
    only the name, as the arguments are listed.
    """

    kind: Kind
    key: Any
    pattern: str

    def expression(
        self, positional: Sequence[str], named: Mapping[str, str] | None = None
    ) -> str:
        """Return the Python expression with the texts of the arguments."""
        rest = [*positional, *(f"{k}={v}" for k, v in (named or {}).items())]
        if self.kind == "function":
            return f"{self.pattern}({', '.join(rest)})"
        if self.kind == "method":
            return f"{rest[0]}.{self.pattern}({', '.join(rest[1:])})"
        return self.pattern.format(*rest)


_SUBSCRIPTS = tuple(
    f"{NAMESPACE}::{name}."
    for name in (
        *("getitem", "setitem", "delitem"),
        *("slice", "setslice", "delslice"),
    )
)


@dataclass(frozen=True, slots=True, eq=False)
class PrimitiveRow:
    """A primitive; `name` includes the namespace and the overload."""

    schema: Schema
    way: Way
    function: Function
    samples: tuple[str, ...]
    raises: bool
    tags: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the full name, such as `script::append.t`."""
        return str(self.schema.name)

    @property
    def reads_tensors(self) -> bool:
        """Return True if Python, too, reads the number of a tensor in its place.

        Others, as `min`, return the tensor itself.
        """
        key = self.way.key
        if self.way.kind == "function":
            return key is chr or getattr(key, "__module__", "") == "math"
        return self.way.kind == "method" or self.name.startswith(_SUBSCRIPTS)

    @property
    def writes(self) -> bool:
        """Return True if the primitive changes one of its arguments."""
        return any(argument.is_write for argument in self.schema.arguments)


def row(
    schema: str,
    way: Way,
    function: Function,
    samples: str,
    *,
    raises: bool = False,
    tags: tuple[str, ...] = (),
) -> PrimitiveRow:
    """Return a row from its schema without namespace and its samples in one text."""
    parsed = parse_schema(f"{NAMESPACE}::{schema}")
    return PrimitiveRow(parsed, way, function, tuple(samples.split("; ")), raises, tags)


def call(function: Function) -> Way:
    """Return the spelling as a call of a Python function."""
    module, name = function.__module__, function.__name__
    return Way(
        "function", function, name if module == "builtins" else f"{module}.{name}"
    )


def form(pattern: str) -> Way:
    """Return the spelling as an expression that is one step in a script."""
    return Way("form", pattern, pattern)


# Function of the module `operator` -> its symbol between two operands.
_BINARY = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "lshift": "<<",
    "rshift": ">>",
    "and_": "&",
    "or_": "|",
    "xor": "^",
    "is_": "is",
    "is_not": "is not",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}
# Function -> its prefix symbol; the key has an `x` to separate it from binary ones.
_PREFIX = {"neg": "-", "pos": "+", "invert": "~", "not_": "not "}
# Function -> its key and its pattern; slices are not in `operator`.
_SPECIAL = {
    "contains": ("in", "{1} in {0}"),
    "getitem": ("[]", "{0}[{1}]"),
    "setitem": ("[]=", "{0}[{1}] = {2}"),
    "delitem": ("del []", "del {0}[{1}]"),
    "slice": ("[:]", "{0}[{1}:{2}:{3}]"),
    "setslice": ("[:]=", "{0}[{1}:{2}:{3}] = {4}"),
    "delslice": ("del [:]", "del {0}[{1}:{2}:{3}]"),
    "iadd": ("+=", "{0} += {1}"),
    "imul": ("*=", "{0} *= {1}"),
    "ior": ("|=", "{0} |= {1}"),
}
# Function of the module `operator` -> spelling in programs.
OPERATOR_WAYS: Mapping[str, Way] = {
    **{name: Way("operator", s, f"{{0}} {s} {{1}}") for name, s in _BINARY.items()},
    **{name: Way("operator", f"{s}x", f"{s} {{0}}") for name, s in _PREFIX.items()},
    **{name: Way("operator", *each) for name, each in _SPECIAL.items()},
}
# The schema of a row, optional `raises`, and its samples.
_ENTRY = re.compile(r"^(\S.*?)(  raises)?$\n?((?:^ .*\n?)*)", re.MULTILINE)
_NONE: Mapping[str, Function] = {}


def operators(
    text: str, kernels: Mapping[str, Function] = _NONE
) -> Iterator[PrimitiveRow]:
    """Yield the rows of operators of the language."""
    return _rows(text, kernels, OPERATOR_WAYS.__getitem__, operator)


def functions(
    owner: Any, text: str, kernels: Mapping[str, Function] = _NONE
) -> Iterator[PrimitiveRow]:
    """Yield the rows of functions, or classes, of a Python module."""
    return _rows(text, kernels, lambda name: call(getattr(owner, name)), owner)


def methods(
    owner: type, text: str, kernels: Mapping[str, Function] = _NONE
) -> Iterator[PrimitiveRow]:
    """Yield the rows of methods of a class; the object is the first argument."""
    return _rows(text, kernels, lambda name: Way("method", name, name), owner)


def attributes(
    text: str, kernels: Mapping[str, Function] = _NONE
) -> Iterator[PrimitiveRow]:
    """Yield the rows of attributes that programs read."""
    return _rows(text, kernels, lambda name: Way("attribute", name, f"{{0}}.{name}"))


def _rows(
    text: str,
    kernels: Mapping[str, Function],
    way_of: Callable[[str], Way],
    owner: Any = None,
) -> Iterator[PrimitiveRow]:
    for schema, raises, samples in _ENTRY.findall(text):
        overload = schema.partition("(")[0]
        name = overload.partition(".")[0]
        kernel = kernels.get(overload) or kernels.get(name)
        if kernel is None:
            kernel = attrgetter(name) if owner is None else getattr(owner, name)
        joined = " ".join(samples.split("\n    ")).strip()
        yield row(schema, way_of(name), kernel, joined, raises=bool(raises))
