"""The store of expect files: their place, and the permission to write them.

The files are in the folder `expect/` below the root, one for each scenario, named after
its path; `file_format` is their text. The lock file is under `.everyorder/`, because
`expect/` contains expect files only.

Rules:
- a file is replaced as a whole (`writing`), so a reader sees the old or the new one; a
  file whose text would stay the same is not touched;
- a name that some file system does not take is refused on all (`names`);
- all files are written under one lock, and nothing is written, not even the lock, if
  `forbidden` returns an error: if `CI` is set, as every common service of continuous
  integration sets it, except to the empty text, `0`, `false`, `no` or `off`.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from everyorder.harness.base.errors import (
    DamagedExpectFile,
    FileError,
    WritesForbidden,
)
from everyorder.harness.expectations.compare import Comparison, compare
from everyorder.harness.expectations.document import Document, document_of
from everyorder.harness.expectations.file_format import parse, render
from everyorder.harness.expectations.inline import (
    InlineEdit,
    expected_inline,
    rewritten,
)
from everyorder.harness.expectations.names import (
    PENDING,
    SUFFIX,
    check_collisions,
    check_name,
)
from everyorder.harness.expectations.writing import (
    interrupted,
    reason_of,
    replace_files,
)
from everyorder.harness.report.verdict import Report

VARIABLE = "CI"
_OFF = ("", "0", "false", "no", "off")


def forbidden(environment: Mapping[str, str] | None = None) -> WritesForbidden | None:
    """Return the error to raise instead of writing, or None if writing is allowed."""
    values = os.environ if environment is None else environment
    value = values.get(VARIABLE, "")
    if value.strip().lower() in _OFF:
        return None
    return WritesForbidden(variable=VARIABLE, value=value)


FOLDER = "expect"
LOCK = ".everyorder/expect.lock"

# A writer needs milliseconds; a longer hold means that the other process hangs.
LOCK_SECONDS = 60


class Store:
    """The expect files below a root folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / FOLDER

    def path(self, scenario: str, suffix: str = SUFFIX) -> Path:
        """Return the path of a scenario's file.

        Raises:
            BadScenario: the path is outside the folder, or not a valid name.
        """
        check_name(scenario)
        return self.folder / f"{scenario}{suffix}"

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
        return self._read(scenario, SUFFIX)

    def _read(self, scenario: str, suffix: str) -> Document | None:
        path = self.path(scenario, suffix)
        name = path.relative_to(self.root).as_posix()
        try:
            data = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise FileError(
                code="CannotReadExpectFile", source=name, reason=reason_of(error)
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
        document = parse(text, name, saved=suffix == PENDING)
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
        return self._scenarios(SUFFIX)

    def _scenarios(self, suffix: str) -> tuple[str, ...]:
        files = (
            file.relative_to(self.folder)
            for file in self.folder.rglob(f"*{suffix}")
            if file.is_file()
        )
        return tuple(sorted(file.as_posix().removesuffix(suffix) for file in files))

    def title(self, comparison: Comparison) -> str:
        """Return the place of what is expected: a file, or an argument."""
        scenario = comparison.found.scenario
        if comparison.place is None:
            return self.name(scenario)
        return f"{scenario}, by its argument expect="

    def stale(self, known: Iterable[str]) -> tuple[str, ...]:
        """Return the scenarios that have a file and are not in `known`, sorted."""
        alive = set(known)
        return tuple(name for name in self.scenarios() if name not in alive)

    def compare(
        self, actual: Report | Document, *, partial: bool = False
    ) -> Comparison:
        """Compare observations with the scenario's argument `expect=`, or its file.

        `partial` is as for `compare`.

        Raises:
            BadScenario, FileError, DamagedExpectFile: as `read`.
        """
        if isinstance(actual, Document) or not isinstance(actual.expect, str):
            return compare(self.read(actual.scenario), actual, partial=partial)
        found = document_of(actual)
        return replace(
            compare(expected_inline(actual.expect, found), found, partial=partial),
            place=actual.place,
            inline=actual.expect,
        )

    def check_rewritable(self, edit: InlineEdit) -> None:
        """Check that an argument `expect=` can be rewritten.

        Raises:
            FileError: it cannot.
        """
        self._rewritten([edit])

    def _rewritten(self, edits: Iterable[InlineEdit]) -> dict[Path, bytes | None]:
        """Return the new content of the source files, each file once."""
        files: dict[Path, list[InlineEdit]] = {}
        for edit in edits:
            files.setdefault(Path(edit.place.file), []).append(edit)
        contents: dict[Path, bytes | None] = {}
        for file, group in files.items():
            if not file.is_relative_to(self.root):
                raise FileError(
                    code="CannotRewriteArgument",
                    source=str(file),
                    scenario=group[0].scenario,
                    reason=f"the file is outside of {self.root}",
                )
            name = file.relative_to(self.root).as_posix()
            try:
                data = file.read_bytes()
            except OSError as error:
                raise FileError(
                    code="CannotRewriteArgument",
                    source=name,
                    scenario=group[0].scenario,
                    reason=reason_of(error),
                ) from None
            contents[file] = rewritten(name, data, group)
        return contents

    def apply(
        self,
        documents: Mapping[str, Document | None],
        inline: Sequence[InlineEdit] = (),
    ) -> tuple[str, ...]:
        """Write these documents and arguments; delete the files of those that are None.

        Returns the names of the files that were written or deleted.

        Raises:
            BadScenario: as `path`, or a file has the name of another one on some
                system; nothing was written.
            FileError: the system refuses the write, or another process holds the lock
                for too long; `done` lists the files that were written before.
            WritesForbidden: the process runs under continuous integration; nothing was
                written.
        """
        touched = self._apply(documents, SUFFIX, inline)
        for name in documents:
            self.path(name, PENDING).unlink(missing_ok=True)
        return touched

    def _apply(
        self,
        documents: Mapping[str, Document | None],
        suffix: str,
        inline: Sequence[InlineEdit] = (),
    ) -> tuple[str, ...]:
        error = forbidden()
        if error is not None:
            raise error
        names = sorted(documents)
        new = [name for name in names if documents[name] is not None]
        plan: dict[Path, bytes | None] = {}
        for name in names:
            document = documents[name]
            path = self.path(name, suffix)
            plan[path] = None
            if document is not None:
                text = render(document, saved=suffix == PENDING)
                plan[path] = text.encode()
        check_collisions(new, set(self.scenarios()).difference(documents))
        with self._lock():
            # Read under the lock: each file is rewritten from its current content.
            return replace_files(self.root, {**plan, **self._rewritten(inline)})

    def saved(self) -> tuple[str, ...]:
        """Return the scenarios with observations that wait for a decision, sorted."""
        return self._scenarios(PENDING)

    def read_saved(self, scenario: str) -> Document:
        """Return the observations that `save` wrote.

        Raises:
            FileError: the system cannot read the file.
            DamagedExpectFile: `save` did not write this file.
        """
        document = self._read(scenario, PENDING)
        assert document is not None, "`saved` has found it"
        return document

    def save(self, documents: Mapping[str, Document | None]) -> tuple[str, ...]:
        """Write observations next to the expect files; delete those that are None.

        Returns the names of the files that were written or deleted.

        Raises:
            BadScenario, FileError, WritesForbidden: as `apply`.
        """
        return self._apply(documents, PENDING)

    def interrupted(self) -> str:
        """Return a sentence on an accept that was killed half-way; "" if none was."""
        return interrupted(self.root)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Context: hold the lock of all writers.

        Raises:
            FileError: it cannot be taken; nothing was written.
        """
        lock = FileLock(self.root / LOCK, timeout=LOCK_SECONDS)
        try:
            (self.root / LOCK).parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except OSError as refusal:  # a Timeout is one, too
            reason = reason_of(refusal)
            if isinstance(refusal, Timeout):
                reason = f"another process has held it for {LOCK_SECONDS} seconds"
            raise FileError(
                code="CannotWriteExpectFile", source=LOCK, reason=reason
            ) from None
        try:
            yield
        finally:
            lock.release()
