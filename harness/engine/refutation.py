"""From what was found to what is told: shrunk, replayed, and with the paths to look at.

True only here: the name of a violation.  A finding is shrunk (`shrink.py`); the history
that is then shown, and the one it is compared with, are replayed several times
(`confirm.py`), and what does not come out the same each time is called flaky, whatever
it looked like at first.  Where states can be seen, the two are laid side by side before
the operation that tells them apart: the paths that differ name the variable to fix.
"""

from dataclasses import replace

from harness.engine.confirm import Flake, flake
from harness.engine.judge import STATEFUL, Exhausted, Judge
from harness.engine.operations import state_of
from harness.engine.protocol import History
from harness.engine.replay import Fault, portrait, replay
from harness.engine.result import Kind, Violation
from harness.engine.session import Finding, Session
from harness.engine.shrink import Shrunk, shrink
from harness.engine.square import find_square

# Kinds that say themselves that histories cannot be relied on.
FINAL = frozenset[Kind]({"nondeterminism", "not fresh"})

# Replays of two histories whose states are compared as wholes.
FORKED = 5

# Kinds that may come from what is kept alive, which a replay need not show again.
LATE = frozenset[Kind]({"law", "leak"})


def refutation(session: Session, finding: Finding, *, proving: bool) -> Violation:
    """The violation that a finding comes to; `proving` if states were compared."""
    plain = Violation(
        finding.kind,
        state_of(finding.key),
        finding.expected,
        finding.found,
        finding.history,
        hidden=finding.hidden,
        paths=finding.paths,
    )
    if finding.kind in FINAL:
        return plain
    if finding.other is not None:
        return _forked(session, plain, finding.other)
    judge = Judge(
        session.system,
        session.ledger.canonical,
        ordering=session.ordering,
        proving=proving,
    )
    shrunk = shrink(
        judge, finding, session.operations, session.ledger, session.ordering
    )
    if shrunk is None:
        return _unshrunk(judge, finding, plain)
    return _shown(session, judge, finding, shrunk)


def _forked(session: Session, plain: Violation, other: History) -> Violation:
    """Two histories of equal states led to two states: they do each time, or once."""
    for times in range(FORKED):
        if not _paths(session, other, plain.history):
            flake = Flake(plain.history, None, None, 1, times + 2)
            return _flaky(plain, flake)
    return replace(plain, replayed=FORKED)


def _unshrunk(judge: Judge, finding: Finding, plain: Violation) -> Violation:
    """No short history shows it: the long one does, or nothing does."""
    if finding.kind in LATE:
        return plain
    total = judge.ordering.total
    played = replay(judge.system, finding.history, order_dependent=total)
    values = {action.value for action in played.actions[-2:]}
    values |= {fault.found for fault in played.faults}
    shows = finding.kind == "hidden" or finding.hidden or finding.found in values
    told = flake(judge, finding.history, played)
    if isinstance(told, Flake):
        return _flaky(plain, told)
    if not shows and finding.kind in STATEFUL | {"error", "undo"}:
        values_found = played.actions[-1].value if played.actions else None
        once = Flake(finding.history, values_found, finding.found, 1, told + 2)
        return _flaky(plain, once)
    return replace(plain, replayed=told)


def _shown(
    session: Session, judge: Judge, finding: Finding, shrunk: Shrunk
) -> Violation:
    fault = shrunk.fault
    violation = Violation(
        fault.kind,
        fault.state,
        fault.expected,
        fault.found,
        finding.history,
        shrunk.history,
        proven_shortest=shrunk.proven,
        hidden=fault.hidden,
    )
    if fault.kind in LATE:
        return violation
    times = 0
    compared, inner = _compared(judge, shrunk.history, fault)
    for each in (shrunk.history, compared):
        if each is None:
            continue
        total = judge.ordering.total
        first = replay(judge.system, each, order_dependent=total)
        told = flake(judge, each, first)
        if isinstance(told, Flake):
            return _flaky(violation, told)
        times = told
    judge.extend(len(shrunk.history))
    try:
        if judge.fault(shrunk.history, fault.kind) is None:
            found = Flake(shrunk.history, fault.expected, fault.found, 1, times + 1)
            return _flaky(violation, found)
    except Exhausted:
        pass
    square = find_square(judge, shrunk.history, fault.kind, session.operations)
    paths = None if inner is None else _paths(session, *inner)
    if paths == () and not session.system.settled and fault.kind in STATEFUL:
        # The states were equal, and yet what followed was not.
        violation = replace(violation, kind="hidden")
    return replace(
        violation, square=square, paths=paths or finding.paths, replayed=times
    )


def _compared(
    judge: Judge, history: History, fault: Fault
) -> tuple[History | None, tuple[History, History] | None]:
    """The history that this one is compared with, and both before they differ."""
    if fault.kind not in STATEFUL | {"error", "undo"} or not history:
        return None, None
    total = judge.ordering.total
    before = replay(judge.system, history[:-1], order_dependent=total).state
    if fault.kind == "undo":
        # The same undo from the plain way to the same steps, where it need not raise.
        return (*judge.way(before), history[-1]), (judge.way(before), history[:-1])
    last = replay(judge.system, history, order_dependent=total).actions[-2]
    told = fault.position == len(history) and last.deed != "look"
    if told and last.value is not None and last.value == fault.found:
        return (*judge.way(before), history[-1]), (judge.way(before), history[:-1])
    way = judge.way(fault.state)
    return way, (way, history)


def _paths(session: Session, one: History, other: History) -> tuple[str, ...] | None:
    """Where the states after two histories differ; None where they have no portrait."""
    total = session.ordering.total
    left, right = (
        portrait(session.system, each, order_dependent=total) for each in (one, other)
    )
    if left is None or right is None:
        return None
    return session.system.paths(left, right)


def _flaky(violation: Violation, flake: Flake) -> Violation:
    return Violation(
        "nondeterminism",
        violation.state,
        flake.expected,
        flake.found,
        flake.history,
        paths=(f"{flake.rare} of {flake.times} replays gave the second",),
    )
