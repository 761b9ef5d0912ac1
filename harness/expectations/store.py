"""Expect files: their text, their place, write permission, and the results of a run.

The files are in the folder `expect/` below the root, one for each scenario, named after
its path. The lock file is under `.everyorder/`, because `expect/` contains expect files
only. A *journal* is a file of results for each process of a run, which is read at the
end of the run: the records of a process that was killed survive.

    everyorder expect file, format 2
    scenario: scenarios/test_composites/two_kernels
    steps:
      1  impl("demo::add", cpu_add, "CPU")
    uses:                                          absent if there are none
      1  call("demo::add", "cpu")
    pinned: the newest kernel wins                 absent if nothing is pinned
    strategy: graph+stale (open: graph)            without the guarantee of graph
    explored: 2 states, 2 transitions, 0 failing transitions

    == {} ==
    state: nothing

    == {1} ==
    same as {}

Rules:
- a document has exactly one text, and `parse` accepts no other: it renders the parsed
  document again and compares, so that no content can be lost;
- a body that an earlier section has in full is a reference to the first such section,
  and so is a part of at least `LEAST_REFERRED` lines, `state same as {1}`;
- an empty line precedes each heading, and occurs nowhere else;
- every fault of a file, which may have been edited, merged or cut off, is a
  `DamagedExpectFile` with the line; nothing is skipped or repaired, and counts are
  compared with the header, which detects a truncated file;
- a file is replaced as a whole, by a rename, so a reader sees the old or the new one;
  a file whose text would stay the same is not touched;
- all files are written under one lock, and nothing is written, not even the lock, if
  `forbidden` returns an error: if `CI` is set, as every common service of continuous
  integration sets it, except to the empty text, `0`, `false`, `no` or `off`;
- each line of a journal is one JSON object with the record and its checksum, written by
  one call to the operating system; a damaged line is reported with file:line, and the
  others are read, file by file in the order of names;
- a process writes its own journal and reads none.

When the layout changes, increment `FORMAT`: files of older formats are not read.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

from filelock import FileLock, Timeout

from everyorder.harness.base.errors import (
    BadScenario,
    DamagedExpectFile,
    FileError,
    WritesForbidden,
)
from everyorder.harness.expectations.document import (
    MARKS,
    SAME,
    Body,
    Digest,
    Document,
    Entry,
    Key,
    Pair,
    body_of,
    escape,
    key_of,
    lines_of,
    references_to,
    unescape,
    written_lines,
)

TITLE = "everyorder expect file, format "
FORMAT = 2
OLD_TITLES = tuple(f"{TITLE}{old}" for old in range(1, FORMAT))

# Header fields that are lists of numbered lines; the others are one line each.
NUMBERED = ("steps", "uses")
# Fields that are omitted if they are empty.
OPTIONAL = ("uses", "pinned")


def render(document: Document) -> str:
    """Return the text of the expect file, with a newline at its end."""
    lines = [f"{TITLE}{FORMAT}"]
    for name, values in document.header().items():
        if name in NUMBERED:
            lines += [f"{name}:"] if values or name not in OPTIONAL else []
            width = len(str(len(values)))
            lines += [
                f"  {number:>{width}}  {escape(value)}"
                for number, value in enumerate(values, 1)
            ]
        else:
            lines += [f"{name}: {escape(value)}" for value in values]
    ordered = document.ordered
    sections: dict[Body, str] = {}
    parts: dict[Pair, list[str]] = {}
    for key, body in document.entries:
        name = key.text(ordered=ordered)
        lines += ("", f"== {name} ==")
        if isinstance(body, Digest):
            lines += lines_of(body)
        elif body in sections:
            lines.append(SAME + sections[body])
        else:
            lines += written_lines(body, name, parts)
            sections[body] = name
    return "\n".join(lines) + "\n"


_HEADING = re.compile(r"== (.+) ==")
_SIZE = re.compile(
    r"\d+ states?, (\d{1,18}) transitions?, \d+ failing transitions?", re.ASCII
)
_FIELDS = ("scenario", "steps", "uses", "pinned", "strategy", "explored")


def parse(text: str, source: str = "expect file") -> Document:
    """Return the document that renders as `text`.

    `source` is the file name for the error.

    Raises:
        DamagedExpectFile: no document renders as `text`.
    """
    return _LineCursor(text, source).document()


class _LineCursor:
    """A cursor over the lines."""

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.lines = text.split("\n")
        self.at = 0

    def document(self) -> Document:
        self._check_form()
        self._title()
        header = {name: self._field(name) for name in _FIELDS}
        size = header["explored"][0]
        transitions = _SIZE.fullmatch(size)
        if transitions is None:
            self._fail("expected 'N states, N transitions, N failing transitions'", -1)
        document = Document(
            scenario=header["scenario"][0],
            steps=header["steps"],
            uses=header["uses"],
            pinned=header["pinned"][0] if header["pinned"] else None,
            strategy=header["strategy"][0],
            transitions=int(transitions[1]),
            entries=(),
        )
        counted = self.at - 1
        entries = self._entries(document.ordered, len(document.steps))
        document = Document(
            **{name: getattr(document, name) for name in _PARSED}, entries=entries
        )
        if document.size != size:
            self.at = counted
            self._fail(f"the file holds {document.size}; it may have been cut off")
        self._check_layout(document)
        return document

    def _check_form(self) -> None:
        for index, line in enumerate(self.lines):
            self.at = index
            if line.startswith(MARKS):
                self._fail("a merge conflict is not resolved")
            if line.endswith("\r"):
                self._fail(
                    "lines end in a carriage return; keep line ends as they are "
                    "('expect/** -text' in .gitattributes)"
                )
        if self.lines[-1]:
            self._fail("the file does not end in a newline; it may have been cut off")
        self.lines.pop()
        self.at = 0

    def _title(self) -> None:
        line = self._next(f"expected '{TITLE}{FORMAT}'")
        if line == f"{TITLE}{FORMAT}":
            return
        if line in OLD_TITLES:
            raise DamagedExpectFile(
                code="OldExpectFile",
                source=self.source,
                line=1,
                reason=f"this is not format {FORMAT}",
                found=line,
            )
        if line.startswith(TITLE):
            self._fail(f"only format {FORMAT} is known; was it written later?", -1)
        self._fail(f"expected '{TITLE}{FORMAT}'", -1)

    def _field(self, name: str) -> tuple[str, ...]:
        start = f"{name}:" if name in NUMBERED else f"{name}: "
        present = self.at < len(self.lines) and self.lines[self.at].startswith(start)
        if not present and name in OPTIONAL:
            return ()
        line = self._next(f"expected '{start}'")
        if not present or (name in NUMBERED and line != start):
            self._fail(f"expected '{start}'", -1)
        if name not in NUMBERED:
            return (self._unescaped(line.removeprefix(start)),)
        values: list[str] = []
        while self.at < len(self.lines) and self.lines[self.at].startswith("  "):
            number, _, value = self._next("").strip(" ").partition("  ")
            if number != str(len(values) + 1):
                self._fail(f"expected number {len(values) + 1}", -1)
            values.append(self._unescaped(value))
        return tuple(values)

    def _entries(self, ordered: bool, steps: int) -> tuple[Entry, ...]:
        entries: list[Entry] = []
        # The bodies and parts of earlier sections, by the line that refers to each.
        bodies: dict[str, Body] = {}
        parts: dict[str, Pair] = {}
        last: Key | None = None
        while self.at < len(self.lines):
            if self._next("expected an empty line before a heading"):
                self._fail("expected an empty line before a heading", -1)
            last = self._heading(ordered, steps, last)
            body = self._body(bodies, parts)
            entries.append((last, body))
            if not isinstance(body, Digest):
                name = last.text(ordered=ordered)
                bodies[SAME + name] = body
                references = references_to(body, name)
                parts.update((line, part) for part, line in references.items())
        return tuple(entries)

    def _heading(self, ordered: bool, steps: int, last: Key | None) -> Key:
        reason = "expected a heading, '== {1 2} ==' or '== {1} + 2 fails =='"
        if ordered:
            reason = reason.replace("{1 2}", "1 then 2")
        match = _HEADING.fullmatch(self._next(reason))
        key = key_of(match[1], ordered=ordered) if match else None
        if key is None:
            self._fail(reason, -1)
        operations = key.state if key.fails is None else (*key.state, key.fails)
        if not all(0 <= operation < steps for operation in operations):
            self._fail(f"the steps are numbered from 1 to {steps}", -1)
        if last is not None and key.rank <= last.rank:
            self._fail(
                f"sections are sorted, and {last.text(ordered=ordered)} is before", -1
            )
        return key

    def _body(self, bodies: dict[str, Body], parts: dict[str, Pair]) -> Body:
        start = self.at
        while self.at < len(self.lines) and self.lines[self.at]:
            self.at += 1
        lines = self.lines[start : self.at]
        if len(lines) == 1 and lines[0] in bodies:
            return bodies[lines[0]]
        try:
            return body_of(lines, parts)
        except ValueError as error:
            reason, index = error.args
            self.at = start + index
            self._fail(reason)

    def _check_layout(self, document: Document) -> None:
        written = render(document)
        if written == self.text:
            return
        pairs = zip_longest(written.split("\n"), self.text.split("\n"), fillvalue="")
        self.at = next(at for at, (old, new) in enumerate(pairs) if old != new)
        right = written.split("\n")[self.at :]
        self._fail(f"expected {right[0]!r}" if right else "unexpected line")

    def _next(self, expectation: str) -> str:
        if self.at >= len(self.lines):
            self._fail(f"the file ends; {expectation}")
        self.at += 1
        return self.lines[self.at - 1]

    def _unescaped(self, written: str) -> str:
        try:
            return unescape(written)
        except ValueError as error:
            self._fail(str(error), -1)

    def _fail(self, reason: str, back: int = 0) -> NoReturn:
        at = self.at + back
        line = self.lines[at] if at < len(self.lines) else ""
        raise DamagedExpectFile(
            source=self.source, line=at + 1, reason=reason, found=line
        )


_PARSED = (
    "scenario",
    "steps",
    "uses",
    "pinned",
    "strategy",
    "transitions",
)


VARIABLE = "CI"
_OFF = ("", "0", "false", "no", "off")


def forbidden(environment: Mapping[str, str] | None = None) -> WritesForbidden | None:
    """Return the error to raise instead of writing, or None if writing is allowed."""
    values = os.environ if environment is None else environment
    value = values.get(VARIABLE, "")
    if value.strip().lower() in _OFF:
        return None
    return WritesForbidden(variable=VARIABLE, value=value)


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


FOLDER = "expect"
SUFFIX = ".txt"
LOCK = ".everyorder/expect.lock"

# A writer needs milliseconds; a longer hold means that the other process hangs.
LOCK_SECONDS = 60


class Store:
    """The expect files below a root folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / FOLDER

    def path(self, scenario: str) -> Path:
        """Return the path of a scenario's file.

        Raises:
            BadScenario: the path is outside the folder, or not a valid name.
        """
        pure = PurePosixPath(scenario)
        if scenario != str(pure) or pure.is_absolute() or scenario == ".":
            raise BadScenario(
                code="BadScenarioPath",
                path=scenario,
                reason="it is not a plain relative path",
            )
        for part in pure.parts:
            if part.startswith(".") or any(sign in part for sign in '\\:*?"<>|\0'):
                raise BadScenario(
                    code="BadScenarioPath",
                    path=scenario,
                    reason=f"{part!r} is not a valid name on every system",
                )
        return self.folder / f"{scenario}{SUFFIX}"

    def name(self, scenario: str) -> str:
        """Return the path of a scenario's file relative to the root, with slashes."""
        return self.path(scenario).relative_to(self.root).as_posix()

    def read(self, scenario: str) -> Document | None:
        """Return the document of a scenario, or None if there is no file.

        Raises:
            BadScenario: as `path`.
            FileError: the system cannot read the file.
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
        """Return the paths of all scenarios that have a file, sorted."""
        files = (
            file.relative_to(self.folder) for file in self.folder.rglob(f"*{SUFFIX}")
        )
        return tuple(sorted(file.as_posix().removesuffix(SUFFIX) for file in files))

    def stale(self, known: Iterable[str]) -> tuple[str, ...]:
        """Return the scenarios that have a file and are not in `known`, sorted."""
        alive = set(known)
        return tuple(name for name in self.scenarios() if name not in alive)

    def apply(self, documents: Mapping[str, Document | None]) -> tuple[str, ...]:
        """Write these documents, and delete the files of those that are None.

        Returns the names of the files that were written or deleted.

        Raises:
            BadScenario: as `path`; nothing was written.
            FileError: the system refuses the write, or another process holds the lock
                for too long; `done` lists the files that were written before.
            WritesForbidden: the process runs under continuous integration; nothing was
                written.
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
    """Return the system's words, without the number and the file's whole path."""
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
