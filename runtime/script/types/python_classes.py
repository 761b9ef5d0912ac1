"""Python classes as types of a program: named tuples, enums, dataclasses.

What the fields of a class say about its type.

Rules:
- a named tuple is what it is by its fields; those without annotation are tensors;
- an enum is declared whole: its members have values of one type, int, float or str;
- a dataclass is declared with the attributes that its fields say; its methods are the
  compiler's business, so its declaration is not sealed;
- every other class means what `put` said, or nothing;
- a class is declared once, and is not kept alive by that; where one cannot be declared,
  neither are those that were declared for its fields.

One thread at a time: who compiles is alone.
"""

import dataclasses
import enum
import sys
from collections import namedtuple
from collections.abc import Mapping
from inspect import get_annotations
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from everyorder.runtime.errors.schema import AnnotationError
from everyorder.runtime.errors.source import Source
from everyorder.runtime.schema.annotation import annotated_type
from everyorder.runtime.schema.declared import (
    SHARED,
    DeclaredType,
    EnumType,
    Namespace,
    ScriptClassType,
    qualified_name,
)
from everyorder.runtime.schema.types import (
    FloatType,
    IntType,
    StrType,
    TensorType,
    TupleType,
    Type,
)
from everyorder.runtime.script.types.annotations import TypeScope

# What members of an enum may have as values.
_VALUES: dict[type, Type] = {int: IntType, float: FloatType, str: StrType}


# Named tuples by the fields and the name of their type: the class that was seen last.
_TUPLES: WeakValueDictionary[tuple[object, ...], type] = WeakValueDictionary()


def named_tuple_class(named: TupleType) -> Any:
    """The class whose objects are of a type of tuples with names.

    The one that the type was made of; if that is gone, one that is made now, and kept
    by whoever asks.
    """
    found = _TUPLES.get((named.qualname, named.names))
    if found is None:
        name = named.qualname.rpartition(".")[2]
        found = _TUPLES[named.qualname, named.names] = namedtuple(name, named.names)
    return found


class PythonClasses:
    """The types of Python classes in a namespace; called by a `TypeScope`."""

    __slots__ = ("_begun", "_known", "namespace")

    def __init__(self, namespace: Namespace = SHARED) -> None:
        self.namespace = namespace
        self._known: WeakKeyDictionary[type, Type] = WeakKeyDictionary()
        # The classes that were begun since the outermost one was.
        self._begun: list[type] = []

    def put(self, python: type, known: Type) -> None:
        """Let a class mean a type."""
        self._known[python] = known
        if isinstance(known, TupleType) and known.qualname:
            _TUPLES[known.qualname, known.names] = python

    def known(self, python: type) -> Type | None:
        """What a class means already, or None."""
        return self._known.get(python)

    def forget(self, python: type) -> None:
        """Let a class mean nothing again, and give the name of its type back."""
        made = self._known.pop(python, None)
        if isinstance(made, DeclaredType):
            self.namespace.discard(made)

    def __call__(self, python: type, scope: TypeScope) -> Type | None:
        """The type of a class, whose annotations may use names of the scope, or None.

        Raises:
            AnnotationError: a field means no type, or an enum has no type of values.
        """
        known = self._known.get(python)
        if known is not None:
            return known
        module = sys.modules.get(python.__module__)
        scope = scope.within({} if module is None else vars(module))
        before = len(self._begun)
        try:
            return self._declared(python, scope)
        except BaseException:
            # What was declared meanwhile may speak of what is not declared.
            for each in self._begun[before:]:
                made = self._known.pop(each, None)
                if isinstance(made, DeclaredType):
                    self.namespace.discard(made)
            raise
        finally:
            if not before:
                self._begun.clear()

    def _declared(self, python: type, scope: TypeScope) -> Type | None:
        if issubclass(python, tuple) and hasattr(python, "_fields"):
            return self._named_tuple(python, scope)
        if issubclass(python, enum.Enum):
            return self._enum(python)
        if dataclasses.is_dataclass(python):
            return self._dataclass(python, scope)
        return None

    def _keep(self, python: type, made: Type) -> None:
        self._begun.append(python)
        self._known[python] = made

    def _named_tuple(self, python: Any, scope: TypeScope) -> Type:
        name = python.__name__
        if python in self._begun and python not in self._known:
            message = f"{name} is a tuple that would hold itself"
            raise _fault(name, message, "A dataclass can.")
        self._begun.append(python)
        # Of the class that has the fields: another may derive from it.
        owner = next(each for each in python.__mro__ if "_fields" in vars(each))
        written: Mapping[str, Any] = get_annotations(owner)
        elements = tuple(
            _field(python, name, written.get(name, TensorType), scope)
            for name in python._fields
        )
        made = TupleType(elements, python._fields, qualified_name(python))
        _TUPLES[made.qualname, made.names] = python
        self._keep(python, made)
        return made

    def _enum(self, python: type[enum.Enum]) -> Type:
        kinds = dict.fromkeys(type(each.value) for each in python)
        value = _VALUES.get(next(iter(kinds), object))
        if value is None or len(kinds) > 1:
            found = " and ".join(each.__name__ for each in kinds) or "no"
            message = f"the members of {python.__name__} have {found} values"
            hint = "Give them values of one type: int, float or str."
            raise _fault(python.__name__, message, hint)
        for each in python:
            if each.name in ("name", "value"):
                message = f"a member of {python.__name__} is called `{each.name}`"
                hint = "So is what each member has; call it something else."
                raise _fault(python.__name__, message, hint)
        made = self.namespace.declare(EnumType, qualified_name(python), python)
        self._keep(python, made)
        made.declaration.add_attribute("name", StrType)
        made.declaration.add_attribute("value", value)
        for each in python:
            made.declaration.add_constant(each.name, each.value)
        made.declaration.seal()
        return made

    def _dataclass(self, python: Any, scope: TypeScope) -> Type:
        made = self.namespace.declare(ScriptClassType, qualified_name(python), python)
        # Before its fields are read: one of them may be of this class.
        self._keep(python, made)
        for each in dataclasses.fields(python):
            one = _field(python, each.name, each.type, scope)
            made.declaration.add_attribute(each.name, one)
        return made


def _field(python: type, name: str, annotation: Any, scope: TypeScope) -> Type:
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
