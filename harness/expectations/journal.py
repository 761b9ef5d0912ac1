"""Journals: the results of a run, a file for each of its processes.

They are read at the end of the run: the records of a process that was killed survive.

Rules:
- each line of a journal is one JSON object with the record and its checksum, written by
  one call to the operating system; a damaged line is reported with file:line, and the
  others are read, file by file in the order of names;
- a process writes its own journal and reads none.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

JOURNAL_SUFFIX = ".jsonl"

# 64 bits detect a damaged line; forged journals are not a threat.
CHECKSUM_BYTES = 8


@dataclass(frozen=True, slots=True)
class Reading:
    """All intact records, and a sentence for each line that is not."""

    records: tuple[dict[str, Any], ...]
    damage: tuple[str, ...]


class Journal:
    """The file of one process in the folder of a run; created by the first record."""

    def __init__(self, folder: Path, worker: str) -> None:
        self.path = folder / f"{worker}{JOURNAL_SUFFIX}"
        self._file: int | None = None

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record of JSON values; the file contains it when this returns.

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
    """Return the records of every process that wrote to this folder."""
    records: list[dict[str, Any]] = []
    damage: list[str] = []
    for file in sorted(folder.glob(f"*{JOURNAL_SUFFIX}")):
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
