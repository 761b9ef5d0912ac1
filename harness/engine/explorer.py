"""`explore`: one exploration from the first check to the frozen result.

True only here: the order of the stages.  Freshness and determinism first, because
without them nothing else means anything; cold looks second, because later nothing is
cold; then the strategies in the order in which they are named; then everything is
undone, so that the way back to nothing is checked as well; shrinking and replaying
last, because they reset the system.

Rules: the explorer prints nothing and stores nothing outside of the result.  Errors of
the adapter itself (in `observe`, `laws`, `reset`, `state`) are not caught.  Garbage is
collected between histories and by the operation for it, never inside of another one;
of a settled system the state says that nothing depends on it.
"""

import gc
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from functools import cache

from harness.engine import reference, symmetry
from harness.engine.groups import named
from harness.engine.proof import checked
from harness.engine.protocol import State, System, operations_of, ordering_of, state_of
from harness.engine.reference import look_cold
from harness.engine.refutation import refutations
from harness.engine.result import Counts, Exploration, Violation
from harness.engine.runner import Broken
from harness.engine.session import Budget, Halt, Meter, Progress, Session, Spent
from harness.engine.strategy import UNPROVEN, Strategy, choose, guarantee, parse
from harness.engine.theory import DETERMINISM, OPEN, ORDERED, PAIRS, SCOPE
from harness.engine.vacuity import unpinned, vacuous


def explore(
    system: System,
    strategy: str = "auto",
    *,
    order_dependent: bool = False,
    budget: Budget | None = None,
    progress: Progress | None = None,
    stop_after: int = 1,
) -> Exploration:
    """Explore a system and say what holds, what does not, and what was not looked at.

    `strategy` is "auto" or names joined by '+' (see `strategy.KNOWN`).  With
    `order_dependent` states are compared by order of activation; the exploration then
    fails if no two orders of the same steps differ.  `progress` receives operations
    executed and planned.  The run ends at the first violation, or after `stop_after` of
    them.

    Raises `BadStrategy`, or `BadScenario` for a system whose states cannot be compared.
    """
    operations = operations_of(system)
    ordering = ordering_of(system, order_dependent=order_dependent)
    meter = Meter(budget or Budget(), progress)
    session = Session(
        system, operations, meter, ordering=ordering, stop_after=stop_after
    )
    with _collector_seldom() if system.settled else _collector_off():
        if strategy == "auto" or not system.settled:
            reference.begin(session)
        if strategy == "auto":
            session.runner.rest()
            parts, above = choose(
                operations.steps,
                operations.uses,
                printed=session.first is not None,
                ordered=session.ordered,
                budget=budget,
                settled=system.settled,
                reversible=operations.reversible,
            )
            session.skipped += above
        else:
            parts = parse(strategy)
        closing = strategy == "auto" and not system.settled
        return _explored(session, parts, closing=closing)


def _explored(
    session: Session, parts: tuple[Strategy, ...], *, closing: bool
) -> Exploration:
    operations, meter = session.operations, session.meter
    sizes = [
        p.size(operations.steps, operations.uses, ordered=session.ordered)
        for p in parts
    ]
    meter.planned = sum(sizes)
    enough = len(session.findings) >= session.stop_after
    complete = not enough and reference.check(session)
    if session.system.settled:
        checked(session.runner.state())
    spent: list[tuple[str, int]] = []
    if complete:
        complete = _run(session, parts, spent, closing=closing)
        ran = {name for name, _ in spent}
        if complete and not session.groups:
            # They were sought, and there are none.
            ran.discard("groups")
        parts = tuple(part for part in parts if part.name in ran) or parts
    else:
        session.skipped.append("everything else: no history can be relied on")
    session.runner.drop()
    # What the runner held would still be there.
    reference.blame(session)
    session.runner.drop()
    meter.tell()
    proving = any(part.family == "graph" for part in parts)
    violations = refutations(session, proving=proving and session.system.settled)
    if complete and session.ordered and not violations:
        violations = tuple(
            unpinned(session.ledger, session.operations, session.ordering)
        )
    return _result(session, parts, violations, tuple(spent), complete=complete)


# Objects that come, less those that go, until the collector looks at them; by Python's
# 700 it takes a twentieth of an exploration.
SELDOM = 50_000


@contextmanager
def _collector_seldom() -> Iterator[None]:
    """Garbage is collected at any moment, and not often."""
    often, *older = gc.get_threshold()
    # What is 0 is off.
    gc.set_threshold(often and max(often, SELDOM), *older)
    try:
        yield
    finally:
        gc.set_threshold(often, *older)


@contextmanager
def _collector_off() -> Iterator[None]:
    """No garbage is collected at a moment that nobody chose, where that may show.

    What was there before is left alone, as looking through all of it would take longer
    than most explorations; of what an exploration leaves, nothing is left to the next.
    """
    if not gc.isenabled():
        yield
        return
    _collected()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.collect()
        gc.enable()
        gc.unfreeze()


