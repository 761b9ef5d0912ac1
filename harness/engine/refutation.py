"""From findings to violations: shrunk, replayed, with the paths that differ.

A finding is shrunk (`shrink.py`).  The resulting history, and the one it is compared
with, are replayed `TIMES` times on fresh systems each.  If the results differ, the
violation is flaky, whatever it looked like at first: a system that fails once in a
hundred runs fails during any long exploration, and then the last operations seem to be
to blame.  The fault is judged `JUDGED` times more, by a judge with an empty cache,
because a reference that was wrong once would stay wrong.  A history that is too long to
be replayed so often is replayed as often as `MOST_OPERATIONS` allow, twice at least;
the number is in the report.

If states are visible, the two histories are compared before the operation whose results
differ: the paths that differ name the variable to fix.

By theorem T2 (`strategy.py`) a system that depends on the order has a *square* of the
cube of sets that does not close, and four transitions explain more than a history.
Along the shortest history each pair of neighbouring steps is exchanged, and each step
is done and undone; the first place where the looks then differ is the square.  The look
is taken right after the two operations, or, if the difference stays hidden until later
operations, after the rest of the history.  Faults that need a use or a failing step
between may have no square over this history; then none is reported.
"""

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from everyorder.harness.engine.oracle import (
    STATEFUL,
    HistoryFault,
    Judge,
    OperationKind,
    OperationsExhausted,
    Replay,
    arrival,
    portrait,
    replay,
)
from everyorder.harness.engine.player import Broken
from everyorder.harness.engine.protocol import History, Operations, StateForm, state_of
from everyorder.harness.engine.result import Kind, Square, Violation
from everyorder.harness.engine.session import FINAL, ExplorationSession, RawViolation
from everyorder.harness.engine.shrink import Shrunk, shrink

# A fault of one run in five escapes 20 replays once in a hundred times.
TIMES = 20

# Operations that replaying one history may take: a second at 100 microseconds each.
MOST_OPERATIONS = 10_000

# If ten operations are wrong once in a hundred times, one in ten verdicts is wrong;
# that all of these are, by the same fault, happens less than once in a thousand times.
JUDGED = 3


@dataclass(frozen=True, slots=True)
class Flake:
    """Different results of the same history: one of them `rare` times of `times`."""

    history: History
    expected: Hashable
    found: Hashable
    rare: int
    times: int


