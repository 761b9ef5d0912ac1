"""The share of a search for complete states in the budget.

The number of states is unknown in advance, so no constant can limit a search: it may
take what later strategies do not need.  Two things end it early, because the rest of
the budget finds more faults elsewhere: states that grow without end, and states that
are too many for the budget.

A step of the budget is one operation, or the reading of `OBJECTS_PER_STEP` objects:
large states take more time, and a budget of steps limits the time as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from everyorder.harness.engine.protocol import History
from everyorder.harness.engine.session import DEFAULT_BUDGET, ExplorationSession

# Objects that are described again in the time of one operation: a step of the budget.
OBJECTS_PER_STEP = 50

# Shares in the budget: a tenth until it is decided whether the states can close, a
# hundredth for states that grow without end.
UNCLOSED = 10
GROWN = 100

# The random walk gets the least share of the default budget that refuted each of 11
# wrong proofs, 2,000 operations; of a small budget a quarter, until it has as many.
WALKED = 125
LEAST_WALKED = 2_000


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """The share of a search in the budget, in steps of the budget.

    `total` is for everything; `unclosed` until it is decided whether all states can be
    found, and `grown` if some operations are known to give new states without end;
    `walked` is for the random walk after all states were found.
    """

    total: int
    unclosed: int
    grown: int
    walked: int = 0


def shared(total: int) -> SearchLimits:
    """Return the limits of a search that may take so many steps of the budget."""
    walked = max(total // WALKED, min(LEAST_WALKED, total // 4))
    return SearchLimits(total, total // UNCLOSED, total // GROWN, walked)


def remaining(session: ExplorationSession) -> int:
    """Return the steps of the budget that later strategies do not need.

    A run without a limit has that of the default budget.
    """
    left = session.meter.left
    if left is None:
        assert DEFAULT_BUDGET.steps is not None, "it limits all runs without a limit"
        left = max(DEFAULT_BUDGET.steps - session.meter.spent, 0)
    return max(left - session.reserved, 0)


def interleaved(turns: tuple[History, ...]) -> Iterator[History]:
    """Yield the orders in which two turns can be taken; a single turn as it is.

    A turn is one operation, or a step that is done and undone.
    """
    one, *others = turns
    if not others:
        yield one
        return
    (other,) = others
    yield one + other
    if len(one) > 1:
        yield (one[0], *other, *one[1:])
    if len(one) > 1 and len(other) > 1:
        yield (one[0], other[0], one[1], other[1])
