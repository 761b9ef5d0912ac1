"""`explore`: one exploration from the first check to the frozen result.

The stages, in order.  Freshness and determinism are checked first, because every other
result depends on them.  By default all histories of at most two operations are second:
they find many faults, and in a registry that is slow, large or grows without end they
may be all that is played.  Cold looks are next, because later no cache is cold.  Then
the strategies run in the order of their names.  Then everything is undone, so that the
way back to the empty state is checked as well.  Shrinking and replaying are last,
because they reset the system.

An operation that could not have shown a fault is *vacuous* (`vacuity.py`).  A pinned
order hides every difference between its two orders, so at least one difference must
exist: in a look, an answer or an error.  Pinned orders are compared between keys that
have the same active steps and differ only in the pinned order; if all orders are
pinned, between all keys of the same steps.

Rules: the explorer prints nothing and stores nothing outside of the result.  Errors of
the adapter itself (in `observe`, `laws`, `reset`, `state`) are not caught.  Garbage is
collected between histories and by the operation for it, never during another
operation; for a settled system the state shows that no result depends on it.
"""

import gc
from collections.abc import Callable, Hashable, Iterator, Set
from contextlib import contextmanager, suppress

from everyorder.harness.base.errors import ExplorationRestart
from everyorder.harness.engine import parts as independent
from everyorder.harness.engine import reference, symmetry, warm_up
from everyorder.harness.engine.groups import describe
from everyorder.harness.engine.histories import run_shallow
from everyorder.harness.engine.player import Broken
from everyorder.harness.engine.proof import checked
from everyorder.harness.engine.protocol import (
    Key,
    State,
    System,
    is_active,
    operations_of,
    ordering_of,
    state_of,
)
from everyorder.harness.engine.record import ObservationRecord
from everyorder.harness.engine.reference import look_cold
from everyorder.harness.engine.refutation import refutations
from everyorder.harness.engine.result import Counts, Exploration, Violation
from everyorder.harness.engine.session import (
    FINAL,
    Budget,
    ExplorationSession,
    Halt,
    Incomplete,
    Meter,
    Progress,
)
from everyorder.harness.engine.strategy import (
    DETERMINISM,
    ENDED,
    OPEN,
    ORDERED,
    PAIRS,
    SCOPE,
    UNPROVEN,
    Strategy,
    choose,
    guarantee,
    parse,
)
from everyorder.harness.engine.vacuity import vacuities


def explore(
    system: System,
    strategy: str = "auto",
    *,
    order_dependent: bool = False,
    budget: Budget | None = None,
    progress: Progress | None = None,
    stop_after: int = 1,
) -> Exploration:
    """Explore a system and return the violations, the claims and the skipped parts.

    `strategy` is "auto" or names joined by '+' (see `strategy.KNOWN_STRATEGIES`).  With
    `order_dependent` states are compared by order of activation; the exploration then
    fails if no two orders of the same steps differ.  `progress` receives the number of
    operations executed and planned.  The run ends at the first violation, or after
    `stop_after` violations.

    Raises:
        BadStrategy: the strategy is unknown or too large.
        BadScenario: the states of the system cannot be compared.
    """
    operations = operations_of(system)
    ordering = ordering_of(system, order_dependent=order_dependent)
    earlier: list[ObservationRecord] = []
    filled: dict[str, None] = {}
    repeats = 0
    warmed: ExplorationSession | None = None
    meter = Meter(budget or Budget(), progress)
    with _collector_seldom() if system.settled else _collector_off():
        while True:
            session = ExplorationSession(
                system, operations, meter, ordering=ordering, stop_after=stop_after
            )
            session.earlier, session.filled_later = tuple(earlier), tuple(filled)
            session.repeats = repeats
            if warmed is not None:
                session.keep_warm_up(warmed)
            warmed = None
            try:
                exploration = _attempt(session, strategy, budget)
                if not warm_up.may_repeat(session, exploration):
                    return exploration
            except ExplorationRestart as restart:
                # It ends: each package is new once, and so is older garbage.
                session.player.drop()
                if session.first_portrait is None:
                    # The next warm-up finds no trace of what this one filled.
                    earlier.append(session.record)
                elif session.warm and restart.code in ("PartsChanged", "CodeRan"):
                    # The same is followed and filled.
                    warmed = session
            else:
                repeats += 1
                earlier.append(session.record)
                for finding in session.findings[:1]:
                    filled.update(dict.fromkeys(finding.paths))
            meter = meter.repeated()


