"""Machine code on disk: one file for each compiled kernel, named by its content.

Numba's own cache checks the file and time of the outermost function only.  So it misses
edits of the functions that this calls, shares entries between option sets, and follows
the user's settings.  Here the name of the folder covers all properties of the compiler
that machine code depends on, and the name of the file covers the kernel, its types and
its content, down to the last function that it calls
(`runtime.kernels.compile.jit.digest`); a change of any of them changes the name.

Rules:
- folder = root / `kernels-` and the digest of the modules that drive the compiler
  (`MACHINERY`), of the versions of Numba, llvmlite, NumPy and Python, of the processor
  and of code-changing settings; an edit of one kernel leaves the files of all others
  valid;
- root = `EVERYORDER_CACHE_DIR`, or the platform's folder for caches, or a private
  folder in the temporary one; if none is usable, nothing is stored, silently;
- the content of a file is executed: root, folder and file must belong to this user,
  must not be links, and must not be writable by others; other users must not be able to
  replace the root (see `is_private` and `is_safe_parent`); the file is checked after it
  is opened, through its descriptor;
- a file starts with the SHA-256 of the rest, and is written completely under another
  name, then renamed: processes may share a folder, and a damaged file is recompiled;
- creating a folder removes those that were unused for 30 days, if their name and the
  file `MARKER` in them identify them as created by this module.

One file holds one signature of one function, so the faults that require a folder for
each process (an index that two processes write) cannot occur.
"""

import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

# Folders of versions that are no longer used; a month covers a branch that was set
# aside and resumed.
UNUSED_DAYS = 30

# The modules that determine how a body is compiled, apart from the body itself.
MACHINERY = ("compile/cache.py", "compile/jit.py", "math/primitive.py")

# SHA-256, shortened to 128 bits for names of folders.
DIGEST_LENGTH = 32

# The names of the cache folders, and the file that marks them as created here.
PREFIX = "kernels-"
MARKER = "made-by-everyorder"

# Do not follow a link, and do not wait for a pipe, if the system supports it.
CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def roots() -> Iterator[Path]:
    """Yield the folders that may hold the cache, in order of preference."""
    named = os.environ.get("EVERYORDER_CACHE_DIR")
    if named:
        yield Path(named)
        return
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        yield Path(os.environ.get("LOCALAPPDATA", home), "everyorder", "Cache")
    elif sys.platform == "darwin":
        yield Path(home, "Library", "Caches", "everyorder")
    else:
        yield Path(
            os.environ.get("XDG_CACHE_HOME") or Path(home, ".cache"), "everyorder"
        )
    owner = os.getuid() if hasattr(os, "getuid") else "user"
    yield Path(tempfile.gettempdir(), f"everyorder-{owner}")


def digest_of(sources: Iterable[Path], facts: tuple[object, ...]) -> str:
    """Return the digest of the files and of the facts."""
    total = hashlib.sha256(repr(facts).encode())
    for file in sources:
        total.update(f"\0{file.name}\0".encode())
        total.update(file.read_bytes())
    return total.hexdigest()[:DIGEST_LENGTH]


def build_facts() -> tuple[object, ...]:
    """Return the versions, processor and settings that affect the compiled code."""
    import llvmlite  # type: ignore[import-untyped]  # ships no types
    import numba
    import numpy as np
    from numba.core.registry import cpu_target

    settings: Any = numba.config
    return (
        *(numba.__version__, llvmlite.__version__, np.__version__, sys.version),
        cpu_target.target_context.codegen().magic_tuple(),
        *(settings.OPT, settings.BOUNDSCHECK, settings.DEBUGINFO_DEFAULT),
    )


def is_private(status: os.stat_result) -> bool:
    """Return True if the file belongs to this user, and others cannot write to it.

    True on systems without owners: there, the user's folders are private.
    """
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def is_safe_parent(status: os.stat_result) -> bool:
    """Return True if other users cannot replace a folder of this user in this parent.

    True for a parent of this user or of the system that is not writable by everyone,
    and for a parent in which users can replace only their own files, as in `/tmp`.
    """
    if not hasattr(os, "geteuid") or status.st_mode & stat.S_ISVTX:
        return True
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o002


def private_folder(path: Path) -> bool:
    """Create the folder if there is none; return True if it is a private folder."""
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    return stat.S_ISDIR(status.st_mode) and is_private(status)


