"""Results as they are had, one file for each process, so that none is lost.

True only here: a line is whole or it is not counted.  Each line is one JSON object
with the record and its checksum, written by one call to the operating system; what a
killed process wrote before stays, and the line it was writing is told apart.

Rules:
- a process writes its own file and reads none; only the reader reads them all;
- records are read file by file, in the order of the files' names, then of the lines;
- a damaged line is reported with file:line and the others are read.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

SUFFIX = ".jsonl"

# 64 bits tell a damaged line from a whole one; nobody forges a journal.
CHECKSUM_BYTES = 8


@dataclass(frozen=True, slots=True)
class Reading:
    """All whole records, and a sentence for each line that is not."""

    records: tuple[dict[str, Any], ...]
    damage: tuple[str, ...]


class Journal:
    """The file of one process in the folder of a run; made by the first record."""

    def __init__(self, folder: Path, worker: str) -> None:
        self.path = folder / f"{worker}{SUFFIX}"
        self._file: int | None = None

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record; values are what JSON knows.  It is out when this returns.

        Raises:
            OSError: the file cannot be written.
        """
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            self._file = os.open(self.path, flags, 0o644)
        line = json.dumps({"sum": _checksum(record), "record": record}) + "\n"
        left = memoryview(line.encode())
        while left:
            left = left[os.write(self._file, left) :]

    def close(self) -> None:
        """Close the file; a later record opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def read_all(folder: Path) -> Reading:
    """The records of every process that wrote to this folder."""
    records: list[dict[str, Any]] = []
    damage: list[str] = []
    for file in sorted(folder.glob(f"*{SUFFIX}")):
        lines = file.read_bytes().split(b"\n")
        for number, line in enumerate(lines, 1):
            record = _record(line)
            if record is not None:
                records.append(record)
            elif line:
                what = "cut off" if number == len(lines) else "damaged"
                damage.append(f"{file.name}:{number}: this record is {what}")
    return Reading(tuple(records), tuple(damage))


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        wrapped = json.loads(line)
        record = wrapped["record"]
        whole = wrapped["sum"] == _checksum(record)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return record if whole and isinstance(record, dict) else None


def _checksum(record: object) -> str:
    text = json.dumps(record, sort_keys=True)
    return blake2b(text.encode(), digest_size=CHECKSUM_BYTES).hexdigest()
