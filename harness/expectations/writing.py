"""Replace several files, so that each of them is at every moment the old or new one.

    record      .everyorder/accept.json holds the name and new digest of each file
    temporaries each new text is written in the folder of its file, and is on the disk
    renames     each temporary takes the place of its file; obsolete files are deleted
    folders     are forced to the disk; the record is deleted

Rules:
- the caller holds the lock: no other process writes meanwhile;
- a temporary has a random name that does not depend on the name of the file, so it is
  never too long, and never read as another file;
- until the first rename nothing has changed; after that an error or an interruption is
  reported as `k of n written`, and each file is complete;
- a process that was killed cannot report that: its record stays, and `interrupted`
  compares it with the files, for the next run to report.
"""

import errno
import json
import os
import secrets
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from threading import Event

from everyorder.harness.base.errors import FileError

RECORD = ".everyorder/accept.json"

# A disk finishes several requests together: 1,000 files took 2.0 s one by one, 0.3 s by
# four threads and 0.25 s by sixteen. Few files are written in their order.
WRITERS = 8
FEW = 32

_PREFIX, _SUFFIX = ".everyorder-", ".tmp"


def replace_files(root: Path, plan: Mapping[Path, bytes | None]) -> tuple[str, ...]:
    """Write these contents, and delete the files whose content is None.

    A file that has its content already is not touched. Returns the names of the other
    files, relative to the root, in the order of the plan.

    Raises:
        FileError: the system refuses, or the user interrupts; `done` has the files that
            were replaced before.
    """
    names = {path: path.relative_to(root).as_posix() for path in plan}
    obsolete = [path for path, data in plan.items() if data is None]
    at = next(iter(names.values()), RECORD)
    is_renaming = False
    temporaries: dict[Path, Path] = {}
    planned: list[Path] = []
    record = root / RECORD
    try:
        _clear(root, record)
        for path in plan:
            if path.is_symlink():
                at = names[path]
                raise OSError(errno.ELOOP, "it is a symbolic link, not a file")
        for path, data in plan.items():
            at = names[path]
            if data is None:
                is_planned = path.exists()
            else:
                is_planned = _read(path) != data or _is_obsolete(path, obsolete)
            if is_planned:
                planned.append(path)
        if not planned:
            return ()
        at = RECORD
        _write_record(record, {names[path]: plan[path] for path in planned})
        for path in planned:
            if plan[path] is not None:
                at = names[path]
                path.parent.mkdir(parents=True, exist_ok=True)
                temporaries[path] = _temporary(path)
        write = {
            path: partial(_write, temporary, plan[path] or b"", like=path)
            for path, temporary in temporaries.items()
        }
        with closing(_results(write)) as results:
            for path, result in results:
                at = names[path]
                result.result()
        # Deletions are first: where case is ignored, a new file may have the old name.
        is_renaming = True
        for path in planned:
            if path not in temporaries:
                at = names[path]
                path.unlink()
        rename = {
            path: partial(os.replace, temporary, path)
            for path, temporary in temporaries.items()
        }
        with closing(_results(rename)) as results:
            for path, result in results:
                at = names[path]
                result.result()
        _finish(planned, obsolete, root)
        record.unlink(missing_ok=True)
    except (OSError, KeyboardInterrupt) as error:
        record.unlink(missing_ok=True)
        # The files say which are done: an interruption may come after a rename.
        done = [
            names[path]
            for path in planned
            if is_renaming and not temporaries.get(path, path).exists()
        ]
        raise _failure(error, at, done, len(planned)) from None
    finally:
        for temporary in temporaries.values():
            temporary.unlink(missing_ok=True)
    return tuple(names[path] for path in planned)


