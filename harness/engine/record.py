"""The first results of an exploration, by the key at which they were observed."""

from collections.abc import Hashable, Iterator

from everyorder.harness.engine.protocol import History, Key

# Longer histories are not stored with their first results: a walk has a single history,
# in which the first visit can be found again.
MOST_KEPT = 1_000


class ObservationRecord:
    """First observations, answers, failures, fingerprints and canonical histories."""

    __slots__ = (
        "_pool",
        "answers",
        "canonical",
        "failures",
        "firsts",
        "passed",
        "prints",
        "raised",
        "refusals",
        "retired",
        "seen",
    )

    def __init__(self) -> None:
        self.seen: dict[Key, Hashable] = {}
        self.prints: dict[Key, Hashable] = {}
        self.answers: dict[tuple[Key, int], Hashable] = {}
        self.failures: dict[tuple[Key, int], Hashable] = {}
        # Fields of undos that were refused, by the key at which the step stays active.
        self.refusals: dict[tuple[Key, int], Hashable] = {}
        # The keys and operations at which a use that ends steps raised at first.
        self.raised: set[tuple[Key, int]] = set()
        # Bitmasks of the steps that were done, or undone, with success at the key.
        self.passed: dict[Key, int] = {}
        self.retired: dict[Key, int] = {}
        self.canonical: dict[Key, History] = {}
        # The history, looks included, of the first result of an operation at a key.
        self.firsts: dict[tuple[Key, int], bytes] = {}
        self._pool: dict[Hashable, Hashable] = {}

    def note(self, key: Key, operation: int, trace: bytearray) -> None:
        """Store the history that first gave a result of an operation at a key."""
        if len(trace) <= MOST_KEPT:
            self.firsts.setdefault((key, operation), bytes(trace))

    def results(self) -> Iterator[tuple[Key, Hashable, Hashable]]:
        """Yield each first result as (key, operation, result or error).

        The result of a step that was done, or undone, without an error is None.
        """
        for key, observation in self.seen.items():
            yield key, "look", observation
        for (key, use), answer in self.answers.items():
            yield key, ("use", use), answer
        for what, passed, failed in (
            ("do", self.passed, self.failures),
            ("undo", self.retired, self.refusals),
        ):
            for key, mask in passed.items():
                for step in range(mask.bit_length()):
                    if mask >> step & 1:
                        yield key, (what, step), None
            for (key, step), fields in failed.items():
                if not passed.get(key, 0) >> step & 1:
                    yield key, (what, step), fields

    def interned(self, value: Hashable) -> Hashable:
        """Return the one object that represents all equal values."""
        return self._pool.setdefault(value, value)
