"""The expect files of a project, the results of a run, and who may write.

The files are in the folder `expect/` below the root, one for each scenario, named after
its path.  A lock file lies under `.everyorder/`, outside of `expect/`, because that
folder holds expect files only.  A *journal* is a file of results for each process of a
run, which its end reads: what a killed process wrote before stays.

Rules:
- a file is replaced as a whole, by a rename, so a reader sees the old or the new one;
  a file whose text would stay the same is not touched;
- everything to be written is written under one lock, and nothing where `forbidden`
  says so, not even the lock: not where `CI` is set, as every common service of
  continuous integration does, unless to nothing, `0`, `false`, `no` or `off`;
- each line of a journal is one JSON object with the record and its checksum, written by
  one call to the operating system; a damaged one is told with file:line, and the others
  are read, file by file in the order of names;
- a process writes its own journal and reads none.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any

from filelock import FileLock, Timeout

from harness.errors import BadScenario, DamagedExpectFile, FileError
from harness.expectations.document import Document
from harness.expectations.text import parse, render

VARIABLE = "CI"
_OFF = ("", "0", "false", "no", "off")


def forbidden(environment: Mapping[str, str] | None = None) -> FileError | None:
    """The error to raise instead of writing, or None where writing is allowed."""
    values = os.environ if environment is None else environment
    value = values.get(VARIABLE, "")
    if value.strip().lower() in _OFF:
        return None
    return FileError(code="WritesForbidden", variable=VARIABLE, value=value)


JOURNAL_SUFFIX = ".jsonl"

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
        self.path = folder / f"{worker}{JOURNAL_SUFFIX}"
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


FOLDER = "expect"
SUFFIX = ".txt"
LOCK = ".everyorder/expect.lock"

# Another writer needs milliseconds; who holds the lock longer is not coming back.
LOCK_SECONDS = 60


class Store:
    """The expect files below a root folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / FOLDER

    def path(self, scenario: str) -> Path:
        """The file of a scenario.

        Raises:
            BadScenario: it would lie outside of the folder, or have no name.
        """
        pure = PurePosixPath(scenario)
        if scenario != str(pure) or pure.is_absolute() or scenario == ".":
            raise BadScenario(
                code="BadScenarioPath",
                path=scenario,
                reason="it is no plain relative path",
            )
        for part in pure.parts:
            if part.startswith(".") or any(sign in part for sign in '\\:*?"<>|\0'):
                raise BadScenario(
                    code="BadScenarioPath",
                    path=scenario,
                    reason=f"{part!r} is no name on every system",
                )
        return self.folder / f"{scenario}{SUFFIX}"

    def name(self, scenario: str) -> str:
        """The file of a scenario as people write it, from the root."""
        return self.path(scenario).relative_to(self.root).as_posix()

    def read(self, scenario: str) -> Document | None:
        """What is expected of a scenario, None where there is no file.

        Raises:
            BadScenario: as `path`.
            FileError: there is something that the system does not read.
            DamagedExpectFile: the file is not an expect file of that scenario.
        """
        name = self.name(scenario)
        try:
            data = self.path(scenario).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise FileError(
                code="CannotReadExpectFile", source=name, reason=_reason(error)
            ) from None
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            before = data[: error.start]
            line = data.split(b"\n")[before.count(b"\n")]
            raise DamagedExpectFile(
                source=name,
                line=before.count(b"\n") + 1,
                reason="this is not UTF-8",
                found=line.decode(errors="backslashreplace"),
            ) from None
        document = parse(text, name)
        if document.scenario != scenario:
            raise DamagedExpectFile(
                source=name,
                line=2,
                reason=f"the file belongs to the scenario {scenario!r} by its name",
                found=f"scenario: {document.scenario}",
            )
        return document

    def scenarios(self) -> tuple[str, ...]:
        """The paths of all scenarios that have a file, sorted."""
        files = (
            file.relative_to(self.folder) for file in self.folder.rglob(f"*{SUFFIX}")
        )
        return tuple(sorted(file.as_posix().removesuffix(SUFFIX) for file in files))

    def stale(self, known: Iterable[str]) -> tuple[str, ...]:
        """The scenarios that have a file and are not among those known, sorted."""
        alive = set(known)
        return tuple(name for name in self.scenarios() if name not in alive)

    def apply(self, documents: Mapping[str, Document | None]) -> tuple[str, ...]:
        """Write these documents, delete the files of those that are None.

        Returns the names of the files that were written or deleted.

        Raises:
            BadScenario: as `path`; nothing was written.
            FileError: under continuous integration, where nothing is written; the
                system refuses it, or another process holds the lock and does not
                finish; `done` says what was written before.
        """
        error = forbidden()
        if error is not None:
            raise error
        plan = [(self.path(name), documents[name]) for name in sorted(documents)]
        done: list[str] = []
        at = LOCK
        lock = self.root / LOCK
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(lock, timeout=LOCK_SECONDS):
                for path, document in plan:
                    at = path.relative_to(self.root).as_posix()
                    if (
                        _delete(path, self.folder)
                        if document is None
                        else _write(path, render(document))
                    ):
                        done.append(at)
        except OSError as refusal:  # a Timeout is one, too
            raise FileError(
                code="CannotWriteExpectFile",
                source=at,
                reason=_reason(refusal),
                done=tuple(done),
            ) from None
        return tuple(done)


def _reason(error: OSError) -> str:
    """The system's words, without its number and the file's whole path."""
    if isinstance(error, Timeout):
        return f"another process has held it for {LOCK_SECONDS} seconds"
    return error.strerror or str(error)


def _write(path: Path, text: str) -> bool:
    data = text.encode()
    try:
        if path.read_bytes() == data:
            return False
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return True


def _delete(path: Path, folder: Path) -> bool:
    if not path.exists():
        return False
    path.unlink()
    parent = path.parent
    while parent != folder and not any(parent.iterdir()):
        parent.rmdir()
        parent = parent.parent
    return True
