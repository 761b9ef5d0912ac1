"""The result of an exploration: frozen data, with only small derived properties.

A result has no reference to the system, its handles or its errors, so it can be stored,
pickled and compared after the system has died.

Rules:
- mappings are in a stable order: by size of the state, then lexicographic;
- `planned` and `Counts.transitions` count the same operations, those of the strategies'
  plans; the other counts count calls, cold looks and lead-ins included, but not the
  replays of the determinism check and of the shrinker;
- a violation's `history` is exactly the operations since the last reset, the looks
  included, except the final look, which every history implies;
- for hidden state both histories are reported, because either one may be right;
- a violation's kind, state, expected and found are those at the end of `shortest` if
  there is one (a short history shows the fault more clearly), else of `history`.

When you add a kind of violation, add it to `KINDS` and say in its comment who acts.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from everyorder.harness.engine.protocol import Caveat, ErrorOrigin, History, State

Kind: TypeAlias = Literal[
    "law",
    "order",
    "unpinned",
    "wedged",
    "error",
    "undo",
    "leak",
    "use",
    "cold",
    "hidden",
    "not fresh",
    "nondeterminism",
]

# The claim of each kind, as one sentence; reports print it.  `Kind` has the same names.
KINDS: Mapping[Kind, str] = {
    "law": "a law of the system is broken after an action",
    "order": "the observation depends on more than the active steps",
    "unpinned": "the order is declared to matter, but no two orders look different",
    "wedged": "a step that raised left something behind",
    "error": "the same step at the same state fails differently, or only sometimes",
    "undo": "undoing a step raised",
    "leak": "an undo handle outlives its registration",
    "use": "a use changed the registrations, or its answer depends on history",
    "cold": "looking earlier changes later observations",
    "hidden": "equal states, the same operation, and two futures",
    "not fresh": "create makes no fresh system: a later one differs from the first",
    "nondeterminism": "the same history, played twice, gave two results",
}

# The claims of faults that only the fingerprint shows (`Violation.hidden`); the claims
# of the other kinds do not change.
HIDDEN_KINDS: Mapping[Kind, str] = {
    **KINDS,
    "order": "the fingerprint depends on more than the active steps",
    "cold": "looking changes the fingerprint",
    "nondeterminism": "the same history, played twice, gave two fingerprints",
}


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of executed operations and calls."""

    transitions: int = 0
    adds: int = 0
    removes: int = 0
    failing: int = 0
    uses: int = 0
    observations: int = 0
    resets: int = 0


@dataclass(frozen=True, slots=True)
class Square:
    """From `state`, `first` then `second` differs from `second` then `first`.

    With `first == second` the step and its undo do not cancel out.
    """

    state: State
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class Closure:
    """The outcome of exploring complete states.

    `histories` is the number of different histories from which every operation was
    taken at every state, as far as there are so many; `closed` means that no new state
    was left, with two histories at least.  `unread` are the dicts whose order is
    assumed not to be read; `order_read` means that the order of some is read, so that
    it distinguishes states.  `walked` operations were drawn at random afterwards, and
    each gave the recorded result and state.
    """

    states: int
    transitions: int
    histories: int
    closed: bool
    order_read: bool = False
    unread: tuple[str, ...] = ()
    walked: int = 0


@dataclass(frozen=True, slots=True)
class Vacuity:
    """An operation of the scenario that could not have shown a fault.

    `operation` is a step, a use or the look; `reason` says what never happened, and
    `raised` lists the errors that it raised, if they are the reason.  Then `fields` are
    those of the first one, and `origin` is its line, if it is known.
    """

    operation: int
    reason: str
    raised: tuple[str, ...] = ()
    fields: Hashable = None
    origin: ErrorOrigin | None = None

    @property
    def is_slip(self) -> bool:
        """Return True if a typing error in the scenario is the likely reason."""
        return self.origin is not None and self.origin.slip


@dataclass(frozen=True, slots=True)
class RaisedError:
    """An error that an operation of a shown history raised.

    `position` counts the operations before it; None if another history raised it.
    """

    position: int | None
    fields: Hashable
    origin: ErrorOrigin | None


@dataclass(frozen=True, slots=True)
class Violation:
    """One fault: its place, expected and found, and the history that leads to it.

    It is `hidden` if expected and found are fingerprints, which no look shows.
    """

    kind: Kind
    state: State
    expected: Hashable
    found: Hashable
    history: History
    shortest: History | None = None
    square: Square | None = None
    proven_shortest: bool = False
    hidden: bool = False
    # Where the states of the two histories differ: the variables to look at.
    paths: tuple[str, ...] = ()
    # The number of replays of the shown history, all with the same result.
    replayed: int = 0
    # For hidden state: the history to an equal state with the expected results after
    # it; the last operation is the same in both.
    other: History | None = None
    # For flaky results: in how many of how many replays the found value occurred.
    frequency: tuple[int, int] | None = None
    # For hidden state: the number of further findings with longer histories only, which
    # are not reported if there is a short one.
    more: int = 0
    # The places in the shown history, and in `other`, where an operation undid a step,
    # as they were replayed.  None if there was no replay.
    undos: frozenset[int] | None = None
    other_undos: frozenset[int] | None = None
    # The history that shows the expected value, where it was replayed: the canonical
    # one of the same active steps.
    reference: History | None = None
    reference_undos: frozenset[int] | None = None
    # The errors of the shown history that have a part in the fault.
    raised: tuple[RaisedError, ...] = ()
    # False if the printed history was played again and did not show the fault.
    confirmed: bool = True

    @property
    def shown(self) -> History:
        """Return the history that reports show: the shortest one, if there is one."""
        return self.history if self.shortest is None else self.shortest

    @property
    def claim(self) -> str:
        """Return the claim of the kind, as one sentence."""
        return (HIDDEN_KINDS if self.hidden else KINDS)[self.kind]


@dataclass(frozen=True, slots=True)
class Exploration:
    """The outcome of one `explore`.

    `states` holds the canonical observation of every reached state: the cold one (the
    first look at the end of a fresh history) if it was taken, else the first one.
    `failures` holds the error fields of every failing transition, by (state, step).
    """

    strategy: str
    guarantee: str
    assumptions: tuple[str, ...]
    skipped: tuple[str, ...]
    states: Mapping[State, Hashable]
    failures: Mapping[tuple[State, int], Hashable]
    executed: Counts
    planned: int
    violations: tuple[Violation, ...]
    complete: bool
    seconds: float
    # Fields of undos that were refused, by (state, step); the step stays active.
    refusals: Mapping[tuple[State, int], Hashable] = field(default_factory=dict)
    closure: Closure | None = None
    caveats: tuple[Caveat, ...] = ()
    vacuous: tuple[Vacuity, ...] = ()
    # The operations that each strategy spent: (strategy, operations).
    spent: tuple[tuple[str, int], ...] = ()
    # True if complete states were compared and no part is open: a proof.
    proven: bool = False
    # The strategies that ran without their guarantee, as states did not close.
    open_strategies: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Return True if every planned operation was executed without a violation."""
        return self.complete and not self.violations
