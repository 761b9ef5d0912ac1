"""`sca:t`: sequence covering arrays, for systems with too many sets.

True only here: no set is visited for its own sake.  The rows are orders of all steps
such that any t of them occur in every one of their t! orders in some row; their number
grows with the logarithm of n.  Each row is played from a fresh system: add everything
in that order, then remove everything in that order, looking after each operation.

The algorithm is greedy, after Kuhn, Higdon, Lawrence, Kacker and Lei, "Combinatorial
methods for event sequence testing" (2012): make some candidate rows, keep the one that
covers most of what is uncovered, follow it by its reverse.  The candidates come from a
linear congruential generator, so that the rows are the same on every platform; each
starts with an uncovered sequence, so that every round makes progress.
"""

from functools import lru_cache
from itertools import combinations, permutations
from math import perm

from harness.engine.protocol import History
from harness.engine.session import Session
from harness.errors import TooLarge

# Candidates a row: more make the array shorter by less than a row from here on.
CANDIDATES = 30

# The rows are made before the budget is asked, some ten microseconds a sequence and a
# candidate: a million take minutes, and a hundred megabytes.
MOST_SEQUENCES = 1_000_000

# Multiplier and increment of Knuth's MMIX generator (modulus 2^64).
MULTIPLIER, INCREMENT = 6364136223846793005, 1442695040888963407


def size(steps: int, uses: int, strength: int) -> int:
    """Operations of the run when no step fails."""
    plain = 2 * steps
    return len(rows(steps, strength)) * (plain + (plain * (1 + uses) if uses else 0))


@lru_cache(maxsize=32)
def rows(steps: int, strength: int) -> tuple[History, ...]:
    """Orders of all steps that cover every order of any `strength` of them.

    Raises `TooLarge`.
    """
    strength = min(strength, steps)
    if not strength:
        return ((),)
    sequences = perm(steps, strength)
    if sequences > MOST_SEQUENCES:
        raise TooLarge(
            what=f"the sequences that sca:{strength} covers",
            size=sequences,
            limit=MOST_SEQUENCES,
        )
    uncovered = set(permutations(range(steps), strength))
    chosen: list[History] = []
    seed = 1
    while uncovered:
        first = min(uncovered)
        best: History = ()
        most = -1
        for _ in range(CANDIDATES):
            row, seed = _candidate(steps, first, seed)
            gain = sum(part in uncovered for part in combinations(row, strength))
            if gain > most:
                best, most = row, gain
        for row in (best, best[::-1]):
            covered = uncovered.intersection(combinations(row, strength))
            if covered:
                chosen.append(row)
                uncovered -= covered
    return tuple(chosen)


def run(session: Session, strength: int) -> None:
    """Play every row: add in its order, then remove in its order.

    Where relations forbid that, what a step needs comes before it, and goes after it.
    Where there are uses, each row is played once more with all of them after every
    step, from another one on each time: they warm whatever the row leaves stale.
    """
    operations = session.operations
    uses = tuple(range(operations.steps, operations.actions))
    for number, row in enumerate(rows(operations.steps, strength)):
        _play(session, row, ())
        if uses:
            turn = number % len(uses)
            _play(session, row, uses[turn:] + uses[:turn])


def _play(session: Session, row: History, uses: History) -> None:
    runner = session.runner
    runner.reset()
    runner.look()
    straight = session.operations.straight
    for order, adding in ((straight(row), True), (straight(row[::-1])[::-1], False)):
        for step in order:
            if runner.sensible(step) and (adding or runner.mask >> step & 1):
                session.transition(step)
                for use in uses:
                    session.transition(use)


def _candidate(steps: int, first: History, seed: int) -> tuple[History, int]:
    """A row that keeps the order of `first`, the others put at drawn places."""
    row = list(first)
    for step in range(steps):
        if step not in first:
            seed = (seed * MULTIPLIER + INCREMENT) % 2**64
            row.insert((seed >> 33) % (len(row) + 1), step)
    return tuple(row), seed
