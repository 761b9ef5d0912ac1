"""`sca:t` and `random:k`: histories for systems with too many states to visit.

No state is visited for its own sake.  The rows of a sequence covering array are orders
of all steps such that any t of them occur in each of their t!  orders in some row; the
number of rows grows with the logarithm of n.  Each row is played from a fresh system:
add everything in that order, then remove everything in that order, with a look after
each operation.

The algorithm is greedy, after Kuhn, Higdon, Lawrence, Kacker and Lei, "Combinatorial
methods for event sequence testing" (2012): generate some candidate rows, keep the one
that covers most of the uncovered sequences, follow it by its reverse.  Each candidate
starts with an uncovered sequence, so every round makes progress.

If some steps have to precede others, every row is sorted topologically, with as few
moves as possible, and only possible orders are covered: adding and removing then have
two arrays.  An order in which a step fails, lasts, or is impossible is not covered:
such orders are counted from the operations played, and reported.  A use that ends steps
is not in the rows, because nothing would be left to remove after it.

`random:k` plays k thousand operations drawn at random, with the rest of a budget.
Random walks are strong against long histories that no plan lists.  The walk restarts
every `STRETCH` operations, because some faults need a system with a short history.
There is no guarantee beyond the operations played.

All draws are those of `Random(SEED)`: the same on every platform and in every run.
"""

from collections.abc import Iterable, Mapping, Set
from functools import lru_cache
from itertools import combinations, pairwise, permutations
from math import perm
from random import Random
from typing import TypeAlias

from everyorder.harness.base.errors import BadStrategy
from everyorder.harness.engine.protocol import History, Relations
from everyorder.harness.engine.session import ExplorationSession

Precedence: TypeAlias = frozenset[tuple[int, int]]
"""Pairs of steps of which the first precedes the second, transitively closed."""

# Candidates a row: more make the array shorter by less than a row from here on.
CANDIDATES = 30

# The rows are generated before the budget is checked, in some ten microseconds per
# sequence and candidate: a million sequences take minutes, and a hundred megabytes.
MOST_SEQUENCES = 1_000_000

# Of 0, 1, 2, 3, 5 and 7, the seed of the shortest arrays for 6 to 30 steps.
SEED = 5


def covering_size(steps: int, uses: int, strength: int) -> int:
    """Return the operations of the run when no step fails."""
    plain = 2 * steps
    return len(rows(steps, strength)) * (plain + (plain * (1 + uses) if uses else 0))


