"""The benchmark of CUDA kernels runs, and says what it measured."""

import pytest

from everyorder.runtime.kernels.cuda import Event
from tests.cuda import bench


def test_a_small_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "ROW", 4)
    # The simulator's events tell no time.
    monkeypatch.setattr(Event, "elapsed", lambda start, end: 0.5)
    rows = bench.measured((16,), 1)
    names = [row.name for row in rows]
    assert names[:4] == ["copy", "fill", "add", "add a row"]
    assert rows[0].share == 1.0
    assert rows[2].microseconds == 500.0
    assert rows[2].gigabytes == pytest.approx(4e-3 * 48 / 500)
    lines = bench.table(rows).splitlines()
    assert lines[2] == "| kernel | elements | us | GB/s | of copy | target | met |"
    assert lines[4] == "| copy | 16 | 500.0 | 0 | 1.00 | 1.00 | yes |"
    assert len(lines) == 4 + len(rows)


def test_without_a_device_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "is_available", lambda: False)
    assert bench.main([]) == 0
    assert capsys.readouterr().out == (
        "skipped: there is no CUDA device here, so nothing was measured\n"
    )
