"""A world in this process, for the tests of programs with remote calls."""

from collections.abc import Iterator

import pytest

from tests.rpc.script.fakes import World


@pytest.fixture
def fake() -> Iterator[World]:
    """What is called is noted, and run here."""
    with World().plugged() as made:
        yield made
