"""`stale`: short histories that unmask caches, for every use and every pair of steps.

True only here: the shapes.  Of the faults of real registries the largest group is
caches that go stale: something is asked, the registry changes, and the same is asked
again.  Two steps and one use nearly always suffice, so every use (the look is one, too)
is asked before and after every change, with nothing and with each single other step
active; O(n^2 m) histories of at most six operations, at any n:

    use, do s, use                     do t, use, do s, use
    do s, use, undo s, use             do t, do s, use, undo s, use
                                       do t, do s, use, undo t, use

Each is played on a fresh system; observed is the last use, and the look at the end.
"""

from collections.abc import Iterator

from harness.engine.operations import Operations
from harness.engine.protocol import History
from harness.engine.session import Session


def size(steps: int, uses: int) -> int:
    """Operations of all histories."""
    alone, beside = 3 + 4, 4 + 5 + 5
    return (uses + 1) * steps * (alone + beside * (steps - 1))


def histories(operations: Operations) -> Iterator[History]:
    """All of them, the shortest shapes first for each use."""
    steps = range(operations.steps)
    for use in (*range(operations.steps, operations.actions), operations.look):
        for step in steps:
            yield use, step, use
            yield step, use, step, use
        for other in steps:
            for step in steps:
                if step != other:
                    yield other, use, step, use
                    yield other, step, use, step, use
                    yield other, step, use, other, use


def run(session: Session) -> None:
    """Play all of them."""
    for history in histories(session.operations):
        session.history(history)
