"""`histories:k`: every history of at most k operations, each on a fresh system.

True only here: nobody looks before the end of a history.  That is what finds caches
which go stale: a look after every operation warms all histories alike, and then they
agree.

How it works: shorter histories come first, so the first history that reaches a state is
its reference when the cold looks were not taken, and the first history that fails is a
shortest one.
"""

from itertools import product

from harness.engine.session import Session


def size(steps: int, uses: int, longest: int) -> int:
    """Operations of all histories."""
    operations = steps + uses
    return sum(length * operations**length for length in range(1, longest + 1))


def run(session: Session, longest: int) -> None:
    """Play all histories of at most `longest` operations."""
    operations = range(session.operations.actions)
    for length in range(longest + 1):
        for history in product(operations, repeat=length):
            session.history(history)
