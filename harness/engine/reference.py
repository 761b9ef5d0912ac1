"""The reference for all later looks: a fresh, deterministic system, observed cold.

Runs of one history are compared with each other first, because every other verdict
depends on it: a counter, an address or an id in an observation would look like a
dependence on order, and so would leftovers of an earlier system in a class or a module.

*Fresh and deterministic.*  These histories are played on a fresh system each: the empty
one and every single operation (not for a settled system, whose state is compared after
each operation); then two long histories (the steps added upwards and removed upwards,
and both downwards; at each state every use is performed and a look is taken), each
twice; then the empty one and every single operation again.  All results are compared,
failures and states included.  If two runs differ, the history is replayed `REPEATS`
times more.  If these replays agree with each other, and another history has changed as
well, or if a fresh system looks different after a history on another system, then
`create` does not make fresh systems.  Else the system is not deterministic, as far as
can be seen: one run that went wrong looks like a change after it.  If complete states
are visible, every fresh one must have the form of the first, which names the path as
well; at the end that is checked once more, after a history to every state
(`recheck_states`).

*The canonical histories*, the shortest way to each state.  The reference of a state is
the look at the end of its canonical history, played on a fresh system without an
earlier look.  The algorithm is breadth-first search over histories: from each known
state in order of discovery, operations ascending, every change with an unknown target
is tried from a fresh system.  So each state has the history that is first by length,
then by operations, among the extensions of canonical histories; failing steps are met
(and recorded) on the way, and the reachable sets are known exactly when it ends.  Each
use is also performed once, first of all, at the end of each canonical history: a use
whose answer is cached at its first call is unmasked only by a call without an earlier
one.  Above `MOST_HISTORIES` only the corners are visited, and the session reports that.
"""

from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import replace

from everyorder.harness.base.errors import ExplorationRestart
from everyorder.harness.engine import warm_up
from everyorder.harness.engine.oracle import Action, Replay, abandon, replay
from everyorder.harness.engine.player import Broken
from everyorder.harness.engine.protocol import (
    Caveat,
    History,
    Key,
    State,
    StateForm,
)
from everyorder.harness.engine.session import (
    FINAL,
    RESULT_WITHOUT_PATH,
    ExplorationSession,
    Halt,
    Incomplete,
    RawViolation,
)
from everyorder.harness.engine.warm_up import REPEATS, rehearsal

# States after which a fresh system is checked: a few seconds at 100 microseconds an
# operation.
MOST_RECHECKED = 4_096


def make_first_system(session: ExplorationSession) -> None:
    """Create the first system, and store its form, which all others must have."""
    player, system = session.player, session.system
    # A fresh system may break a law; that is a violation like others.
    with suppress(Halt):
        player.reset()
    form = player.state()
    if isinstance(form, StateForm) and form.weak and not system.settled:
        # It may show older garbage, which a later collection removes.
        system.collect()
        form = player.state()
    session.first_form = form
    if form is not None and not system.settled:
        session.first_portrait = system.portrait(player.handles)
        session.first_scope = system.scope()


def check(session: ExplorationSession) -> bool:
    """Return True if all histories agree with themselves; else add a finding."""
    operations = session.operations
    single: list[History] = []
    if not session.system.settled:
        single = [(), *((each,) for each in range(operations.actions))]
    # The warm-up has played them once.
    replays: dict[History, Replay] = session.rehearsed.copy()
    histories = (*rehearsal(operations), *single)
    if not replays:
        histories = (*single, *rehearsal(operations), *histories)
    try:
        for history in histories:
            played = _played(session, history)
            before = replays.setdefault(history, played)
            _check_form(session)
            if before != played:
                session.findings.append(_judged(session, history, replays, played))
                return False
        for history in single:
            _check_after(session, history)
    except Halt:
        return False
    return True


def recheck_states(session: ExplorationSession) -> None:
    """Check that a system is fresh after another one was dropped at any state.

    While states are searched, systems are mostly dropped after long histories, which
    may have removed the leftovers of a short one.  So a history to each state is played
    once more, and the next system is checked; effects of a look are covered by states
    without it.  If states did not close, there is no history to each.

    Raises:
        Halt: a system is not fresh.
    """
    if session.findings or not _is_followed(session):
        return
    try:
        for at, way in enumerate(session.state_histories):
            session.unchecked = len(session.state_histories) - at
            if at == MOST_RECHECKED:
                return
            session.meter.check_time()
            _check_after(session, way)
    except Incomplete:
        return
    session.unchecked = 0


