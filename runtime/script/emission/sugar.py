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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

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
        return VALUE_ATTRIBUTES(e, self, name)

    def subscript(self, e: Emitter, index: Sugared) -> Sugared:
        return VALUE_SUBSCRIPT(e, self, index)

    def set_subscript(self, e: Emitter, index: Sugared, value: Sugared) -> None:
        VALUE_SET_SUBSCRIPT(e, self, index, value)

    def delete_subscript(self, e: Emitter, index: Sugared) -> None:
        VALUE_DELETE_SUBSCRIPT(e, self, index)

    def elements(self, e: Emitter) -> Sequence[Sugared] | None:
        if not isinstance(self.type, TupleType):
            return None
        node = e.node("prim::TupleUnpack", (self.node_value,), self.type.elements)
        return [sugar_of_value(each) for each in node.outputs]

    def iterate(self, e: Emitter) -> Any:
        return VALUE_ITERATE(e, self)

    def truth(self, e: Emitter) -> Value | bool:
        return VALUE_TRUTH(e, self)


# The operations of values are implemented by modules of higher layers, which set these
# hooks when they are imported.
def _missing(*_: Any) -> Any:
    raise AssertionError("the package imports the modules that set the hooks")


VALUE_ATTRIBUTES: Callable[[Emitter, SimpleValue, str], Sugared] = _missing
VALUE_SUBSCRIPT: Callable[[Emitter, SimpleValue, Sugared], Sugared] = _missing
VALUE_SET_SUBSCRIPT: Callable[[Emitter, SimpleValue, Sugared, Sugared], None] = _missing
VALUE_DELETE_SUBSCRIPT: Callable[[Emitter, SimpleValue, Sugared], None] = _missing
VALUE_ITERATE: Callable[[Emitter, SimpleValue], Any] = _missing
VALUE_TRUTH: Callable[[Emitter, SimpleValue], Value | bool] = _missing


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
        return VALUE_ITERATE(e, self)  # type: ignore[arg-type]  # the hook needs only `elements`

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
        e.fail(f"{python!r} is no type of programs")
    return type_


def type_of(sugared: object) -> Type | None:
    """Return the type of a value, or None for other sugar."""
    return sugared.type if isinstance(sugared, SimpleValue) else None


# Registrations

# Registrations, oldest first; the newest is used, and each can be closed separately.
_FORMS: dict[int, list[Any]] = {}
_KINDS: dict[Any, list[Any]] = {}
_VALUES: dict[Any, list[Any]] = {}


class FormRegistration:
    """A registration; `close` removes it."""

    __slots__ = ("_close",)

    def __init__(self, close: Callable[[], None]) -> None:
        self._close = close

    def close(self) -> None:
        """Remove the registration; repeated calls are ignored."""
        self._close()

    remove = close

    def __enter__(self) -> "FormRegistration":
        return self

    def __exit__(self, *error: object) -> None:
        self._close()


def register_special_form(python: Any, form: Sugared) -> FormRegistration:
    """Register the sugar of an object, by identity; the newest registration is used."""
    return _registered(_FORMS, id(python), (python, form))


def register_sugar(kind: type, make: Callable[[Any], Sugared]) -> FormRegistration:
    """Register a maker of sugar for objects of a Python class and its subclasses."""
    return _registered(_KINDS, kind, make)


def register_value(kind: Any, make: Callable[[Value], Sugared]) -> FormRegistration:
    """Register a maker of sugar for values of a type, or of a class of types."""
    return _registered(_VALUES, kind, make)


def _registered(table: dict[Any, list[Any]], key: Any, entry: Any) -> FormRegistration:
    # A new list, so that the same entry may be registered twice.
    registration = [entry]
    table.setdefault(key, []).append(registration)

    def close() -> None:
        entries = [each for each in table.get(key, ()) if each is not registration]
        if entries:
            table[key] = entries
        else:
            table.pop(key, None)

    return FormRegistration(close)


def _newest(table: dict[Any, list[Any]], key: Any) -> Any:
    entries = table.get(key)
    return entries[-1][0] if entries else None


def sugar_of_value(value: Value) -> Sugared:
    """Return the sugar of a value of a graph."""
    kind = value.type
    make = _newest(_VALUES, kind) or _newest(_VALUES, type(kind))
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
    """Return the sugar that is registered for an object, or for its class, or None."""
    entry = _newest(_FORMS, id(python))
    if entry is not None and entry[0] is python:
        form: Sugared = entry[1]
        return form
    for base in type(python).__mro__:
        make = _newest(_KINDS, base)
        if make is not None:
            sugar: Sugared = make(python)
            return sugar
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
