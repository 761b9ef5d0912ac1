"""Sugar: values of graphs, tuples of them, and the registries for Python objects.

    SimpleValue      a value of a graph
    SugaredTuple     a tuple of sugar of any kind
    register_special_form    an object, by identity -> its sugar
    register_sugar           a Python class -> maker of sugar of its objects
    register_value           a type, or a class of types -> maker of sugar of its values

Rules:
- a registration by identity has precedence over one for a class; of classes, the
  nearest base is used; of several registrations the newest.

To support another kind of object in programs: add a subclass of `Sugared`, in the
module of the object, and register it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from everyorder.runtime.base.hooks import Hook
from everyorder.runtime.base.registry import Registry, RegistryHandle
from everyorder.runtime.schema.annotation import annotated_type
from everyorder.runtime.schema.types import (
    TensorType,
    TupleType,
    Type,
)
from everyorder.runtime.schema.values import is_tensor
from everyorder.runtime.script.emission.emitter import (
    Arguments,
    Emitter,
    PythonObject,
    Sugared,
)
from everyorder.runtime.script.ir import Value
from everyorder.runtime.script.ir.type_rules import PLAIN_TYPES
from everyorder.runtime.script.types.annotations import TypeScope


class SimpleValue(Sugared):
    """A value of a graph."""

    __slots__ = ("node_value",)

    def __init__(self, value: Value) -> None:
        self.node_value = value

    @property
    def type(self) -> Type:
        """Return the type of the value."""
        return self.node_value.type

    def describe(self) -> str:
        return f"a value of type {self.type}"

    def words(self) -> str:
        return str(self.type)

    def value(self, e: Emitter) -> Value:
        return self.node_value

    def attribute(self, e: Emitter, name: str) -> Sugared:
        return VALUE_ATTRIBUTES.get()(e, self, name)

    def subscript(self, e: Emitter, index: Sugared) -> Sugared:
        return VALUE_SUBSCRIPT.get()(e, self, index)

    def set_subscript(self, e: Emitter, index: Sugared, value: Sugared) -> None:
        VALUE_SET_SUBSCRIPT.get()(e, self, index, value)

    def delete_subscript(self, e: Emitter, index: Sugared) -> None:
        VALUE_DELETE_SUBSCRIPT.get()(e, self, index)

    def elements(self, e: Emitter) -> Sequence[Sugared] | None:
        if not isinstance(self.type, TupleType):
            return None
        node = e.node("prim::TupleUnpack", (self.node_value,), self.type.elements)
        return [sugar_of_value(each) for each in node.outputs]

    def iterate(self, e: Emitter) -> Any:
        return VALUE_ITERATE.get()(e, self)

    def truth(self, e: Emitter) -> Value | bool:
        return VALUE_TRUTH.get()(e, self)


# Asked by the classes here, answered by the modules of the operations on values.
VALUE_ATTRIBUTES: Hook[Callable[[Emitter, SimpleValue, str], Sugared]] = Hook(
    "an attribute of a value"
)
VALUE_SUBSCRIPT: Hook[Callable[[Emitter, SimpleValue, Sugared], Sugared]] = Hook(
    "an item of a value"
)
VALUE_SET_SUBSCRIPT: Hook[Callable[[Emitter, SimpleValue, Sugared, Sugared], None]] = (
    Hook("the assignment of an item")
)
VALUE_DELETE_SUBSCRIPT: Hook[Callable[[Emitter, SimpleValue, Sugared], None]] = Hook(
    "the deletion of an item"
)
VALUE_ITERATE: Hook[Callable[[Emitter, SimpleValue], Any]] = Hook("a loop over a value")
VALUE_TRUTH: Hook[Callable[[Emitter, SimpleValue], Value | bool]] = Hook(
    "the truth of a value"
)


class Refined(SimpleValue):
    """A variable whose type a condition has refined."""

    __slots__ = ("original",)

    def __init__(self, value: Value, original: Sugared) -> None:
        super().__init__(value)
        self.original = getattr(original, "original", original)


class SugaredTuple(Sugared):
    """A tuple with elements that are not values, or one that is not emitted yet."""

    __slots__ = ("items",)

    def __init__(self, items: Sequence[Sugared]) -> None:
        self.items = tuple(items)

    def describe(self) -> str:
        return f"a tuple of {len(self.items)}"

    def words(self) -> str:
        return f"({', '.join(each.words() for each in self.items)})"

    def value(self, e: Emitter) -> Value:
        values = [each.value(e) for each in self.items]
        tuple_type = TupleType(tuple(each.type for each in values))
        return e.node("prim::TupleConstruct", values, (tuple_type,)).output

    def attribute(self, e: Emitter, name: str) -> Sugared:
        return SimpleValue(self.value(e)).attribute(e, name)

    def subscript(self, e: Emitter, index: Sugared) -> Sugared:
        part = part_of(e, self.items, index)
        if isinstance(part, list):
            return SugaredTuple(part)
        return (
            part if part is not None else SimpleValue(self.value(e)).subscript(e, index)
        )

    def elements(self, e: Emitter) -> Sequence[Sugared] | None:
        return self.items

    def iterate(self, e: Emitter) -> Any:
        return VALUE_ITERATE.get()(e, self)  # type: ignore[arg-type]  # the hook needs only `elements`

    def truth(self, e: Emitter) -> Value | bool:
        return bool(self.items)


@dataclass(frozen=True, slots=True)
class SugaredSlice(Sugared):
    """A slice in a subscript; omitted parts are None."""

    start: Sugared | None
    stop: Sugared | None
    step: Sugared | None

    def describe(self) -> str:
        return "a slice"

    @property
    def parts(self) -> tuple[Sugared | None, ...]:
        """Return the three parts."""
        return self.start, self.stop, self.step


class SugaredEllipsis(Sugared):
    """`...` in a subscript."""

    __slots__ = ()

    def describe(self) -> str:
        return "`...`"


def part_of(
    e: Emitter, items: Sequence[Sugared], index: Sugared
) -> Sugared | list[Sugared] | None:
    """Return the element, or elements, at an index that is known at compile time.

    Returns None if the index is not known.
    """
    if isinstance(index, SugaredSlice):
        bounds: list[Any] = []
        for each in index.parts:
            is_known, bound = (True, None) if each is None else constant_of(each)
            if not is_known or isinstance(bound, bool):
                return None
            bounds.append(bound)
        if bounds[2] == 0:
            e.fail("the step of a slice is zero")
        return list(items[slice(*bounds)])
    is_known, place = constant_of(index)
    if not is_known or not isinstance(place, int):
        return None
    if not -len(items) <= place < len(items):
        e.fail(f"there is no element {place} in a tuple of {len(items)}")
    return items[place]


def constant_of(sugared: Sugared | None) -> tuple[bool, Any]:
    """Return True and the Python constant if it is one, else False and None."""
    value = getattr(sugared, "node_value", None)
    if value is not None and value.node.kind == "prim::Constant":
        attributes = value.node.attributes
        if "value" in attributes:
            return True, attributes["value"]
    if value is not None and value.node.kind == "script::neg.int":
        is_known, number = constant_of(SimpleValue(value.node.inputs[0]))
        return is_known, -number if is_known else None
    return False, None


def type_of_class(e: Emitter, python: Any) -> Type:
    """Return the type of the objects of a Python class.

    Raises:
        IllTyped: programs do not support the class.
    """
    type_ = annotated_type(python, TypeScope(classes=e.compiler.classes))
    if type_ is None:
        e.fail(f"{python!r} is not a type of programs")
    return type_


def type_of(sugared: object) -> Type | None:
    """Return the type of a value, or None for other sugar."""
    return sugared.type if isinstance(sugared, SimpleValue) else None


# Registrations

# Id of an object -> the object and its form: objects of programs may define `==`.
_FORMS: Registry[int, tuple[Any, Sugared]] = Registry(
    "special forms", describe=lambda _, row: repr(row[0])
)
_KINDS: Registry[type, Callable[[Any], Sugared]] = Registry("sugar of classes")
_VALUES: Registry[Any, Callable[[Value], Sugared]] = Registry("sugar of values")


def register_special_form(python: Any, form: Sugared) -> RegistryHandle:
    """Let an object, by identity, mean `form` in programs."""
    return register_special_forms([(python, form)], stacklevel=2)


def register_special_forms(
    forms: Iterable[tuple[Any, Sugared]], *, stacklevel: int = 1
) -> RegistryHandle:
    """Let several objects mean forms, with one handle; all of them or none."""
    rows = {id(python): (python, form) for python, form in forms}
    return _FORMS.register_all(rows, stacklevel=stacklevel + 1)


def register_sugar(kind: type, make: Callable[[Any], Sugared]) -> RegistryHandle:
    """Let objects of a Python class, and of those below it, mean what `make` gives."""
    return _KINDS.register(kind, make, stacklevel=2)


def register_value(kind: Any, make: Callable[[Value], Sugared]) -> RegistryHandle:
    """Let values of a type, or of types of a class, be what `make` gives of them."""
    return _VALUES.register(kind, make, stacklevel=2)


def sugar_of_value(value: Value) -> Sugared:
    """Return the sugar of a value of a graph."""
    kind = value.type
    rows = _VALUES.rows
    make = rows.get(kind) or rows.get(type(kind))
    return SimpleValue(value) if make is None else make(value)


class UnknownObject(PythonObject):
    """An object that programs do not support; its use is an error."""

    __slots__ = ()

    def describe(self) -> str:
        kind = type(self.python)
        return f"an object of the class {kind.__module__}.{kind.__qualname__}"

    def refuse(self, e: Emitter) -> NoReturn:
        """Refuse the object with a hint."""
        hint = "Pass what is needed of it as a parameter."
        e.fail(f"{self.describe()} means nothing in a program", hint)

    def value(self, e: Emitter) -> Value:
        self.refuse(e)

    def attribute(self, e: Emitter, name: str) -> Sugared:
        self.refuse(e)

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        self.refuse(e)


def is_constant(python: Any) -> bool:
    """Return True for a number, text, None, or a tuple of these."""
    if type(python) is tuple:
        return all(map(is_constant, python))
    if type(python) is int:
        return bool(-(2**63) <= python < 2**63)
    return type(python) in PLAIN_TYPES


def special_form(python: Any) -> Sugared | None:
    """Return the sugar registered for an object or its class, or None."""
    row = _FORMS.rows.get(id(python))
    if row is not None and row[0] is python:
        return row[1]
    kinds = _KINDS.rows
    for base in type(python).__mro__:
        make = kinds.get(base)
        if make is not None:
            return make(python)
    return None


def sugar_of(python: Any, e: Emitter) -> Sugared:
    """Return the sugar of a Python object, at the current place of the emitter."""
    if isinstance(python, Sugared):
        return python
    form = special_form(python)
    if form is not None:
        return form.resolve(e)
    if is_constant(python):
        return SimpleValue(e.constant(python))
    if type(python) is tuple:
        return SugaredTuple([sugar_of(each, e) for each in python])
    if is_tensor(python):
        return SimpleValue(e.constant(python, TensorType))
    return UnknownObject(python)
