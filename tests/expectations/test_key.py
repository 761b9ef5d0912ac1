"""Keys are named as people count, and read back."""

import pytest

from harness.expectations import Key, key_of

KEYS = [
    (Key(()), False, "{}"),
    (Key((0, 2)), False, "{1 3}"),
    (Key((0,), 1), False, "{1} + 2 fails"),
    # The undo of an active step was refused.
    (Key((0, 2), 2), False, "{1 3} + 3 fails"),
    (Key((2, 0), 2), True, "3 then 1 + 3 fails"),
    (Key(()), True, "{}"),
    (Key((), 4), True, "{} + 5 fails"),
    (Key((2,)), True, "{3}"),
    (Key((2, 0)), True, "3 then 1"),
    (Key((2, 0), 1), True, "3 then 1 + 2 fails"),
]


@pytest.mark.parametrize(("key", "ordered", "text"), KEYS)
def test_text(key: Key, ordered: bool, text: str) -> None:
    assert key.text(ordered=ordered) == text
    assert key_of(text, ordered=ordered) == key


@pytest.mark.parametrize(
    ("text", "ordered"),
    [
        ("", False),
        ("{3 1}", False),
        ("{1 1}", False),
        ("{01}", False),
        ("{1  3}", False),
        ("{1} + 02 fails", False),
        ("{1} fails", False),
        ("1 then 3", False),
        ("{1 3}", True),
        ("3", True),
        ("1 then 1", True),
        ("{" + "9" * 5000 + "}", False),
        ("{\u0661}", False),
    ],
)
def test_no_key_is_written_so(text: str, ordered: bool) -> None:
    assert key_of(text, ordered=ordered) is None


def test_order() -> None:
    keys = [Key((0, 1)), Key((1,)), Key((0,), 1), Key(()), Key((0,)), Key((), 0)]
    names = [k.text(ordered=False) for k in sorted(keys, key=lambda key: key.rank)]
    assert names == ["{}", "{} + 1 fails", "{1}", "{1} + 2 fails", "{2}", "{1 2}"]


def test_corners() -> None:
    states = [(), (3,), (1, 2), (0, 1, 2), (0, 1, 2, 3), (3, 2, 1, 0)]
    corners = [state for state in states if Key(state).is_corner(4)]
    assert corners == [(), (3,), (1, 2), (0, 1, 2, 3)]