def _attempt(
    session: ExplorationSession, strategy: str, budget: Budget | None
) -> Exploration:
    """Return one exploration, from the warm-up on.

    Raises:
        ExplorationRestart: another attempt is needed.
    """
    system, operations = session.system, session.operations
    parts = parse("graph" if strategy == "auto" else strategy)
    try:
        if not session.warm:
            with suppress(Halt, Incomplete):  # the next check of the time says so, too
                warm_up.warm_up(session)
                session.warm = True
        if strategy == "auto" or not system.settled:
            reference.make_first_system(session)
        if strategy == "auto":
            session.player.rest()
            parts, too_large = choose(
                operations.steps,
                operations.uses,
                printed=session.first_form is not None,
                ordered=session.ordered,
                budget=budget,
                settled=system.settled,
                reversible=operations.reversible,
                ending=bool(operations.relations.ends),
            )
            session.skipped += too_large
        closing = strategy == "auto" and not system.settled
        return _explored(session, parts, closing=closing)
    except ExplorationRestart as error:
        # Its frames would keep the last registry alive.
        restart = error.with_traceback(None)
    # The next attempt would take what was left behind for a part of each system.
    if not reference.is_left_behind(session):
        raise restart
    session.skipped.append(NO_HISTORY)
    violations = refutations(session, proving=False)
    return _result(session, parts, violations, (), complete=False)


def _explored(
    session: ExplorationSession, parts: tuple[Strategy, ...], *, closing: bool
) -> Exploration:
    operations, meter = session.operations, session.meter
    sizes = [
        p.size(operations.steps, operations.uses, ordered=session.ordered)
        for p in parts
    ]
    meter.planned = sum(sizes)
    enough = len(session.findings) >= session.stop_after
    enough = enough or any(each.kind in FINAL for each in session.findings)
    complete = not enough and reference.check(session)
    if session.system.settled:
        checked(session.player.state())
    spent: list[tuple[str, int]] = []
    if complete:
        complete = _run(session, parts, spent, closing=closing)
        ran = [name for name, _ in spent]
        if complete and not session.parts:
            # The groups that were found are no proof, or there are none.
            ran = ["groups" if name == "parts" else name for name in ran]
        if complete and not session.groups:
            ran = [name for name in ran if name != "groups"]
        parts = parse("+".join(ran)) if ran else parts
    else:
        session.skipped.append(NO_HISTORY)
    session.player.drop()
    # Handles of the player would still be alive.
    reference.recheck_findings(session)
    session.player.drop()
    warm_up.compare_attempts(session)
    meter.report_progress()
    proving = any(part.family == "graph" for part in parts)
    violations = refutations(session, proving=proving and session.system.settled)
    if complete and session.ordered and not violations:
        violations = tuple(_unpinned(session))
    return _result(session, parts, violations, tuple(spent), complete=complete)


# What is skipped if systems are not fresh, or histories do not agree with themselves.
NO_HISTORY = "everything else: no history can be relied on"

# Net allocations before a collection starts.  With Python's default of 700, the
# collector takes a twentieth of the time of an exploration.
SELDOM = 50_000


@contextmanager
def _collector_seldom() -> Iterator[None]:
    """Collect garbage at any moment, but rarely."""
    often, *older = gc.get_threshold()
    # A threshold of 0 disables the collector; leave it.
    gc.set_threshold(often and max(often, SELDOM), *older)
    try:
        yield
    finally:
        gc.set_threshold(often, *older)


@contextmanager
def _collector_off() -> Iterator[None]:
    """Collect no garbage at unplanned moments, because that may be observable.

    Older objects are frozen, because scanning all of them would take longer than most
    explorations.  The garbage of an exploration is collected at its end.
    """
    if not gc.isenabled():
        yield
        return
    # Classes of an earlier scenario that are garbage by now are still subclasses of
    # their bases, which may be state of this one.
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.collect()
        gc.enable()
        gc.unfreeze()


