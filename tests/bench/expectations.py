"""Rows about expect files: 10,000 entries checked and updated.

The entries are in one large file, and in many small ones: the work for each entry, and
that for each file.
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path

from everyorder.harness.expectations import Document, Key, Store
from everyorder.harness.expectations.document import Entry
from tests.bench.row import Row, beside_fixed_work, limited, seconds

ENTRIES = 10_000
# Three entries in each small file.
FILES = ENTRIES // 3
CHECKED, UPDATED = 1.0, 3.0
TIMES = 3


def entries(keys: Sequence[Key], name: str, text: str) -> tuple[Entry, ...]:
    """Bodies as a registry of eight kernels shows them, all different."""
    return tuple(
        (
            key,
            (
                (
                    "state",
                    f"name: {name}::f{number}\nCPU: {text}\nMeta: {number % 7}\n",
                ),
                ("calls", f"cpu: {text}\ncuda: {text}\nmeta: MissingKernel\n"),
            ),
        )
        for number, key in enumerate(keys)
    )


def one_file(text: str) -> dict[str, Document | None]:
    """A document of all entries."""
    steps = tuple(f"step {number}" for number in range(14))
    keys = [Key(state) for size in range(15) for state in combinations(range(14), size)]
    found = Document("a/all", steps, (), None, entries(keys[:ENTRIES], "all", text))
    return {found.scenario: found}


def many_files(text: str) -> dict[str, Document | None]:
    """Documents of three entries each."""
    keys = [Key(()), Key((0,)), Key((1,))]
    found: dict[str, Document | None] = {}
    for number in range(FILES):
        name = f"test_{number % 50}/scenario_{number}"
        parts = entries(keys, name, text)
        found[name] = Document(name, ("one()", "two()"), (), None, parts)
    return found


def measured(root: Path, kind: str) -> tuple[float, float]:
    """Seconds to check all entries, and to update all of them."""
    make = one_file if kind == "one file" else many_files
    store = Store(root)
    old, new = make("one"), make("two")
    store.apply(old)

    def check() -> None:
        for document in old.values():
            assert document is not None, "each is to be compared"
            # A copy: an exploration makes new texts.
            assert store.compare(replace(document)).passed

    checked = min(seconds(check) for _ in range(TIMES))
    updated = seconds(lambda: store.apply(new))
    return checked, updated


def expectations() -> Iterator[Row]:
    """Seconds, the disk included."""
    for kind in ("one file", f"{FILES} files"):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            both, slow = beside_fixed_work(partial(measured, root, kind))
        what = f"{ENTRIES:,} entries of expect files, in {kind}"
        yield limited(f"{what}: checked", both[0], CHECKED, slow)
        yield limited(f"{what}: updated", both[1], UPDATED, slow)


EXPECTATION_ROWS = (expectations,)
