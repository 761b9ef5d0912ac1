"""The canonical histories: the shortest way to each state, and a first, cold look.

True only here: a state's reference is what is seen at the end of its canonical history,
played on a fresh system on which nobody looked before.  Everything that is seen later,
warm or by other ways, is compared with it.

The algorithm is breadth-first search over histories: from each known state in order of
discovery, operations ascending, every toggle whose target is not known yet is tried
from a fresh system.  So each state gets the history that is first by length, then by
operations, among the extensions of canonical histories; failing steps are met (and
recorded) on the way, and the reachable sets are known exactly when it ends.  With
`answers` each use is also performed once, first of all, at the end of each canonical
history: a use whose answer is cached at its first call is unmasked only by a call that
had no call before it.

Above `MOST_HISTORIES` only the corners are visited, and the session says so.
"""

from collections.abc import Iterable, Mapping, Set
from contextlib import suppress

from harness.engine.budget import Halt, Spent
from harness.engine.operations import Key
from harness.engine.protocol import History, State
from harness.engine.runner import Broken
from harness.engine.session import Session

# 2^13 fresh histories of six adds are five seconds at 100 microseconds a step; a
# `walk:1` on 12 steps is ten times as long.
MOST_HISTORIES = 8192


def count_arrangements(steps: int) -> int:
    """How many ordered arrangements of distinct steps there are, () included."""
    total = term = 1
    for left in range(steps, 0, -1):
        term *= left
        total += term
    return total


def look_cold(session: Session) -> None:
    """Take the cold look at every state, or at the corners where there are too many."""
    if _is_large(session):
        _corners(session)
        session.skipped.append(
            f"cold looks: of {_states(session):,} states only the corners (none, "
            "singles, pairs, all) were also looked at cold"
        )
    else:
        spread(session)


def ways(session: Session, states: Iterable[State]) -> Mapping[Key, History]:
    """The canonical histories that `look_cold` finds, as far as these states need them.

    What is found on the way is left to the session's findings; where it ends the
    search, or time does, the histories known by then are returned.
    """
    wanted = frozenset(map(session.ordering.key, states))
    with suppress(Halt, Broken, Spent):
        if _is_large(session):
            _corners(session)
        else:
            spread(session, wanted)
    return session.ledger.canonical


def spread(session: Session, wanted: Set[Key] | None = None) -> None:
    """Find the canonical history of every reachable state, and look there cold.

    With `wanted` it ends as soon as these are found.
    """
    if session.mapped:
        return
    canonical = session.ledger.canonical
    toggled = session.ordering.toggled
    _visit(session, ())
    queue: list[Key] = [session.ordering.root]
    for key in queue:
        if wanted is not None and wanted <= canonical.keys():
            return
        history = canonical[key]
        session.meter.check_time()
        queue.extend(
            session.runner.key
            for step in range(session.operations.steps)
            if toggled(key, step) not in canonical and _visit(session, (*history, step))
        )
        _answers(session, history)
    session.mapped = session.reached = True


def _states(session: Session) -> int:
    """How many states there are when no step fails."""
    steps = session.operations.steps
    return count_arrangements(steps) if session.ordering.total else 1 << steps


def _is_large(session: Session) -> bool:
    return _states(session) * (1 + session.operations.uses) > MOST_HISTORIES


def _corners(session: Session) -> None:
    steps = session.operations.steps
    histories: list[History] = [(), *((i,) for i in range(steps))]
    histories += [(i, j) for i in range(steps) for j in range(i + 1, steps)]
    histories.append(session.operations.straight(range(steps)))
    for history in histories:
        session.meter.check_time()
        if _visit(session, history):
            _answers(session, history)


def _visit(session: Session, history: History) -> bool:
    """Look at the end of the history; whether that is a state not seen before."""
    session.rehearse(history)
    canonical = session.ledger.canonical
    if session.runner.key in canonical:
        return False
    canonical[session.runner.key] = history
    return True


def _answers(session: Session, history: History) -> None:
    for use in range(session.operations.steps, session.operations.actions):
        session.rehearse((*history, use))
