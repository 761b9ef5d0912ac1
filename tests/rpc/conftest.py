"""The worlds in which the bodies of tests run: one forked, one spawned."""

from collections.abc import Iterator

import pytest

from tests.rpc.api.bodies import workers
from tests.rpc.worlds import Process


@pytest.fixture(scope="session", params=["fork", "spawn"])
def world(request: pytest.FixtureRequest) -> Iterator[Process]:
    """The first of three workers, for all tests of a session."""
    with workers(request.param) as first:
        yield first
