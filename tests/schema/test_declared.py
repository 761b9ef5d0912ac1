"""Declared types: their names and contents; custom classes, which are registered."""

import copy
import gc
import pickle
import weakref
from typing import Any

import pytest

from everyorder.runtime.errors.schema import SchemaError, SchemaSyntaxError
from everyorder.runtime.schema.declared import (
    SHARED,
    EnumType,
    InterfaceType,
    ModuleType,
    Namespace,
    ScriptClassType,
    is_registered_class,
    qualified_name,
    register_class,
    unmangled,
)
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.schema.subtyping import optional
from everyorder.runtime.schema.types import IntType, ListType, Type
from tests.coded import code
from tests.schema.programs import COLOUR, NODE, Colour, method


def test_a_class_can_have_attributes_of_its_own_type() -> None:
    assert {name: str(each) for name, each in NODE.declaration.attributes.items()} == {
        "value": "int",
        "parent": "__torch__.tree.Node?",
        "children": "__torch__.tree.Node[]",
    }
    assert NODE.declaration.attributes["children"] is ListType(NODE)
    assert {name: str(each) for name, each in NODE.declaration.methods.items()} == {
        "depth": "depth(__torch__.tree.Node self) -> int",
        "find": (
            "find(__torch__.tree.Node self, int value, int start=0)"
            " -> __torch__.tree.Node"
        ),
    }


def test_an_enum_has_its_members_as_constants() -> None:
    assert dict(COLOUR.declaration.constants) == {"RED": 1, "BLUE": 2}
    assert COLOUR.declaration.python is Colour


@pytest.mark.parametrize("kind", [ScriptClassType, ModuleType, InterfaceType, EnumType])
def test_names_are_unique_by_the_smallest_free_number(
    kind: type[ScriptClassType],
) -> None:
    names = Namespace()
    made = [names.declare(kind, "__torch__.a.B") for _ in range(3)]
    assert [str(each) for each in made] == [
        "__torch__.a.B",
        "__torch__.a.___torch_mangle_0.B",
        "__torch__.a.___torch_mangle_1.B",
    ]
    assert [names.find(str(each)) for each in made] == made
    assert len(set(made)) == 3
    assert {unmangled(str(each)) for each in made} == {"__torch__.a.B"}
    names.discard(made[1])
    names.discard(made[1])
    assert names.find("__torch__.a.___torch_mangle_0.B") is None
    again = names.declare(kind, "__torch__.a.___torch_mangle_7.B")
    assert str(again) == str(made[1])
    names.discard(made[1])
    assert names.find(str(again)) is again
    assert names.qualnames == (
        "__torch__.a.B",
        "__torch__.a.___torch_mangle_1.B",
        "__torch__.a.___torch_mangle_0.B",
    )
    assert str(names.declare(kind, "__torch__.B")) == "__torch__.B"
    assert str(names.declare(kind, "__torch__.B")) == "__torch__.___torch_mangle_0.B"
    numbered = "__torch__.a.___torch_mangle_7.B"
    assert str(names.declare(kind, numbered, is_numbered=True)) == numbered


def test_two_namespaces_have_nothing_to_do_with_each_other() -> None:
    one, other = (Namespace().declare(ScriptClassType, "__torch__.B") for _ in "ab")
    assert (str(one), one == other) == (str(other), False)
    assert ListType(one) is not ListType(other)


@pytest.mark.parametrize(
    "name",
    [
        *("B", "__torch__", "__torch__.", "__torch__.a b", "__torch__.3"),
        *("__torch__.a.é", "__torch__.torch.classes.a.B", "torch.B", "__torch__.a..B"),
    ],
)
def test_a_name_must_be_one_that_texts_can_write(name: str) -> None:
    with pytest.raises(SchemaError, check=code("MalformedTypeName")) as caught:
        Namespace().declare(ScriptClassType, name)
    assert (
        str(caught.value)
        == f"""\
{name!r} cannot name a declared type.
A name is __torch__ and identifiers, joined by dots; __torch__.torch.classes
is reserved for custom classes."""
    )


def test_what_has_been_said_stays() -> None:
    made = Namespace().declare(ScriptClassType, "__torch__.B").declaration
    made.add_attribute("x", IntType)
    made.add_method("f", method(IntType, "f() -> int"))
    made.add_constant("c", 3)
    for name, noun in (("x", "an attribute"), ("f", "a method"), ("c", "a constant")):
        with pytest.raises(SchemaError, check=code("DeclarationConflict")) as caught:
            made.add_attribute(name, ListType(IntType))
        assert str(caught.value) == (
            f"`{name}` cannot be added to __torch__.B: there is {noun} of this name."
        )
    made.seal()
    for add in (made.add_attribute, made.add_method, made.add_constant):
        with pytest.raises(SchemaError, check=code("DeclarationConflict")) as caught:
            add("new", IntType)  # type: ignore[arg-type]  # refused before it is looked at
        assert str(caught.value) == (
            "`new` cannot be added to __torch__.B: the declaration is sealed."
        )
    with pytest.raises(TypeError):
        made.attributes["y"] = IntType  # type: ignore[index]  # that is what is tested
    assert (dict(made.attributes), dict(made.constants)) == ({"x": IntType}, {"c": 3})