def interrupted(root: Path) -> str:
    """Return a sentence on an accept that was killed half-way; "" if there is none."""
    try:
        record = json.loads((root / RECORD).read_bytes())
        digests: dict[str, str | None] = record["files"]
        left = [
            name for name, digest in digests.items() if _digest(root, name) != digest
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
    count = len(digests)
    if not left or len(left) == count:
        return ""
    return (
        f"an accept was interrupted: {count - len(left)} of {count} files written, "
        f"each of them whole; not written: {_some(left)}. Accept again, or restore the "
        "files from version control."
    )


def reason_of(error: OSError) -> str:
    """Return the system's words, without the number and the file's whole path."""
    return error.strerror or str(error)


def _failure(
    error: OSError | KeyboardInterrupt, at: str, done: Sequence[str], count: int
) -> FileError:
    files = tuple(done)
    if isinstance(error, OSError):
        return FileError(
            code="CannotWriteExpectFile",
            source=at,
            reason=reason_of(error),
            done=files,
            planned=count,
        )
    return FileError(code="AcceptInterrupted", done=files, planned=count)


_MOST_NAMES = 3


def _some(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_NAMES
    text = ", ".join(names[:_MOST_NAMES])
    return f"{text} and {rest} more" if rest > 0 else text


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _is_obsolete(path: Path, obsolete: Iterable[Path]) -> bool:
    """Return True if a file will be deleted under another spelling of its name."""
    with suppress(OSError):
        return any(each.exists() and each.samefile(path) for each in obsolete)
    return False


def _temporary(path: Path) -> Path:
    return path.with_name(f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}")


def _results(
    tasks: Mapping[Path, Callable[[], object]],
) -> Generator[tuple[Path, Future[None]]]:
    """Do all tasks, none after one that fails; yield the results, in their order."""
    has_failed = Event()

    def attempt(task: Callable[[], object]) -> None:
        if has_failed.is_set():
            return
        try:
            task()
        except BaseException:
            has_failed.set()
            raise

    pool = ThreadPoolExecutor(WRITERS if len(tasks) > FEW else 1)
    try:
        results = {path: pool.submit(attempt, task) for path, task in tasks.items()}
        yield from results.items()
    finally:
        # No thread works after an interruption: the caller counts and deletes files.
        has_failed.set()
        pool.shutdown(cancel_futures=True)


def _write(path: Path, data: bytes, *, like: Path) -> None:
    """Write a new file with the permissions of another one, if that exists."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    file = os.open(path, flags, 0o666)
    with open(file, "wb") as opened:
        with suppress(FileNotFoundError):
            os.chmod(path, like.stat().st_mode & 0o7777)
        opened.write(data)
        opened.flush()
        os.fsync(file)


def _write_record(record: Path, contents: Mapping[str, bytes | None]) -> None:
    digests = {name: _digest_of(data) for name, data in contents.items()}
    text = json.dumps({"files": digests}, indent=1) + "\n"
    record.parent.mkdir(parents=True, exist_ok=True)
    _write(temporary := _temporary(record), text.encode(), like=record)
    os.replace(temporary, record)


def _digest_of(data: bytes | None) -> str | None:
    return None if data is None else blake2b(data, digest_size=16).hexdigest()


def _digest(root: Path, name: str) -> str | None:
    return _digest_of(_read(root / name))


def _clear(root: Path, record: Path) -> None:
    """Delete the temporaries of a process that was killed, and its record."""
    try:
        names = json.loads(record.read_bytes())["files"]
    except (FileNotFoundError, NotADirectoryError):
        return
    except (ValueError, KeyError, TypeError):
        names = ()
    # The record may come with a checkout: nothing outside of the root is touched.
    texts = list(names) if isinstance(names, dict) else []
    folders = {(root / name).resolve().parent for name in texts}
    for folder in folders:
        if not folder.is_relative_to(root.resolve()):
            continue
        for left in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
            left.unlink(missing_ok=True)
    record.unlink(missing_ok=True)


def _finish(planned: Iterable[Path], obsolete: Iterable[Path], root: Path) -> None:
    """Force the folders to the disk, after deleting those that became empty."""
    for path in obsolete:
        parent = path.parent
        while parent.parent != root and parent.is_dir() and not any(parent.iterdir()):
            parent.rmdir()
            parent = parent.parent
    for folder in {parent for path in planned for parent in path.parents}:
        if folder.is_relative_to(root) and folder.is_dir():
            _sync(folder)


def _sync(folder: Path) -> None:
    # Windows does not open folders, and some file systems do not force them: the
    # names are then as safe as the system makes them.
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
