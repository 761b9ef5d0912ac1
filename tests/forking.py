"""Forks in tests: a child that answers by its exit status, or is ended.

True only here: what every forking test needs beside `os.fork`.

Rules:
- nobody traces while a process is forked, nor in the child: a tracer (coverage) has
  locks, which another thread may hold then, and the child would wait for ever;
- a child ends after `SECONDS` at the latest, by a signal, which counts as no;
- a child leaves by `os._exit`: the tests after this one are the parent's.
"""

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress

import pytest

# A child that has not answered by then waits for ever.
SECONDS = 20

needs_fork = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="the platform cannot fork"
)


def fork() -> int:
    """`os.fork`, untraced: 0 in the child, which has `SECONDS`."""
    tracer = sys.gettrace()
    sys.settrace(None)
    with warnings.catch_warnings():
        # Python warns of forks beside threads: that they work is what is tested.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        sys.settrace(tracer)
    else:
        signal.alarm(SECONDS)  # ends the process
        threading.settrace(None)
    return child


def ended_well(child: int) -> bool:
    """Wait for a child: whether it exited with 0."""
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0


def in_child(check: Callable[[], bool]) -> bool:
    """What the check says in a forked child; False if it raises or waits for ever."""
    child = fork()
    if not child:
        good = False
        try:
            good = check()
        finally:
            os._exit(0 if good else 1)
    return ended_well(child)


def free_logging() -> None:
    """Let go of what an interrupt within `logging` keeps: a fork would wait for it."""
    with suppress(RuntimeError):
        while True:
            logging._lock.release()  # type: ignore[attr-defined]  # not public
