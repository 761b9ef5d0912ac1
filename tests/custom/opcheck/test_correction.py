"""The schema line that would be true."""

import pytest

from runtime import parse_schema
from runtime.custom.opcheck.schema import Seen, corrected, may_share


@pytest.mark.parametrize(
    ("line", "seen", "right"),
    [
        ("Tensor x) -> ()", Seen(written={0}), "Tensor(a!) x) -> ()"),
        ("Tensor(a) x) -> Tensor(a)", Seen(written={0}),
         "Tensor(a!) x) -> Tensor(a)"),
        ("Tensor(b) x, Tensor y) -> Tensor(b)", Seen(written={1}),
         "Tensor(b) x, Tensor(a!) y) -> Tensor(b)"),
        ("Tensor[]? xs) -> ()", Seen(written={0}), "Tensor(a!)[]? xs) -> ()"),
        ("Tensor x) -> Tensor", Seen(shares={0: {0}}), "Tensor(a) x) -> Tensor(a)"),
        ("Tensor x) -> Tensor", Seen(written={0}, shares={0: {0}}),
         "Tensor(a!) x) -> Tensor(a!)"),
        ("Tensor(a!) x) -> Tensor", Seen(shares={0: {0}}),
         "Tensor(a!) x) -> Tensor(a!)"),
        ("Tensor x, Tensor y) -> Tensor[]", Seen(shares={0: {0, 1}}),
         "Tensor(a) x, Tensor(b) y) -> Tensor(a|b)[]"),
        ("Tensor! x) -> Tensor", Seen(shares={0: {0}}),
         "Tensor(a!) x) -> Tensor(a!)"),
        ("Tensor(a) x, Tensor y) -> Tensor(a)", Seen(shares={0: {1}}),
         "Tensor x, Tensor(b) y) -> Tensor(b)"),
        ("Tensor(a) x) -> (Tensor(a), Tensor)", Seen(pairs={(0, 1)}),
         "Tensor(a) x) -> (Tensor(a|b), Tensor(b))"),
        ("Tensor x) -> Tensor[]", Seen(pairs={(0, 0)}), "Tensor x) -> Tensor(a)[]"),
        ("Tensor(a) x, Tensor(a) y) -> (Tensor(a), Tensor(a))", Seen(alone={1}),
         "Tensor(a) x, Tensor(a) y) -> (Tensor(a), Tensor)"),
        ("Tensor(a!) x) -> Tensor(a!)", Seen(alone={0}), "Tensor(a!) x) -> Tensor"),
        ("Tensor x, ...) -> Tensor", Seen(written={3}, shares={0: {4}}), None),
    ],
)  # fmt: skip
def test_corrections(line: str, seen: Seen, right: str | None) -> None:
    found = corrected(parse_schema(f"ns::f({line}"), seen)
    assert found == ("" if right is None else f"ns::f({right}")
    if right:
        assert str(parse_schema(found)) == found


def test_letters_do_not_run_out() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    taken = ", ".join(f"Tensor({letter}) {letter}" for letter in letters)
    found = corrected(parse_schema(f"ns::f({taken}, Tensor z2) -> ()"), Seen({26}))
    assert found.endswith("Tensor(a0!) z2) -> ()")


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("Tensor(a) x) -> Tensor(a)", True),
        ("Tensor(a) x) -> Tensor(a)[]", True),
        ("Tensor(a -> *) x) -> Tensor(b)[]", True),
        ("Tensor x) -> Tensor(*)", True),
        ("Tensor(a -> b) x) -> Tensor(a)", False),
        ("Tensor(a) x) -> Tensor(b)", False),
        ("Tensor! x) -> Tensor", False),
        ("Tensor x) -> Tensor", False),
    ],
)
def test_what_may_share_memory(line: str, allowed: bool) -> None:
    schema = parse_schema(f"ns::f({line}")
    assert may_share(schema.arguments[0], schema.returns[0]) is allowed
