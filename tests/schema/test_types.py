"""Types: text, normal forms, fake types, dispatch."""

import pytest

from runtime.schema import types as t
from runtime.schema.types import (
    AwaitType,
    BoolType,
    ClassType,
    ComplexType,
    DictType,
    FloatType,
    FutureType,
    IntType,
    ListType,
    NoneType_,
    NumberType,
    OptionalType,
    RRefType,
    StrType,
    TensorType,
    TupleType,
    Type,
    TypeVariable,
    UnionType,
    fake,
    is_dispatch_type,
    optional,
    union,
)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (ListType(IntType), "int[]"),
        (OptionalType(ListType(TensorType)), "Tensor[]?"),
        (TupleType((IntType, StrType)), "(int, str)"),
        (TupleType(()), "()"),
        (DictType(StrType, TypeVariable("t")), "Dict(str, t)"),
        (UnionType((FloatType, IntType)), "Union(float, int)"),
        (FutureType(IntType), "Future(int)"),
        (AwaitType(IntType), "Await(int)"),
        (RRefType(IntType), "RRef(int)"),
        (ClassType("a.B"), "__torch__.torch.classes.a.B"),
        (NumberType, "Scalar"),
        (NoneType_, "NoneType"),
    ],
)
def test_text(written: Type, text: str) -> None:
    assert str(written) == text


def test_bases_are_read_under_their_text_or_three_other_words() -> None:
    others = {w: str(b) for w, b in t.NAMED_BASES.items() if w != str(b)}
    assert others == {
        "ConstQuantizerPtr": "int",
        "DeviceIndex": "int",
        "None": "NoneType",
    }
    assert len(t.NAMED_BASES) == 26


def test_optional_collapses() -> None:
    assert optional(OptionalType(IntType)) == OptionalType(IntType)
    inner = UnionType((IntType, NoneType_, StrType))
    assert optional(inner) == OptionalType(UnionType((IntType, StrType)))


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ((IntType, FloatType), "Union(float, int)"),
        ((IntType, FloatType, IntType), "Union(float, int)"),
        ((IntType, NoneType_), "int?"),
        ((IntType, IntType), "int"),
        ((IntType, FloatType, ComplexType), "Scalar"),
        ((NumberType, IntType, StrType), "Union(Scalar, str)"),
        ((OptionalType(IntType), StrType), "Union(int, NoneType, str)"),
        (
            (OptionalType(UnionType((IntType, StrType))), TensorType),
            "Union(Tensor, int, NoneType, str)",
        ),
        ((UnionType((IntType, StrType)), TensorType), "Union(Tensor, int, str)"),
        ((t.LayoutType, ListType(IntType), ClassType("a.B")), None),
    ],
)
def test_union_has_one_normal_form(members: tuple[Type, ...], text: str | None) -> None:
    text = text or "Union(int[], __torch__.torch.classes.a.B, Layout)"
    assert str(union(members)) == text
    assert str(union(members[::-1])) == text


@pytest.mark.parametrize(
    ("real", "boxed"),
    [
        (t.SymIntType, IntType),
        (t.ScalarTypeType, IntType),
        (t.LayoutType, IntType),
        (t.MemoryFormatType, IntType),
        (OptionalType(ListType(t.SymIntType)), OptionalType(ListType(IntType))),
        (t.DeviceType, t.DeviceType),
        (t.SymBoolType, t.SymBoolType),
        (TupleType((t.SymIntType,)), TupleType((t.SymIntType,))),
        (BoolType, BoolType),
    ],
)
def test_fake(real: Type, boxed: Type) -> None:
    assert fake(real) == boxed


def test_the_type_of_an_optional_value_that_is_there() -> None:
    assert t.unwrap_optional(OptionalType(IntType)) == IntType
    assert t.unwrap_optional(ListType(IntType)) == ListType(IntType)


def test_only_four_types_dispatch() -> None:
    tensors = ListType(TensorType)
    maybe = OptionalType(TensorType)
    given = [TensorType, maybe, tensors, ListType(maybe)]
    assert list(map(is_dispatch_type, given)) == ["tensor", "tensor", "list", "list"]
    others = [OptionalType(tensors), TupleType((TensorType,)), t.AnyType]
    assert list(map(is_dispatch_type, [*others, t.GeneratorType])) == [None] * 4
