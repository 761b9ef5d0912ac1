"""`explore`: one exploration from the first check to the frozen result.

The stages, in order.  Freshness and determinism first, because without them nothing
else means anything; cold looks second, because later nothing is cold; then the
strategies in the order in which they are named; then everything is undone, so that the
way back to nothing is checked as well; shrinking and replaying last, because they reset
the system.

*Vacuous* is what could not have shown a fault, whatever the registry does.  A typing
error makes a step that raises whatever is active, a use that always answers with the
same AttributeError, an observation that is the same text for ever; a comparison of
these with themselves holds.  And an order that is pinned hides every difference between
the two orders, so there must be at least one: in what was seen, answered or raised.
Over everything that was played:
- a step that raises wherever it is performed is vacuous, whatever it raises; of a
  settled system, whose refusals are answers of its own, only by errors that typing
  errors make (a plain AttributeError, NameError or TypeError), or where no step could
  be done at all;
- a use that raises wherever it is performed, by such errors, is vacuous;
- a step is vacuous that can be done, and after which every look, every answer and what
  other steps and undos raise is what it was before;
- a use whose answer never varies, and an observation that never varies, are vacuous;
- what the relations declare to be so is not reported;
- pinned orders are compared between the keys of the same active steps in which nothing
  but the pinned order differs; where all orders are pinned, between all keys of the
  same steps.

Rules: the explorer prints nothing and stores nothing outside of the result.  Errors of
the adapter itself (in `observe`, `laws`, `reset`, `state`) are not caught.  Garbage is
collected between histories and by the operation for it, never inside of another one;
of a settled system the state says that nothing depends on it.
"""

import gc
from collections.abc import Callable, Hashable, Iterator, Set
from contextlib import contextmanager
from functools import cache

