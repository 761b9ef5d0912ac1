"""Compile the common kernels ahead, in several processes.

    common_kernels()            the kernels of usual programs: name and dtypes
    compile_kernels(kernels)    compiles those that are not stored, and stores them

A program that meets its kernels one by one compiles them one by one, in one thread.
After this, its first run loads machine code only.  The list is data,
`common_kernels.txt`, written by `python -m tests.tools.common_kernels --write` from
programs that train small models; one kernel in each line, sorted.
"""

import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from threading import current_thread, main_thread
from typing import NamedTuple

from everyorder.runtime.kernels.compile.cache import KernelFile
from everyorder.runtime.kernels.compile.jit import FAMILIES, Family
from everyorder.runtime.kernels.compile.notice import NOTICE
from everyorder.runtime.kernels.cpu import KERNELS

LIST = Path(__file__).with_name("common_kernels.txt")


class KernelName(NamedTuple):
    """The name of a family, and the dtypes of one of its kernels."""

    family: str
    dtypes: tuple[str, ...]


class Compiled(NamedTuple):
    """A kernel that is now stored, and the seconds it took; 0 if it was before."""

    kernel: KernelName
    seconds: float


def common_kernels() -> list[KernelName]:
    """Return the kernels of usual programs."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return [KernelName(name, tuple(dtypes)) for name, *dtypes in map(str.split, lines)]


def compile_kernels(
    kernels: Sequence[KernelName], processes: int
) -> Iterator[Compiled]:
    """Yield each kernel when it is stored; compile in so many processes.

    Raises:
        BrokenProcessPool: a process was ended from outside. KeyError: there is no
        family of that name. OSError: machine code cannot be stored. Exception: a kernel
        does not compile.
    """
    executor = ProcessPoolExecutor(processes, get_context("spawn"), _start)
    try:
        with _deaf():
            tasks = [executor.submit(_compile, each) for each in kernels]
        for task in as_completed(tasks):
            yield task.result()
    finally:
        executor.shutdown(cancel_futures=True)


@contextmanager
def _deaf() -> Iterator[None]:
    """Ignore Ctrl-C, so that processes that are started ignore it.

    The process that asked for the kernels handles it, and ends them.
    """
    if current_thread() is not main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _start() -> None:
    """Prepare a process that compiles."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    NOTICE.is_shown = False


def families() -> dict[str, Family]:
    """Return all families of kernels for the CPU by name."""
    assert KERNELS, "the modules of all families are imported with their table"
    return dict(FAMILIES)


def _compile(kernel: KernelName) -> Compiled:
    before = NOTICE.seconds
    dtypes = kernel.dtypes
    _ = FAMILIES[kernel.family][dtypes[0] if len(dtypes) == 1 else dtypes]
    if KernelFile.failure is not None:
        raise KernelFile.failure
    return Compiled(kernel, NOTICE.seconds - before)
