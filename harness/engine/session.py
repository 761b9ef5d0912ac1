"""One exploration in progress: its plays, findings and budget.

It separates the operations that a strategy plans (`transition`, `play_history`: counted
against plan and budget) from additional ones (`play_setup`, `check_history`: executed
with the same checks, not counted as transitions of the plan).

Rules:
- a look follows every operation of `transition` and `play_setup` (warm), and only the
  last operation of `play_history` and `check_history`, which start from a fresh system
  (cold);
- violations are collected; `Halt` ends the run when there are enough, or when the
  active steps are unknown;
- a fault that was reported at some active steps is not reported again at a superset of
  them: one fault shows in many places, and further faults should be found, too;
- a budget ends a run between two operations, never during one; the explored part
  remains valid, and the exploration reports that it is not complete;
- the clock is read only every `STRIDE` steps of the budget, and only if it is needed (a
  limit in seconds, or a progress callback);
- reading a large state takes as long as many operations, so it is charged against the
  budget as well: the budget of steps limits the time of every registry.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from time import monotonic
from typing import TypeAlias
from weakref import WeakMethod

from everyorder.harness.engine.oracle import Replay, portrait
from everyorder.harness.engine.player import Player, Report
from everyorder.harness.engine.protocol import (
    History,
    Key,
    Operations,
    Ordering,
    Symmetry,
    System,
    state_of,
)
from everyorder.harness.engine.record import ObservationRecord
from everyorder.harness.engine.result import Closure, Kind

Progress: TypeAlias = Callable[[int, int], None]
"""Receives the numbers of executed and planned operations, regularly and at the end."""

# Reading a clock costs as much as a null step; 64 real steps are about a millisecond.
STRIDE = 64


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits: operations played by the strategies, and seconds for everything.

    `steps` also decides what "auto" chooses.  Reading a complete state counts as one
    more step for each 50 objects that have to be described again.  None means no limit.
    """

    steps: int | None = None
    seconds: float | None = None


# Default budget for "auto": complete states up to 12 steps, walk:2 up to 8, walk:1 up
# to 10, walk:0 up to 14; minutes at most on a system of 100 microseconds a step.
DEFAULT_BUDGET = Budget(steps=250_000)


