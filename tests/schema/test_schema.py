"""Whole schemas: text, equality, copies, what follows from annotations."""

import pytest

from runtime.errors.call import CallError
from runtime.schema.parser import parse_schema
from runtime.schema.signature import AliasKind, OperatorName
from tests.coded import code


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ("f(Tensor x, *) -> ()", "f(Tensor x) -> ()"),
        ("f(*, int x, *, int y) -> ()", "f(*, int x, int y) -> ()"),
        ("f(int x, ...) -> (...)", "f(int x, ...) -> ..."),
        ("f(...) -> (int, ...)", "f(...) -> (int, ...)"),
        ("a::f.o(int x) -> (Tensor)", "a::f.o(int x) -> Tensor"),
        ("f() -> ((str, t)[])", "f() -> ((str, t)[])"),
        ("f() -> ((str, str) y)", "f() -> ((str, str) y)"),
        ("f() -> (int x, int y)", "f() -> (int x, int y)"),
        ("f() -> (int x)", "f() -> int x"),
    ],
)
def test_text(given: str, printed: str) -> None:
    assert str(parse_schema(given)) == printed


def test_equality() -> None:
    def same(left: str, right: str) -> bool:
        return parse_schema(left) == parse_schema(right)

    assert same("f(SymInt x) -> ()", "f(int x) -> ()")
    assert same("f(ScalarType[] x) -> ()", "f(int[] x) -> ()")
    assert not same("f(int[2] x) -> ()", "f(int[] x) -> ()")
    assert not same("f(Tensor(a) x) -> ()", "f(Tensor(b) x) -> ()")
    assert not same("f(int x) -> ()", "f(*, int x) -> ()")
    assert not same("f(int x) -> ()", "f.a(int x) -> ()")
    assert not same("f(SymBool x) -> ()", "f(bool x) -> ()")


def test_the_alias_kind_is_carried_but_not_compared_nor_copied() -> None:
    schema = parse_schema("f(Tensor x) -> Tensor")
    pure = schema.with_alias_kind(AliasKind.PURE_FUNCTION)
    assert pure.alias_kind is AliasKind.PURE_FUNCTION
    assert (pure, hash(pure), str(pure)) == (schema, hash(schema), str(schema))
    named = pure.clone_with_name(OperatorName("g", "o"))
    assert (str(named), named.alias_kind, named.overload) == (
        "g.o(Tensor x) -> Tensor",
        None,
        "o",
    )
    assert str(pure.clone_with_arguments(())) == "f() -> Tensor"
    assert pure.clone_with_arguments(()).alias_kind is None
    assert str(pure.clone_with_returns(())) == "f(Tensor x) -> ()"
    assert pure.clone_with_returns(()).alias_kind is None


def test_where_keyword_only_begins() -> None:
    assert parse_schema("f(int x, *, int y) -> ()").kwarg_only_start == 1
    assert parse_schema("f(int x, int y) -> ()").kwarg_only_start == 2
    assert parse_schema("f() -> ()").kwarg_only_start == 0


@pytest.mark.parametrize(
    ("text", "mutable", "view"),
    [
        ("f(Tensor x) -> Tensor", False, False),
        ("f(Tensor(a) x) -> Tensor(a)", False, True),
        ("f(Tensor(a!) x) -> Tensor(a!)", True, False),
        ("f(Tensor(a) x, Tensor(b!)[] y) -> Tensor(a)", True, False),
        ("f(Tensor! x) -> ()", True, False),
    ],
)
def test_mutable_and_view(text: str, mutable: bool, view: bool) -> None:
    schema = parse_schema(text)
    assert (schema.is_mutable, schema.is_view) == (mutable, view)


def test_binding_gives_what_kernels_see() -> None:
    schema = parse_schema(
        "t::f(Tensor? x, int[2] s=1, *, ScalarType d=float, str k='a') -> ()"
    )
    sizes = [1, 2]
    positional, named = schema.bind((None,), {"s": sizes, "d": 4})
    assert (positional, str(named)) == ([None, [1, 2]], "{'d': int64, 'k': 'a'}")
    assert positional[1] is not sizes
    assert schema.fill_defaults((None, sizes), {"d": 4}) == ((None, [1, 2]), named)
    assert schema.strip_defaults((None, 1), {"d": 6, "k": "b"}) == (
        (None,),
        {"k": "b"},
    )
    again, _ = schema.bind((None,), {})
    again[1].append(3)
    assert schema.bind((None,), {})[0] == [None, [1, 1]]


def test_binding_says_what_does_not_fit() -> None:
    schema = parse_schema("t::f(Tensor x, int a=1) -> ()")
    with pytest.raises(CallError, check=code("WrongArgumentType")) as caught:
        schema.bind((None, "b"), {})
    assert str(caught.value) == (
        "Argument 2 of `t::f`, `a`, takes `int`, but was given a str.\n"
        "  call:   t::f(None, 'b')\n"
        "  schema: t::f(Tensor x, int a=1) -> ()\n"
        "  value:  'b'"
    )
