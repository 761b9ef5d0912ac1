"""The first difference between two signatures, and what callers survive.

The verdicts about callers were compared with torch 2.13 over all pairs of 41 schemas by
hand: the backward ones agree; the forward ones differ where upstream looks neither at
results nor at removed arguments.
"""

import pytest

from everyorder.runtime.schema.compatibility import (
    Incompatibility,
    SchemaDifference,
    backward_incompatibilities,
    difference,
    forward_incompatibilities,
)
from everyorder.runtime.schema.parser import parse_schema

BASE = "f(Tensor x, int y=1) -> Tensor"
OUT = "f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)"


@pytest.mark.parametrize(
    ("old", "new", "backward", "forward"),
    [
        (BASE, BASE, [], []),
        (BASE, "g(Tensor x, int y=1) -> Tensor", ["name"], ["name"]),
        (BASE, "f(Tensor x, int y=1) -> ()", ["returns"], ["returns"]),
        ("f(int x) -> ()", "f(int x, ...) -> ()", ["varargs"], ["varargs"]),
        (BASE, "f(Tensor x) -> Tensor", ["arguments"], []),
        ("f(int x) -> ()", "f() -> ()", ["arguments"], ["removed without default"]),
        (
            BASE,
            "f(Tensor x, int y) -> Tensor",
            ["default changed"],
            ["default changed"],
        ),
        ("f(int x) -> ()", "f(int x=1) -> ()", [], ["default added"]),
        (BASE, "f(Tensor x, Scalar y=1) -> Tensor", [], ["argument type"]),
        ("f(Scalar x) -> ()", "f(int x) -> ()", ["argument type"], []),
        (BASE, "f(Tensor x, int y=1) -> Tensor?", ["return type"], []),
        ("f() -> Tensor?", "f() -> Tensor", [], ["return type"]),
        (
            BASE,
            "f(Tensor x, *, int y=1) -> Tensor",
            ["keyword-only"],
            ["keyword-only"],
        ),
        (
            BASE,
            "f(Tensor z, int y=1) -> Tensor",
            ["argument name"],
            ["argument name"],
        ),
        (
            "f(int[2] x) -> ()",
            "f(int[] x) -> ()",
            ["argument size"],
            ["argument size"],
        ),
        (
            "f(Tensor x) -> Tensor",
            "f(Tensor(a) x) -> Tensor(a)",
            ["alias annotation", "alias annotation"],
            ["alias annotation", "alias annotation"],
        ),
        (
            "f(int x) -> ()",
            "f(int x, int y) -> ()",
            ["new without default"],
            ["new without default"],
        ),
        (
            "f(int x) -> ()",
            "f(int x, int[] y=[]) -> ()",
            [],
            ["new with list default"],
        ),
        (OUT, "f(Tensor x, *, int y=1, Tensor(a!) out) -> Tensor(a!)", [], []),
        (
            OUT,
            "f(Tensor x, *, Tensor(a!) out, Tensor(b!) out2) -> Tensor(a!)",
            [],
            ["out arguments"],
        ),
        (
            "f(*, Tensor(a!) out) -> ()",
            "f(int x=1) -> ()",
            ["out arguments"],
            ["out arguments"],
        ),
    ],
)
def test_reasons(old: str, new: str, backward: list[str], forward: list[str]) -> None:
    before, after = parse_schema(old), parse_schema(new)
    assert [i.reason for i in backward_incompatibilities(before, after)] == backward
    assert [i.reason for i in forward_incompatibilities(before, after)] == forward


def test_a_reason_shows_both_sides() -> None:
    before, after = parse_schema("f(int x) -> ()"), parse_schema("f(str x) -> ()")
    found = backward_incompatibilities(before, after)
    assert found == (Incompatibility("argument type", "int x", "str x"),)
    assert str(found[0]) == "argument type: int x became str x"


def test_counts_are_shown() -> None:
    before, after = parse_schema(OUT), parse_schema("f(Tensor x) -> Tensor(a!)")
    assert forward_incompatibilities(before, after) == (
        Incompatibility("out arguments", "1", "0"),
    )
    assert backward_incompatibilities(before, after) == (
        Incompatibility("arguments", "2", "1"),
    )


KERNEL = "f(Tensor x, ScalarType y=1) -> Tensor"


@pytest.mark.parametrize(
    ("other", "found", "text"),
    [
        (
            "f(Tensor x) -> int",
            SchemaDifference("argument", None, "2", "1"),
            "the numbers of arguments differ: 2 and 1",
        ),
        (
            "f(int x, int y) -> (int, int)",
            SchemaDifference("result", None, "1", "2"),
            "the numbers of results differ: 1 and 2",
        ),
        (
            "f(int x, str y) -> int",
            SchemaDifference("argument", 1, "Tensor", "int"),
            "argument 1 differs in type: Tensor and int",
        ),
        (
            "f(Tensor x, str y) -> int",
            SchemaDifference("argument", 2, "int", "str"),
            "argument 2 differs in type: int and str",
        ),
        (
            "f(Tensor x, int y) -> int",
            SchemaDifference("result", 1, "Tensor", "int"),
            "result 1 differs in type: Tensor and int",
        ),
    ],
)
def test_first_difference(other: str, found: SchemaDifference, text: str) -> None:
    assert difference(parse_schema(KERNEL), parse_schema(other)) == found
    assert str(found) == text


def test_names_defaults_sizes_and_annotations_do_not_count() -> None:
    other = "g.o(Tensor(a!) b, *, int c) -> Tensor(a!) d"
    assert difference(parse_schema(KERNEL), parse_schema(other)) is None
    left, right = parse_schema("f(int[2] x) -> ()"), parse_schema("f(int[] x) -> ()")
    assert difference(left, right) is None


def test_real_types_tell_codes_apart_but_not_symbolic_integers() -> None:
    other = parse_schema("f(Tensor x, int y) -> Tensor")
    found = difference(parse_schema(KERNEL), other, real=True)
    assert found == SchemaDifference("argument", 2, "ScalarType", "int")
    left = parse_schema("f(SymInt x, SymInt[]? y) -> ()")
    right = parse_schema("f(int x, int[]? y) -> ()")
    assert difference(left, right, real=True) is None
