"""How much an exploration may cost, and the meter that says when it is spent.

True only here: a budget ends a run between two operations, never inside one; what was
explored until then stands, and the exploration says that it is not complete.

Rules: the clock is read only every `STRIDE` operations, and only when somebody waits
for it (a limit in seconds, or a progress callback).
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Receives the operations executed and planned, now and then and at the end."""

# Reading a clock costs as much as a null step; 64 real steps are about a millisecond.
STRIDE = 64


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits: operations played by the strategies, and seconds of everything.

    `steps` also decides what "auto" chooses.  None means no limit.
    """

    steps: int | None = None
    seconds: float | None = None


# What "auto" gets when nobody says: walk:2 up to 8 steps, walk:1 up to 10, walk:0 and
# graph up to 14; minutes at most on a system of 100 microseconds a step.
DEFAULT = Budget(steps=250_000)


class Spent(Exception):
    """The run cannot go on; the session ends it in good order and tells the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Halt(Exception):
    """Enough violations were found."""


class Meter:
    """Counts operations against a budget; raises `Spent`."""

    __slots__ = (
        "_budget",
        "_ends",
        "_halts",
        "_next",
        "_progress",
        "planned",
        "start",
        "transitions",
    )

    def __init__(self, budget: Budget, progress: Progress | None) -> None:
        self._budget = budget
        self._progress = progress
        self._next = STRIDE
        self.start = monotonic()
        self._ends = None if budget.seconds is None else self.start + budget.seconds
        self.transitions = 0
        self._halts: int | None = None
        self.planned = 0
        if budget.steps is not None:
            self._next = min(self._next, budget.steps)

    @property
    def left(self) -> int | None:
        """Operations that are left of the budget; None without a limit."""
        limit = self._budget.steps
        return None if limit is None else max(limit - self.transitions, 0)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return monotonic() - self.start

    def count(self, operations: int = 1) -> None:
        """Note that this many operations of the plan are about to be played."""
        if self.transitions + operations > self._next:
            self._tick(operations)
        self.transitions += operations

    def hurry(self, operations: int) -> None:
        """Halt after so many operations more, whatever the budget."""
        self._halts = self.transitions + operations
        self._next = min(self._next, self._halts)

    def check_time(self) -> None:
        """Raise `Spent` when the time is over (for passes outside of the plan)."""
        if self._ends is not None and monotonic() > self._ends:
            raise Spent(f"the budget of {self._budget.seconds} seconds is spent")

    def tell(self) -> None:
        """Call the progress callback, if there is one."""
        if self._progress is not None:
            self._progress(self.transitions, self.planned)

    def _tick(self, operations: int) -> None:
        if self._halts is not None and self.transitions >= self._halts:
            raise Halt
        limit = self._budget.steps
        if limit is not None and self.transitions + operations > limit:
            raise Spent(f"the budget of {limit:,} steps is spent")
        self.check_time()
        self.tell()
        self._next = self.transitions + operations + STRIDE
        for end in (limit, self._halts):
            if end is not None:
                self._next = min(self._next, end)