from everyorder.harness.engine import reference, symmetry
from everyorder.harness.engine.groups import describe
from everyorder.harness.engine.player import MISSING, Broken, ObservationRecord
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
from everyorder.harness.engine.reference import look_cold
from everyorder.harness.engine.refutation import refutations
from everyorder.harness.engine.result import Counts, Exploration, Vacuity, Violation
from everyorder.harness.engine.session import (
    Budget,
    ExplorationSession,
    Halt,
    Incomplete,
    Meter,
    Progress,
)
from everyorder.harness.engine.strategy import (
    DETERMINISM,
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

    `strategy` is "auto" or names joined by '+' (see `strategy.KNOWN_STRATEGIES`).  With
    `order_dependent` states are compared by order of activation; the exploration then
    fails if no two orders of the same steps differ.  `progress` receives operations
    executed and planned.  The run ends at the first violation, or after `stop_after` of
    them.

    Raises `BadStrategy`, or `BadScenario` for a system whose states cannot be compared.
    """
    operations = operations_of(system)
    ordering = ordering_of(system, order_dependent=order_dependent)
    meter = Meter(budget or Budget(), progress)
    session = ExplorationSession(
        system, operations, meter, ordering=ordering, stop_after=stop_after
    )
    with _collector_seldom() if system.settled else _collector_off():
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
            )
            session.skipped += too_large
        else:
            parts = parse(strategy)
        closing = strategy == "auto" and not system.settled
        return _explored(session, parts, closing=closing)


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
    complete = not enough and reference.check(session)
    if session.system.settled:
        checked(session.player.state())
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
    session.player.drop()
    # What the player held would still be there.
    reference.recheck_findings(session)
    session.player.drop()
    meter.tell()
    proving = any(part.family == "graph" for part in parts)
    violations = refutations(session, proving=proving and session.system.settled)
    if complete and session.ordered and not violations:
        violations = tuple(_unpinned(session))
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
    session: ExplorationSession,
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
            session.player.rest()
            left = sum(p.measure(session) for p in parts[at:])
            meter.planned = meter.transitions + left
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
    states = {state_of(key): seen for key, seen in record.seen.items()}
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
        vacuous=tuple(_vacuities(session)) if complete and not violations else (),
        spent=spent,
        proven=proven,
    )


def _proven(session: ExplorationSession, parts: tuple[Strategy, ...]) -> bool:
    """Whether complete states were compared and nothing is left open."""
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
        if part.family == "graph":
            yield f"graph: {SCOPE}"
            if closure is not None and closure.unread:
                yield f"graph: the order of {', '.join(closure.unread)} is never read"
        if part.family == "groups":
            apart = describe(session.groups)
            yield f"groups: these have nothing to do with each other: {apart}"
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


# Where nothing varies: at every set of active steps, or at those that were reached.
ALWAYS = "whatever is active"
PERFORMED = "wherever it was performed"

# What a typing error raises, by exact class.
SLIPS = frozenset({"AttributeError", "NameError", "TypeError", "UnboundLocalError"})


def _vacuities(session: ExplorationSession) -> Iterator[Vacuity]:
    """Each operation that could not have shown a fault, and why."""
    # A declaration may have been taken back since, where something else was seen.
    declared = session.system.relations.declared
    record, operations = session.record, session.operations
    never = {step for _, step in record.failures}
    for passed in record.passed.values():
        never -= {step for step in never if passed >> step & 1}
    # At most so many sets of active steps can be reached.
    sets = 1 << operations.steps - len(never)
    for step in range(operations.steps):
        if step in declared:
            continue
        done = [key for key, passed in record.passed.items() if passed >> step & 1]
        failures = [f for (_, failing), f in record.failures.items() if failing == step]
        if not done:
            errors = [_error_of(each) for each in failures]
            refused = session.system.settled and any(record.passed.values())
            if not refused or SLIPS.issuperset(errors):
                yield from _raises(step, errors, _where(failures, sets))
            continue
        before = [key for key in done if not is_active(key, step)]
        if before and not any(_changes(session, key, step) for key in before):
            yield Vacuity(step, "changes nothing that is looked at or asked")
    for use in range(operations.uses):
        operation = operations.steps + use
        if operation not in declared:
            answers = [a for (_, asked), a in record.answers.items() if asked == use]
            yield from _varies(operation, answers, "answers", sets)
    if operations.look not in declared:
        seen = list(record.seen.values())
        yield from _varies(operations.look, seen, "shows", sets)


def _varies(
    operation: int, values: list[Hashable], verb: str, sets: int
) -> Iterator[Vacuity]:
    """Why the values could not have differed, unless they did."""
    errors = [_error_of(raised) for value in values if (raised := _raised(value))]
    where = _where(values, sets)
    if len(errors) == len(values) and SLIPS.issuperset(errors):
        yield from _raises(operation, errors, where)
    elif len(values) > 1 and all(each == values[0] for each in values):
        yield Vacuity(operation, f"{verb} the same {where}")


def _changes(session: ExplorationSession, key: Key, step: int) -> bool:
    """Whether anything differs between the key and the key with the step done."""
    record, operations = session.record, session.operations
    after = session.ordering.toggled(key, step)
    if record.seen.get(key, MISSING) != record.seen.get(after, MISSING):
        return True
    for use in range(operations.uses):
        before = record.answers.get((key, use), MISSING)
        then = record.answers.get((after, use), MISSING)
        if before != then:
            return True
    for other in range(operations.steps):
        # Of the step itself only that doing it again may raise.
        failed = (
            record.failures.get((key, other), MISSING) if other != step else MISSING
        )
        if failed != record.failures.get((after, other), MISSING):
            return True
        if other == step:
            continue
        refused = record.refusals.get((key, other), MISSING)
        if refused != record.refusals.get((after, other), MISSING):
            return True
    return False


def _where(values: list[Hashable], sets: int) -> str:
    """In words, whether as many values were seen as there are sets."""
    return ALWAYS if len(values) >= sets else PERFORMED


def _raises(operation: int, errors: list[str], where: str) -> Iterator[Vacuity]:
    """The errors that are raised everywhere, unless nothing was tried."""
    if errors:
        names = tuple(sorted(set(errors)))
        yield Vacuity(operation, f"raises {' and '.join(names)} {where}", names)


def _raised(value: Hashable) -> Hashable | None:
    """The fields of the error that an answer or a look reports, if it does."""
    if isinstance(value, tuple) and value:
        if value[0] == "raised" and len(value) == 2:
            fields: Hashable = value[1]
            return fields
        head = value[0]
        if isinstance(head, tuple) and len(head) == 2 and head[0] == "error":
            return value
    return None


def _error_of(fields: Hashable) -> str:
    """The class of an error by its fields, or "an error"."""
    head = fields[0] if isinstance(fields, tuple) and fields else None
    if isinstance(head, tuple) and len(head) == 2 and head[0] == "error":
        head = head[1]
    return head if isinstance(head, str) else "an error"


def _unpinned(session: ExplorationSession) -> Iterator[Violation]:
    """A violation for each pinned order that never shows."""
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
                f"two orders of steps {one + 1} and {other + 1} that can be told apart"
            )
            yield _unpinned_at(session, both or list(record.seen), text)


def _by_orders(pairs: Set[tuple[int, int]]) -> Callable[[Key], Hashable]:
    """A name for the keys with the same active steps and these pairs in one order."""

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
    """Whether anything at all differs between two keys of one name."""
    first: dict[Hashable, Hashable] = {}
    return any(
        first.setdefault((name(key), operation), value) != value
        for key, operation, value in _records(record)
    )


def _records(record: ObservationRecord) -> Iterator[tuple[Key, Hashable, Hashable]]:
    """Everything in the record: the key, the operation, and its result or error.

    The result of a step that was done, or undone, without an error is None.
    """
    for key, seen in record.seen.items():
        yield key, "look", seen
    for (key, use), answer in record.answers.items():
        yield key, ("use", use), answer
    for what, passed, failed in (
        ("do", record.passed, record.failures),
        ("undo", record.retired, record.refusals),
    ):
        for key, mask in passed.items():
            for step in range(mask.bit_length()):
                if mask >> step & 1:
                    yield key, (what, step), None
        for (key, step), fields in failed.items():
            yield key, (what, step), fields


def _unpinned_at(
    session: ExplorationSession, keys: list[Key], expected: str
) -> Violation:
    """The violation at the largest of the keys, all orders of which look like it."""
    key = max(keys, key=lambda each: len(state_of(each)))
    state, record = state_of(key), session.record
    history = record.canonical.get(key) or session.operations.history_to(state)
    return Violation("unpinned", state, expected, record.seen[key], history)
