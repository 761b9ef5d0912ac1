"""The failing square: which two operations do not commute, and from where.

True only here: by theorem T2 (`theory.py`) a system that depends on the order has a
square of the cube of sets that does not close.  Four transitions explain more than the
history.

How it works: along the shortest history, each pair of neighbouring steps is exchanged,
and each step is done and undone; the first place where the looks then differ is the
square.  The look is taken right after the two operations, or, where the difference
stays hidden until later operations, after the rest of the history.  Faults that need a
use or a failing step between may have no square over this history; then there is none
to show.
"""

from collections.abc import Iterator

from harness.engine.judge import STATEFUL, Exhausted, Judge
from harness.engine.operations import Operations
from harness.engine.protocol import History
from harness.engine.result import Kind, Square


def find_square(
    judge: Judge, history: History, kind: Kind, operations: Operations
) -> Square | None:
    """The first square along the history that does not close, if there is one."""
    if kind not in STATEFUL:
        return None
    try:
        for rest in (False, True):
            for at, one, other in _pairs(history, operations, rest=rest):
                left, right = judge.replay(one), judge.replay(other)
                if not left.actions or not right.actions:
                    continue
                if judge.differs(left.actions[-1], right.actions[-1]):
                    state = left.actions[at - 1].state if at else ()
                    return Square(state, history[at], history[at + 1])
    except Exhausted:
        pass
    return None


def _pairs(
    history: History, operations: Operations, *, rest: bool
) -> Iterator[tuple[int, History, History]]:
    """Places of two neighbouring steps, with the two histories to compare."""
    for at in range(len(history) - 1):
        first, second = history[at], history[at + 1]
        if first >= operations.steps or second >= operations.steps:
            continue
        before = history[:at]
        after = history[at + 2 :] if rest else ()
        other = () if first == second else (second, first)
        yield at, (*before, first, second, *after), (*before, *other, *after)
