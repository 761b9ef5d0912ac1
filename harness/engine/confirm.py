"""A refutation is replayed before it gets a name.

True only here: the line between "order" and "flaky".  A system that fails once in a
hundred runs fails during any long exploration, and then it looks as if the operations
just played were to blame.  So the shown history and the one that it is compared with
are replayed `TIMES` times on fresh systems each, and every replay must give what the
first gave.  What the two gave is then judged anew, `JUDGED` times, by a judge that
remembers nothing: a reference that was wrong once would be wrong for ever.

A history that is too long to be replayed so often is replayed as often as
`MOST_OPERATIONS` allow, twice at least; how often stands in the report.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

from harness.engine.judge import Exhausted, Judge
from harness.engine.protocol import History
from harness.engine.replay import Fault, Replay, replay

# A fault of one run in five escapes 20 replays once in a hundred times.
TIMES = 20

# Operations that replaying one history may take: a second at 100 microseconds each.
MOST_OPERATIONS = 10_000

# Where ten operations are wrong once in a hundred times, one in ten judgements is; that
# all of these are, and by the same fault, happens less than once in a thousand times.
JUDGED = 3


@dataclass(frozen=True, slots=True)
class Flake:
    """The same history gave two things: one `rare` times of `times`."""

    history: History
    expected: Hashable
    found: Hashable
    rare: int
    times: int


def flake(judge: Judge, history: History, first: Replay) -> Flake | int:
    """How the history differs from its first replay, or how often it was the same."""
    times = min(TIMES, max(MOST_OPERATIONS // (len(history) + 1), 2))
    total = judge.ordering.total
    replays = [
        replay(judge.system, history, order_dependent=total) for _ in range(times)
    ]
    wrong = [each for each in replays if each != first]
    if not wrong:
        return times
    expected, found = _difference(first, wrong[0])
    most = Counter(each == first for each in replays)
    rare = min(most[True] + 1, most[False])
    return Flake(history, expected, found, rare, times + 1)


def stands(judge: Judge, history: History, fault: Fault) -> bool:
    """Whether the history has this very fault each time that it is judged anew."""
    for _ in range(JUDGED):
        try:
            if judge.anew().fault(history, fault.kind) != fault:
                return False
        except Exhausted:
            # It is too long to be judged: that all replays agreed must do.
            return True
    return True


def _difference(one: Replay, two: Replay) -> tuple[Hashable, Hashable]:
    for left, right in zip(one.actions, two.actions, strict=False):
        if left.value != right.value or left.deed != right.deed:
            return left.value, right.value
    return one.actions[-1].fingerprint, two.actions[-1].fingerprint
