"""The one normal form of unions and optionals."""

import itertools

import pytest

from runtime.schema import types as t
from runtime.schema.subtyping import optional, union
from runtime.schema.types import (
    AnyType,
    BoolType,
    ClassType,
    ComplexType,
    FloatType,
    IntType,
    ListType,
    NoneType_,
    NumberType,
    OptionalType,
    StrType,
    TensorType,
    TupleType,
    Type,
    TypeVariable,
    UnionType,
)


@pytest.mark.parametrize(
    ("element", "text"),
    [
        (IntType, "int?"),
        (OptionalType(IntType), "int?"),
        (NoneType_, "NoneType"),
        (AnyType, "Any?"),
        (UnionType((IntType, NoneType_, StrType)), "Union(int, str)?"),
        (UnionType((NoneType_, IntType)), "int?"),
        (UnionType((IntType, StrType)), "Union(int, str)?"),
        (ListType(OptionalType(IntType)), "int?[]?"),
    ],
)
def test_an_optional_is_outermost_and_said_once(element: Type, text: str) -> None:
    assert str(optional(element)) == text
    assert optional(optional(element)) is optional(element)
    assert union((element, NoneType_)) is optional(element)


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ((IntType, FloatType), "Union(float, int)"),
        ((IntType, FloatType, IntType), "Union(float, int)"),
        ((IntType, NoneType_), "int?"),
        ((NoneType_, NoneType_), "NoneType"),
        ((IntType, IntType), "int"),
        ((IntType, FloatType, ComplexType), "Scalar"),
        ((IntType, FloatType, ComplexType, NoneType_), "Scalar?"),
        ((NumberType, IntType, StrType), "Union(Scalar, str)"),
        ((NumberType, IntType, BoolType), "Union(Scalar, bool)"),
        ((OptionalType(IntType), StrType), "Union(int, str)?"),
        (
            (OptionalType(UnionType((IntType, StrType))), TensorType),
            "Union(Tensor, int, str)?",
        ),
        ((UnionType((IntType, StrType)), TensorType), "Union(Tensor, int, str)"),
        (
            (t.LayoutType, ListType(IntType), ClassType("a.B")),
            "Union(int[], __torch__.torch.classes.a.B, Layout)",
        ),
        ((TypeVariable("t"), IntType), "Union(int, t)"),
        ((AnyType, IntType, StrType), "Any"),
        ((AnyType, OptionalType(IntType)), "Any?"),
        ((TupleType((IntType,)), TupleType((NumberType,))), "(Scalar)"),
        ((ListType(IntType), ListType(NumberType)), "Union(Scalar[], int[])"),
        ((t.SymIntType, IntType, StrType), "Union(int, str)"),
    ],
)
def test_a_union_has_one_normal_form(members: tuple[Type, ...], text: str) -> None:
    for order in itertools.permutations(members):
        assert str(union(order)) == text
        assert union(order) is union((union(order),)) is union(members)