@lru_cache(maxsize=32)
def rows(
    steps: int, strength: int, before: Precedence = frozenset()
) -> tuple[History, ...]:
    """Return orders of all steps that cover every possible order of `strength` steps.

    A pair of `before` says that the first step precedes the second in every row.

    Raises:
        BadStrategy: more than `MOST_SEQUENCES` sequences would have to be covered.
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
    random = Random(SEED)  # noqa: S311  # not a secret
    while uncovered:
        first = min(uncovered)
        # Closed again: a step before one of these is also before the steps behind it.
        behind = _transitive_closure({*before, *pairwise(first)}) if before else before
        best: History = ()
        most = -1
        for _ in range(CANDIDATES):
            row = _topological(_candidate(steps, first, random), behind)
            gain = sum(part in uncovered for part in combinations(row, strength))
            if gain > most:
                best, most = row, gain
        for row in (best, _topological(best[::-1], before)):
            covered = uncovered.intersection(combinations(row, strength))
            if covered:
                chosen.append(row)
                uncovered -= covered
    # If no order of `strength` steps is possible, play all steps together at least.
    return tuple(chosen) or (_topological(tuple(range(steps)), before),)


def run_covering(session: ExplorationSession, strength: int) -> None:
    """Play every row: add in its order, then remove in its order.

    With uses, each row is played again with all uses after every step, and each time
    another use is the first: they warm caches that the row makes stale.
    """
    operations = session.operations
    relations = operations.relations
    adding = rows(operations.steps, strength, _adding_order(relations))
    removing = rows(operations.steps, strength, _removing_order(relations))
    uses = operations.questions
    added: list[History] = []
    removed: list[History] = []
    for number in range(max(len(adding), len(removing))):
        up, down = adding[number % len(adding)], removing[number % len(removing)]
        turn = number % max(len(uses), 1)
        for row_uses in dict.fromkeys(((), uses[turn:] + uses[:turn])):
            session.player.reset()
            session.player.look()
            added.append(_play(session, up, row_uses, adding=True))
            removed.append(_play(session, down, row_uses, adding=False))
    _report_missing(session, strength, added, removed)
    left_out = len(operations.changes) - operations.steps
    if left_out:
        several = "a use that ends" if left_out == 1 else f"{left_out} uses that end"
        session.skipped.append(
            f"sca:{strength}: {several} steps cannot be a part of its rows"
        )


def _play(
    session: ExplorationSession, row: History, uses: History, *, adding: bool
) -> History:
    """Add or remove in this order; return the steps that became so, in order."""
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
    """Report the number of orders that did not occur, if any."""
    steps = session.operations.steps
    if not session.operations.combined and all(
        len(row) == steps for row in (*added, *removed)
    ):
        return
    size = min(strength, steps)
    every = perm(steps, size)
    left = [every - len(_subsequences(rows, size)) for rows in (added, removed)]
    if any(left):
        why = "a step fails, cannot be undone, has to precede another or excludes it"
        if session.operations.relations.ends:
            why += ", or ends it"
        session.skipped.append(
            f"sca:{strength}: of {every:,} orders of {size} steps, {left[0]:,} of "
            f"adding and {left[1]:,} of removing did not occur: {why}"
        )


def _subsequences(rows: Iterable[History], size: int) -> set[History]:
    return {part for row in set(rows) for part in combinations(row, size)}


def _adding_order(relations: Relations) -> Precedence:
    """Return the precedence of steps while everything is added."""
    return _transitive_closure(_pairs(relations.requires) | _pairs(relations.after))


def _removing_order(relations: Relations) -> Precedence:
    """Return the precedence of steps while everything is removed."""
    return _transitive_closure(
        {(one, other) for other, one in _pairs(relations.requires)}
    )


def _pairs(relation: Mapping[int, frozenset[int]]) -> set[tuple[int, int]]:
    return {
        (needed, step) for step, required in relation.items() for needed in required
    }


def _transitive_closure(pairs: Set[tuple[int, int]]) -> Precedence:
    closed = set(pairs)
    while True:
        more = {(a, d) for a, b in closed for c, d in closed if b == c} - closed
        if not more:
            return frozenset(closed)
        closed |= more


def _topological(row: History, before: Precedence) -> History:
    """Return the row with each step behind its predecessors, else in its own order."""
    if not before:
        return row
    needed: dict[int, set[int]] = {step: set() for step in row}
    for one, other in before:
        needed[other].add(one)
    left, chosen = list(row), list[int]()
    while left:
        free = (step for step in left if needed[step].isdisjoint(left))
        # A step that precedes itself is never free; it is not played either.
        step = next(free, left[0])
        left.remove(step)
        chosen.append(step)
    return tuple(chosen)


def _candidate(steps: int, first: History, random: Random) -> History:
    """Return a row with `first` in its order and the other steps at drawn places."""
    row = list(first)
    for step in range(steps):
        if step not in first:
            row.insert(random.randrange(len(row) + 1), step)
    return tuple(row)


# Operations between two fresh systems: enough to meet most pairs of a dozen steps.
STRETCH = 200


def random_size(thousands: int) -> int:
    """Return the operations of `random:k`."""
    return 1_000 * thousands


def run_random(session: ExplorationSession, thousands: int) -> None:
    """Play operations drawn at random, on a fresh system every `STRETCH`."""
    actions, player = session.operations.actions, session.player
    random = Random(SEED)  # noqa: S311  # not a secret
    for number in range(random_size(thousands)):
        if number % STRETCH == 0:
            player.reset()
            player.look()
        session.transition(random.randrange(actions))