def _run(
    session: ExplorationSession,
    parts: tuple[Strategy, ...],
    spent: list[tuple[str, int]],
    *,
    closing: bool,
) -> bool:
    """Run all stages; return True if every planned operation was executed.

    With `closing`, strategies that are planned for states that do not close are left
    out if the states closed.
    """
    meter = session.meter
    try:
        if closing:
            run_shallow(session)
        look_cold(session)
        symmetry.check(session)
        for at, planned in enumerate(parts):
            later = parts[at + 1 :]
            part = _affordable(session, planned, later) if closing else planned
            if part is None:
                continue
            session.player.rest()
            sizes = [p.measure(session) for p in (part, *later)]
            meter.planned = meter.transitions + sum(sizes)
            session.reserved = sum(
                size
                for p, size in zip(later, sizes[1:], strict=True)
                if not closing or p.family not in UNPROVEN
            )
            before = meter.transitions
            try:
                part.run(session)
            finally:
                spent.append((part.name, meter.transitions - before))
        meter.planned = meter.transitions
        session.player.clear()
        session.player.look()
        reference.recheck_states(session)
    except Incomplete as reason:
        session.skipped.append(f"{reason.reason}: {executed_text(meter)}")
        return False
    except (Halt, Broken):
        if meter.transitions < meter.planned:
            session.skipped.append(f"stopped at a violation: {executed_text(meter)}")
        return False
    return True


def executed_text(meter: Meter) -> str:
    """Return the executed operations, "of" the planned ones if these were more.

    A search for states may execute more than its plan, which is an estimate.
    """
    planned = f" of {meter.planned:,}" if meter.planned > meter.transitions else ""
    return f"{meter.transitions:,}{planned} operations executed"


def _affordable(
    session: ExplorationSession, part: Strategy, later: tuple[Strategy, ...]
) -> Strategy | None:
    """Return the strategy to run in the place of one of "auto", or None.

    Strategies that are planned for states that do not close are left out if the states
    closed; if the search for them took the steps of others, weaker ones are run.
    """
    if part.family not in UNPROVEN:
        return part
    if session.parts or (session.closure is not None and session.closure.closed):
        return None
    left = session.meter.left
    if left is None:
        return part
    fitting = part.fitting(session, left)
    if fitting != part:
        ran = "" if fitting is None else f", so {fitting.name} was run"
        session.skipped.append(
            f"{part.name} would take {part.measure(session):,} operations, {left:,} "
            f"steps of the budget are left (--steps raises it){ran}"
        )
    return fitting


def _result(
    session: ExplorationSession,
    parts: tuple[Strategy, ...],
    violations: tuple[Violation, ...],
    spent: tuple[tuple[str, int], ...],
    *,
    complete: bool,
) -> Exploration:
    player, record, meter = session.player, session.record, session.meter
    if player.cyclic:
        session.skipped.append(
            f"leaks of {', '.join(player.cyclic)}: these handles are freed by the "
            "cycle collector only, so they were not watched after the first"
        )
    caveats = (
        *session.system.caveats(),
        *symmetry.caveats(session),
        *independent.caveats(session),
        *reference.caveats(session),
    )
    # After a finding not all assumptions of a proof are known (`proof._conclude`).
    refuted = violations or session.findings
    proven = complete and not refuted and _proven(session, parts)
    proven = proven and all(each.kind == "assumed" for each in caveats)
    # Claims that still hold if the states did not close, or not for all.
    closed = proven and (session.system.settled or not session.parts)
    claims = {"graph": closed, "groups": bool(session.groups), "parts": proven}
    claimed = tuple(part for part in parts if claims.get(part.family, True))
    states = {state_of(key): value for key, value in record.seen.items()}
    return Exploration(
        strategy="+".join(part.name for part in parts),
        guarantee=guarantee(claimed) or f"{parts[0].name}: {OPEN}",
        assumptions=tuple(_assumptions(session, claimed)),
        skipped=tuple(session.skipped),
        states=dict(sorted(states.items(), key=lambda item: _rank(item[0]))),
        failures=_by_state(record.failures),
        refusals=_by_state(record.refusals),
        executed=Counts(
            transitions=meter.transitions,
            adds=player.adds,
            removes=player.removes,
            failing=player.failing,
            uses=player.uses,
            observations=player.observations,
            resets=player.resets,
        ),
        planned=meter.planned,
        violations=violations,
        complete=complete,
        seconds=meter.seconds,
        closure=session.closure,
        caveats=caveats,
        vacuous=tuple(vacuities(session)) if complete and not violations else (),
        spent=spent,
        proven=proven,
        open_strategies=tuple(part.name for part in parts if part not in claimed),
    )


