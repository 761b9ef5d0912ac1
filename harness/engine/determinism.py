"""The checks before all others: is `create` fresh, and is the system deterministic?

True only here: runs are compared with runs of the same history, not with a reference.
Without this every other verdict is void: a counter, an address or an id in an
observation would pass for a dependence on order, and so would what an earlier system
left behind in a class or a module.

How it works: on a fresh system each, nothing at all and every single operation (not
of a settled system, whose state is compared after each operation); then two long
histories (the steps added upwards and removed upwards, and both downwards; at
each state every use is performed and a look is taken), each twice; then nothing and
every single operation again.  Everything that came back is compared, failures and
states included.  Where two runs differ, the history is replayed `REPEATS` times more:
if these agree with each other, and another history has changed as well, or if what a
fresh system shows is another one after a history on another system, then what `create`
makes is not fresh; else the system is not deterministic, as far as anybody can tell:
one run that went wrong looks like a change after it.  Where complete states
can be seen, every fresh one must have the form of the first, which names the path as
well; at the end that is seen once more, after a history to every state (`recheck`).
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from harness.engine.budget import Halt, Spent
from harness.engine.operations import Operations
from harness.engine.protocol import Caveat, History, StateForm
from harness.engine.replay import Action, Replay, let_go, replay
from harness.engine.session import FINAL, Finding, Session

# Replays that tell "changed for good" from "different each time": what goes wrong in
# one run of two agrees so often once in a million times.
REPEATS = 20

# States after which a fresh system is looked at: a few seconds at 100 microseconds an
# operation.
MOST_RECHECKED = 4_096


def rehearsal(operations: Operations) -> tuple[History, History]:
    """The long histories that are played twice."""
    every = (*range(operations.steps, operations.actions), operations.look)
    upwards = tuple(range(operations.steps))
    histories = [
        every
        + tuple(operation for step in (*steps, *steps) for operation in (step, *every))
        for steps in (upwards, upwards[::-1])
    ]
    return histories[0], histories[1]


def begin(session: Session) -> None:
    """Make the first system of all, and note its form, which all others must have."""
    runner, system = session.runner, session.system
    # A fresh system may break a law; that is a violation like others.
    with suppress(Halt):
        runner.reset()
    form = runner.state()
    if isinstance(form, StateForm) and form.weak and not system.settled:
        # It may show garbage of others, which a later collection takes away.
        system.collect()
        form = runner.state()
    session.first = form
    if form is not None and not system.settled:
        session.fresh = system.portrait(runner.handles)


def check(session: Session) -> bool:
    """Whether all histories agree with themselves; else there is a finding."""
    operations = session.operations
    single: list[History] = []
    if not session.system.settled:
        single = [(), *((each,) for each in range(operations.actions))]
    try:
        known: dict[History, Replay] = {}
        for history in (*single, *rehearsal(operations) * 2, *single):
            played = _played(session, history)
            before = known.setdefault(history, played)
            _check_form(session)
            if before != played:
                session.findings.append(_judged(session, history, known, played))
                return False
        for history in single:
            _check_after(session, history)
    except Halt:
        return False
    return True


def recheck(session: Session) -> None:
    """See whether a system is fresh after others that were let go of at any state.

    While states are searched, systems are mostly let go of after long histories, which
    may have put back what a short one leaves.  So a history to each state is played
    once more, and the next system looked at; of what a look changes there are states
    without it.  Where states did not close, there is no history to each.  Raises `Halt`
    where a system is not fresh.
    """
    if session.findings or not _is_followed(session):
        return
    try:
        for at, way in enumerate(session.ways):
            session.unchecked = len(session.ways) - at
            if at == MOST_RECHECKED:
                return
            session.meter.check_time()
            _check_after(session, way)
    except Spent:
        return
    session.unchecked = 0


def blame(session: Session) -> None:
    """See whether a system is fresh after the histories of what was found.

    If it is not, that is the one finding: whatever else was found may come from it.
    """
    if not _is_followed(session):
        return
    found = tuple(session.findings)
    try:
        for finding in found:
            if finding.kind in FINAL:
                continue
            for history in (finding.first, finding.other, finding.history):
                if history is not None:
                    _played(session, history)
                    _check_form(session)
    except Halt:
        if session.findings[-1].kind in FINAL:
            found = (session.findings[-1],)
    session.findings[:] = found


def caveats(session: Session) -> tuple[Caveat, ...]:
    """What is assumed, where states were too many."""
    if not session.unchecked:
        return ()
    seen = len(session.ways) - session.unchecked
    states = f"{session.unchecked:,} states, as it is after {seen:,}"
    return (Caveat("assumed", f"what create makes is fresh after {states}"),)


def _is_followed(session: Session) -> bool:
    """Whether fresh systems are to have the form of the first one."""
    system = session.system
    followed = isinstance(session.first, StateForm) and not system.settled
    return followed and not system.apart


def _check_after(session: Session, history: History) -> None:
    """Raise `Halt` if a system is not fresh after one that was let go of there."""
    order_dependent = session.ordering.total
    let_go(session.system, history, order_dependent=order_dependent)
    _check_form(session)


def _check_form(session: Session) -> None:
    """Raise `Halt` if a fresh system is not what the first one was."""
    first = session.first
    if not isinstance(first, StateForm) or session.system.settled:
        return
    session.runner.reset()
    now = session.runner.state()
    if not isinstance(now, StateForm) or now.exact != first.exact:
        session.not_fresh()


def _played(session: Session, history: History) -> Replay:
    return replay(session.system, history, order_dependent=session.ordering.total)


def _judged(
    session: Session, history: History, known: dict[History, Replay], now: Replay
) -> Finding:
    finding = _finding(session, history, known[history], now)
    if _is_new(session, history, now):
        for other, before in known.items():
            after = before if other == history else _played(session, other)
            if after != before and _is_new(session, other, after):
                return replace(finding, kind="not fresh")
    if _is_left(session, known):
        return replace(finding, kind="not fresh")
    return finding


def _is_left(session: Session, histories: Iterable[History]) -> bool:
    """Whether a fresh system shows what was done on the one before.

    It may be undone there by the next, so that no history has changed for good.
    """
    operations = session.operations
    asked = (*range(operations.steps, operations.actions), operations.look)
    before = _played(session, asked)
    if not _is_new(session, asked, before):
        return False
    for history in histories:
        _played(session, history)
        after = _played(session, asked)
        if after != before:
            return _is_new(session, asked, after)
    return False


def _is_new(session: Session, history: History, now: Replay) -> bool:
    """Whether this is what the history gives from now on."""
    return all(_played(session, history) == now for _ in range(REPEATS))


def _finding(session: Session, history: History, one: Replay, two: Replay) -> Finding:
    pairs = zip(one.actions, two.actions, strict=False)
    for at, (left, right) in enumerate(pairs):
        if left != right:
            return _difference(session, history[: at + 1], left, right)
    if one.fresh != two.fresh:
        root = session.ordering.root
        return Finding("nondeterminism", root, one.fresh, two.fresh, (), hidden=True)
    return _difference(session, history, one.actions[-1], two.actions[-1])


def _difference(
    session: Session, history: History, left: Action, right: Action
) -> Finding:
    expected, found = left.value, right.value
    hidden = expected == found
    if hidden:
        expected, found = left.fingerprint, right.fingerprint
        if history and history[-1] == session.operations.look:
            # It is not the look that differs; one is implied at the end.
            history = history[:-1]
    key = session.ordering.key(right.state)
    return Finding("nondeterminism", key, expected, found, history, hidden)
