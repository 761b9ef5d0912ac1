"""Warnings of children are printed once, not once by each child.

A process remembers which warnings it has printed, and the next child does not know
that.  So the text and the line of each printed warning belong to what a system learns
(`LearnedState`).  A warning that is an error is raised as ever; one that is recorded,
or printed elsewhere than into the error stream of the process, is left alone.
"""

import sys
import warnings
from collections.abc import Iterable
from typing import TextIO

from everyorder.harness.state.c_call_audit import pause_call_audit

# The class, the file, the line and the text of a warning.
PrintedWarning = tuple[str, str, int, str]

# So many are remembered; more are printed by each child.
MOST = 200

# In a module, not in an object: a state may hold the function that shows warnings.
_printed: set[PrintedWarning] = set()
_silent = False
_stream: TextIO | None = None
_original = warnings.showwarning
_implementation = vars(warnings).get("_showwarnmsg_impl")
_format = warnings.formatwarning


def print_once(known: Iterable[PrintedWarning]) -> None:
    """Print no warning again in this process that is known, or was printed here.

    Where warnings are recorded, or a hook shows them, this has no effect.
    """
    global _stream
    _printed.update(known)
    if warnings.showwarning is _show:
        _stream = sys.stderr
        return
    recorded = vars(warnings).get("_showwarnmsg_impl") is not _implementation
    if not recorded and warnings.showwarning is _original:
        _stream = sys.stderr
        warnings.showwarning = _show


def print_here() -> None:
    """Print warnings of this process, each once, though a test runner records them.

    The caller restores `warnings.showwarning`.
    """
    global _stream
    _stream = sys.stderr
    warnings.showwarning = _show


def print_none() -> None:
    """Print no warnings in this process: another one has printed the same."""
    global _silent
    _silent = True
    print_once(())


def printed() -> frozenset[PrintedWarning]:
    """Return the warnings that were printed here, and those known before."""
    return frozenset(_printed)


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    shown = message, category, filename, lineno, file, line
    if sys.stderr is not _stream or warnings.formatwarning is not _format:
        _original(*shown)
        return
    mark = category.__qualname__, filename, lineno, str(message)
    if _silent or mark in _printed or _stream is None:
        return
    if len(_printed) < MOST:
        _printed.add(mark)
    with pause_call_audit():
        # Not by the original, which a test runner makes record.
        text = warnings.formatwarning(message, category, filename, lineno, line)
        (file or _stream).write(text)
