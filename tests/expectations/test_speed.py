"""Many entries take seconds; `tests/bench/expectations.py` has the rows."""

from pathlib import Path

import pytest

from tests.bench.expectations import CHECKED, FILES, UPDATED, measured
from tests.bench.row import slowness

# The machines of continuous integration are busy, and their disks are slow.
GENEROUS = 6


@pytest.mark.parametrize("kind", ["one file", f"{FILES} files"])
def test_ten_thousand_entries(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    checked, updated = measured(tmp_path, kind)
    slow = max(1.0, slowness()) * GENEROUS
    assert checked <= CHECKED * slow
    assert updated <= UPDATED * slow
