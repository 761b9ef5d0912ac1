"""Operators with faults, for one test each."""

from collections.abc import Iterator

import pytest

from tests.custom.opcheck.planted import Planted


@pytest.fixture
def define() -> Iterator[Planted]:
    """What defines operators of namespace `check`, taken down after the test."""
    made = Planted()
    with made.library:
        yield made
