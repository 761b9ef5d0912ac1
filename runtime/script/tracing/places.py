"""Places: where in the source of the caller an operator was called.

True only here: which frame is the caller's.

Rules:
- code of the runtime, and code that has no file, is nobody's place;
- a file is read as it was when it was imported (`linecache`); one that cannot be read
  has no places.
"""

import linecache
import sys
from dataclasses import dataclass
from functools import lru_cache
from types import FrameType

from runtime.errors.source import Source
from runtime.script.ir import Place

_OURS = __name__.partition(".")[0]
# Files of programs that are traced.
REMEMBERED = 64


@dataclass(slots=True)
class _Position:
    """A place as Python's syntax trees have it."""

    lineno: int
    col_offset: int
    end_lineno: int | None
    end_col_offset: int | None


@lru_cache(maxsize=REMEMBERED)
def _source(text: str, file: str) -> Source:
    return Source(text, file)


def caller() -> FrameType | None:
    """The innermost frame that is not of the runtime."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        file = frame.f_code.co_filename
        if name is not None and name.partition(".")[0] != _OURS and file[:1] != "<":
            return frame
        frame = frame.f_back
    return None


def place_of_caller() -> Place | None:
    """The place of the call that a frame which is not of the runtime is at now."""
    frame = caller()
    if frame is None:
        return None
    file = frame.f_code.co_filename
    lines = linecache.getlines(file, frame.f_globals)
    positions = list(frame.f_code.co_positions())
    line, end, column, end_column = positions[frame.f_lasti // 2]
    if not lines or line is None or end is None or line > len(lines):
        return None
    source = _source("".join(lines), file)
    if column is None or end_column is None:
        column, end_column = 0, len(lines[end - 1].encode())
    return Place(source, source.span(_Position(line, column, end, end_column)))
