"""Types of a program, and random types over all of them."""

import enum

from hypothesis import strategies as st

from everyorder.runtime.schema.declared import (
    EnumType,
    InterfaceType,
    ModuleType,
    Namespace,
    ScriptClassType,
    register_class,
)
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import Argument, OperatorName
from everyorder.runtime.schema.subtyping import optional, union
from everyorder.runtime.schema.types import (
    NAMED_BASES,
    PROGRAM_BASES,
    AnyType,
    AwaitType,
    ClassType,
    DictType,
    FutureType,
    IntType,
    ListType,
    NoneType_,
    RRefType,
    StrType,
    TensorType,
    TupleType,
    Type,
    TypeVariable,
    fake,
)

PROGRAM = Namespace()
register_class("programs.Thing")


def method(owner: Type, text: str) -> Schema:
    """The schema of a method, of which `text` is what follows the object."""
    parsed = parse_schema(text, namespace=PROGRAM)
    arguments = (Argument("self", owner), *parsed.arguments)
    return Schema(OperatorName(parsed.name.base), arguments, parsed.returns)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def _enum() -> EnumType:
    colour = PROGRAM.declare(EnumType, "__torch__.paint.Colour", Colour)
    colour.declaration.add_attribute("name", StrType)
    colour.declaration.add_attribute("value", IntType)
    for each in Colour:
        colour.declaration.add_constant(each.name, each.value)
    colour.declaration.seal()
    return colour


def _node() -> ScriptClassType:
    """A class that has itself, and a list of itself, in attributes."""
    node = PROGRAM.declare(ScriptClassType, "__torch__.tree.Node")
    node.declaration.add_attribute("value", IntType)
    node.declaration.add_attribute("parent", optional(node))
    node.declaration.add_attribute("children", ListType(node))
    node.declaration.add_method("depth", method(node, "depth() -> int"))
    node.declaration.add_method(
        "find", method(node, "find(int value, int start=0) -> __torch__.tree.Node")
    )
    node.declaration.seal()
    return node


def _with_depth() -> InterfaceType:
    deep = PROGRAM.declare(InterfaceType, "__torch__.tree.Deep")
    deep.declaration.add_method("depth", method(deep, "depth() -> int"))
    deep.declaration.seal()
    return deep


def _searchable() -> InterfaceType:
    """An interface that speaks of itself, and of which each other one asks less."""
    found = PROGRAM.declare(InterfaceType, "__torch__.tree.Searchable")
    found.declaration.add_method("depth", method(found, "depth() -> Scalar"))
    found.declaration.add_method(
        "find", method(found, "find(int value) -> __torch__.tree.Searchable")
    )
    found.declaration.seal()
    return found


def _layer() -> ModuleType:
    layer = PROGRAM.declare(ModuleType, "__torch__.net.Layer")
    layer.declaration.add_attribute("weight", TensorType)
    layer.declaration.add_method("depth", method(layer, "depth() -> int"))
    layer.declaration.add_method(
        "forward", method(layer, "forward(Tensor x) -> Tensor")
    )
    layer.declaration.seal()
    return layer


COLOUR, NODE, DEEP, SEARCHABLE, LAYER = (
    _enum(),
    _node(),
    _with_depth(),
    _searchable(),
    _layer(),
)
DECLARED: tuple[Type, ...] = (COLOUR, NODE, DEEP, SEARCHABLE, LAYER)

WORDS = st.sampled_from(
    sorted(
        {fake(each) for each in (*NAMED_BASES.values(), *PROGRAM_BASES.values())},
        key=str,
    )
)
LEAVES = st.one_of(
    WORDS,
    st.sampled_from((IntType, NoneType_, TensorType, StrType)),
    st.sampled_from((*DECLARED, ClassType("programs.Thing"))),
)
KEYS = st.sampled_from((IntType, StrType, TensorType))
NAMES = st.lists(st.sampled_from("xyz"), unique=True, max_size=3).map(tuple)


def tuples(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    """Tuples, with names and without."""
    named = NAMES.flatmap(
        lambda names: st.builds(
            TupleType,
            st.tuples(*(inner for _ in names)),
            st.just(names),
            st.sampled_from(("__torch__.Point", "__torch__.geo.Point")),
        )
    )
    return st.one_of(st.lists(inner, max_size=3).map(tuple).map(TupleType), named)


def _optional(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    # `Any?` says the same as `Any` in another way.
    return inner.filter(lambda each: each is not AnyType).map(optional)


def composed(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    """Types that are made of others."""
    return st.one_of(
        inner.map(ListType),
        _optional(inner),
        _optional(inner),
        inner.map(FutureType),
        inner.map(AwaitType),
        inner.map(RRefType),
        st.builds(DictType, KEYS, inner),
        tuples(inner),
    )


def _unions(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    return st.one_of(
        composed(inner),
        st.lists(
            inner.filter(lambda each: each is not AnyType), min_size=1, max_size=3
        ).map(union),
    )


# All types in their normal form, and those that name no union.
TYPES = st.recursive(LEAVES, _unions, max_leaves=5)
PLAIN_TYPES = st.recursive(LEAVES, composed, max_leaves=5)
VARIABLES = st.sampled_from((TypeVariable("t"), TypeVariable("t1")))
FORMALS = st.recursive(st.one_of(VARIABLES, VARIABLES, LEAVES), composed, max_leaves=4)