def find_flake(judge: Judge, history: History, first: Replay) -> Flake | int:
    """Return a difference from the first replay, or the number of equal replays."""
    times = min(TIMES, max(MOST_OPERATIONS // (len(history) + 1), 2))
    total = judge.ordering.total
    replays = [
        replay(judge.system, history, order_dependent=total) for _ in range(times)
    ]
    wrong = [each for each in replays if each != first]
    if not wrong:
        return times
    expected, actual = _difference(first, wrong[0])
    most = Counter(each == first for each in replays)
    rare = min(most[True] + 1, most[False])
    return Flake(history, expected, actual, rare, times + 1)


def is_reproducible(judge: Judge, history: History, fault: HistoryFault) -> bool:
    """Return True if every new judge finds this very fault in the history."""
    for _ in range(JUDGED):
        try:
            if judge.new_judge().fault(history, fault.kind) != fault:
                return False
        except OperationsExhausted:
            # It is too long to be judged: the agreement of all replays must suffice.
            return True
    return True


def _difference(one: Replay, two: Replay) -> tuple[Hashable, Hashable]:
    for left, right in zip(one.actions, two.actions, strict=False):
        if left.value != right.value or left.kind != right.kind:
            return left.value, right.value
    return one.actions[-1].fingerprint, two.actions[-1].fingerprint


def find_square(
    judge: Judge, history: History, kind: Kind, operations: Operations
) -> Square | None:
    """Return the first square along the history that does not close, if any."""
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
    except OperationsExhausted:
        pass
    return None


def _pairs(
    history: History, operations: Operations, *, rest: bool
) -> Iterator[tuple[int, History, History]]:
    """Yield the place of two neighbouring steps, with the two histories to compare."""
    for at in range(len(history) - 1):
        first, second = history[at], history[at + 1]
        if first >= operations.steps or second >= operations.steps:
            continue
        before = history[:at]
        after = history[at + 2 :] if rest else ()
        other = () if first == second else (second, first)
        yield at, (*before, first, second, *after), (*before, *other, *after)


# Replays of two histories whose whole states are compared.
FORKED = 5


@dataclass(slots=True)
class _Case:
    """A finding, its shrunk history, and the judge that shrank it."""

    finding: RawViolation
    judge: Judge
    shrunk: Shrunk | None


def refutations(session: ExplorationSession, *, proving: bool) -> tuple[Violation, ...]:
    """Return the violations of the findings, without duplicates, shortest first.

    `proving` means that states were compared.  Several findings often shrink to one
    history.  A shorter history of other operations may show another fault: it replaces
    the longer one unless it is the history of another finding.
    """
    cases = [_case(session, finding, proving=proving) for finding in session.findings]
    own = {case.shrunk.history for case in cases if case.shrunk is not None}
    violations: dict[tuple[Kind, History], Violation] = {}
    for case in cases:
        shorter = None if case.shrunk is None else case.shrunk.shorter
        if shorter is not None and shorter.history not in own:
            case.shrunk = shorter
        violation = _as_played(session, _violation(session, case))
        violations.setdefault((violation.kind, violation.shown), violation)
    shortest_first = sorted(violations.values(), key=lambda each: len(each.shown))
    return _count_hidden(without_unreliable(tuple(shortest_first)))


# Kinds of actions that end a step, or try to.
_UNDONE = frozenset[OperationKind]({"remove", "refused"})


def _as_played(session: ExplorationSession, violation: Violation) -> Violation:
    """Return the violation with the undos of its histories, as a replay shows them.

    Whether a toggle does or undoes a step cannot be derived from the record: a step may
    fail after one history, and be done again after another.
    """
    shown, undos = _undos(session, violation.shown)
    if violation.shortest is not None:
        violation = replace(violation, shortest=shown)
    if violation.other is not None:
        _, other_undos = _undos(session, violation.other)
        violation = replace(violation, other_undos=other_undos)
    if violation.reference is not None:
        reference, its_undos = _undos(session, violation.reference)
        violation = replace(violation, reference=reference, reference_undos=its_undos)
    # Without a short history the operations are those of the exploration.
    same = shown == violation.shown
    return replace(violation, undos=undos if same else None)


def _undos(
    session: ExplorationSession, history: History
) -> tuple[History, frozenset[int]]:
    """Replay a history; return the played operations, and the places of undos."""
    total = session.ordering.total
    actions = replay(session.system, history, order_dependent=total).actions
    played: list[int] = []
    undos: set[int] = set()
    for at, operation in enumerate(history[: len(actions) + 1]):
        # The operation without an action is an undo that raised.
        kind = actions[at].kind if at < len(actions) else "remove"
        if kind == "skipped":
            continue
        if kind in _UNDONE:
            undos.add(len(played))
        played.append(operation)
    return tuple(played), frozenset(undos)


def without_unreliable(violations: tuple[Violation, ...]) -> tuple[Violation, ...]:
    """Remove violations of a flaky system that rely on two histories as first played.

    If one history gave two results, equal states have two futures as well; and a
    history that cannot be shrunk is too long to be replayed often.
    """
    if not any(each.kind == "nondeterminism" for each in violations):
        return violations
    return tuple(
        each
        for each in violations
        if each.kind != "hidden" or each.shortest is not None
    )


def _count_hidden(violations: tuple[Violation, ...]) -> tuple[Violation, ...]:
    """Return the violations; if hidden state has short histories, only these show it.

    Findings at a fork of states cannot be shrunk: twenty operations add nothing to
    three.
    """
    short = [each for each in violations if each.kind == "hidden" and each.shortest]
    if not short:
        return violations
    forked = [each for each in violations if each.kind == "hidden"]
    more = len(forked) - len(short)
    return tuple(
        replace(each, more=more) if each is short[0] else each
        for each in violations
        if each not in forked or each in short
    )


def _case(
    session: ExplorationSession, finding: RawViolation, *, proving: bool
) -> _Case:
    judge = Judge(
        session.system,
        session.record.canonical,
        ordering=session.ordering,
        proving=proving,
    )
    if finding.kind in FINAL or finding.other is not None:
        return _Case(finding, judge, None)
    shrunk = _shrunk(session, judge, finding)
    if shrunk is None and finding.first_history is not None:
        # The first of the two values may be the wrong one.
        turned = replace(
            finding,
            history=finding.first_history,
            expected=finding.found,
            found=finding.expected,
        )
        other = judge.new_judge()
        shrunk = _shrunk(session, other, turned)
        if shrunk is not None:
            return _Case(turned, other, shrunk)
    return _Case(finding, judge, shrunk)


def _violation(session: ExplorationSession, case: _Case) -> Violation:
    finding = case.finding
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
        return _from_fork(session, plain, finding.other)
    if case.shrunk is None:
        return _from_long_history(case.judge, finding, plain)
    return _from_shrunk(session, case.judge, finding, case.shrunk)


def _shrunk(
    session: ExplorationSession, judge: Judge, finding: RawViolation
) -> Shrunk | None:
    return shrink(judge, finding, session.operations, session.record, session.ordering)


def _from_fork(
    session: ExplorationSession, plain: Violation, other: History
) -> Violation:
    """Return the violation of two histories with equal states but different futures."""
    history = plain.history
    if other[-1] == session.operations.look:
        # A final look is implied there.
        history = (*history, other[-1])
    ends = [
        (_arrival(session, other), _arrival(session, history)) for _ in range(FORKED)
    ]
    strays = sum(each != ends[0] for each in ends)
    if strays:
        flake = Flake(plain.history, None, None, min(strays, FORKED - strays), FORKED)
        return _with_own_paths(session, _flaky(plain, flake))
    one, two = ends[0]
    if _future(one, two) == _future(two, one):
        flake = Flake(plain.history, None, None, 1, FORKED + 1)
        return _with_own_paths(session, _flaky(plain, flake))
    violation = replace(plain, replayed=FORKED, other=_without_look(session, other))
    if one is None or two is None or one[1] == two[1]:
        # Only the states that follow differ: their paths say where.
        return violation
    return replace(violation, expected=one[1], found=two[1], hidden=False)


def _with_own_paths(session: ExplorationSession, violation: Violation) -> Violation:
    """Return the violation with the paths that differ in two plays of its history."""
    paths = _paths(session, violation.history, violation.history)
    return replace(violation, paths=paths or ())


def _without_look(session: ExplorationSession, history: History) -> History:
    """Return the history without its final look, which is implied."""
    return history[:-1] if history[-1:] == (session.operations.look,) else history


Arrival: TypeAlias = tuple[Hashable | None, Hashable, Hashable | None]


def _arrival(session: ExplorationSession, history: History) -> Arrival | None:
    total = session.ordering.total
    try:
        return arrival(session.system, history, order_dependent=total)
    except Broken:
        return None


def _are_alike(session: ExplorationSession, one: History, other: History) -> bool:
    """Return True if the states after two histories are visible and equal."""
    look = session.operations.look
    left, right = (_arrival(session, (*each, look)) for each in (one, other))
    return left is not None and left[0] is not None and left[:1] == (right or ())[:1]


def _future(one: Arrival | None, other: Arrival | None) -> Hashable:
    """Return the result and the next state, in forms that were equal before."""
    if one is None or other is None:
        return one
    before, value, after = one
    blind = isinstance(after, StateForm) and before != other[0]
    return value, after.blind if blind else after  # type: ignore[union-attr]  # a form


def _from_long_history(
    judge: Judge, finding: RawViolation, plain: Violation
) -> Violation:
    """Return the violation of a finding that could not be shrunk; it may be flaky."""
    if _is_late(judge, finding.kind):
        return plain
    total = judge.ordering.total
    played = replay(judge.system, finding.history, order_dependent=total)
    outcome = find_flake(judge, finding.history, played)
    if isinstance(outcome, Flake):
        return _flaky(plain, outcome)
    if not _shows(judge, finding, played):
        value = played.actions[-1].value if played.actions else None
        once = Flake(finding.history, value, finding.found, 1, outcome + 1)
        return _flaky(plain, once)
    return replace(plain, replayed=outcome)


def _shows(judge: Judge, finding: RawViolation, played: Replay) -> bool:
    """Return True if the history alone has the found, not the expected, result."""
    if any(
        (fault.expected, fault.found) == (finding.expected, finding.found)
        for fault in played.faults
    ):
        # It contradicts itself.
        return True
    ends = played.actions[-2:]
    if finding.hidden:
        return finding.found in {action.fingerprint for action in ends}
    if finding.found not in {action.value for action in ends}:
        return False
    total = judge.ordering.total
    way = judge.canonical(played.state)
    for each in (finding.first_history, way, (*way, *finding.history[-1:])):
        if each is None:
            continue
        other = replay(judge.system, each, order_dependent=total)
        if finding.expected in {action.value for action in other.actions[-2:]}:
            return True
    return False


def _is_late(judge: Judge, kind: Kind) -> bool:
    """Return True if a replay on a fresh system need not show the fault again."""
    return kind == "leak" or (kind == "law" and judge.system.settled)


def _from_shrunk(
    session: ExplorationSession, judge: Judge, finding: RawViolation, shrunk: Shrunk
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
    if _is_late(judge, fault.kind):
        return violation
    times = 0
    compared, inner = _comparison(judge, shrunk.history, fault)
    for each in (shrunk.history, compared):
        if each is None:
            continue
        total = judge.ordering.total
        first = replay(judge.system, each, order_dependent=total)
        outcome = find_flake(judge, each, first)
        if isinstance(outcome, Flake):
            return _flaky(violation, outcome)
        times = outcome
    if not is_reproducible(judge, shrunk.history, fault):
        flake = Flake(shrunk.history, fault.expected, fault.found, 1, times + 1)
        return _flaky(violation, flake)
    judge.extend(len(shrunk.history))
    square = find_square(judge, shrunk.history, fault.kind, session.operations)
    paths = None if inner is None else _paths(session, *inner)
    stateful = not session.system.settled and fault.kind in STATEFUL
    # A fingerprint written by the scenario may cover less than the paths do.
    if inner and stateful and (paths == () or _are_alike(session, *inner)):
        # The states were equal, but the results after them were not.
        assert compared is not None, "it was compared with one"
        other = _without_look(session, compared)
        violation = replace(violation, kind="hidden", other=other)
    paths = paths or finding.paths
    if paths and inner is not None and inner[1] == shrunk.history:
        paths += _before_undo(session, judge, shrunk.history)
    reference = None
    if compared is not None and compared != shrunk.history:
        reference = _without_look(session, compared)
    return replace(
        violation, square=square, paths=paths, replayed=times, reference=reference
    )


def _comparison(
    judge: Judge, history: History, fault: HistoryFault
) -> tuple[History | None, tuple[History, History] | None]:
    """Return the history to compare with, and both histories before they differ."""
    if fault.kind not in STATEFUL | {"error", "undo"} or not history:
        return None, None
    total = judge.ordering.total
    before = replay(judge.system, history[:-1], order_dependent=total).state
    plain = judge.canonical(before)
    if fault.kind in ("undo", "error"):
        # The same after the canonical history, where it need not raise.
        return (*plain, history[-1]), (plain, history[:-1])
    last = replay(judge.system, history, order_dependent=total).actions[-2]
    at_last = fault.position == len(history) and not fault.at_end
    shows = last.kind != "look" and last.value is not None
    if at_last and shows and last.value == fault.found:
        return (*plain, history[-1]), (plain, history[:-1])
    way = judge.canonical(fault.state)
    return way, (way, history)


def _before_undo(
    session: ExplorationSession, judge: Judge, history: History
) -> tuple[str, ...]:
    """Return where the states differ before the undo that ends a history, if one does.

    The undo handle has its own state, which is often the variable to fix.
    """
    total = judge.ordering.total
    last = replay(judge.system, history, order_dependent=total).actions[-2]
    if last.kind != "remove":
        return ()
    before = replay(judge.system, history[:-1], order_dependent=total).state
    paths = _paths(session, judge.canonical(before), history[:-1]) or ()
    return tuple(f"before the last operation: {path}" for path in paths)


def _paths(
    session: ExplorationSession, one: History, other: History
) -> tuple[str, ...] | None:
    """Return where the states after two histories differ; None without a portrait."""
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
        frequency=(flake.rare, flake.times),
    )
