"""The worlds in which the bodies of tests run: one forked, one spawned."""

from collections.abc import Iterator

import pytest

from tests.rpc.surface.bodies import NAMES
from tests.rpc.surface.world import World


@pytest.fixture(scope="session", params=["fork", "spawn"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """Three workers, for all tests of a session."""
    with World(request.param, NAMES) as made:
        yield made
