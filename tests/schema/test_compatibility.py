"""What callers survive.

The verdicts were compared with torch 2.13 over all pairs of 41 schemas by hand: the
backward ones agree; the forward ones differ where upstream looks neither at results
nor at removed arguments.
"""

import pytest

from runtime.schema.compatibility import (
    Incompatibility,
    backward_incompatibilities,
    forward_incompatibilities,
)
from runtime.schema.parser import parse_schema

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