@cache
def _collected() -> None:
    """Leave no garbage to the first exploration of a process."""
    gc.collect()


def _run(
    session: Session,
    parts: tuple[Strategy, ...],
    spent: list[tuple[str, int]],
    *,
    closing: bool,
) -> bool:
    """Run all stages; whether everything planned was executed.

    With `closing` what is planned for the case that the states do not close is left
    out when they did.
    """
    meter = session.meter
    try:
        look_cold(session)
        symmetry.check(session)
        for at, part in enumerate(parts):
            if closing and part.family in UNPROVEN and _proven(session, parts):
                continue
            session.runner.rest()
            left = sum(p.measure(session) for p in parts[at:])
            meter.planned = meter.transitions + left
            before = meter.transitions
            try:
                part.run(session)
            finally:
                spent.append((part.name, meter.transitions - before))
        meter.planned = meter.transitions
        session.runner.clear()
        session.runner.look()
        reference.recheck(session)
    except Spent as reason:
        session.skipped.append(
            f"{reason.reason}: {meter.transitions:,} of {meter.planned:,} operations "
            "executed"
        )
        return False
    except (Halt, Broken):
        if meter.transitions < meter.planned:
            session.skipped.append(
                f"stopped at a violation: {meter.transitions:,} of {meter.planned:,} "
                "operations executed"
            )
        return False
    return True


def _result(
    session: Session,
    parts: tuple[Strategy, ...],
    violations: tuple[Violation, ...],
    spent: tuple[tuple[str, int], ...],
    *,
    complete: bool,
) -> Exploration:
    runner, ledger, meter = session.runner, session.ledger, session.meter
    if runner.cyclic:
        session.skipped.append(
            f"leaks of {', '.join(runner.cyclic)}: these handles are freed by the "
            "cycle collector only, so they were not watched after the first"
        )
    caveats = (
        *session.system.caveats(),
        *symmetry.caveats(session),
        *reference.caveats(session),
    )
    proven = complete and not violations and _proven(session, parts)
    proven = proven and all(each.kind == "assumed" for each in caveats)
    # What still says something when the states did not close, or not for all.
    claimed = tuple(
        part
        for part in parts
        if {"graph": proven, "groups": bool(session.groups)}.get(part.family, True)
    )
    states = {state_of(key): seen for key, seen in ledger.seen.items()}
    return Exploration(
        strategy="+".join(part.name for part in parts),
        guarantee=guarantee(claimed) or f"{parts[0].name}: {OPEN}",
        assumptions=tuple(_assumptions(session, claimed)),
        skipped=tuple(session.skipped),
        states=dict(sorted(states.items(), key=lambda item: _place(item[0]))),
        failures=_by_state(ledger.failures),
        refusals=_by_state(ledger.refusals),
        executed=Counts(
            transitions=meter.transitions,
            adds=runner.adds,
            removes=runner.removes,
            failing=runner.failing,
            uses=runner.uses,
            observations=runner.observations,
            resets=runner.resets,
        ),
        planned=meter.planned,
        violations=violations,
        complete=complete,
        seconds=meter.seconds,
        closure=session.closure,
        caveats=caveats,
        # What is declared may have been taken back, where something else was seen.
        vacuous=tuple(
            vacuous(
                ledger,
                operations_of(session.system),
                session.ordering,
                settled=session.system.settled,
            )
        )
        if complete and not violations
        else (),
        spent=spent,
        proven=proven,
    )


def _proven(session: Session, parts: tuple[Strategy, ...]) -> bool:
    """Whether complete states were compared and nothing is left open."""
    if not any(part.family == "graph" for part in parts):
        return False
    if session.system.settled:
        return True
    return session.closure is not None and session.closure.closed


def _assumptions(session: Session, parts: tuple[Strategy, ...]) -> Iterator[str]:
    yield DETERMINISM
    closure = session.closure
    for part in parts:
        yield f"{part.name}: {part.assumption}"
        if part.family == "graph":
            yield f"graph: {SCOPE}"
            if closure is not None and closure.unread:
                yield f"graph: the order of {', '.join(closure.unread)} is never read"
        if part.family == "groups":
            apart = named(session.groups)
            yield f"groups: these have nothing to do with each other: {apart}"
    if session.ordering.total:
        yield ORDERED
    elif session.ordering.counts:
        yield PAIRS


def _by_state(
    fields: dict[tuple[int | State, int], Hashable],
) -> dict[tuple[State, int], Hashable]:
    named = {(state_of(key), step): value for (key, step), value in fields.items()}
    return dict(sorted(named.items(), key=lambda i: (*_place(i[0][0]), i[0][1])))


def _place(state: State) -> tuple[int, State]:
    return len(state), state
