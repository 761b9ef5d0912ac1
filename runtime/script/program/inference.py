"""Inference: the type that a value has, by looking at it.

True only here: what can be said of a value to which nobody gave a type.

Rules:
- a list, and the keys and values of a dictionary, have the one type into which all of
  them fit; one without elements does not say its type;
- an object of a class that was declared, or can be (a named tuple, an enum, a
  dataclass), is of its type; a future is of the type of its value;
- what is no value of programs has no type, and the reason says which part it was.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from runtime.futures import Future
from runtime.schema.codes import DType, Layout, MemoryFormat
from runtime.schema.device import Device
from runtime.schema.excerpt import described
from runtime.schema.types import (
    DICT_KEYS,
    BoolType,
    ComplexType,
    DeviceType,
    DictType,
    FloatType,
    FutureType,
    IntType,
    LayoutType,
    ListType,
    MemoryFormatType,
    NoneType_,
    ScalarTypeType,
    StrType,
    TensorType,
    TupleType,
    Type,
)
from runtime.schema.unify import Mismatch, unify
from runtime.schema.values import is_tensor
from runtime.schema.written import Scope
from runtime.script.program.objects import declared_type
from runtime.script.program.program import SHARED_PROGRAM, Program

# Containers within containers; source: what the schema reads of types.
_DEEPEST = 100

# By the class itself: a bool is no int here.
_PLAIN: dict[type, Type] = {
    type(None): NoneType_,
    bool: BoolType,
    int: IntType,
    float: FloatType,
    complex: ComplexType,
    str: StrType,
    Device: DeviceType,
    DType: ScalarTypeType,
    Layout: LayoutType,
    MemoryFormat: MemoryFormatType,
}


@dataclass(frozen=True, slots=True)
class Uninferred:
    """No type was found, for a reason: a sentence without a full stop."""

    reason: str


# What gives the type of a value of a class of a plug-in, in a program.
Infer = Callable[[Any, Program], Type | Uninferred]
# Class -> what asks its objects; those of classes below are asked, too.
_ADDED: dict[type, Infer] = {}


def register_inference(python: type, infer: Infer) -> Callable[[], None]:
    """Let objects of a class of a plug-in be of the type that `infer` gives.

    What comes back takes it out again.
    """
    assert python not in _ADDED, f"{python} has a type already"
    _ADDED[python] = infer

    def remove() -> None:
        if _ADDED.get(python) is infer:
            del _ADDED[python]

    return remove


def inferred_type(
    value: Any, program: Program = SHARED_PROGRAM, depth: int = 0
) -> Type | Uninferred:
    """The type of a value, or why it has none."""
    plain = _PLAIN.get(type(value))
    if plain is not None:
        return plain
    if is_tensor(value):
        return TensorType
    for base in type(value).__mro__ if _ADDED else ():
        if base in _ADDED:
            return _ADDED[base](value, program)
    if depth > _DEEPEST:
        return Uninferred(f"its containers are nested more than {_DEEPEST} deep")
    declared = declared_type(value)
    if declared is not None:
        return declared
    if isinstance(value, tuple):
        return _tuple(value, program, depth)
    if isinstance(value, list):
        return _list(value, program, depth)
    if isinstance(value, dict):
        return _dict(value, program, depth)
    if isinstance(value, Future):
        if not value.done() or value.error() is not None:
            return Uninferred("a future without a value does not say of which type")
        inner = inferred_type(value.value(), program, depth + 1)
        return inner if isinstance(inner, Uninferred) else FutureType(inner)
    found = program.classes(type(value), Scope({}, classes=program.classes))
    if found is not None:
        return found
    return Uninferred(f"{described(value)} is no value of a program")


def _tuple(value: Any, program: Program, depth: int) -> Type | Uninferred:
    if hasattr(value, "_fields"):
        named = program.classes(type(value), Scope({}, classes=program.classes))
        if named is not None:
            return named
    elements: list[Type] = []
    for place, each in enumerate(value):
        found = inferred_type(each, program, depth + 1)
        if isinstance(found, Uninferred):
            return Uninferred(f"element {place} of a tuple: {found.reason}")
        elements.append(found)
    return TupleType(tuple(elements))


def _list(value: list[Any], program: Program, depth: int) -> Type | Uninferred:
    if not value:
        return Uninferred("an empty list does not say of what")
    found = _one(value, "a list", "element", program, depth)
    return found if isinstance(found, Uninferred) else ListType(found)


def _dict(value: dict[Any, Any], program: Program, depth: int) -> Type | Uninferred:
    if not value:
        return Uninferred("an empty dictionary does not say of what")
    key = _one(value, "a dictionary", "key", program, depth)
    if isinstance(key, Uninferred):
        return key
    if key not in DICT_KEYS:
        return Uninferred(f"no dictionary has keys of type {key}")
    of = _one(value.values(), "a dictionary", "value", program, depth)
    return of if isinstance(of, Uninferred) else DictType(key, of)


def _one(
    values: Iterable[Any], of: str, word: str, program: Program, depth: int
) -> Type | Uninferred:
    """The one type into which all values fit."""
    types: dict[Type, None] = {}
    for place, each in enumerate(values):
        found = inferred_type(each, program, depth + 1)
        if isinstance(found, Uninferred):
            return Uninferred(f"{word} {place} of {of}: {found.reason}")
        types[found] = None
    one = unify(*types)
    if isinstance(one, Mismatch):
        several = " and ".join(sorted(map(str, types)))
        return Uninferred(f"the {word}s of {of} are of the types {several}")
    return one
