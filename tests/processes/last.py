"""Tests that load the runtime, or torch, into their own process come last.

True only here: an exploration looks through all that its process has loaded, so what
one test loads is paid for by every test that explores after it, in the same worker.
A `conftest.py` imports both names; a test says that it loads something large by
`@pytest.mark.usefixtures("last")`.
"""

import pytest


@pytest.fixture
def last() -> None:
    """What this test loads stays: it runs after all that load nothing."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move them to the end; all others keep their order."""
    items.sort(key=lambda item: "last" in getattr(item, "fixturenames", ()))
