"""What a diff replaces, whatever the lines around it."""

import pytest

from everyorder.harness.expectations import edits_of


@pytest.mark.parametrize(
    ("lines", "edits"),
    [
        ([], ()),
        ([" a", "-b, c", "+b; c", " d"], ((",", ";"),)),
        (["-x, y, z", "+x; y; z", "@@", "-a, b", "+a; b"], ((",", ";"),)),
        (["-one two", "+one 2"], (("two", "2"),)),
        (["-a", "-b", "+a", "+c"], (("b", "c"),)),
        (["+new line"], (("", "new line"),)),
        (["-old line"], (("old line", ""),)),
        (["-a", "+b", "-c", "+d"], (("a", "b"), ("c", "d"))),
    ],
)
def test_edits(lines: list[str], edits: tuple[tuple[str, str], ...]) -> None:
    assert edits_of(lines) == edits


def test_many_edits_are_not_summed_up() -> None:
    few = [line for i in range(4) for line in (f"-{i}", f"+{i}x", " ")]
    assert len(edits_of(few)) == 4
    assert edits_of([*few, "-y", "+z"]) == ()


def test_long_texts_are_not_compared_by_token() -> None:
    assert edits_of([f"-{'a ' * 4000}", "+b"]) == ()
