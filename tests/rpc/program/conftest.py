"""Worlds for the tests of programs with remote calls: a fake one, and real ones."""

from collections.abc import Iterator

import pytest

from tests.rpc.program.fakes import World
from tests.rpc.surface.bodies import workers
from tests.rpc.worlds import Process


@pytest.fixture
def fake() -> Iterator[World]:
    """What is called is noted, and run here."""
    with World().plugged() as made:
        yield made


@pytest.fixture(scope="session", params=["fork", "spawn"])
def world(request: pytest.FixtureRequest) -> Iterator[Process]:
    """Three workers, for all tests of a session."""
    with workers(request.param) as first:
        yield first
