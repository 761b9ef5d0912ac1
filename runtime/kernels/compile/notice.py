"""Tell people that kernels are being compiled, so that they do not wait for nothing.

A program that uses many kernels for the first time on a machine takes seconds longer
than ever after.  Once the compilations of a process have taken `SHOWN_AFTER` seconds,
each further one has a line on standard error while it lasts, if that is a terminal; the
line is erased when the kernel is ready.  The logger `everyorder.runtime.kernels` names
each compiled kernel and its seconds, at the level DEBUG.

The line is below the one that the program writes, which may be unfinished: the cursor
returns to it at once, and only what is behind the cursor is erased.
"""

import logging
import os
import sys
from contextlib import suppress
from time import perf_counter

LOG = logging.getLogger("everyorder.runtime.kernels")

# Seconds of compiling in one process that need no explanation.
SHOWN_AFTER = 2.0
# The last column stays empty: some terminals would begin a new line after it.
WIDTH = 79
# Make room for a line below (a line down in the same column, which may scroll, and up
# again), save the position of the cursor, and go to the first column of that line.
_BELOW = "\x1bD\x1b[A\x1b7\r\n\x1b[K"
# Return to the saved position.
_BACK = "\x1b8"
# Erase what is behind the cursor, and all lines below.
_ERASE = "\x1b[J"


class CompileNotice:
    """The compilations of this process; `begin` and `end` are called under a lock."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        # False: the one who asked for the kernels shows how far it is.
        self.is_shown = True
        self._title = ""
        self._begun: float | None = None
        self._shown = False

    def begin(self, title: str) -> None:
        """Note that a kernel is being compiled, and show it if it is time to."""
        self._title, self._begun = title, perf_counter()
        if self.is_shown and self.seconds >= SHOWN_AFTER:
            text = (
                f"compiling kernels, once for this machine: {self.count} in "
                f"{self.seconds:.0f} s, now {title}"
            )
            self._shown = _write(_BELOW + text[:WIDTH] + _BACK)

    def end(self) -> None:
        """Note that it is ready, or has failed; do nothing if none was begun."""
        if self._begun is None:
            return
        took, self._begun = perf_counter() - self._begun, None
        self.count += 1
        self.seconds += took
        LOG.debug("compiled %s in %.2f s", self._title, took)
        if self._shown:
            self._shown = False
            _write(_ERASE)


def _write(text: str) -> bool:
    """Write to standard error if it is a terminal; return whether it was written."""
    # Without a name, or "dumb", it does not know how to move its cursor.
    if os.environ.get("TERM", "dumb") == "dumb":
        return False
    # Without a console it is None, and a program may have closed it.
    with suppress(AttributeError, OSError, ValueError):
        if sys.stderr.isatty():
            sys.stderr.write(text)
            sys.stderr.flush()
            return True
    return False


NOTICE = CompileNotice()
