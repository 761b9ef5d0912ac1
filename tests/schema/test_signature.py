"""Names, alias annotations, defaults and arguments: parts, text, equality."""

import pickle

import pytest

from everyorder.runtime.errors.schema import SchemaError
from everyorder.runtime.schema.enums import Device
from everyorder.runtime.schema.signature import (
    NO_DEFAULT,
    AliasInfo,
    AliasKind,
    Argument,
    OperatorName,
    default_identity,
    default_text,
    normal_sets,
    parse_alias_kind,
    placed_alias,
    type_text,
)
from everyorder.runtime.schema.types import (
    IntType,
    ListType,
    OptionalType,
    ScalarTypeType,
    SymIntType,
    TensorType,
)
from tests.coded import code


@pytest.mark.parametrize(
    ("name", "text", "namespace", "base"),
    [
        (OperatorName("add"), "add", None, "add"),
        (OperatorName("aten::add"), "aten::add", "aten", "add"),
        (OperatorName("aten::add", "out"), "aten::add.out", "aten", "add"),
        (OperatorName("add", "out"), "add.out", None, "add"),
        (OperatorName(""), "", None, ""),
    ],
)
def test_parts(name: OperatorName, text: str, namespace: str | None, base: str) -> None:
    assert (str(name), name.namespace, name.base) == (text, namespace, base)


def test_with_namespace_sets_or_replaces() -> None:
    assert OperatorName("f", "o").with_namespace("a") == OperatorName("a::f", "o")
    assert OperatorName("b::f").with_namespace("a") == OperatorName("a::f")


def test_order_is_by_name_then_overload() -> None:
    names = [OperatorName("b"), OperatorName("a", "x"), OperatorName("a")]
    assert [str(name) for name in sorted(names)] == ["a", "a.x", "b"]


@pytest.mark.spec("script 6.5", "schemas")
@pytest.mark.parametrize(
    ("alias", "text"),
    [
        (AliasInfo(("a",), ("a",)), "(a)"),
        (AliasInfo(("a",), ("a",), True), "(a!)"),
        (AliasInfo(("a", "b"), ("*",), True), "(a|b! -> *)"),
        (AliasInfo(("$",), (), True), "!"),
        (AliasInfo(is_write=True, contained=(AliasInfo(("a",), ("a",)),)), ""),
    ],
)
def test_text_of_an_annotation(alias: AliasInfo, text: str) -> None:
    assert str(alias) == text


def test_sets_have_one_normal_form() -> None:
    assert normal_sets(("b", "a", "b")) == ("a", "b")
    assert normal_sets(("a", "*")) == ("*",)


def test_wildcard_after() -> None:
    assert AliasInfo(("a",), ("*",)).is_wildcard_after
    assert not AliasInfo(("*",), ("a",)).is_wildcard_after


def test_the_sets_of_a_value_and_of_its_elements() -> None:
    inner = AliasInfo(("b",), ("c",))
    alias = AliasInfo(("a", "$"), ("*",), contained=(inner,))
    assert alias.sets_before == {"a", "b"}
    assert alias.sets_after == {"*", "c"}
    assert AliasInfo(("$",), (), True).sets_before == frozenset()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", AliasKind.FROM_SCHEMA),
        ("FROM_SCHEMA", AliasKind.FROM_SCHEMA),
        ("CONSERVATIVE", AliasKind.CONSERVATIVE),
        ("PURE_FUNCTION", AliasKind.PURE_FUNCTION),
    ],
)
def test_kinds(text: str, kind: AliasKind) -> None:
    assert parse_alias_kind(text) is kind


def test_a_kind_prints_its_word() -> None:
    assert str(AliasKind.INTERNAL_SPECIAL_CASE) == "INTERNAL_SPECIAL_CASE"


def test_other_words_are_refused_also_the_internal_one() -> None:
    with pytest.raises(SchemaError, check=code("UnknownAliasKind")) as caught:
        parse_alias_kind("PURE_FUNCTIONS")
    assert str(caught.value) == (
        "'PURE_FUNCTIONS' is not an alias-analysis kind. Did you mean "
        "PURE_FUNCTION?\n"
        'Use one of CONSERVATIVE, FROM_SCHEMA, PURE_FUNCTION, or "" for FROM_SCHEMA.'
    )
    with pytest.raises(SchemaError, check=code("UnknownAliasKind")) as caught:
        parse_alias_kind("INTERNAL_SPECIAL_CASE")
    assert caught.value.found == "INTERNAL_SPECIAL_CASE"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (-7, "-7"),
        (1.0, "1."),
        (0.1, "0.10000000000000001"),
        (1e-5, "1.0000000000000001e-05"),
        (1e18, "1000000000000000000."),
        (123456789012345678.0, "123456789012345680."),
        (1e19, "1e+19"),
        (-1e20, "-1e+20"),
        (12345678901234.5, "12345678901234.5"),
        (0.00012345, "0.00012344999999999999"),
        (-0.0, "-0."),
        (float("nan"), "nan"),
        (1j, "0.+1.j"),
        (complex(1.5, -2), "1.5-2.j"),
        ("a\"b'\\\n\x01é", '"a\\"b\\\'\\\\\\n\\001é"'),
        ((1, 2.0), "[1, 2.]"),
        ((), "[]"),
        (Device("cuda", 1), "cuda:1"),
    ],
)
def test_text_of_a_default(value: object, text: str) -> None:
    assert default_text(value) == text


def test_identity_tells_kinds_apart_also_in_lists() -> None:
    ones = [1, 1.0, True, 1 + 0j, "1", (1,), (1.0,), None]
    assert len({default_identity(one) for one in ones}) == len(ones)
    assert default_identity((1, 2)) == default_identity((1, 2))
    assert default_identity(0.0) == default_identity(-0.0)


A = AliasInfo(("a",), ("a",), True)


def test_real_types_print_and_fake_types_compare() -> None:
    symbolic, plain = Argument("x", SymIntType), Argument("x", IntType)
    assert (str(symbolic), str(plain)) == ("SymInt x", "int x")
    assert symbolic == plain
    assert hash(symbolic) == hash(plain)
    assert Argument("x", ScalarTypeType).fake_type == IntType


def test_the_annotation_has_torch_s_name_too() -> None:
    assert Argument("x", TensorType, alias=A).alias_info is A
    given = Argument("n", IntType, default=3)
    assert (given.has_default_value(), given.default_value) == (True, 3)
    required = Argument("n", IntType)
    assert (required.has_default_value(), required.default_value) == (False, None)
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
