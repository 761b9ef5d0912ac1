"""How much an exploration may cost, and the meter that says when it is spent.

True only here: a budget ends a run between two letters, never inside one; what was
explored until then stands, and the exploration says that it is not complete.

Rules: the clock is read only every `STRIDE` letters, and only when somebody waits for
it (a limit in seconds, or a progress callback).
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Receives the letters executed and planned, now and then and at the end."""

# Reading a clock costs as much as a null step; 64 real steps are about a millisecond.
STRIDE = 64


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits: letters played by the strategies, and seconds of everything.

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


class Meter:
    """Counts letters against a budget; raises `Spent`."""

    __slots__ = ("_budget", "_ends", "_next", "_progress", "edges", "planned", "start")

    def __init__(self, budget: Budget, progress: Progress | None) -> None:
        self._budget = budget
        self._progress = progress
        self._next = STRIDE
        self.start = monotonic()
        self._ends = None if budget.seconds is None else self.start + budget.seconds
        self.edges = 0
        self.planned = 0
        if budget.steps is not None:
            self._next = min(self._next, budget.steps)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return monotonic() - self.start

    def count(self, letters: int = 1) -> None:
        """Note that this many letters of the plan are about to be played."""
        if self.edges + letters > self._next:
            self._tick(letters)
        self.edges += letters

    def check_time(self) -> None:
        """Raise `Spent` when the time is over (for passes outside of the plan)."""
        if self._ends is not None and monotonic() > self._ends:
            raise Spent(f"the budget of {self._budget.seconds} seconds is spent")

    def tell(self) -> None:
        """Call the progress callback, if there is one."""
        if self._progress is not None:
            self._progress(self.edges, self.planned)

    def _tick(self, letters: int) -> None:
        limit = self._budget.steps
        if limit is not None and self.edges + letters > limit:
            raise Spent(f"the budget of {limit:,} steps is spent")
        self.check_time()
        self.tell()
        self._next = self.edges + letters + STRIDE
        if limit is not None:
            self._next = min(self._next, limit)
