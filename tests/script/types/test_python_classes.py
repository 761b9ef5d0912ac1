"""Named tuples, enums and dataclasses as types of a program."""

import dataclasses
import enum
import gc
import sys
import weakref
from collections import namedtuple
from typing import Any, NamedTuple

import pytest

from everyorder.runtime.errors.schema import AnnotationError
from everyorder.runtime.schema.declared import (
    SHARED,
    EnumType,
    Namespace,
    ScriptClassType,
)
from everyorder.runtime.schema.types import IntType, OptionalType, StrType
from everyorder.runtime.script.types.annotations import TypeScope
from everyorder.runtime.script.types.python_classes import PythonClasses

HERE = "__torch__.tests.script.types.test_python_classes"


class Point(NamedTuple):
    x: int
    y: "list[float] | None"


class Further(Point):
    """Has the fields of its base."""


class Nested(NamedTuple):
    point: Point
    colours: "list[Colour]"


class Unreadable(NamedTuple):
    x: "set[int]"


Pair = namedtuple("Pair", ["left", "right"])  # no annotations


class Colour(enum.Enum):
    RED = "r"
    BLUE = "b"


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


class Nothing(enum.Enum):
    pass


class Truth(enum.Enum):
    YES = True


@dataclasses.dataclass
class Node:
    value: int
    next: "Node | None" = None
    colours: "list[Colour] | None" = None


@dataclasses.dataclass
class Broken:
    good: int
    bad: "Nods | None"  # type: ignore[name-defined]  # noqa: F821  # that is tested


@dataclasses.dataclass
class Holder:
    member: "Member"
    pair: "Pair"
    missing: "Later"  # type: ignore[name-defined]  # noqa: F821  # that is tested


@dataclasses.dataclass
class Member:
    holder: "Holder"
    member: "Member"


class Endless(NamedTuple):
    value: int
    next: "Endless | None"


class Around(NamedTuple):
    inner: "list[Endless]"


class Titled(enum.Enum):
    name = 1  # type: ignore[assignment]  # Python takes it
    other = 2


@dataclasses.dataclass
class Opaque:
    some: object


def names() -> TypeScope:
    return TypeScope(globals(), classes=PythonClasses(Namespace()))


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("Point", f"NamedTuple({HERE}.Point, x: int, y: float[]?)"),
        ("Further", f"NamedTuple({HERE}.Further, x: int, y: float[]?)"),
        ("Pair", f"NamedTuple({HERE}.Pair, left: Tensor, right: Tensor)"),
        (
            "Nested",
            f"NamedTuple({HERE}.Nested, point: NamedTuple({HERE}.Point, x: int, "
            f"y: float[]?), colours: {HERE}.Colour[])",
        ),
        ("Colour", f"{HERE}.Colour"),
        ("dict[str, Colour]", f"Dict(str, {HERE}.Colour)"),
        ("list[Node]", f"{HERE}.Node[]"),
    ],
)
def test_classes_mean_types(text: str, printed: str) -> None:
    scope = names()
    assert str(scope.written(text)) == printed
    assert scope.written(text) is scope.written(text)


@pytest.mark.parametrize(
    ("name", "message", "advice"),
    [
        (
            "Mixed",
            "the members of Mixed have int and str values",
            "Give them values of one type: int, float or str.",
        ),
        (
            "Nothing",
            "the members of Nothing have no values",
            "Give them values of one type: int, float or str.",
        ),
        (
            "Truth",
            "the members of Truth have bool values",
            "Give them values of one type: int, float or str.",
        ),
        (
            "Broken",
            "the field `bad` of Broken: `Nods` is not defined here",
            "Did you mean Node?",
        ),
        ("Opaque", "the field `some` of Opaque means no type", ""),
        (
            "Titled",
            "a member of Titled is called `name`",
            "So is what each member has; call it something else.",
        ),
        (
            "Endless",
            "the field `next` of Endless: `Endless` means no type: "
            "Endless is a tuple that would hold itself",
            "A dataclass can.",
        ),
        (
            "Unreadable",
            "the field `x` of Unreadable: `set` is not made of other types",
            "Such are list, dict, tuple, Optional, Union, and the like.",
        ),
    ],
)
def test_why_a_class_means_none(name: str, message: str, advice: str) -> None:
    with pytest.raises(AnnotationError) as caught:
        names().written(f"list[{name}]")
    text = f"`{name}` means no type: {message}:\n  <text>:1:6\nlist[{name}]\n     "
    text += f"{'~' * len(name)} <--- HERE"
    assert str(caught.value) == (f"{text}\n{advice}" if advice else text)


