"""`sca:t` and `random:k`: the histories that are played where states are too many.

No state is visited for its own sake.  The rows of a sequence covering array are orders
of all steps such that any t of them occur in every one of their t!  orders in some row;
their number grows with the logarithm of n.  Each row is played from a fresh system: add
everything in that order, then remove everything in that order, looking after each
operation.

The algorithm is greedy, after Kuhn, Higdon, Lawrence, Kacker and Lei, "Combinatorial
methods for event sequence testing" (2012): make some candidate rows, keep the one that
covers most of what is uncovered, follow it by its reverse.  Each candidate starts with
an uncovered sequence, so that every round makes progress.

Where some steps have to come before others, every row is sorted by that, as little as
can be, and what is to be covered are the orders that can come about: those of adding
and those of removing are two arrays then.  An order in which a step fails, stays, or
cannot be is not covered: such orders are counted in what was played, and reported.

`random:k` plays k thousand operations drawn at random, what is left of a budget.
Random walks are strong against long histories that no plan lists; the walk starts anew
every `STRETCH` operations, because some faults need a system on which little happened
before.  Nothing is guaranteed beyond what was played.

All that is drawn comes from a linear congruential generator, so that it is the same on
every platform.
"""

from collections.abc import Iterable, Mapping, Set
from functools import lru_cache
from itertools import combinations, pairwise, permutations
from math import perm
from typing import TypeAlias

from everyorder.harness.base.errors import BadStrategy
from everyorder.harness.engine.protocol import History, Relations
from everyorder.harness.engine.session import ExplorationSession

Precedence: TypeAlias = frozenset[tuple[int, int]]
"""Pairs of steps of which the first comes before the second, transitively closed."""

# Candidates a row: more make the array shorter by less than a row from here on.
CANDIDATES = 30

# The rows are made before the budget is asked, some ten microseconds a sequence and a
# candidate: a million take minutes, and a hundred megabytes.
MOST_SEQUENCES = 1_000_000

# Multiplier and increment of Knuth's MMIX generator (modulus 2^64).
MULTIPLIER, INCREMENT = 6364136223846793005, 1442695040888963407


def covering_size(steps: int, uses: int, strength: int) -> int:
    """Operations of the run when no step fails."""
    plain = 2 * steps
    return len(rows(steps, strength)) * (plain + (plain * (1 + uses) if uses else 0))


@lru_cache(maxsize=32)
def rows(
    steps: int, strength: int, before: Precedence = frozenset()
) -> tuple[History, ...]:
    """Orders of all steps that cover every possible order of any `strength` of them.

    Raises `BadStrategy`.
    """
    strength = min(strength, steps)
    if not strength:
        return ((),)
    sequences = perm(steps, strength)
    if sequences > MOST_SEQUENCES:
        raise BadStrategy(
            code="TooLarge",
            what=f"the sequences that sca:{strength} covers",
            size=sequences,
            limit=MOST_SEQUENCES,
        )
    uncovered = {
        sequence
        for sequence in permutations(range(steps), strength)
        if not any((b, a) in before for a, b in combinations(sequence, 2))
    }
    chosen: list[History] = []
    seed = 1
    while uncovered:
        first = min(uncovered)
        # Closed again: what comes before one of these comes before those behind it.
        behind = _transitive_closure({*before, *pairwise(first)}) if before else before
        best: History = ()
        most = -1
        for _ in range(CANDIDATES):
            row, seed = _candidate(steps, first, seed)
            row = _topological(row, behind)
            gain = sum(part in uncovered for part in combinations(row, strength))
            if gain > most:
                best, most = row, gain
        for row in (best, _topological(best[::-1], before)):
            covered = uncovered.intersection(combinations(row, strength))
            if covered:
                chosen.append(row)
                uncovered -= covered
    # Where no order of so many can be, all of them are tried together at least.
    return tuple(chosen) or (_topological(tuple(range(steps)), before),)


