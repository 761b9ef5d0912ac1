"""Warnings of children are printed once, not once by each child.

A process remembers which warnings it has printed, and the next child does not know
that.  So the text and the line of each printed warning belong to what a system learns
(`LearnedState`).  Filters apply as ever, and a warning that is an error is raised.
"""

import warnings
from collections.abc import Iterable
from typing import Any, TextIO

from everyorder.harness.state.c_call_audit import pause_call_audit

# The class, the file, the line and the text of a warning.
PrintedWarning = tuple[str, str, int, str]

# In a module, not in an object: a state may hold the function that shows warnings.
_printed: set[PrintedWarning] = set()
_original = warnings.showwarning
_implementation = vars(warnings)["_showwarnmsg_impl"]


def print_once(known: Iterable[PrintedWarning]) -> None:
    """Print no warning again in this process that is known, or was printed here.

    Where warnings are recorded, as in a test, this has no effect.
    """
    _printed.update(known)
    if vars(warnings)["_showwarnmsg_impl"] is not _implementation:
        return
    if warnings.showwarning is _original:
        warnings.showwarning = _show


def print_none() -> None:
    """Print no warnings in this process: another one has printed the same."""
    if vars(warnings)["_showwarnmsg_impl"] is _implementation:
        warnings.showwarning = _ignore


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
    printed = category.__qualname__, filename, lineno, str(message)
    if printed not in _printed:
        _printed.add(printed)
        with pause_call_audit():
            _original(message, category, filename, lineno, file, line)


def _ignore(*args: Any, **kwargs: Any) -> None:
    """Print nothing."""
