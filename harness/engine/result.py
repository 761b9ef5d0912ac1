"""What an exploration hands back: frozen data, no behaviour beyond small questions.

True only here: nothing in this file refers to the system, its handles or its errors,
so a result can be kept, pickled and compared after the system is gone.

Rules:
- mappings are in a stable order: by size of the state, then lexicographic;
- `planned` and `Counts.edges` count the same thing, the letters of the strategies' own
  plans; the other counts count calls, cold looks and lead-ins included, but not the
  replays of the determinism check and of the shrinker;
- a violation's `word` is exactly what was played since the last reset, the looks
  included, except the final look, which every word implies;
- a violation's kind, state, expected and found are those at the end of `shortest`
  where there is one (a short word shows better what is wrong), else of `word`.

When you add a kind of violation, add it to `KINDS` and say in its comment who acts.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.engine.protocol import State, Word

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
    "nondeterminism",
]

# What each kind claims, as one sentence; reports print it, `Kind` lists the same names.
KINDS: Mapping[Kind, str] = {
    "law": "a law of the system is broken after an action",
    "order": "the observation depends on more than the active set",
    "unpinned": "the order was said to matter, and no two orders look different",
    "wedged": "a step that raised left something behind",
    "error": "the same step at the same state fails differently, or only sometimes",
    "undo": "undoing a step raised",
    "leak": "an undo handle outlives its registration",
    "use": "a use changed what is registered, or its answer depends on history",
    "cold": "looking earlier changes what is seen later",
    "nondeterminism": "the same word, played twice, gave two results",
}

# The same where no look shows it, only the fingerprint (`Violation.hidden`); the other
# claims fit both.
HIDDEN_KINDS: Mapping[Kind, str] = {
    **KINDS,
    "order": "the fingerprint depends on more than the active set",
    "cold": "looking changes the fingerprint",
    "nondeterminism": "the same word, played twice, gave two fingerprints",
}


@dataclass(frozen=True, slots=True)
class Counts:
    """What was really executed."""

    edges: int = 0
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
class Violation:
    """One fault: where, what was expected and found, and how to get there.

    It is `hidden` if expected and found are fingerprints, which no look shows.
    """

    kind: Kind
    state: State
    expected: Hashable
    found: Hashable
    word: Word
    shortest: Word | None = None
    square: Square | None = None
    proven_shortest: bool = False
    hidden: bool = False

    @property
    def claim(self) -> str:
        """What its kind claims, as one sentence."""
        return (HIDDEN_KINDS if self.hidden else KINDS)[self.kind]


@dataclass(frozen=True, slots=True)
class Exploration:
    """The outcome of one `explore`.

    `states` holds the canonical observation of every reached state: the cold one (the
    first look at the end of a fresh word) where it was taken, else the first one seen.
    `failures` holds the error fields of every failing edge, by (state, step).
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

    @property
    def holds(self) -> bool:
        """True when everything planned was executed and nothing was violated."""
        return self.complete and not self.violations
