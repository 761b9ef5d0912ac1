"""Journals on disk: what was written is read, whatever happens to the process."""

import json
import os
import subprocess
import sys
from pathlib import Path

from everyorder.harness.expectations import Journal, Reading, read_all

KILLED = """
import os, sys
from pathlib import Path
from everyorder.harness.expectations import Journal
journal = Journal(Path(sys.argv[1]), "gw1")
for number in range(3):
    journal.append({"number": number})
os._exit(9)
"""


def test_records_come_back_in_order(tmp_path: Path) -> None:
    one, two = Journal(tmp_path / "run", "gw1"), Journal(tmp_path / "run", "gw0")
    one.append({"text": "é\n"})
    two.append({"nested": [1, None, {"a": True}]})
    one.append({"text": "again"})
    one.close()
    one.close()
    one.append({"text": "opened again"})
    one.close()
    two.close()
    assert read_all(tmp_path / "run") == Reading(
        (
            {"nested": [1, None, {"a": True}]},
            {"text": "é\n"},
            {"text": "again"},
            {"text": "opened again"},
        ),
        (),
    )


def test_no_record_no_file(tmp_path: Path) -> None:
    Journal(tmp_path / "run", "main").close()
    assert list(tmp_path.iterdir()) == []
    assert read_all(tmp_path / "run") == Reading((), ())


def test_a_killed_process_loses_nothing_it_wrote(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, cwd=root, env=environment, check=False)
    assert done.returncode == 9
    assert read_all(tmp_path).records == ({"number": 0}, {"number": 1}, {"number": 2})


def test_every_cut_is_noticed_and_loses_one_record_at_most(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "main")
    journal.append({"number": 1})
    first = len(journal.path.read_bytes())
    journal.append({"number": 2})
    journal.close()
    whole = journal.path.read_bytes()
    for cut in range(first + 1, len(whole) - 1):
        journal.path.write_bytes(whole[:cut])
        assert read_all(tmp_path) == Reading(
            ({"number": 1},), ("main.jsonl:2: this record is cut off",)
        )


def test_a_damaged_line_does_not_hide_the_others(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "main")
    for number in range(3):
        journal.append({"number": number})
    journal.close()
    lines = journal.path.read_text().splitlines()
    for damage in (
        lines[1].replace('"number": 1', '"number": 7'),
        "[]",
        "nothing",
        json.dumps({"sum": 1}),
        "[" * 100_000,
    ):
        journal.path.write_text("\n".join([lines[0], damage, lines[2], ""]))
        assert read_all(tmp_path) == Reading(
            ({"number": 0}, {"number": 2}), ("main.jsonl:2: this record is damaged",)
        )
