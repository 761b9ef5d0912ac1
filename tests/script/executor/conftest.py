"""Every test of how programs run is one of both executors."""

from collections.abc import Iterator
from typing import Any

import pytest

from everyorder.runtime.script.executor import executor

# Registers for ever, text from the first run on; the graph as it is, and optimized.
EXECUTORS: dict[str, dict[str, Any]] = {
    "registers": {"text_after": None, "optimize": False, "fuse": False},
    "text": {"text_after": 0, "optimize": False, "fuse": False},
    "optimized": {"text_after": 0, "optimize": True, "fuse": False},
}


@pytest.fixture(params=EXECUTORS)
def executed(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test with one executor."""
    with executor(**EXECUTORS[request.param]):
        yield request.param
