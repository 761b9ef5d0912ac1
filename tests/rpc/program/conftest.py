"""Worlds for the tests of programs with remote calls: a fake one, and real ones."""

from collections.abc import Iterator

import pytest

from tests.rpc.program.fakes import World
from tests.rpc.surface import world as processes
from tests.rpc.surface.bodies import NAMES


@pytest.fixture
def fake() -> Iterator[World]:
    """What is called is noted, and run here."""
    with World().plugged() as made:
        yield made


@pytest.fixture(scope="session", params=["fork", "spawn"])
def world(request: pytest.FixtureRequest) -> Iterator[processes.World]:
    """Three workers, for all tests of a session."""
    with processes.World(request.param, NAMES) as made:
        yield made
