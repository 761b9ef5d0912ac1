"""The worlds in which the bodies of tests run: one forked, one spawned."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from runtime import rpc
from tests.rpc.surface.bodies import NAMES
from tests.rpc.worlds import Process


@pytest.fixture(scope="session", params=["fork", "spawn"])
def world(request: pytest.FixtureRequest) -> Iterator[Process]:
    """The first of three workers, all of them processes, for all tests of a session."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="rpc"))
        workers = []
        for rank, name in enumerate(NAMES):
            worker = Process(
                request.param,
                name,
                rank=rank,
                world_size=len(NAMES),
                init_method=f"ipc://{folder}/w",
            )
            stack.callback(worker.close)
            workers.append(worker)
        for worker in workers:
            worker.answer()
        yield workers[0]
        for worker in workers:
            worker.ask(rpc.shutdown)
        for worker in workers:
            worker.answer()
