"""Alias annotations and kinds."""

import pytest

from runtime.errors.schema import SchemaError
from runtime.schema.signature import AliasInfo, AliasKind, normal_sets, parse_alias_kind
from tests.coded import code


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
def test_text(alias: AliasInfo, text: str) -> None:
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
        "'PURE_FUNCTIONS' is no alias-analysis kind. Did you mean PURE_FUNCTION?\n"
        'Use one of CONSERVATIVE, FROM_SCHEMA, PURE_FUNCTION, or "" for FROM_SCHEMA.'
    )
    with pytest.raises(SchemaError, check=code("UnknownAliasKind")) as caught:
        parse_alias_kind("INTERNAL_SPECIAL_CASE")
    assert caught.value.found == "INTERNAL_SPECIAL_CASE"
