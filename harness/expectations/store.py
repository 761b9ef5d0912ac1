"""The expect files of a project: which there are, reading and writing them.

True only here: the folder `expect/` below the root, one file for each scenario, named
after its path.  A lock file lies under `.everyorder/`, outside of `expect/`, because
that folder holds expect files only.

Rules:
- a file is replaced as a whole, by a rename, so a reader sees the old or the new one;
- everything to be written is written under one lock, and nothing where `forbidden`
  says so, not even the lock;
- a file whose text would stay the same is not touched.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from filelock import FileLock, Timeout

from harness.expectations.document import Document
from harness.expectations.environment import forbidden
from harness.expectations.errors import (
    BadScenarioPath,
    CannotReadExpectFile,
    CannotWriteExpectFile,
    DamagedExpectFile,
)
from harness.expectations.parse import parse
from harness.expectations.render import render

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
            BadScenarioPath: it would lie outside of the folder, or have no name.
        """
        pure = PurePosixPath(scenario)
        if scenario != str(pure) or pure.is_absolute() or scenario == ".":
            raise BadScenarioPath(path=scenario, reason="it is no plain relative path")
        for part in pure.parts:
            if part.startswith(".") or any(sign in part for sign in '\\:*?"<>|\0'):
                raise BadScenarioPath(
                    path=scenario, reason=f"{part!r} is no name on every system"
                )
        return self.folder / f"{scenario}{SUFFIX}"

    def name(self, scenario: str) -> str:
        """The file of a scenario as people write it, from the root."""
        return self.path(scenario).relative_to(self.root).as_posix()

    def read(self, scenario: str) -> Document | None:
        """What is expected of a scenario, None where there is no file.

        Raises:
            BadScenarioPath: as `path`.
            CannotReadExpectFile: there is something that the system does not read.
            DamagedExpectFile: the file is not an expect file of that scenario.
        """
        name = self.name(scenario)
        try:
            data = self.path(scenario).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise CannotReadExpectFile(source=name, reason=_reason(error)) from None
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
            WritesForbidden: under continuous integration; nothing was written.
            BadScenarioPath: as `path`; nothing was written.
            CannotWriteExpectFile: the system refuses it, or another process holds the
                lock and does not finish; `done` says what was written before.
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
            raise CannotWriteExpectFile(
                source=at, reason=_reason(refusal), done=tuple(done)
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