def run_covering(session: ExplorationSession, strength: int) -> None:
    """Play every row: add in its order, then remove in its order.

    Where there are uses, each row is played once more with all of them after every
    step, from another one on each time: they warm whatever the row leaves stale.
    """
    operations = session.operations
    relations = operations.relations
    adding = rows(operations.steps, strength, _adding_order(relations))
    removing = rows(operations.steps, strength, _removing_order(relations))
    uses = tuple(range(operations.steps, operations.actions))
    added: list[History] = []
    removed: list[History] = []
    for number in range(max(len(adding), len(removing))):
        up, down = adding[number % len(adding)], removing[number % len(removing)]
        turn = number % max(len(uses), 1)
        for some in dict.fromkeys(((), uses[turn:] + uses[:turn])):
            session.player.reset()
            session.player.look()
            added.append(_play(session, up, some, adding=True))
            removed.append(_play(session, down, some, adding=False))
    _report_missing(session, strength, added, removed)


def _play(
    session: ExplorationSession, row: History, uses: History, *, adding: bool
) -> History:
    """Add, or remove, in this order; the steps of which that came about, in order."""
    player = session.player
    done = []
    for step in row:
        bit = 1 << step
        if not player.sensible(step) or not (adding or player.mask & bit):
            continue
        before = player.mask
        session.transition(step)
        if (player.mask ^ before) & bit:
            done.append(step)
        for use in uses:
            session.transition(use)
    return tuple(done)


def _report_missing(
    session: ExplorationSession,
    strength: int,
    added: list[History],
    removed: list[History],
) -> None:
    """Report how many orders did not come about, if any."""
    steps = session.operations.steps
    relations = session.operations.relations
    whole = not (relations.requires or relations.after)
    if whole and all(len(row) == steps for row in (*added, *removed)):
        return
    size = min(strength, steps)
    every = perm(steps, size)
    left = [every - len(_subsequences(some, size)) for some in (added, removed)]
    if any(left):
        session.skipped.append(
            f"sca:{strength}: of {every:,} orders of {size} steps, {left[0]:,} of "
            f"adding and {left[1]:,} of removing did not come about: a step fails, "
            "cannot be undone, or has to come before another"
        )


def _subsequences(some: Iterable[History], size: int) -> set[History]:
    return {part for row in set(some) for part in combinations(row, size)}


def _adding_order(relations: Relations) -> Precedence:
    """The order in which steps must become active, when everything is added."""
    return _transitive_closure(_pairs(relations.requires) | _pairs(relations.after))


def _removing_order(relations: Relations) -> Precedence:
    """The order in which steps must be undone, when everything is removed."""
    return _transitive_closure(
        {(one, other) for other, one in _pairs(relations.requires)}
    )


def _pairs(relation: Mapping[int, frozenset[int]]) -> set[tuple[int, int]]:
    return {(needed, step) for step, some in relation.items() for needed in some}


def _transitive_closure(pairs: Set[tuple[int, int]]) -> Precedence:
    closed = set(pairs)
    while True:
        more = {(a, d) for a, b in closed for c, d in closed if b == c} - closed
        if not more:
            return frozenset(closed)
        closed |= more


def _topological(row: History, before: Precedence) -> History:
    """The row, each step behind those that come before it, else in its order."""
    if not before:
        return row
    needed: dict[int, set[int]] = {step: set() for step in row}
    for one, other in before:
        needed[other].add(one)
    left, chosen = list(row), list[int]()
    while left:
        free = (step for step in left if needed[step].isdisjoint(left))
        # What comes before itself is never free; it is not played either.
        step = next(free, left[0])
        left.remove(step)
        chosen.append(step)
    return tuple(chosen)


def _candidate(steps: int, first: History, seed: int) -> tuple[History, int]:
    """A row that keeps the order of `first`, the others put at drawn places."""
    row = list(first)
    for step in range(steps):
        if step not in first:
            seed = (seed * MULTIPLIER + INCREMENT) % 2**64
            row.insert((seed >> 33) % (len(row) + 1), step)
    return tuple(row), seed


# Operations between two fresh systems: enough to meet most pairs of a dozen steps.
STRETCH = 200


def random_size(thousands: int) -> int:
    """Operations of `random:k`."""
    return 1_000 * thousands


def run_random(session: ExplorationSession, thousands: int) -> None:
    """Play operations drawn at random, on a fresh system every `STRETCH`."""
    actions, player = session.operations.actions, session.player
    seed = 1
    for number in range(random_size(thousands)):
        if number % STRETCH == 0:
            player.reset()
            player.look()
        seed = (seed * MULTIPLIER + INCREMENT) % 2**64
        session.transition((seed >> 33) % actions)
