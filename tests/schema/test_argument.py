"""Arguments: equality by boxed form, text."""

import pickle

from runtime.schema.signature import (
    NO_DEFAULT,
    AliasInfo,
    Argument,
    placed_alias,
    type_text,
)
from runtime.schema.types import (
    IntType,
    ListType,
    OptionalType,
    ScalarTypeType,
    SymIntType,
    TensorType,
)

A = AliasInfo(("a",), ("a",), True)


def test_real_types_print_and_fake_types_compare() -> None:
    symbolic, plain = Argument("x", SymIntType), Argument("x", IntType)
    assert (str(symbolic), str(plain)) == ("SymInt x", "int x")
    assert symbolic == plain
    assert hash(symbolic) == hash(plain)
    assert Argument("x", ScalarTypeType).fake_type == IntType


def test_the_annotation_has_torch_s_name_too() -> None:
    assert Argument("x", TensorType, alias=A).alias_info is A
    assert Argument("x", TensorType).alias_info is None


def test_everything_else_counts() -> None:
    base = Argument("x", IntType)
    others = [
        Argument("y", IntType),
        Argument("x", ListType(IntType)),
        Argument("x", IntType, size=2),
        Argument("x", IntType, default=1),
        Argument("x", IntType, default=1.0),
        Argument("x", IntType, default=True),
        Argument("x", IntType, default=None),
        Argument("x", IntType, kwarg_only=True),
        Argument("x", IntType, alias=A),
    ]
    assert len({base, *others}) == 10
    assert base != "int x"


def test_what_follows_from_the_fields() -> None:
    out = Argument("out", TensorType, kwarg_only=True, alias=A)
    assert (out.has_default, out.is_write, out.is_out) == (False, True, True)
    given = Argument("x", TensorType, default=None, alias=A)
    assert (given.has_default, given.is_write, given.is_out) == (True, True, False)
    assert not Argument("x", TensorType, kwarg_only=True).is_out


def test_the_sets_of_an_argument() -> None:
    moved = Argument("x", TensorType, alias=AliasInfo(("a",), ("b",)))
    assert [*moved.sets_before, *moved.sets_after] == ["a", "b"]
    bare = Argument("x", TensorType)
    assert bare.sets_before == bare.sets_after == frozenset()


def test_elements_of_a_list_carry_its_annotation() -> None:
    written = AliasInfo(("a",), ("a",), True)
    assert placed_alias(OptionalType(TensorType), written) == written
    listed = placed_alias(OptionalType(ListType(TensorType)), written)
    assert listed == AliasInfo(is_write=True, contained=(written,))
    assert str(Argument("x", ListType(TensorType), alias=listed)) == "Tensor(a!)[] x"


def test_no_default_survives_pickling() -> None:
    copy = pickle.loads(pickle.dumps(Argument("x", IntType)))
    assert copy.default is NO_DEFAULT
    assert repr(copy.default) == "NO_DEFAULT"


def test_a_repeated_default_prints_once_where_it_reads_back() -> None:
    ints = ListType(IntType)
    assert str(Argument("x", ints, 2, (1, 1))) == "int[2] x=1"
    assert str(Argument("x", ints, 3, (1, 1))) == "int[3] x=[1, 1]"
    assert str(Argument("x", ints, None, (1, 1))) == "int[] x=[1, 1]"
    assert str(Argument("x", ints, 1, (1,))) == "int[1] x=[1]"
    assert str(Argument("x", ints, 2, (1, 2))) == "int[2] x=[1, 2]"
    assert str(Argument("x", ListType(SymIntType), 2, (0, 0))) == "SymInt[2] x=[0, 0]"


def test_annotations_stand_where_they_are_read() -> None:
    inner = AliasInfo(is_write=True, contained=(A,))
    assert type_text(OptionalType(TensorType), A) == "Tensor(a!)?"
    assert type_text(ListType(OptionalType(TensorType)), inner) == "Tensor(a!)?[]"
    assert type_text(OptionalType(ListType(TensorType)), A, 2) == "Tensor[2](a!)?"
    assert str(Argument("", TensorType)) == "Tensor"
