"""What is known of a system so far: the reference that every action is compared with.

True only here: the first value written under a key stays; the ledger never replaces
one, so that "expected" means the same from the first comparison to the report.  One
ledger serves all strategies of an exploration: what `walk` sees is compared with what
`histories` saw.

Rules: everything is keyed by state (see `operations.Key`) and holds values only.
"""

from collections.abc import Hashable
from typing import Final

from harness.engine.operations import Key
from harness.engine.protocol import History

# Longer histories are not kept beside what they gave first: a walk has one only, in
# which the first visit can be found again.
MOST_KEPT = 1_000

# What stands for the state of a settled system, among operations.
STATE: Final = -1


class Missing:
    """The type of `MISSING`, which equals nothing that a system returns."""

    __slots__ = ()


MISSING: Final = Missing()


class Ledger:
    """First observations, answers, failures, fingerprints and canonical histories."""

    __slots__ = (
        "_pool",
        "answers",
        "canonical",
        "failures",
        "firsts",
        "passed",
        "prints",
        "refusals",
        "retired",
        "seen",
    )

    def __init__(self) -> None:
        self.seen: dict[Key, Hashable] = {}
        self.prints: dict[Key, Hashable] = {}
        self.answers: dict[tuple[Key, int], Hashable] = {}
        self.failures: dict[tuple[Key, int], Hashable] = {}
        # Fields of undos that were refused, by the key where the step stays active.
        self.refusals: dict[tuple[Key, int], Hashable] = {}
        # Bitmasks of the steps that were done, or undone, with success at the key.
        self.passed: dict[Key, int] = {}
        self.retired: dict[Key, int] = {}
        self.canonical: dict[Key, History] = {}
        # The history, looks included, that gave first what is known of an operation.
        self.firsts: dict[tuple[Key, int], bytes] = {}
        self._pool: dict[Hashable, Hashable] = {}

    def note(self, key: Key, operation: int, trace: bytearray) -> None:
        """Keep the history that is the first to tell of an operation at a key."""
        if len(trace) <= MOST_KEPT:
            self.firsts.setdefault((key, operation), bytes(trace))

    def interned(self, value: Hashable) -> Hashable:
        """The one object kept for all equal values."""
        return self._pool.setdefault(value, value)
