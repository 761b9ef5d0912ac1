"""Rows about archives: what loading a large one costs.

True only here: one tensor of 100 MB in a file that is in the system's memory already.
Reading it is what `read()` of the file does; mapping it is not.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from everyorder import runtime
from everyorder.runtime.script.archive import load, save
from tests.bench.row import Row, pairs, ratio

MEGABYTES = 100
TURNS = 5
LOAD = f"loading an archive of {MEGABYTES} MB, over reading its bytes"


def archives() -> Iterator[Row]:
    """Load, and read."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "large.zip"
        count = MEGABYTES * 1_000_000 // 4
        save([runtime.ops.core.full([count], 1.0)], path)
        measured = pairs(lambda: load(path), path.read_bytes, TURNS)
    found = ratio(measured)
    one = sorted(each for each, _ in measured)[TURNS // 2] * 1e3
    yield Row(LOAD, f"{found:.3f} ({one:.2f} ms)", "≤ 0.2", found <= 0.2)


ARCHIVE_ROWS = (archives,)
