"""Machine code on disk: one file for each compiled kernel, found by its content.

True only here: where files lie and when they are believed.  Numba's own cache asks
for the file and time of the outermost function only, so it misses edits of what that
function calls, shares entries between option sets, and follows the user's settings.
Here the folder is named by everything about the compiler that machine code depends on,
and the file by the kernel, its types and its content, down to the last function that
it calls (`runtime.kernels.jit.digest`); a change of any of them is another name.

Rules:
- folder = root / digest of the modules that drive the compiler (`MACHINERY`), of the
  versions of Numba, llvmlite, NumPy and Python, of the processor and of code-changing
  settings; an edit of one kernel leaves the files of all others valid;
- root = `EVERYORDER_CACHE_DIR`, or the platform's folder for caches, or a private
  folder under the temporary one; if none can be written nothing is kept, silently;
- a file begins with the SHA-256 of the rest and is written whole under another name,
  then renamed: processes may share a folder, a damaged file is compiled anew;
- a folder whose digest nobody has used for 30 days is removed when a new one is made.

One file holds one signature of one function, so the faults that need a folder for
each process (an index that two processes write) cannot arise.
"""

import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

# Compiled kernels of a version that nobody runs any more: a month covers a branch
# that was left and taken up again.
UNUSED_DAYS = 30

# What decides how a body is compiled, beside the body itself.
MACHINERY = ("cache.py", "jit.py", "math/primitive.py")

# SHA-256, shortened to 128 bits for names of folders.
DIGEST_LENGTH = 32


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


def usable_folder(root: Path, digest: str) -> Path | None:
    """The folder of this digest below the root, made if it must be.

    None if it cannot be written, or if the root belongs to somebody else: files in it
    are executed.
    """
    folder = root / digest
    try:
        fresh = not folder.is_dir()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
            return None
        os.utime(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        return None
    if fresh:
        prune(root, keep=digest)
    return folder


def prune(root: Path, keep: str) -> None:
    """Remove the folders of other digests that were not used for `UNUSED_DAYS`."""
    oldest = time.time() - UNUSED_DAYS * 86_400
    for folder in root.iterdir():
        name = folder.name
        is_digest = len(name) == DIGEST_LENGTH and not set(name) - set(
            "0123456789abcdef"
        )
        try:
            if is_digest and name != keep and folder.lstat().st_mtime < oldest:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # another process was faster


@cache
def folder() -> Path | None:
    """Where this process keeps machine code; None if it cannot be kept."""
    here = Path(__file__).parent
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
        try:
            with tempfile.NamedTemporaryFile(
                dir=self._file.parent, prefix="new-", delete=False
            ) as part:
                part.write(hashlib.sha256(content).digest() + content)
            os.replace(part.name, self._file)
        except OSError:
            return

    def flush(self) -> None:
        """Forget what is on disk; part of what Numba expects of a cache."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)

    def _read(self) -> bytes | None:
        if self._file is None:
            return None
        try:
            stored = self._file.read_bytes()
        except OSError:
            return None
        digest, content = stored[:32], stored[32:]
        return content if hashlib.sha256(content).digest() == digest else None
