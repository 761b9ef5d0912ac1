"""`explore`: one exploration from the first check to the frozen result.

True only here: the order of the stages.  Determinism first, because without it nothing
else means anything; cold looks second, because later nothing is cold; then the
strategies, weakest assumption first as named; then everything is undone, so that the
way back to nothing is checked as well; shrinking last, because it resets the system.

Rules: the explorer prints nothing and stores nothing outside of the result.  Errors of
the adapter itself (in `observe`, `laws`, `reset`, `fingerprint`) are not caught.
"""

from collections.abc import Hashable

from harness.engine import auto, determinism
from harness.engine.alphabet import alphabet_of, state_of
from harness.engine.budget import Budget, Meter, Progress, Spent
from harness.engine.canonical import look_cold
from harness.engine.graph import checked
from harness.engine.judge import Judge
from harness.engine.protocol import State, System
from harness.engine.result import Counts, Exploration, Violation
from harness.engine.runner import Broken
from harness.engine.session import Finding, Halt, Session
from harness.engine.shrink import shrink
from harness.engine.square import find_square
from harness.engine.strategy import Strategy, guarantee, parse
from harness.engine.theory import DETERMINISM, ORDERED


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
    fails if no two orders of any set differ.  `progress` receives letters executed and
    planned.  The run ends at the first violation, or after `stop_after` of them.

    Raises `UnknownStrategy`, `NoFingerprint`, `BadFingerprint` or `TooLarge`.
    """
    alphabet = alphabet_of(system)
    meter = Meter(budget or Budget(), progress)
    session = Session(
        system, alphabet, meter, ordered=order_dependent, stop_after=stop_after
    )
    if strategy == "auto":
        system.reset()
        parts, above = auto.choose(
            alphabet.steps,
            alphabet.uses,
            printed=system.fingerprint() is not None,
            ordered=order_dependent,
            budget=budget,
        )
        session.skipped += above
    else:
        parts = parse(strategy)
    sizes = [
        p.size(alphabet.steps, alphabet.uses, ordered=order_dependent) for p in parts
    ]
    meter.planned = sum(sizes)
    complete = determinism.check(session)
    checked(system.fingerprint())
    if complete:
        complete = _run(session, parts)
    else:
        session.skipped.append("everything: the system is not deterministic")
    session.runner.drop()
    meter.tell()
    violations = _violations(session, parts)
    if complete and order_dependent and not violations:
        violations = _unpinned(session)
    return _result(session, parts, violations, complete=complete)


def _run(session: Session, parts: tuple[Strategy, ...]) -> bool:
    """Run all stages; whether everything planned was executed."""
    meter = session.meter
    try:
        look_cold(session)
        for at, part in enumerate(parts):
            meter.planned = meter.edges + sum(p.measure(session) for p in parts[at:])
            part.run(session)
        meter.planned = meter.edges
        session.runner.clear()
        session.runner.look()
    except Spent as spent:
        session.skipped.append(
            f"{spent.reason}: {meter.edges:,} of {meter.planned:,} steps executed"
        )
        return False
    except (Halt, Broken):
        if meter.edges < meter.planned:
            session.skipped.append(
                f"stopped at a violation: {meter.edges:,} of {meter.planned:,} steps "
                "executed"
            )
        return False
    return True


def _violations(session: Session, parts: tuple[Strategy, ...]) -> tuple[Violation, ...]:
    proving = any(part.family == "graph" for part in parts)
    return tuple(_violation(session, f, proving=proving) for f in session.findings)


def _violation(session: Session, finding: Finding, *, proving: bool) -> Violation:
    judge = Judge(
        session.system,
        session.ledger.canonical,
        ordered=session.ordered,
        proving=proving,
    )
    shrunk = None
    if finding.kind != "nondeterminism":
        shrunk = shrink(judge, finding, session.alphabet, session.ledger)
    if shrunk is None:
        return Violation(
            finding.kind,
            state_of(finding.key),
            finding.expected,
            finding.found,
            finding.word,
            hidden=finding.hidden,
        )
    fault = shrunk.fault
    return Violation(
        fault.kind,
        fault.state,
        fault.expected,
        fault.found,
        finding.word,
        shrunk.word,
        find_square(judge, shrunk.word, fault.kind, session.alphabet),
        shrunk.proven,
        fault.hidden,
    )


def _unpinned(session: Session) -> tuple[Violation, ...]:
    """A pin that pins nothing: no two orders of any set were seen to differ."""
    looks: dict[State, set[Hashable]] = {}
    for key, seen in session.ledger.seen.items():
        looks.setdefault(tuple(sorted(state_of(key))), set()).add(seen)
    if any(len(different) > 1 for different in looks.values()):
        return ()
    largest = max(session.ledger.seen, key=lambda key: len(state_of(key)))
    seen = session.ledger.seen[largest]
    expected = "two orders of some set that look different (order_dependent)"
    word = session.ledger.canonical.get(largest, state_of(largest))
    return (Violation("unpinned", state_of(largest), expected, seen, word),)


def _result(
    session: Session,
    parts: tuple[Strategy, ...],
    violations: tuple[Violation, ...],
    *,
    complete: bool,
) -> Exploration:
    runner, ledger, meter = session.runner, session.ledger, session.meter
    assumptions = [DETERMINISM]
    assumptions += [f"{part.name}: {part.assumption}" for part in parts]
    if session.ordered:
        assumptions.append(ORDERED)
    if runner.cyclic:
        session.skipped.append(
            f"leaks of {', '.join(runner.cyclic)}: these handles are freed by the "
            "cycle collector only, so they were not watched after the first"
        )
    states = {state_of(key): seen for key, seen in ledger.seen.items()}
    failures = {(state_of(k), step): f for (k, step), f in ledger.failures.items()}
    return Exploration(
        strategy="+".join(part.name for part in parts),
        guarantee=guarantee(parts),
        assumptions=tuple(assumptions),
        skipped=tuple(session.skipped),
        states=dict(sorted(states.items(), key=lambda item: _place(item[0]))),
        failures=dict(
            sorted(failures.items(), key=lambda i: (*_place(i[0][0]), i[0][1]))
        ),
        executed=Counts(
            edges=meter.edges,
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
    )


def _place(state: State) -> tuple[int, State]:
    return len(state), state
