"""What is known of a system so far: the reference that every action is compared with.

True only here: the first value written under a key stays; the ledger never replaces
one, so that "expected" means the same from the first comparison to the report.  One
ledger serves all strategies of an exploration: what `walk` sees is compared with what
`words` saw.

Rules: everything is keyed by state (see `alphabet.Key`) and holds values only.
"""

from collections.abc import Hashable
from typing import Final

from harness.engine.alphabet import Key
from harness.engine.protocol import Word


class Missing:
    """The type of `MISSING`, which equals nothing that a system returns."""

    __slots__ = ()


MISSING: Final = Missing()


class Ledger:
    """First observations, answers, failures, fingerprints and canonical words."""

    __slots__ = (
        "_pool",
        "answers",
        "canonical",
        "failures",
        "passed",
        "prints",
        "seen",
    )

    def __init__(self) -> None:
        self.seen: dict[Key, Hashable] = {}
        self.prints: dict[Key, Hashable] = {}
        self.answers: dict[tuple[Key, int], Hashable] = {}
        self.failures: dict[tuple[Key, int], Hashable] = {}
        # Bitmask of the steps that were done with success at the key.
        self.passed: dict[Key, int] = {}
        self.canonical: dict[Key, Word] = {}
        self._pool: dict[Hashable, Hashable] = {}

    def interned(self, value: Hashable) -> Hashable:
        """The one object kept for all equal values."""
        return self._pool.setdefault(value, value)
