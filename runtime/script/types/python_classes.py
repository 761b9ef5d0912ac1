"""Python classes as types of a program: named tuples, enums, dataclasses.

The fields of a class determine its type.

Rules:
- a named tuple is identified by its fields; fields without annotation are tensors;
- an enum is declared completely: the values of its members have one type, int, float or
  str;
- a dataclass is declared with its fields as attributes; the compiler adds the methods,
  so the declaration is not sealed;
- any other class has the type set by `put`, or none;
- a class is declared once, and the declaration does not keep it alive; if a class
  cannot be declared, the declarations of the classes of its fields are removed, too.

Not thread-safe: only one thread compiles at a time.
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

# The allowed types of the values of enum members.
_VALUES: dict[type, Type] = {int: IntType, float: FloatType, str: StrType}


# Fields and type name of a named tuple -> the class that was registered last.
_TUPLES: WeakValueDictionary[tuple[object, ...], type] = WeakValueDictionary()


def named_tuple_class(named: TupleType) -> Any:
    """Return the class whose objects are of a named tuple type.

    This is the class that the type was declared from. If that class no longer exists, a
    new one is created; only the caller keeps it alive.
    """
    python = _TUPLES.get((named.qualname, named.names))
    if python is None:
        name = named.qualname.rpartition(".")[2]
        python = _TUPLES[named.qualname, named.names] = namedtuple(name, named.names)
    return python


class PythonClasses:
    """The types of Python classes in a namespace; a `TypeScope` calls it."""

    __slots__ = ("_begun", "_known", "namespace")

    def __init__(self, namespace: Namespace = SHARED) -> None:
        self.namespace = namespace
        self._known: WeakKeyDictionary[type, Type] = WeakKeyDictionary()
        # The classes whose declaration began since the outermost one began.
        self._begun: list[type] = []

    def put(self, python: type, known: Type) -> None:
        """Let a class denote a type."""
        self._known[python] = known
        if isinstance(known, TupleType) and known.qualname:
            _TUPLES[known.qualname, known.names] = python

    def known(self, python: type) -> Type | None:
        """Return the type that a class denotes already, or None."""
        return self._known.get(python)

    def forget(self, python: type) -> None:
        """Remove the type of a class and release the name of the type."""
        removed = self._known.pop(python, None)
        if isinstance(removed, DeclaredType):
            self.namespace.discard(removed)

    def __call__(self, python: type, scope: TypeScope) -> Type | None:
        """Return the type of a class, or None; annotations may use names of the scope.

        Raises:
            AnnotationError: a field is not typed, or the values of an enum have
            different types.
        """
        declared = self._known.get(python)
        if declared is not None:
            return declared
        module = sys.modules.get(python.__module__)
        scope = scope.within({} if module is None else vars(module))
        before = len(self._begun)
        try:
            return self._declared(python, scope)
        except BaseException:
            # Types declared in the meantime may refer to the class that failed.
            for each in self._begun[before:]:
                removed = self._known.pop(each, None)
                if isinstance(removed, DeclaredType):
                    self.namespace.discard(removed)
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

    def _keep(self, python: type, type_: Type) -> None:
        self._begun.append(python)
        self._known[python] = type_

    def _named_tuple(self, python: Any, scope: TypeScope) -> Type:
        name = python.__name__
        if python in self._begun and python not in self._known:
            message = f"{name} is a tuple that would hold itself"
            raise _fault(name, message, "A dataclass can.")
        self._begun.append(python)
        # The class that defines the fields: `python` may be a subclass.
        owner = next(each for each in python.__mro__ if "_fields" in vars(each))
        written: Mapping[str, Any] = get_annotations(owner)
        elements = tuple(
            _field(python, name, written.get(name, TensorType), scope)
            for name in python._fields
        )
        type_ = TupleType(elements, python._fields, qualified_name(python))
        _TUPLES[type_.qualname, type_.names] = python
        self._keep(python, type_)
        return type_

    def _enum(self, python: type[enum.Enum]) -> Type:
        kinds = dict.fromkeys(type(each.value) for each in python)
        value = _VALUES.get(next(iter(kinds), object))
        if value is None or len(kinds) > 1:
            kinds_text = " and ".join(each.__name__ for each in kinds) or "no"
            message = f"the members of {python.__name__} have {kinds_text} values"
            hint = "Give them values of one type: int, float or str."
            raise _fault(python.__name__, message, hint)
        for each in python:
            if each.name in ("name", "value"):
                message = f"a member of {python.__name__} is called `{each.name}`"
                hint = "So is what each member has; call it something else."
                raise _fault(python.__name__, message, hint)
        type_ = self.namespace.declare(EnumType, qualified_name(python), python)
        self._keep(python, type_)
        type_.declaration.add_attribute("name", StrType)
        type_.declaration.add_attribute("value", value)
        for each in python:
            type_.declaration.add_constant(each.name, each.value)
        type_.declaration.seal()
        return type_

    def _dataclass(self, python: Any, scope: TypeScope) -> Type:
        type_ = self.namespace.declare(ScriptClassType, qualified_name(python), python)
        # Before its fields are read: a field may be of this class.
        self._keep(python, type_)
        for each in dataclasses.fields(python):
            one = _field(python, each.name, each.type, scope)
            type_.declaration.add_attribute(each.name, one)
        return type_


def _field(python: type, name: str, annotation: Any, scope: TypeScope) -> Type:
    place = f"the field `{name}` of {python.__name__}"
    try:
        type_ = annotated_type(annotation, scope)
    except AnnotationError as error:
        error.message = f"{place}: {error.message}"
        raise
    if type_ is None:
        text = getattr(annotation, "__name__", None) or str(annotation)
        raise _fault(text, f"{place} means no type", "")
    return type_


def _fault(text: str, message: str, hint: str) -> AnnotationError:
    return AnnotationError(
        message=message, source=Source(text), span=(0, len(text)), hint=hint
    )
