"""Python classes as types of a program: named tuples, enums, dataclasses.

True only here: what the fields of a class say about its type.

Rules:
- a named tuple is what it is by its fields; those without annotation are tensors;
- an enum is declared whole: its members have values of one type, int, float or str;
- a dataclass is declared with the attributes that its fields say; its methods are the
  compiler's business, so its declaration is not sealed;
- every other class means what `put` said, or nothing;
- a class is declared once, and is not kept alive by that.

One thread at a time: who compiles is alone.
"""

import dataclasses
import enum
import sys
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from runtime.errors.schema import AnnotationError
from runtime.errors.source import Source
from runtime.schema.annotation import annotated_type
from runtime.schema.declaration import (
    SHARED,
    EnumType,
    Namespace,
    ScriptClassType,
    qualified_name,
)
from runtime.schema.types import (
    FloatType,
    IntType,
    StrType,
    TensorType,
    TupleType,
    Type,
)
from runtime.schema.written import Scope

# What members of an enum may have as values.
_VALUES: dict[type, Type] = {int: IntType, float: FloatType, str: StrType}


class PythonClasses:
    """The types of Python classes in a namespace; called by a `Scope`."""

    __slots__ = ("_known", "namespace")

    def __init__(self, namespace: Namespace = SHARED) -> None:
        self.namespace = namespace
        self._known: WeakKeyDictionary[type, Type] = WeakKeyDictionary()

    def put(self, python: type, known: Type) -> None:
        """Let a class mean a type."""
        self._known[python] = known

    def __call__(self, python: type, scope: Scope) -> Type | None:
        """The type of a class, whose annotations may use names of the scope, or None.

        Raises:
            AnnotationError: a field means no type, or an enum has no type of values.
        """
        known = self._known.get(python)
        if known is not None:
            return known
        module = sys.modules.get(python.__module__)
        scope = scope if module is None else scope.within(vars(module))
        if issubclass(python, tuple) and hasattr(python, "_fields"):
            return self._named_tuple(python, scope)
        if issubclass(python, enum.Enum):
            return self._enum(python)
        if dataclasses.is_dataclass(python):
            return self._dataclass(python, scope)
        return None

    def _named_tuple(self, python: Any, scope: Scope) -> Type:
        # Of the class that has the fields: another may derive from it.
        owner = next(each for each in python.__mro__ if "_fields" in vars(each))
        written: Mapping[str, Any] = vars(owner).get("__annotations__", {})
        elements = tuple(
            _field(python, name, written.get(name, TensorType), scope)
            for name in python._fields
        )
        made = TupleType(elements, python._fields, qualified_name(python))
        self._known[python] = made
        return made

    def _enum(self, python: type[enum.Enum]) -> Type:
        kinds = dict.fromkeys(type(each.value) for each in python)
        value = _VALUES.get(next(iter(kinds), object))
        if value is None or len(kinds) > 1:
            found = " and ".join(each.__name__ for each in kinds) or "no"
            message = f"the members of {python.__name__} have {found} values"
            hint = "Give them values of one type: int, float or str."
            raise _fault(python.__name__, message, hint)
        made = self.namespace.declare(EnumType, qualified_name(python), python)
        made.declaration.add_attribute("name", StrType)
        made.declaration.add_attribute("value", value)
        for each in python:
            made.declaration.add_constant(each.name, each.value)
        made.declaration.seal()
        self._known[python] = made
        return made

    def _dataclass(self, python: Any, scope: Scope) -> Type:
        made = self.namespace.declare(ScriptClassType, qualified_name(python), python)
        # Before its fields are read: one of them may be of this class.
        self._known[python] = made
        try:
            for each in dataclasses.fields(python):
                one = _field(python, each.name, each.type, scope)
                made.declaration.add_attribute(each.name, one)
        except AnnotationError:
            del self._known[python]
            self.namespace.discard(made)
            raise
        return made


def _field(python: type, name: str, annotation: Any, scope: Scope) -> Type:
    place = f"the field `{name}` of {python.__name__}"
    try:
        found = annotated_type(annotation, scope)
    except AnnotationError as error:
        error.message = f"{place}: {error.message}"
        raise
    if found is None:
        text = getattr(annotation, "__name__", None) or str(annotation)
        raise _fault(text, f"{place} means no type", "")
    return found


def _fault(text: str, message: str, hint: str) -> AnnotationError:
    return AnnotationError(
        message=message, source=Source(text), span=(0, len(text)), hint=hint
    )
