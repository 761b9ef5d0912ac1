"""Spelling: how types, constants and names stand in the text of programs.

True only here: the words of the text that are no statements.

Rules:
- the text is Python's grammar; types are written as annotations (`Dict[str, Tensor]`),
  types of a program by their qualified names;
- what no text can hold (tensors, named tuples, objects) is `CONSTANTS.c0`, the first
  in a table that goes with the text, as functions and enums go by their names;
- a name is given once in a function, and hides nothing that the text itself uses.
"""

import builtins
import keyword
import math
import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from runtime import autograd
from runtime.schema.declaration import EnumType
from runtime.schema.device import Device
from runtime.schema.types import (
    AnyType,
    AwaitType,
    BaseType,
    DictType,
    FutureType,
    ListType,
    NoneType_,
    OptionalType,
    RRefType,
    TupleType,
    Type,
    UnionType,
    unwrap_optional,
)
from runtime.script.program import declared_type

# Words of the text that are neither Python's nor of a program.
WORDS = (
    "CONSTANTS",
    "annotate",
    "awaitable",
    "awaitable_nowait",
    "awaitable_wait",
    "cmath",
    "create",
    "device",
    "fork",
    "math",
    "non_finite",
    "ops",
    "raise_exception",
    "tensor",
    "unchecked_cast",
    "uninitialized",
    "wait",
    "warnings",
)
# Classes of `runtime.autograd` whose objects programs make to enter them: the only
# ones of Python that a graph in an archive may call.
MANAGERS = ("enable_grad", "inference_mode", "no_grad", "set_grad_enabled")


_TAKEN = frozenset(
    {*WORDS, *MANAGERS, *keyword.kwlist, *keyword.softkwlist, *dir(builtins)}
)
# Words of plug-ins, and what they mean.
ADDED: dict[str, Any] = {}
_FOREIGN = re.compile(r"[^A-Za-z0-9_]")

_WRAPPERS: Mapping[type[Type], str] = {
    ListType: "List",
    OptionalType: "Optional",
    FutureType: "Future",
    AwaitType: "Await",
    RRefType: "RRef",
}


def manager(value: Any) -> str | None:
    """The name of a manager, None of anything else."""
    for name in MANAGERS:
        if value is getattr(autograd, name):
            return name
    return None


def type_text(type_: Type) -> str:
    """The type as an annotation."""
    word = _WRAPPERS.get(type_.__class__)
    if word is not None:
        return f"{word}[{type_text(type_.element)}]"  # type: ignore[attr-defined]  # all of `_WRAPPERS` have one
    if isinstance(type_, TupleType):
        if type_.qualname:
            return type_.qualname
        return f"Tuple[{', '.join(map(type_text, type_.elements)) or '()'}]"
    if isinstance(type_, DictType):
        return f"Dict[{type_text(type_.key)}, {type_text(type_.value)}]"
    if isinstance(type_, UnionType):
        return f"Union[{', '.join(map(type_text, type_.members))}]"
    if type_ is NoneType_:
        return "None"
    return type_.name if isinstance(type_, BaseType) else str(type_)


class Constants:
    """The table of what the text only names, each object once."""

    __slots__ = ("_numbers", "values")

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[int, int] = {}

    def name(self, value: Any) -> str:
        """`CONSTANTS.c0`, the same for the same object."""
        number = self._numbers.setdefault(id(value), len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return f"CONSTANTS.c{number}"


def _real(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'non_finite("{value!r}")'


_WRITERS: Mapping[type, Callable[[Any], str]] = {
    type(None): repr,
    bool: repr,
    int: repr,
    float: _real,
    complex: lambda value: f"complex({_real(value.real)}, {_real(value.imag)})",
    str: ascii,
    Device: lambda value: f'device("{value}")',
}


def constant_text(value: Any, constants: Constants, type_: Type = AnyType) -> str:
    """A constant of a type as an expression that gives an equal one."""
    kind = value.__class__
    if kind is tuple:
        elements = type_.elements if isinstance(type_, TupleType) else ()
        types = (*elements, *[AnyType] * (len(value) - len(elements)))
        pairs = zip(value, types, strict=True)
        return tuple_text([constant_text(each, constants, of) for each, of in pairs])
    if isinstance(value, Enum):
        declared = _enum_of(kind, type_)
        if declared is not None and is_name(value.name):
            return f"{declared}.{value.name}"
    write = _WRITERS.get(kind)
    return constants.name(value) if write is None else write(value)


def _enum_of(python: type, type_: Type) -> Type | None:
    """The enum among what a value of the type may be, or what its class is declared."""
    plain = unwrap_optional(type_)
    for each in plain.members if isinstance(plain, UnionType) else (plain,):
        if isinstance(each, EnumType) and each.declaration.python is python:
            return each
    members = getattr(python, "__members__", {})
    declared = declared_type(next(iter(members.values()), None))
    return declared if isinstance(declared, EnumType) else None


def tuple_text(parts: list[str]) -> str:
    """A tuple of expressions."""
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def is_name(text: str) -> bool:
    """Whether an attribute of this name is read and set by a dot."""
    return text.isascii() and text.isidentifier() and not keyword.iskeyword(text)


def register_word(word: str, python: Any) -> Callable[[], None]:
    """Let a word of a plug-in stand in texts; what comes back takes it out again.

    It means the object: no variable of a text has this name.
    """
    assert word not in _TAKEN, f"{word} is a word already"
    assert word not in ADDED, f"{word} is a word already"
    ADDED[word] = python

    def remove() -> None:
        if ADDED.get(word) is python:
            del ADDED[word]

    return remove


class Names:
    """The names of one function."""

    __slots__ = ("_given",)

    def __init__(self) -> None:
        self._given: dict[str, int] = {}

    def take(self, name: str) -> str:
        """A name that has to be this one."""
        self._given.setdefault(name, 0)
        return name

    def fresh(self, hint: str) -> str:
        """A name that nobody has, like the hint."""
        plain = _FOREIGN.sub("_", hint.rstrip(".0123456789")) or "_0"
        plain = f"_{plain}" if plain[0].isdecimal() else plain
        free = plain
        while (
            free in self._given
            or free in _TAKEN
            or free in ADDED
            or free == "__torch__"
        ):
            number = self._given.get(plain, 0)
            self._given[plain] = number + 1
            free = f"{plain}_{number}"
        self._given.setdefault(free, 0)
        return free
