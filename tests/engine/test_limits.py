"""Questions that are too large are refused or cut short at once, never a hang."""

import pytest

from harness.engine import Budget, explore
from harness.errors import BadStrategy
from tests.coded import code
from tests.engine.toys import Toy


def test_full_starts_at_once_whatever_its_size() -> None:
    found = explore(Toy(13), "full", budget=Budget(steps=100))
    assert (found.complete, found.executed.transitions) == (False, 100)


def test_rows_that_cannot_be_made_are_refused() -> None:
    with pytest.raises(BadStrategy, check=code("TooLarge")) as caught:
        explore(Toy(30), "sca:5")
    assert caught.value.size == 17_100_720


def test_auto_with_seconds_alone_still_looks_at_the_size() -> None:
    found = explore(Toy(60), "auto", budget=Budget(seconds=60))
    assert (found.strategy, found.complete) == (
        "stale+histories:2+sca:2+random:100",
        True,
    )
