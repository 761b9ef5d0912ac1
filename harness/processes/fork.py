"""Forking a process, its end with its parent, and how a child has ended.

Rules:
- a forked child runs one function and exits: it never returns to its parent's code, and
  runs none of the parent's callbacks at exit;
- the streams are flushed before a fork, so that a child neither repeats nor loses their
  contents;
- a signal by which a user ends a command is handled by the parent only: a child
  ignores Ctrl-C, and runs no handler of its parent;
- on Linux the kernel ends a child with its parent (`end_with_parent`);
- a child that is killed is killed with its process group, before it is waited for: its
  process id, which may be the number of its group, is reserved until then.
"""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from time import monotonic, sleep
from typing import NoReturn

CAN_FORK = hasattr(os, "fork")

# The signals by which users end a command.
_ENDING: frozenset[int] = frozenset({signal.SIGINT, signal.SIGTERM})

_SET_PDEATHSIG = 1  # prctl(2)

# Interval of checking whether a child has ended: most end within a millisecond.
_REAP_SECONDS = 0.001


def fork(run: Callable[[], object], *, traced: bool = True) -> int:
    """Return the process id of a fork of this process that runs `run`, and exits.

    Its exit code is 0, or 1 if `run` raised; a traceback is printed unless the parent
    is gone. Unless `traced`, no tracer and profiler runs in it.

    Python 3.12 warns of a fork with threads. The warning is about locks that threads
    hold. The important ones (of imports, logging, the interpreter's streams) are
    created again in a child, which has separate streams and pipes; a child that waits
    for another lock exceeds its time limit, and is reported with its stack.
    """
    import warnings

    flush_streams()
    prctl()  # looked up once, here, rather than in every child
    tracer, profiler = sys.gettrace(), sys.getprofile()
    # A profiler written in C (`cProfile`) could not be set again.
    traced = traced or not (profiler is None or callable(profiler))
    # The mask is read before it is changed: if a handler raises during the change,
    # `blocked` already has the mask to restore.
    pid, blocked = 0, signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
            if not traced:
                sys.settrace(None)
                sys.setprofile(None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if not pid:
                _run(run, blocked)
        finally:
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            finally:
                if not traced:
                    sys.settrace(tracer)
                    sys.setprofile(profiler)
    except BaseException:  # no fork, or Ctrl-C, which was blocked until here
        if pid:
            kill(pid)
        raise
    return pid


def _run(run: Callable[[], object], blocked: set[int]) -> NoReturn:
    """Run the child; `blocked` are the signals that it blocks."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        # Signals that have arrived were sent to the parent: ignoring them drops them.
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        run()
        code = 0
    except (BrokenPipeError, EOFError):  # the parent is gone
        pass
    except BaseException:
        with suppress(Exception):
            import traceback

            traceback.print_exc()
    finally:
        try:
            _save_coverage()
            flush_streams()
        finally:
            os._exit(code)


def flush_streams() -> None:
    """Flush the streams."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(Exception):
            if stream is not None:
                stream.flush()


@cache
def prctl() -> Callable[..., int] | None:
    """Return the system call that ends a process with its parent, or None."""
    if sys.platform == "linux":
        with suppress(ImportError, OSError, AttributeError):
            from ctypes import CDLL

            prctl: Callable[..., int] = CDLL(None).prctl
            return prctl
    return None


def end_with_parent(parent: int) -> bool:
    """Have the kernel end this process with its parent; return True if it can."""
    call = prctl()
    ends = call is not None and not call(_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it has died already
        os._exit(1)
    return ends


def reap(pid: int, seconds: float = 0.0) -> int | None:
    """Return the exit code of a child; None if it runs after so many seconds.

    The code of a child that died of a signal is negative.

    Raises:
        ChildProcessError: there is no such child, or another caller has waited for it.
    """
    end = monotonic() + seconds
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if monotonic() >= end:
            return None
        sleep(_REAP_SECONDS)


def kill(pid: int) -> int:
    """Kill a child with its process group; return its exit code.

    The code is that of SIGKILL if another caller has waited for the child.
    """
    assert pid > 0, "0 is the process group of the caller"
    for send in (os.killpg, os.kill):
        with suppress(OSError):
            send(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return -signal.SIGKILL


def exit_text(code: int) -> str:
    """Return "exit code 0" or "signal 9, Killed"."""
    if code >= 0:
        return f"exit code {code}"
    name = signal.strsignal(-code)
    return f"signal {-code}" + (f", {name}" if name else "")


def _save_coverage() -> None:
    """Save the coverage of a child, if each process writes a separate file.

    `coverage run --parallel-mode` and pytest-cov do; with `patch = _exit` it is saved
    anyway.
    """
    module = sys.modules.get("coverage")
    with suppress(Exception):
        measured = None if module is None else module.Coverage.current()
        if measured is not None and measured.get_option("run:parallel"):
            measured.save()