def _proven(session: ExplorationSession, parts: tuple[Strategy, ...]) -> bool:
    """Return True if complete states were compared and no part is open."""
    if session.parts:
        return True
    if not any(part.family == "graph" for part in parts):
        return False
    if session.system.settled:
        return True
    return session.closure is not None and session.closure.closed


def _assumptions(
    session: ExplorationSession, parts: tuple[Strategy, ...]
) -> Iterator[str]:
    yield DETERMINISM
    closure = session.closure
    for part in parts:
        yield f"{part.name}: {part.assumption}"
        if part.family in ("graph", "parts"):
            yield f"{part.family}: {SCOPE}"
            if session.operations.relations.ends:
                yield f"{part.family}: {ENDED}"
        if part.family == "graph" and closure is not None and closure.unread:
            yield f"graph: the order of {', '.join(closure.unread)} is never read"
        if part.family in ("groups", "parts"):
            apart = describe(session.groups)
            yield f"{part.family}: these are independent: {apart}"
    if session.ordering.total:
        yield ORDERED
    elif session.ordering.counts:
        yield PAIRS


def _by_state(
    fields: dict[tuple[int | State, int], Hashable],
) -> dict[tuple[State, int], Hashable]:
    by_state = {(state_of(key), step): value for (key, step), value in fields.items()}
    return dict(sorted(by_state.items(), key=lambda i: (*_rank(i[0][0]), i[0][1])))


def _rank(state: State) -> tuple[int, State]:
    return len(state), state


def _unpinned(session: ExplorationSession) -> Iterator[Violation]:
    """Yield a violation for each pinned order that never makes a difference."""
    record, pairs = session.record, session.ordering.pairs
    if pairs is None:
        if not _differ_within(record, lambda key: frozenset(state_of(key))):
            text = "two orders of the same steps that look different (order_dependent)"
            yield _unpinned_at(session, list(record.seen), text)
        return
    for pair in sorted(pairs):
        one, other = pair
        if not _differ_within(record, _by_orders(pairs - {pair})):
            both = [k for k in record.seen if is_active(k, one) and is_active(k, other)]
            text = (
                f"two orders of steps {one + 1} and {other + 1} with different results"
            )
            yield _unpinned_at(session, both or list(record.seen), text)


def _by_orders(pairs: Set[tuple[int, int]]) -> Callable[[Key], Hashable]:
    """Return a function that names a key by its active steps and orders of `pairs`."""

    every = sorted(pairs)

    def name(key: Key) -> Hashable:
        state = state_of(key)
        place = {step: at for at, step in enumerate(state)}
        orders = (
            place[one] < place[other]
            for one, other in every
            if one in place and other in place
        )
        return frozenset(state), tuple(orders)

    return name


def _differ_within(record: ObservationRecord, name: Callable[[Key], Hashable]) -> bool:
    """Return True if any result differs between two keys of one name."""
    first: dict[Hashable, Hashable] = {}
    return any(
        first.setdefault((name(key), operation), value) != value
        for key, operation, value in record.results()
    )


def _unpinned_at(
    session: ExplorationSession, keys: list[Key], expected: str
) -> Violation:
    """Return the violation at the largest key; all its orders look the same."""
    key = max(keys, key=lambda each: len(state_of(each)))
    state, record = state_of(key), session.record
    history = record.canonical.get(key) or session.operations.history_to(state)
    return Violation("unpinned", state, expected, record.seen[key], history)