class Incomplete(Exception):
    """The run cannot continue; the exploration ends and reports the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Halt(Exception):
    """The run ends because there are enough violations."""


class Meter:
    """Counts operations against a budget; raises `Incomplete`."""

    __slots__ = (
        "_budget",
        "_ends",
        "_extra",
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
        # Steps of the budget that were charged in addition to the operations.
        self._extra = 0
        self._halts: int | None = None
        self.planned = 0
        if budget.steps is not None:
            self._next = min(self._next, budget.steps)

    def repeated(self) -> "Meter":
        """Return the meter of another exploration: new steps, the same seconds."""
        meter = Meter(self._budget, self._progress)
        meter.start, meter._ends = self.start, self._ends
        return meter

    @property
    def limit(self) -> int | None:
        """Return the steps of the budget; None without a limit."""
        return self._budget.steps

    @property
    def left(self) -> int | None:
        """Return the operations left of the budget; None without a limit."""
        limit = self._budget.steps
        return None if limit is None else max(limit - self.spent, 0)

    @property
    def spent(self) -> int:
        """Return the steps of the budget that are spent."""
        return self.transitions + self._extra

    @property
    def seconds(self) -> float:
        """Return the seconds since the start."""
        return monotonic() - self.start

    def count(self, operations: int = 1) -> None:
        """Count operations of the plan that are about to be played.

        Raises:
            Halt: the cap is reached.
            Incomplete: the budget is spent.
        """
        if self.transitions + self._extra + operations > self._next:
            self._tick(operations)
        self.transitions += operations

    def charge(self, steps: int) -> None:
        """Take steps of the budget for other work; the next `count` may raise."""
        self._extra += steps

    def cap(self, operations: int) -> None:
        """Halt after this many more operations, whatever the budget."""
        self._halts = self.transitions + operations
        self._next = min(self._next, self.spent + operations)

    def check_time(self) -> None:
        """Raise `Incomplete` when the time is over (for passes outside of the plan)."""
        if self._ends is not None and monotonic() > self._ends:
            seconds = self._budget.seconds
            raise Incomplete(
                f"the budget of {seconds} seconds is spent (--budget raises it)"
            )

    def report_progress(self) -> None:
        """Call the progress callback, if there is one."""
        if self._progress is not None:
            # The size of a search for states is an estimate.
            self._progress(self.transitions, max(self.planned, self.transitions))

    def _tick(self, operations: int) -> None:
        if self._halts is not None and self.transitions >= self._halts:
            raise Halt
        limit = self._budget.steps
        if limit is not None and self.spent + operations > limit:
            raise Incomplete(
                f"the budget of {limit:,} steps is spent (--steps raises it)"
            )
        self.check_time()
        self.report_progress()
        self._next = self.spent + operations + STRIDE
        if limit is not None:
            self._next = min(self._next, limit)
        if self._halts is not None:
            self._next = min(self._next, self._halts + self._extra)


# Operations after the first violation in which further ones are sought.
PATIENCE = 2_000

# What differs if two forms differ, and no path of their portraits.
WITHOUT_PATH = (
    "something that has no path: the order of finalizers, or of equal objects"
)

# The same if two results differ.
RESULT_WITHOUT_PATH = "a result, and no path: state of a file or of C, for example"

# Kinds that mean that histories cannot be relied on.
FINAL = frozenset[Kind]({"nondeterminism", "not fresh"})


@dataclass(frozen=True, slots=True)
class RawViolation:
    """A violation before it is shrunk; its state is still a key."""

    kind: Kind
    key: Key
    expected: Hashable
    found: Hashable
    history: History
    hidden: bool = False
    paths: tuple[str, ...] = ()
    # The other of two histories whose equal states had different futures.
    other: History | None = None
    # The history that first gave the expected value, if that is known.
    first_history: History | None = None


def _reporting(session: "ExplorationSession") -> Report:
    """Return the report function of a player; it holds the session weakly."""
    method = WeakMethod(session._report)

    def report(
        kind: Kind, key: Key, expected: Hashable, actual: Hashable, hidden: bool
    ) -> None:
        receive = method()
        assert receive is not None, "a session outlives the calls of its player"
        receive(kind, key, expected, actual, hidden)

    return report


class ExplorationSession:
    """A system, its player, record and meter, and the findings so far."""

    def __init__(
        self,
        system: System,
        operations: Operations,
        meter: Meter,
        *,
        ordering: Ordering,
        stop_after: int,
    ) -> None:
        self.system = system
        self.operations = operations
        self.meter = meter
        self.ordering = ordering
        self.stop_after = stop_after
        self.record = ObservationRecord()
        self.findings: list[RawViolation] = []
        self._known: set[tuple[Hashable, Key, Hashable, Hashable]] = set()
        # The active steps at which each kind of fault was reported.
        self._places: dict[Hashable, list[frozenset[int]]] = {}
        self.skipped: list[str] = []
        self.closure: Closure | None = None
        # Steps of the budget that a search leaves to the strategies after it.
        self.reserved = 0
        # Independent groups of steps that were explored apart.
        self.groups: tuple[tuple[int, ...], ...] = ()
        # The containers whose accesses prove that these are independent.
        self.parts: tuple[str, ...] = ()
        # Pairs of histories to states that differ in the order of dicts only; and the
        # paths of these.
        self.variants: list[tuple[History, History]] = []
        self.unread: tuple[str, ...] = ()
        # Operations of no part, which only read.
        self.readers: tuple[int, ...] = ()
        # Classes of interchangeable steps, and the number of checked histories.
        self.symmetries: tuple[Symmetry, ...] = ()
        self.symmetry_checks = 0
        self.symmetry_used = False
        # The results of the last pass of the warm-up; and what the first performances
        # changed, if that could not be checked.
        self.rehearsed: dict[History, Replay] = {}
        self.filled: tuple[str, ...] = ()
        # True if the last pass of the warm-up left a fresh system as it was.
        self.stable = True
        # True if the warm-up has come to its end, here or in an earlier session.
        self.warm = False
        # The records of explorations that ended because more was filled later, or that
        # were restarted in the warm-up, and the paths of what was filled.
        self.earlier: tuple[ObservationRecord, ...] = ()
        self.filled_later: tuple[str, ...] = ()
        # The form and the portrait of the first fresh system.
        self.first_form: Hashable | None = None
        self.first_portrait: object = None
        # What it covers; None if it cannot be compared with a later one.
        self.first_scope: object = None
        # Explorations of this system that were repeated, because more was known.
        self.repeats = 0
        # `mapped`: every reachable state has its canonical history; `reached`: it was
        # met.
        self.mapped = False
        # A history to each complete state, if the states closed.
        self.state_histories: tuple[History, ...] = ()
        # The number of these histories after which no fresh system was checked.
        self.unchecked = 0
        self.reached = False
        self.player = Player(
            system, operations, self.record, _reporting(self), ordering=ordering
        )

    @property
    def ordered(self) -> bool:
        """Return True if keys are tuples, because some order may be observable."""
        return self.ordering.counts

    def keep_warm_up(self, other: "ExplorationSession") -> None:
        """Keep what the warm-up of another session showed; its forms are outdated."""
        self.warm, self.stable, self.filled = True, other.stable, other.filled

    def after(self, key: Key, operation: int) -> Key:
        """Return the key after an operation that succeeded at a key."""
        return self.operations.after(key, operation, self.ordering)

    def transition(self, operation: int) -> None:
        """Play one operation of the plan at the current state, and look."""
        self.meter.count()
        self.player.play(operation)
        self.player.look()

    def play_setup(self, operation: int) -> None:
        """Play one operation outside of the plan at the current state, and look."""
        self.player.play(operation)
        self.player.look()

    def play_history(self, history: History) -> None:
        """Play a history of the plan from a fresh system and look at its end."""
        self.meter.count(len(history))
        self.check_history(history)

    def check_history(self, history: History) -> None:
        """Play a history outside of the plan on a fresh system; look at its end."""
        player = self.player
        player.reset()
        play = player.play
        for operation in history:
            play(operation)
        player.look()

    def report_not_fresh(self, portrait: object = None) -> None:
        """Report that the current fresh system is not like the first one."""
        now = portrait or self.system.portrait(self.player.handles)
        paths = self.different_paths(now) or (WITHOUT_PATH,)
        self._end_with(
            RawViolation("not fresh", self.ordering.root, None, None, (), paths=paths)
        )

    def different_paths(self, now: object) -> tuple[str, ...]:
        """Return where the portrait of a fresh system differs from the first one."""
        return self._paths(self.first_portrait, now)

    def report_hidden(self, before: History, after: History) -> None:
        """Report that the last operation of two histories led two equal states apart.

        Looks at their ends are part of the histories here.
        """
        total = self.ordering.total
        one, other = (
            portrait(self.system, each, order_dependent=total)
            for each in (before, after)
        )
        key, paths = self.player.key, self._paths(one, other)
        history = after[:-1] if after[-1] == self.operations.look else after
        self._end_with(
            RawViolation("hidden", key, None, None, history, True, paths, before)
        )

    def _paths(self, one: object, other: object) -> tuple[str, ...]:
        if one is None or other is None:
            return ()
        return self.system.paths(one, other)

    def _end_with(self, finding: RawViolation) -> None:
        self.findings.append(finding)
        raise Halt

    def _first_history(self) -> History | None:
        """Return the history that first gave the contradicted value."""
        contradicted = self.player.contradicted
        trace = (
            b"" if contradicted is None else self.record.firsts.get(contradicted, b"")
        )
        if trace and trace[-1] == self.operations.look:
            trace = trace[:-1]
        return tuple(trace) or None

    def _report(
        self, kind: Kind, key: Key, expected: Hashable, actual: Hashable, hidden: bool
    ) -> None:
        history = self.player.history()
        contradicted = self.player.contradicted
        # A difference in a look is attributed to the operation before it.
        what = kind if contradicted is None else contradicted[1]
        mark = (what, key, expected, actual)
        places = self._places.setdefault((kind, what), [])
        steps = frozenset(state_of(key))
        if mark in self._known or any(other < steps for other in places):
            # Duplicate of a reported violation; skip it.
            return
        self._known.add(mark)
        places.append(steps)
        first = self._first_history()
        self.findings.append(
            RawViolation(
                kind, key, expected, actual, history, hidden, first_history=first
            )
        )
        if kind == "undo" or len(self.findings) >= self.stop_after:
            raise Halt
        if len(self.findings) == 1:
            self.meter.cap(PATIENCE)