def usable_folder(root: Path, digest: str) -> Path | None:
    """Return the folder of this digest below the root; create it if it is missing.

    None if it is not writable, or if other users could put files into it: the files are
    executed.
    """
    try:
        root = Path(os.path.abspath(root))
        parent = Path(os.path.realpath(root.parent))
        missing = [each for each in (parent, *parent.parents) if not each.exists()]
        for each in reversed(missing):
            each.mkdir(mode=0o700, exist_ok=True)
        root = parent / root.name
        folder = root / f"{PREFIX}{digest}"
        if not (is_safe_parent(parent.stat()) and private_folder(root)):
            return None
        fresh = not folder.is_dir()
        if not private_folder(folder):
            return None
        (folder / MARKER).touch(mode=0o600)
        os.utime(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
        if fresh:
            prune(root, keep=folder.name)
    except OSError:
        return None
    return folder


def prune(root: Path, keep: str) -> None:
    """Remove the other cache folders that were unused for `UNUSED_DAYS`."""
    oldest = time.time() - UNUSED_DAYS * 86_400
    for folder in root.iterdir():
        prefix, digest = folder.name[: len(PREFIX)], folder.name[len(PREFIX) :]
        if prefix != PREFIX or set(digest) - set("0123456789abcdef"):
            continue
        if len(digest) != DIGEST_LENGTH or folder.name == keep:
            continue
        try:
            status = folder.lstat()
            marked = stat.S_ISREG((folder / MARKER).lstat().st_mode)
        except OSError:
            continue  # another owner, or another process was faster
        if marked and stat.S_ISDIR(status.st_mode) and status.st_mtime < oldest:
            shutil.rmtree(folder, ignore_errors=True)


@cache
def folder() -> Path | None:
    """Return the folder for machine code of this process, or None if unavailable."""
    here = Path(__file__).parents[1]
    digest = digest_of((here / name for name in MACHINERY), build_facts())
    candidates = (usable_folder(root, digest) for root in roots())
    return next((path for path in candidates if path is not None), None)


class KernelFile:
    """The machine code of one kernel on disk, with the interface of Numba's caches."""

    # The last error of this process when it stored machine code.
    failure: OSError | None = None

    def __init__(
        self, folder: Path | None, name: str, on_miss: Callable[[], object] = object
    ) -> None:
        self.cache_path = str(folder)
        self._file = None if folder is None else folder / f"{name}.bin"
        # Called before the kernel is compiled, as no valid file of it was found.
        self._on_miss = on_miss

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function in the file; None without a valid one."""
        loaded = self._load(target_context)
        if loaded is None:
            self._on_miss()
        return loaded

    def _load(self, target_context: Any) -> Any:
        from numba.core import compiler

        content = self._read()
        if content is None:
            return None
        import pickle

        # Loaded code may refer to symbols that the context registers only on refresh.
        target_context.refresh()
        untyped: Any = compiler
        try:
            # Not writable by others: `_read` checked the file that it opened.
            parts = pickle.loads(content)  # noqa: S301  # own file, digest compared
            return untyped.CompileResult._rebuild(target_context, *parts)
        except Exception:  # complete, but of another build: recompile
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a compiled function; do nothing if the folder is not writable."""
        from numba.core import serialize

        if self._file is None:
            return
        untyped: Any = serialize
        content = untyped.dumps(data._reduce())
        part = None
        try:
            with tempfile.NamedTemporaryFile(
                dir=self._file.parent, prefix="new-", delete=False
            ) as part:
                part.write(hashlib.sha256(content).digest() + content)
            os.replace(part.name, self._file)
        except OSError as error:
            KernelFile.failure = error
            return
        finally:
            # The file is missing after a rename; after an error it would remain unused.
            if part is not None:
                with suppress(OSError):
                    os.unlink(part.name)

    def flush(self) -> None:
        """Remove the stored function; required by Numba's interface."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)

    def _read(self) -> bytes | None:
        if self._file is None:
            return None
        try:
            with open(self._file, "rb", opener=_carefully) as file:
                status = os.fstat(file.fileno())
                if not (stat.S_ISREG(status.st_mode) and is_private(status)):
                    return None
                stored = file.read()
        except OSError:
            return None
        digest, content = stored[:32], stored[32:]
        return content if hashlib.sha256(content).digest() == digest else None


def _carefully(path: str, flags: int) -> int:
    return os.open(path, flags | CAREFULLY)
