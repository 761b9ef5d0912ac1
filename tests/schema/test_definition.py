"""What a schema must satisfy before it defines an operator."""

import pytest

from runtime.errors.schema import SchemaError
from runtime.schema.parser import parse_schema
from runtime.schema.schema import Schema, check_definition
from runtime.schema.signature import AliasKind, Argument, OperatorName
from runtime.schema.types import IntType
from tests.coded import code


def _wide(count: int) -> Schema:
    return parse_schema(f"a::f({', '.join(f'int x{i}' for i in range(count))}) -> ()")


def test_at_most_64_arguments() -> None:
    check_definition(_wide(64))
    with pytest.raises(SchemaError, check=code("TooManySchemaArguments")) as caught:
        check_definition(_wide(65))
    assert str(caught.value) == (
        "a::f would have 65 arguments; an operator has at most 64.\n"
        "Pass several values in one list."
    )
    assert isinstance(caught.value, SchemaError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("arguments", "is_vararg", "fault"),
    [
        (("x", "x"), False, "has the name of another argument"),
        (("*x", "y"), False, "is positional, but follows a keyword-only argument"),
        (("x=", "y"), False, "has no default, but follows one that has"),
        (("x", "y="), True, "has a default, but `...` allows none"),
    ],
)
def test_order(arguments: tuple[str, ...], is_vararg: bool, fault: str) -> None:
    made = tuple(
        Argument(text.strip("*="), IntType, default=1, kwarg_only="*" in text)
        if "=" in text
        else Argument(text.strip("*="), IntType, kwarg_only="*" in text)
        for text in arguments
    )
    with pytest.raises(SchemaError, check=code("ArgumentOrder")) as caught:
        check_definition(Schema(OperatorName("f"), made, (), is_vararg))
    assert caught.value.fault == fault
    assert caught.value.argument == made[1].name


def test_order_text() -> None:
    twice = (Argument("x", IntType), Argument("x", IntType))
    with pytest.raises(SchemaError, check=code("ArgumentOrder")) as caught:
        check_definition(Schema(OperatorName("f"), twice, ()))
    assert str(caught.value) == (
        "The argument `x` has the name of another argument.\n    f(int x, int x) -> ()"
    )


@pytest.mark.parametrize(
    ("text", "annotated"),
    [
        ("f(Tensor(a!) x) -> Tensor", "Tensor(a!) x"),
        ("f(Tensor x) -> Tensor(a)", "Tensor(a)"),
    ],
)
def test_a_pure_function_is_not_annotated(text: str, annotated: str) -> None:
    check_definition(parse_schema(text).with_alias_kind(AliasKind.FROM_SCHEMA))
    with pytest.raises(SchemaError, check=code("ImpureFunction")) as caught:
        check_definition(parse_schema(text).with_alias_kind(AliasKind.PURE_FUNCTION))
    assert str(caught.value) == (
        f"A PURE_FUNCTION shares no memory, but `{annotated}` is annotated.\n"
        f"    {text}\n"
        "Drop the annotation, or define the operator as FROM_SCHEMA."
    )
    plain = parse_schema("f(Tensor x) -> Tensor")
    check_definition(plain.with_alias_kind(AliasKind.PURE_FUNCTION))


def test_tags_are_checked() -> None:
    with pytest.raises(SchemaError, check=code("TagMismatch")):
        check_definition(parse_schema("f() -> ()"), ("out",))
