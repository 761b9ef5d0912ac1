"""Orders that were said to show, and do not.

True only here: a pinned order is a claim like any other.  Whoever pins the order of two
steps hides every difference between their two orders, so one difference at least must
be there: in what was seen, answered or raised.

How it works: whatever was told at a key is compared between the keys of the same
active steps in which nothing but the pinned order differs; where all orders are pinned,
between all keys of the same steps.
"""

from collections.abc import Callable, Hashable, Iterator

from harness.engine.ledger import Ledger
from harness.engine.operations import (
    Key,
    Operations,
    Ordering,
    active,
    state_of,
)
from harness.engine.result import Violation

Pair = tuple[int, int]

# Where all orders are pinned and none shows.
NONE_SHOWS = "two orders of the same steps that look different (order_dependent)"


def unpinned(
    ledger: Ledger, operations: Operations, ordering: Ordering
) -> Iterator[Violation]:
    """A violation for each pinned order that never shows."""
    if ordering.pairs is None:
        if not _shows(ledger, lambda key: frozenset(state_of(key))):
            yield _violation(ledger, operations, list(ledger.seen), NONE_SHOWS)
        return
    for pair in sorted(ordering.pairs):
        one, other = pair
        others = sorted(ordering.pairs - {pair})
        if not _shows(ledger, _without(others)):
            both = [k for k in ledger.seen if active(k, one) and active(k, other)]
            text = (
                f"two orders of steps {one + 1} and {other + 1} that can be told apart"
            )
            yield _violation(ledger, operations, both or list(ledger.seen), text)


def _without(pairs: list[Pair]) -> Callable[[Key], Hashable]:
    """A name for the keys that differ in no order but those of other pairs."""

    def name(key: Key) -> Hashable:
        state = state_of(key)
        place = {step: at for at, step in enumerate(state)}
        orders = (
            place[one] < place[other]
            for one, other in pairs
            if one in place and other in place
        )
        return frozenset(state), tuple(orders)

    return name


def _shows(ledger: Ledger, name: Callable[[Key], Hashable]) -> bool:
    """Whether two keys of one name were told apart by anything."""
    first: dict[Hashable, Hashable] = {}
    return any(
        first.setdefault((name(key), what), value) != value
        for key, what, value in _told(ledger)
    )


def _told(ledger: Ledger) -> Iterator[tuple[Key, Hashable, Hashable]]:
    """All that was told: the key, what was asked there, and what came back.

    Of a step that was done, or undone, without an error that is None.
    """
    for key, seen in ledger.seen.items():
        yield key, "look", seen
    for (key, use), answer in ledger.answers.items():
        yield key, ("use", use), answer
    for what, passed, failed in (
        ("do", ledger.passed, ledger.failures),
        ("undo", ledger.retired, ledger.refusals),
    ):
        for key, mask in passed.items():
            for step in range(mask.bit_length()):
                if mask >> step & 1:
                    yield key, (what, step), None
        for (key, step), fields in failed.items():
            yield key, (what, step), fields


def _violation(
    ledger: Ledger, operations: Operations, keys: list[Key], expected: str
) -> Violation:
    """Told at the largest of the keys, all orders of which look like it."""
    key = max(keys, key=lambda each: len(state_of(each)))
    state = state_of(key)
    history = ledger.canonical.get(key) or operations.straight(state)
    return Violation("unpinned", state, expected, ledger.seen[key], history)