def test_a_declared_type_is_pickled_by_its_name() -> None:
    made = SHARED.declare(ScriptClassType, "__torch__.pickled.B")
    try:
        types: list[Type] = [made, ListType(optional(made))]
        assert pickle.loads(pickle.dumps(types)) == types
        assert copy.deepcopy(types) == copy.copy(types) == types
        data = pickle.dumps(made)
    finally:
        SHARED.discard(made)
    near = SHARED.declare(ScriptClassType, "__torch__.pickled.C")
    try:
        with pytest.raises(SchemaError) as caught:
            pickle.loads(data)
    finally:
        SHARED.discard(near)
    assert (
        str(caught.value)
        == """\
No type __torch__.pickled.B is declared in this process. There is __torch__.pickled.C.
Compile the program that declares it before its types are unpickled."""
    )


def test_types_of_a_namespace_of_its_own_are_not_pickled() -> None:
    names = Namespace()
    made = [names.declare(ScriptClassType, f"__torch__.{name}") for name in "ABCD"]
    assert copy.deepcopy(made) == made
    assert copy.copy(made[0].declaration) is copy.deepcopy(made[0].declaration)
    with pytest.raises(SchemaError, check=code("UnsharedNamespace")) as caught:
        pickle.dumps(made)
    assert (
        str(caught.value)
        == "Types of a private namespace cannot be pickled (__torch__.A, __torch__.B, "
        """__torch__.C, ...).
Another process can look up only the shared namespace; send the name of the type,
and look it up there."""
    )


def test_a_class_that_has_lists_of_itself_is_gone_when_nobody_uses_it() -> None:
    def declare() -> list[weakref.ref[Any]]:
        names = Namespace()
        node = names.declare(ScriptClassType, "__torch__.Node")
        node.declaration.add_attribute("children", ListType(optional(node)))
        node.declaration.add_method("up", method(node, "up() -> int"))
        return [weakref.ref(node), weakref.ref(ListType(optional(node)))]

    kept = declare()
    gc.collect()
    assert [each() for each in kept] == [None, None]


def test_a_python_class_is_not_kept_by_its_declaration() -> None:
    class Short: ...

    made = Namespace().declare(ScriptClassType, "__torch__.Short", Short)
    assert made.declaration.python is Short
    del Short
    gc.collect()
    assert made.declaration.python is None
    assert repr(made.declaration) == "Declaration('__torch__.Short')"


def test_the_name_of_a_python_object_can_be_written() -> None:
    class Inner: ...

    assert qualified_name(Inner) == "__torch__.tests.schema.test_declared.Inner"
    strange = type("Größe", (), {"__module__": "a-b.3c"})
    assert qualified_name(strange) == "__torch__.a_b._3c.Gr__e"
    assert qualified_name(type("A", (), {"__module__": "__main__"})) == "__torch__.A"
    assert qualified_name(lambda: 0).endswith("._lambda_")


TEXT = "f(__torch__.torch.classes.lib.{} x) -> ()"


def test_a_registered_class_parses() -> None:
    register_class("lib.Known")
    register_class("lib.Known")
    text = TEXT.format("Known")
    assert str(parse_schema(text)) == text
    assert is_registered_class("lib.Known")


def test_another_class_is_an_error_until_it_is_registered() -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_schema(TEXT.format("Late"))
    assert (
        str(caught.value)
        == """\
no class lib.Late is registered
    f(__torch__.torch.classes.lib.Late x) -> ()
      ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~^
Register the class before a schema names it."""
    )
    with register_class("lib.Late"):
        assert parse_schema(TEXT.format("Late")).arguments[0].name == "x"
    assert not is_registered_class("lib.Late")


@pytest.mark.parametrize("name", ["Bare", "a.b.C", "a.", "a.1", "a. b", "ä.B", ""])
def test_malformed_names(name: str) -> None:
    with pytest.raises(SchemaError, check=code("MalformedClassName")) as caught:
        register_class(name)
    assert str(caught.value) == (
        f"{name!r} cannot name a custom class.\n"
        "A name is two identifiers joined by a dot: namespace.Class"
    )
