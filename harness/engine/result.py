"""The result of an exploration: frozen data, no behaviour beyond small questions.

Nothing in a result refers to the system, its handles or its errors, so it can be kept,
pickled and compared after the system has died.

Rules:
- mappings are in a stable order: by size of the state, then lexicographic;
- `planned` and `Counts.transitions` count the same thing, the operations of the
  strategies' own plans; the other counts count calls, cold looks and lead-ins included,
  but not the replays of the determinism check and of the shrinker;
- a violation's `history` is exactly what was played since the last reset, the looks
  included, except the final look, which every history implies;
- of hidden state both histories are told, because either alone may be right;
- a violation's kind, state, expected and found are those at the end of `shortest`
  where there is one (a short history shows better what is wrong), else of `history`.

When you add a kind of violation, add it to `KINDS` and say in its comment who acts.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from everyorder.harness.engine.protocol import Caveat, History, State

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

# The claim of each kind, as one sentence; reports print it, `Kind` has the same names.
KINDS: Mapping[Kind, str] = {
    "law": "a law of the system is broken after an action",
    "order": "the observation depends on more than the active steps",
    "unpinned": "the order was said to matter, and no two orders look different",
    "wedged": "a step that raised left something behind",
    "error": "the same step at the same state fails differently, or only sometimes",
    "undo": "undoing a step raised",
    "leak": "an undo handle outlives its registration",
    "use": "a use changed what is registered, or its answer depends on history",
    "cold": "looking earlier changes what is seen later",
    "hidden": "equal states, the same operation, and two futures",
    "not fresh": "what create makes is not fresh: something of before is still there",
    "nondeterminism": "the same history, played twice, gave two results",
}

# The same where no look shows it, only the fingerprint (`Violation.hidden`); the other
# claims fit both.
HIDDEN_KINDS: Mapping[Kind, str] = {
    **KINDS,
    "order": "the fingerprint depends on more than the active steps",
    "cold": "looking changes the fingerprint",
    "nondeterminism": "the same history, played twice, gave two fingerprints",
}


@dataclass(frozen=True, slots=True)
class Counts:
    """How many operations and calls were executed."""

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

    `histories` is from how many different histories every operation was taken at every
    state, as far as there are so many; `closed` that nothing new was left, and two
    histories at least.  `unread` are the dicts whose order is assumed not to be read;
    `order_read` says that the order of some is, so that states are told apart by it.
    """

    states: int
    transitions: int
    histories: int
    closed: bool
    order_read: bool = False
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Vacuity:
    """Something of the scenario that could not have shown a fault.

    `operation` is a step, a use or the look; `reason` says what never happened, and
    `raised` which errors it raised, if that is why.
    """

    operation: int
    reason: str
    raised: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Violation:
    """One fault: where, what was expected and found, and how to get there.

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
    # How often the shown history was replayed and gave the same.
    replayed: int = 0
    # Of hidden state: the history to an equal state, from which what was expected
    # follows; the last operation is the same in both.
    other: History | None = None
    # Of what is flaky: in how many of how many replays it was as found.
    frequency: tuple[int, int] | None = None
    # Of hidden state: how many findings more there are that only longer histories
    # show, which are not told beside a short one.
    more: int = 0

    @property
    def claim(self) -> str:
        """What its kind claims, as one sentence."""
        return (HIDDEN_KINDS if self.hidden else KINDS)[self.kind]


@dataclass(frozen=True, slots=True)
class Exploration:
    """The outcome of one `explore`.

    `states` holds the canonical observation of every reached state: the cold one (the
    first look at the end of a fresh history) where it was taken, else the first one
    seen. `failures` holds the error fields of every failing transition, by (state,
    step).
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
    # What share of the budget went where: strategy, operations.
    spent: tuple[tuple[str, int], ...] = ()
    # Whether complete states were compared and nothing is left open: a proof.
    proven: bool = False

    @property
    def holds(self) -> bool:
        """True when everything planned was executed and nothing was violated."""
        return self.complete and not self.violations
