"""Places: the call in a user's file that made an object."""

import sys
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import FrameType

# The frames of these modules are not the user's.
_OURS = __name__.removesuffix("base.place")


@dataclass(frozen=True, slots=True)
class Place:
    """A call in a source file.

    Lines count from 1, columns from 0, in bytes of UTF-8. Without debug ranges of the
    interpreter (`python -X no_debug_ranges`) only `line` is known, and the others are
    None.
    """

    file: str
    line: int
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None


def place_of_call() -> Place:
    """Return the innermost call of a function of the harness by other code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    if frame is None:
        return Place("<unknown>", 0)
    code = frame.f_code
    # An instruction has two bytes.
    positions = next(islice(code.co_positions(), frame.f_lasti // 2, None), None)
    if positions is None or None in positions:
        return Place(code.co_filename, frame.f_lineno)
    line, end_line, column, end_column = positions
    return Place(code.co_filename, line or 0, end_line, column, end_column)


def near(file: str | Path) -> str:
    """Return the path of a file from the working directory, if it is in there."""
    with suppress(ValueError, OSError):
        return str(Path(file).relative_to(Path.cwd()))
    return str(file)


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith(_OURS)
