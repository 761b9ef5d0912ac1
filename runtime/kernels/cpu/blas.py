"""Products by NumPy's BLAS on threads of ours.

True only here: BLAS never uses its own threads for a product of ours.  Its threads spin
while they wait for each other, so that a product of 64 by 64 by 128, which one thread
does in 10 us, took 20 ms on busy cores; and `set_num_threads` would not govern them.
While products of ours run, BLAS is set to one thread, and we cut the output.

Rules:
- the setting is the process's: the first product that begins saves it, the last that
  ends puts it back, in whatever order threads come and go (0.5 us a product); a product
  that is not ours takes one thread meanwhile;
- a product too small for BLAS's own threads is not cut, and nothing is set;
- a child that was forked in the middle of a product puts the setting back;
- only the OpenBLAS that NumPy's wheels carry is known; with another library, products
  are NumPy's own, and so is the number of their threads.
"""

import os
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from runtime.kernels.threads import parallel_for

Array = Any

# Multiplications up to which OpenBLAS takes one thread, of matrices of real numbers:
# SMP_THRESHOLD_MIN times GEMM_MULTITHREAD_THRESHOLD in its interface/gemm.c.
SMALL = 1 << 18

# The same for vectors and complex numbers: below what was seen on two threads.
THIN = 1 << 12

# Multiplications for a thread: 20 us of float32, ten times a hand-over.
GRAIN = 1 << 20

# Rows or columns for a thread: what the inner loops of BLAS take at once, or twice it.
LINES = 16


# dtype name -> the product of matrices in the C interface with 64-bit sizes.
GEMM = {"float32": "scipy_cblas_sgemm64_", "float64": "scipy_cblas_dgemm64_"}


class Setting:
    """How many threads BLAS takes: one while anybody multiplies."""

    __slots__ = ("addresses", "before", "depth", "lock", "read", "write")

    def __init__(
        self,
        read: Callable[[], int],
        write: Callable[[int], object],
        addresses: dict[str, int] | None = None,
    ) -> None:
        self.read = read
        self.write = write
        # dtype name -> where its product of matrices is, if sizes have 64 bits there.
        self.addresses = addresses or {}
        self.depth = 0
        self.before = 1
        self.lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forked)

    def enter(self) -> None:
        """A product begins."""
        with self.lock:
            if not self.depth:
                self.before = self.read()
                self.write(1)
            self.depth += 1

    def leave(self) -> None:
        """A product has ended."""
        with self.lock:
            self.depth -= 1
            if not self.depth:
                self.write(self.before)

    def forked(self) -> None:
        """The products of the parent's threads are none of the child's."""
        self.lock = threading.Lock()
        if self.depth:
            self.depth = 0
            self.write(self.before)


@cache
def setting() -> Setting | None:
    """The setting of the BLAS that NumPy has loaded; None if it is not known."""
    # Wheels for Linux and Windows, and for macOS.
    home = Path(np.__file__).parent
    for folder in (home.parent / "numpy.libs", home / ".dylibs"):
        for file in sorted(folder.glob("*scipy_openblas*")):
            if (found := setting_of(file)) is not None:
                return found
    return None


def setting_of(file: Path) -> Setting | None:
    """The setting of a library that is loaded; None if it has no such functions."""
    import ctypes

    try:
        # `PyDLL` keeps the interpreter lock: a call takes 0.1 us. What is not loaded
        # must not be by us, where the system can tell.
        library = ctypes.PyDLL(str(file), mode=getattr(os, "RTLD_NOLOAD", 0))
    except OSError:
        return None
    for suffix in ("64_", ""):
        write = getattr(library, f"scipy_openblas_set_num_threads{suffix}", None)
        read = getattr(library, f"scipy_openblas_get_num_threads{suffix}", None)
        if read is not None and write is not None:
            write.argtypes, write.restype = (ctypes.c_int,), None
            named = GEMM if suffix else {}
            found = {
                dtype: ctypes.cast(function, ctypes.c_void_p).value or 0
                for dtype, name in named.items()
                if (function := getattr(library, name, None)) is not None
            }
            return Setting(read, write, found)
    return None


def gemm_address(dtype: str) -> int | None:
    """Where the library's product of row-major matrices is; None if it is not known."""
    known = setting()
    return None if known is None else known.addresses.get(dtype)


def multiply(out: Array, a: Array, b: Array) -> None:
    """Matrices, or stacks of as many, that BLAS reads as they are."""
    rows, columns = out.shape[-2:]
    work = rows * columns * a.shape[-1]
    known = setting()
    # NumPy would warn of what NaN, infinities and overflow do.
    with np.errstate(all="ignore"):
        if known is None or (out.ndim == 2 and work <= _bound(out, a, b)):
            np.matmul(a, b, out)
            return
        known.enter()
        try:
            _cut(out, a, b, work)
        finally:
            known.leave()


def _bound(out: Array, a: Array, b: Array) -> int:
    """The multiplications up to which BLAS takes one thread by itself."""
    real = out.dtype.kind == "f" and out.shape[0] > 1 and out.shape[1] > 1
    # A matrix by its own transpose is another routine, with another bound.
    return SMALL if real and not np.may_share_memory(a, b) else THIN


def _cut(out: Array, a: Array, b: Array, work: int) -> None:
    """Cut the output by matrices, or by rows or columns, whichever are more."""
    rows, columns = out.shape[-2:]
    if out.ndim == 3 and out.shape[0] == 1:
        out, a, b = out[0], a[0], b[0]

    def matrices(lo: int, hi: int) -> None:
        np.matmul(a[lo:hi], b[lo:hi], out[lo:hi])

    def by_rows(lo: int, hi: int) -> None:
        np.matmul(a[lo:hi], b, out[lo:hi])

    def by_columns(lo: int, hi: int) -> None:
        np.matmul(a, b[:, lo:hi], out[:, lo:hi])

    if out.ndim == 3:
        parallel_for(out.shape[0], -(-GRAIN // max(work, 1)), matrices)
    elif rows >= columns:
        parallel_for(rows, max(LINES, GRAIN * rows // work), by_rows)
    else:
        parallel_for(columns, max(LINES, GRAIN * columns // work), by_columns)
