"""When two results are one, and errors on one line."""

from typing import Any

import pytest

from runtime.custom.opcheck.sample import equal, told

NAN = float("nan")


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (1, 1, True),
        (1, True, False),
        (1, 1.0, False),
        (NAN, NAN, True),
        (NAN, 1.0, False),
        ("a", "b", False),
        (object(), object(), True),
        (object(), [], False),
        (None, None, True),
    ],
)
def test_equal(one: Any, other: Any, found: bool) -> None:
    assert equal(one, other) is found


def test_an_error_up_to_its_first_empty_line() -> None:
    assert told(ValueError("one\n  two\n\nthree")) == "one two"