def recheck_findings(session: ExplorationSession) -> None:
    """Check that a system is fresh after the histories of the findings.

    If it is not, that becomes the only finding: all others may be a result of it.
    """
    if not _is_followed(session):
        return
    findings = tuple(session.findings)
    try:
        for finding in findings:
            if finding.kind in FINAL:
                continue
            for history in (finding.first_history, finding.other, finding.history):
                if history is not None:
                    _played(session, history)
                    _check_form(session)
    except Halt:
        if session.findings[-1].kind in FINAL:
            findings = (session.findings[-1],)
    session.findings[:] = findings


def caveats(session: ExplorationSession) -> tuple[Caveat, ...]:
    """Return the limits by the warm-up, and by states that were not rechecked."""
    filled = warm_up.caveats(session)
    if not session.unchecked:
        return filled
    checked = len(session.state_histories) - session.unchecked
    states = f"{session.unchecked:,} states, as it is after {checked:,}"
    return (*filled, Caveat("assumed", f"create makes a fresh system after {states}"))


def is_left_behind(session: ExplorationSession) -> bool:
    """Return True, and report it alone, if a fresh system is not like the first one.

    It is asked where forms of now cannot be compared with the first one.
    """
    system, player, scope = session.system, session.player, session.first_scope
    if scope is None:
        return False
    while True:
        try:
            with suppress(Halt):  # a law, as in the first system
                player.reset()
            now = system.portrait_within(player.handles, scope)
            break
        except ExplorationRestart:
            continue  # it ends: each package is new once, and so is older garbage
    if now == session.first_portrait:
        return False
    with suppress(Halt):
        session.report_not_fresh(now)
    session.findings[:] = session.findings[-1:]
    player.drop()
    return True


def _is_followed(session: ExplorationSession) -> bool:
    """Return True if fresh systems must have the form of the first one."""
    system = session.system
    followed = isinstance(session.first_form, StateForm) and not system.settled
    return followed and not system.isolated


def _check_after(session: ExplorationSession, history: History) -> None:
    """Raise `Halt` if a system is not fresh after one that was dropped there."""
    order_dependent = session.ordering.total
    abandon(session.system, history, order_dependent=order_dependent)
    _check_form(session)


def _check_form(session: ExplorationSession) -> None:
    """Raise `Halt` if a fresh system has not the form of the first one."""
    first = session.first_form
    if not isinstance(first, StateForm) or session.system.settled:
        return
    session.player.reset()
    now = session.player.state()
    if not isinstance(now, StateForm) or now.exact != first.exact:
        session.report_not_fresh()


def _played(session: ExplorationSession, history: History) -> Replay:
    return replay(session.system, history, order_dependent=session.ordering.total)


def _judged(
    session: ExplorationSession,
    history: History,
    replays: dict[History, Replay],
    now: Replay,
) -> RawViolation:
    finding = _finding(session, history, replays[history], now)
    if _is_new(session, history, now):
        for other, before in replays.items():
            after = before if other == history else _played(session, other)
            if after != before and _is_new(session, other, after):
                return _leftover(session, finding)
    if _carries_over(session, replays):
        return _leftover(session, finding)
    return finding


def _leftover(session: ExplorationSession, finding: RawViolation) -> RawViolation:
    """Return the finding as one of a system that is not fresh, with what differs."""
    session.player.reset()
    now = session.system.portrait(session.player.handles)
    paths = session.different_paths(now) or (RESULT_WITHOUT_PATH,)
    return replace(finding, kind="not fresh", paths=paths)


def _carries_over(session: ExplorationSession, histories: Iterable[History]) -> bool:
    """Return True if a fresh system shows effects of an earlier history.

    The next system may undo them, so that no history has changed for good.
    """
    operations = session.operations
    probe = (*range(operations.steps, operations.actions), operations.look)
    before = _played(session, probe)
    if not _is_new(session, probe, before):
        return False
    for history in histories:
        _played(session, history)
        after = _played(session, probe)
        if after != before:
            return _is_new(session, probe, after)
    return False


def _is_new(session: ExplorationSession, history: History, now: Replay) -> bool:
    """Return True if the history now always has this result."""
    return all(_played(session, history) == now for _ in range(REPEATS))


