"""Between passes the checker runs, in all tests of the compiler."""

from collections.abc import Iterator

import pytest

from runtime.script.passes import check_passes


@pytest.fixture(autouse=True, scope="session")
def _passes_are_checked() -> Iterator[None]:
    before = check_passes(True)
    yield
    check_passes(before)