def test_a_field_that_means_nothing_is_shown_with_its_annotation() -> None:
    with pytest.raises(AnnotationError) as caught:
        PythonClasses(Namespace())(Opaque, names())
    assert (
        str(caught.value)
        == """\
the field `some` of Opaque means no type:
  <text>:1:1
object
~~~~~~ <--- HERE"""
    )


def test_an_enum_is_declared_whole() -> None:
    colour = names().written("Colour")
    assert isinstance(colour, EnumType)
    made = colour.declaration
    assert dict(made.attributes) == {"name": StrType, "value": StrType}
    assert dict(made.constants) == {"RED": "r", "BLUE": "b"}
    assert (made.is_sealed, made.python) == (True, Colour)
    assert made.namespace.find(f"{HERE}.Colour") is colour


def test_a_dataclass_is_declared_with_its_fields() -> None:
    node = names().written("Node")
    assert isinstance(node, ScriptClassType)
    assert {name: str(each) for name, each in node.declaration.attributes.items()} == {
        "value": "int",
        "next": f"{HERE}.Node?",
        "colours": f"{HERE}.Colour[]?",
    }
    assert node.declaration.attributes["next"] is OptionalType(node)
    assert not node.declaration.is_sealed


def test_a_class_that_cannot_be_declared_leaves_nothing() -> None:
    classes = PythonClasses(Namespace())
    scope = TypeScope(globals(), classes=classes)
    for _ in range(2):
        with pytest.raises(AnnotationError):
            scope.written("Broken")
    assert classes.namespace.qualnames == ()
    classes.put(Broken, IntType)
    assert scope.written("Broken") is IntType
    assert PythonClasses().namespace is SHARED


@pytest.mark.parametrize("name", ["Titled", "Endless", "Around", "Holder", "Mixed"])
def test_what_cannot_be_declared_is_refused_again(name: str) -> None:
    classes = PythonClasses(Namespace())
    scope = TypeScope(globals(), classes=classes)
    told = set()
    for _ in range(2):
        with pytest.raises(AnnotationError) as caught:
            scope.written(name)
        told.add(str(caught.value))
        assert classes.namespace.qualnames == ()
    assert len(told) == 1


def test_what_speaks_of_a_class_that_cannot_be_declared_is_declared_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    classes = PythonClasses(Namespace())
    scope = TypeScope(globals(), classes=classes)
    with pytest.raises(AnnotationError, match="Later"):
        scope.written("Holder")
    monkeypatch.setitem(globals(), "Later", int)
    holder, member = scope.written("Holder"), scope.written("Member")
    assert isinstance(holder, ScriptClassType)
    assert isinstance(member, ScriptClassType)
    assert holder.declaration.attributes["member"] is member
    assert dict(member.declaration.attributes) == {"holder": holder, "member": member}
    assert classes.namespace.qualnames == (f"{HERE}.Holder", f"{HERE}.Member")


def test_a_class_is_not_kept_by_what_it_means() -> None:
    classes = PythonClasses(Namespace())

    def use() -> weakref.ref[Any]:
        local: Any = enum.Enum("Local", {"A": 1})  # type: ignore[misc]  # not a variable
        TypeScope({"Local": local}, classes=classes).written("Local")
        return weakref.ref(local)

    gone = use()
    gc.collect()
    assert gone() is None


def test_a_class_of_a_module_that_is_gone_has_the_names_of_its_scope() -> None:
    fields = {"_fields": ("x",), "__annotations__": {"x": "Whole"}}
    lost = type("Lost", (tuple,), {**fields, "__module__": "no.such"})
    assert lost.__module__ not in sys.modules
    found = names().within({"Lost": lost, "Whole": int}).written("Lost")
    assert str(found) == "NamedTuple(__torch__.no.such.Lost, x: int)"
