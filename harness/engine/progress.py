"""The operation that is being played, in memory that another process can read.

The process that explores writes each operation just before it plays it.  The watching
process reads the memory when the explorer has died or hangs, and so can name the
operation.

Rules:
- a beat is two stores of small integers (100 ns), because there is one for each
  operation and each look; without a watching process it is skipped altogether;
- cells are never erased, so the memory is valid whenever the writer ends; a reader sees
  the last `TAIL` operations at most;
- while the engine plans, sorts or shrinks between two operations it notes `rest`, so
  that this is not mistaken for an operation that hangs.

How it works: the memory is `CELLS` integers of 64 bits.  The first `TAIL` are a ring of
operations, in which the n-th beat is at n modulo `TAIL`; then follow the number of
beats, and the progress (operations played and planned).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

# Operations that can be read afterwards; a power of two.  Refuting histories of real
# registries have two to five operations; a longer one has to be replayed.
TAIL = 64

# Cells of the number of beats, and of the progress.
COUNT = TAIL
DONE = TAIL + 1
PLANNED = TAIL + 2
CELLS = TAIL + 3
BYTES = 8 * CELLS

# Added to the number of a step that is undone; operations are below 256.
UNDO = 1 << 8

# Beats that are not operations of the system.
RESET = 1 << 9
REST = 1 << 10


class OperationMark(NamedTuple):
    """One operation; with `undo` it is an active step that is being undone.

    `RESET` marks the creation of a fresh system.
    """

    operation: int
    undo: bool = False


@dataclass(frozen=True, slots=True)
class ProgressTrail:
    """The number of beats, and the last of them.

    `beats` are those since the last fresh system; the first one is its creation, if it
    is still in the ring.  `resting` means that the last operation has ended and the
    engine does its own work.  `done` and `planned` are the progress, in operations.
    """

    count: int
    beats: tuple[OperationMark, ...]
    resting: bool
    done: int
    planned: int


class ProgressWriter:
    """The writer's end of the memory."""

    __slots__ = ("_cells", "_count", "_first")

    def __init__(self, cells: memoryview) -> None:
        self._cells = cells
        self._count: int = cells[COUNT]
        # Older beats belong to another exploration.
        self._first = self._count

    def beat(self, operation: int) -> None:
        """Record that this operation is about to be played; `+ UNDO` for an undo."""
        self._count = count = self._count + 1
        cells = self._cells
        cells[count % TAIL] = operation
        cells[COUNT] = count

    def reset(self) -> None:
        """Record that a fresh system is about to be created."""
        self.beat(RESET)

    def rest(self) -> None:
        """Record that the engine does its own work until the next beat."""
        self.beat(REST)

    def progress(self, done: int, planned: int) -> None:
        """Record how much of the plan is played; has the signature of `Progress`."""
        self._cells[DONE] = done
        self._cells[PLANNED] = planned

    def trail(self) -> ProgressTrail:
        """Return the last beats of this exploration."""
        return read(self._cells, self._first)


# At most one process watches the explorations of this one.
_current: ProgressWriter | None = None


def current() -> ProgressWriter | None:
    """Return the writer for beats, if this process is watched."""
    return _current


@contextmanager
def watched(cells: memoryview) -> Iterator[ProgressWriter]:
    """Let explorations in this context write beats to `cells` (`CELLS` of format Q)."""
    global _current
    before, _current = _current, ProgressWriter(cells)
    try:
        yield _current
    finally:
        _current = before


def count(cells: memoryview) -> int:
    """Return the number of beats: it changes as long as operations are played."""
    number: int = cells[COUNT]
    return number


def read(cells: memoryview, since: int = 0) -> ProgressTrail:
    """Return the last beats in `cells`, without those up to number `since`."""
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
