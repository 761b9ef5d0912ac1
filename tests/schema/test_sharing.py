"""What may share memory; the tables were compared with torch 2.13 by hand."""

import pytest

from runtime.schema.parser import parse_schema

# Every row is an argument, every column a result.
SCHEMA = parse_schema(
    "f(Tensor(a) x, Tensor[] y, Tensor(*) z, Tensor(b)[] w, Union(Tensor, int)(c) u,"
    " (Tensor, int) t) -> (Tensor(a), Tensor[], Tensor(*)[], Tensor[](*), Tensor(b),"
    " (Tensor, int))"
)
MAY_ALIAS = ["X.....", "......", "......", "......", "......", "......"]
MAY_CONTAIN = ["X.....", ".XXX.X", ".XXX.X", ".XXX.X", "......", ".XXX.X"]


def test_may_alias() -> None:
    assert [
        "".join("X" if SCHEMA.may_alias(i, j) else "." for j in range(6))
        for i in range(6)
    ] == MAY_ALIAS


def test_may_contain_alias() -> None:
    assert [
        "".join("X" if SCHEMA.may_contain_alias(i, j) else "." for j in range(6))
        for i in range(6)
    ] == MAY_CONTAIN


@pytest.mark.parametrize(
    ("text", "alias", "contain"),
    [
        ("f(Tensor(a)? x) -> Tensor(a)", True, True),
        ("f(Any(a) x) -> Any(a)", True, True),
        ("f(int(a) x) -> int(a)", False, False),
        ("f(Tensor(a)[](b) x) -> Tensor[](b)", True, True),
        ("f(Tensor[] x) -> Tensor(*)", False, True),
        ("f(Dict(str, Tensor) x) -> Tensor(*)", False, True),
        ("f(Dict(str, Tensor)(a) x) -> Dict(str, Tensor)(a)", True, True),
        ("f(Future(Tensor) x) -> Tensor(*)", False, True),
        ("f(Future(int) x) -> Tensor(*)", False, False),
        ("f((int, int) x) -> ((Tensor, Tensor))", False, False),
        ("f(Tensor[][] x) -> Tensor(*)", False, True),
        ("f(Tensor(a -> b) x) -> Tensor(a)", False, False),
    ],
)
def test_pairs(text: str, alias: bool, contain: bool) -> None:
    schema = parse_schema(text)
    assert schema.may_alias(0, 0) is alias
    assert schema.may_contain_alias(0, 0) is contain


def test_there_must_be_such_an_argument() -> None:
    with pytest.raises(IndexError):
        SCHEMA.may_alias(6, 0)
