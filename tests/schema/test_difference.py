"""The first difference between two signatures."""

import pytest

from runtime.schema.compatibility import Difference, difference
from runtime.schema.parser import parse_schema

BASE = "f(Tensor x, ScalarType y=1) -> Tensor"


@pytest.mark.parametrize(
    ("other", "found", "text"),
    [
        (
            "f(Tensor x) -> int",
            Difference("argument", None, "2", "1"),
            "the numbers of arguments differ: 2 and 1",
        ),
        (
            "f(int x, int y) -> (int, int)",
            Difference("result", None, "1", "2"),
            "the numbers of results differ: 1 and 2",
        ),
        (
            "f(int x, str y) -> int",
            Difference("argument", 1, "Tensor", "int"),
            "argument 1 differs in type: Tensor and int",
        ),
        (
            "f(Tensor x, str y) -> int",
            Difference("argument", 2, "int", "str"),
            "argument 2 differs in type: int and str",
        ),
        (
            "f(Tensor x, int y) -> int",
            Difference("result", 1, "Tensor", "int"),
            "result 1 differs in type: Tensor and int",
        ),
    ],
)
def test_first_difference(other: str, found: Difference, text: str) -> None:
    assert difference(parse_schema(BASE), parse_schema(other)) == found
    assert str(found) == text


def test_names_defaults_sizes_and_annotations_do_not_count() -> None:
    other = "g.o(Tensor(a!) b, *, int c) -> Tensor(a!) d"
    assert difference(parse_schema(BASE), parse_schema(other)) is None
    left, right = parse_schema("f(int[2] x) -> ()"), parse_schema("f(int[] x) -> ()")
    assert difference(left, right) is None


def test_real_types_tell_codes_apart_but_not_symbolic_integers() -> None:
    other = parse_schema("f(Tensor x, int y) -> Tensor")
    found = difference(parse_schema(BASE), other, real=True)
    assert found == Difference("argument", 2, "ScalarType", "int")
    left = parse_schema("f(SymInt x, SymInt[]? y) -> ()")
    right = parse_schema("f(int x, int[]? y) -> ()")
    assert difference(left, right, real=True) is None