def _finding(
    session: ExplorationSession, history: History, one: Replay, two: Replay
) -> RawViolation:
    pairs = zip(one.actions, two.actions, strict=False)
    for at, (left, right) in enumerate(pairs):
        if left != right:
            return _difference(session, history[: at + 1], left, right)
    if one.fresh != two.fresh:
        root = session.ordering.root
        return RawViolation(
            "nondeterminism", root, one.fresh, two.fresh, (), hidden=True
        )
    return _difference(session, history, one.actions[-1], two.actions[-1])


def _difference(
    session: ExplorationSession, history: History, left: Action, right: Action
) -> RawViolation:
    expected, actual = left.value, right.value
    hidden = expected == actual
    if hidden:
        expected, actual = left.fingerprint, right.fingerprint
        if history and history[-1] == session.operations.look:
            # The look is not what differs; one is implied at the end.
            history = history[:-1]
    key = session.ordering.key(right.state)
    return RawViolation("nondeterminism", key, expected, actual, history, hidden)


# 2^13 fresh histories of six adds are five seconds at 100 microseconds a step; a
# `walk:1` on 12 steps is ten times as long.
MOST_HISTORIES = 8192
# A larger budget of steps allows more: one history for so many of its steps.
COLD_SHARE = 30


def count_arrangements(steps: int) -> int:
    """Return the number of ordered arrangements of distinct steps, () included."""
    total = term = 1
    for left in range(steps, 0, -1):
        term *= left
        total += term
    return total


def look_cold(session: ExplorationSession) -> None:
    """Take the cold look at every state, or at the corners if there are too many."""
    if _is_large(session):
        _corners(session)
        session.skipped.append(
            f"cold looks: of {_states(session):,} states only the corners (none, "
            "singles, pairs, all) were also looked at cold (--steps raises it)"
        )
    else:
        map_states(session)


def canonical_histories(
    session: ExplorationSession, states: Iterable[State]
) -> Mapping[Key, History]:
    """Return the canonical histories that `look_cold` finds, as these states need them.

    Faults on the way are added to the session's findings; if one ends the search, or
    the time is over, the histories known by then are returned.
    """
    targets = frozenset(map(session.ordering.key, states))
    with suppress(Halt, Broken, Incomplete):
        if _is_large(session):
            _corners(session)
        else:
            map_states(session, targets)
    return session.record.canonical


def map_states(session: ExplorationSession, targets: Set[Key] | None = None) -> None:
    """Find the canonical history of every reachable state, and look there cold.

    With `targets` it ends as soon as these are found.
    """
    if session.mapped:
        return
    canonical = session.record.canonical
    operations = session.operations
    _visit(session, ())
    queue: list[Key] = [session.ordering.root]
    for key in queue:
        if targets is not None and targets <= canonical.keys():
            return
        history = canonical[key]
        session.meter.check_time()
        queue.extend(
            session.player.key
            for change in operations.changes
            if session.after(key, change) not in canonical
            and _visit(session, (*history, change))
        )
        _answers(session, history)
    session.mapped = session.reached = True


def _states(session: ExplorationSession) -> int:
    """Return the number of states when no step fails."""
    steps = session.operations.steps
    return count_arrangements(steps) if session.ordering.total else 1 << steps


def _is_large(session: ExplorationSession) -> bool:
    most = max(MOST_HISTORIES, (session.meter.limit or 0) // COLD_SHARE)
    return _states(session) * (1 + session.operations.uses) > most


def _corners(session: ExplorationSession) -> None:
    steps = session.operations.steps
    histories: list[History] = [(), *((i,) for i in range(steps))]
    histories += [(i, j) for i in range(steps) for j in range(i + 1, steps)]
    histories.append(session.operations.history_to(range(steps)))
    for history in histories:
        session.meter.check_time()
        if _visit(session, history):
            _answers(session, history)


def _visit(session: ExplorationSession, history: History) -> bool:
    """Look at the end of the history; return True if that is a new state."""
    session.check_history(history)
    canonical = session.record.canonical
    if session.player.key in canonical:
        return False
    canonical[session.player.key] = history
    return True


def _answers(session: ExplorationSession, history: History) -> None:
    for use in range(session.operations.steps, session.operations.actions):
        session.check_history((*history, use))
