"""Machine code on disk: one file for each compiled kernel, found by its content.

Numba's own cache asks for the file and time of the outermost function only, so it
misses edits of what that function calls, shares entries between option sets, and
follows the user's settings.  Here the folder is named by everything about the compiler
that machine code depends on, and the file by the kernel, its types and its content,
down to the last function that it calls (`runtime.kernels.compile.jit.digest`); a change
of any of them is another name.

Rules:
- folder = root / `kernels-` and the digest of the modules that drive the compiler
  (`MACHINERY`), of the versions of Numba, llvmlite, NumPy and Python, of the processor
  and of code-changing settings; an edit of one kernel leaves the files of all others
  valid;
- root = `EVERYORDER_CACHE_DIR`, or the platform's folder for caches, or a private
  folder under the temporary one; if none will do nothing is kept, silently;
- what is read is executed: root, folder and file must be ours, no links, and closed to
  the writing of others; the root must not lie where others could exchange it (see
  `is_private` and `is_safe_parent`), and of a file the one that was opened is asked;
- a file begins with the SHA-256 of the rest and is written whole under another name,
  then renamed: processes may share a folder, a damaged file is compiled anew;
- a folder that nobody has used for 30 days is removed when a new one is made; only one
  of ours, told by its name and by the file `MARKER` in it.

One file holds one signature of one function, so the faults that need a folder for each
process (an index that two processes write) cannot arise.
"""

import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

# Compiled kernels of a version that nobody runs any more: a month covers a branch
# that was left and taken up again.
UNUSED_DAYS = 30

# What decides how a body is compiled, beside the body itself.
MACHINERY = ("compile/cache.py", "compile/jit.py", "math/primitive.py")

# SHA-256, shortened to 128 bits for names of folders.
DIGEST_LENGTH = 32

# What our folders are called, and the file that says that they are ours.
PREFIX = "kernels-"
MARKER = "made-by-everyorder"

# A link is not followed, and a pipe not waited for, where the system can refuse to.
CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def roots() -> Iterator[Path]:
    """The folders that may hold the cache, in order of preference."""
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
    """The digest of the files, and of the facts."""
    total = hashlib.sha256(repr(facts).encode())
    for file in sources:
        total.update(f"\0{file.name}\0".encode())
        total.update(file.read_bytes())
    return total.hexdigest()[:DIGEST_LENGTH]


def build_facts() -> tuple[object, ...]:
    """Versions, processor and settings that decide what the compiler makes."""
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


def is_private(found: os.stat_result) -> bool:
    """Whether it is ours, and nobody else may write to it.

    True where the system knows no owners: there the user's folders are private.
    """
    if not hasattr(os, "geteuid"):
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022


def is_safe_parent(found: os.stat_result) -> bool:
    """Whether nobody else can exchange a folder of ours that lies in this one.

    True of a folder of ours or of the system's that not everybody may write to, and of
    one in which everybody may exchange only what is their own, as in `/tmp`.
    """
    if not hasattr(os, "geteuid") or found.st_mode & stat.S_ISVTX:
        return True
    return found.st_uid in (0, os.geteuid()) and not found.st_mode & 0o002


def private_folder(path: Path) -> bool:
    """Make the folder if there is none; whether it is one, and private."""
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    return stat.S_ISDIR(found.st_mode) and is_private(found)


def usable_folder(root: Path, digest: str) -> Path | None:
    """The folder of this digest below the root, made if it must be.

    None if it cannot be written, or if somebody else could put files into it: they are
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
    """Remove our other folders that were not used for `UNUSED_DAYS`."""
    oldest = time.time() - UNUSED_DAYS * 86_400
    for folder in root.iterdir():
        prefix, digest = folder.name[: len(PREFIX)], folder.name[len(PREFIX) :]
        if prefix != PREFIX or set(digest) - set("0123456789abcdef"):
            continue
        if len(digest) != DIGEST_LENGTH or folder.name == keep:
            continue
        try:
            found = folder.lstat()
            marked = stat.S_ISREG((folder / MARKER).lstat().st_mode)
        except OSError:
            continue  # not ours, or another process was faster
        if marked and stat.S_ISDIR(found.st_mode) and found.st_mtime < oldest:
            shutil.rmtree(folder, ignore_errors=True)


@cache
def folder() -> Path | None:
    """Where this process keeps machine code; None if it cannot be kept."""
    here = Path(__file__).parents[1]
    digest = digest_of((here / name for name in MACHINERY), build_facts())
    found = (usable_folder(root, digest) for root in roots())
    return next((path for path in found if path is not None), None)


class KernelFile:
    """The machine code of one kernel on disk; what Numba's dispatcher calls a cache."""

    def __init__(self, folder: Path | None, name: str) -> None:
        self.cache_path = str(folder)
        self._file = None if folder is None else folder / f"{name}.bin"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function in the file; None if there is none to be believed."""
        from numba.core import compiler

        content = self._read()
        if content is None:
            return None
        import pickle

        # The context registers what loaded code may refer to only when it is asked.
        target_context.refresh()
        untyped: Any = compiler
        try:
            # Ours, and nobody else's to write: `_read` asked the file that it opened.
            parts = pickle.loads(content)  # noqa: S301  # own file, digest compared
            return untyped.CompileResult._rebuild(target_context, *parts)
        except Exception:  # whole, but of another build: compiled anew
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function; does nothing where nothing can be written."""
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
        except OSError:
            return
        finally:
            # Gone if it was renamed; or else nobody would ever look for it.
            if part is not None:
                with suppress(OSError):
                    os.unlink(part.name)

    def flush(self) -> None:
        """Forget what is on disk; part of what Numba expects of a cache."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)

    def _read(self) -> bytes | None:
        if self._file is None:
            return None
        try:
            with open(self._file, "rb", opener=_carefully) as file:
                found = os.fstat(file.fileno())
                if not (stat.S_ISREG(found.st_mode) and is_private(found)):
                    return None
                stored = file.read()
        except OSError:
            return None
        digest, content = stored[:32], stored[32:]
        return content if hashlib.sha256(content).digest() == digest else None


def _carefully(path: str, flags: int) -> int:
    return os.open(path, flags | CAREFULLY)
