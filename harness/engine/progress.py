"""The operation that is being played, in memory that another process can read.

The process that explores writes each operation just before it plays it; the process
that watches reads it when the other one has died or stands still, and so can name the
operation.

Rules:
- a beat is two stores of small integers (100 ns), because there is one for each
  operation and each look; it is skipped altogether where nobody watches;
- nothing is ever erased, so what is read is sound whenever the writer ends; a reader
  sees the last `TAIL` operations at most;
- while the engine plans, sorts or shrinks between two operations it notes `rest`, so
  that this is not mistaken for an operation that hangs.

How it works: the memory is `CELLS` integers of 64 bits.  The first `TAIL` are a ring of
operations, in which the n-th beat stands at n modulo `TAIL`; then come the number of
beats, and the progress (operations played and planned).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

# Operations that can be seen afterwards; a power of two.  Refuting histories of real
# registries have two to five, and whoever wants all of a longer one replays it.
TAIL = 64

# Where the number of beats stands, and the progress.
COUNT = TAIL
DONE = TAIL + 1
PLANNED = TAIL + 2
CELLS = TAIL + 3
BYTES = 8 * CELLS

# Added to the number of a step that gets undone; operations are below 256.
UNDO = 1 << 8

# Beats that are no operations of the system.
RESET = 1 << 9
REST = 1 << 10


class OperationMark(NamedTuple):
    """One operation; `undo` says that it is a step, is active, and gets undone.

    `RESET` stands for the making of a fresh system.
    """

    operation: int
    undo: bool = False


@dataclass(frozen=True, slots=True)
class ProgressTrail:
    """How many beats there were, and the last of them.

    `beats` are those since the last fresh system; the making of that is the first one,
    as far as it can still be seen.  `resting` says that the last of them is over, and
    that the engine works for itself.  `done` and `planned` are the progress.
    """

    count: int
    beats: tuple[OperationMark, ...]
    resting: bool
    done: int
    planned: int


class ProgressWriter:
    """The writer's end."""

    __slots__ = ("_cells", "_count", "_first")

    def __init__(self, cells: memoryview) -> None:
        self._cells = cells
        self._count: int = cells[COUNT]
        # What is older is of another exploration.
        self._first = self._count

    def beat(self, operation: int) -> None:
        """Note that this operation is about to be played; `+ UNDO` for an undo."""
        self._count = count = self._count + 1
        cells = self._cells
        cells[count % TAIL] = operation
        cells[COUNT] = count

    def reset(self) -> None:
        """Note that a fresh system is about to be made."""
        self.beat(RESET)

    def rest(self) -> None:
        """Note that what follows is the engine's own work, until the next beat."""
        self.beat(REST)

    def progress(self, done: int, planned: int) -> None:
        """Note how much of the plan is played; fits as `Progress`."""
        self._cells[DONE] = done
        self._cells[PLANNED] = planned

    def trail(self) -> ProgressTrail:
        """The last beats of this exploration."""
        return read(self._cells, self._first)


# At most one process watches the explorations of this one.
_current: ProgressWriter | None = None


def current() -> ProgressWriter | None:
    """The pulse to beat, if this process is watched."""
    return _current


@contextmanager
def watched(cells: memoryview) -> Iterator[ProgressWriter]:
    """Context: explorations write their beats to these cells (`CELLS` of format Q)."""
    global _current
    before, _current = _current, ProgressWriter(cells)
    try:
        yield _current
    finally:
        _current = before


def count(cells: memoryview) -> int:
    """The number of beats: it changes as long as something happens."""
    number: int = cells[COUNT]
    return number


def read(cells: memoryview, since: int = 0) -> ProgressTrail:
    """The last beats, written by whatever process; none up to number `since`."""
    last = count(cells)
    beats: list[OperationMark] = []
    resting = last > since and cells[last % TAIL] == REST
    for number in range(last, max(last - TAIL, since), -1):
        code = cells[number % TAIL]
        if code != REST:
            beats.append(OperationMark(code & ~UNDO, bool(code & UNDO)))
        if code == RESET:
            break
    return ProgressTrail(
        last, tuple(reversed(beats)), resting, cells[DONE], cells[PLANNED]
    )
