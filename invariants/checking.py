"""All laws, and checks whose cost depends on the size of the change.

An entry never changes, so a verdict is cached on it; entries of one shape are checked
once (see `invariants.live`), except for their caches of calls; and a caller that holds
a checked state passes it as `since`: parts that the new state shares with it are
skipped.

Rules:
- laws are checked and reported in the order of their modules;
- a law of one operator may only read parts that are in the entry's shape, as verdicts
  are cached by shape; `callers_belong_to_their_entry`, which reads the entry's memo, is
  never cached;
- only good verdicts on shapes are cached, so a fault is reported every time;
- no cache refers to a kernel;
- call `forget` after replacing code of the runtime that the laws depend on.
"""

from collections.abc import Hashable, Iterable, Sequence
from types import ModuleType
from typing import Any, get_args
from weakref import ReferenceType

from everyorder.invariants import run, state_laws
from everyorder.invariants.law import Law, Scope, Violation
from everyorder.invariants.live import (
    Change,
    FiledOperator,
    replaced_names,
    shape_of,
    step_of,
)
from everyorder.invariants.run import Call, Operation, Run
from everyorder.runtime.dispatch.registration_record import RegistrationRecord
from everyorder.runtime.dispatch.state import EMPTY, DispatcherState


def _laws(module: ModuleType, scope: Scope) -> tuple[Law, ...]:
    """Return the laws of a module, in its order."""
    laws = (each for each in vars(module).values() if isinstance(each, Law))
    return tuple(each for each in laws if each.scope == scope)


_OF_STATES = _laws(state_laws, "state")
OPERATOR_LAWS = tuple(each for each in _OF_STATES if each.per_operator)
STATE_LAWS = tuple(each for each in _OF_STATES if not each.per_operator)
STEP_LAWS = _laws(run, "step")
RUN_LAWS = _laws(run, "run")
LAWS = (*OPERATOR_LAWS, *STATE_LAWS, *STEP_LAWS, *RUN_LAWS)

# These need no state, so that they can be checked for every call, step and look-up.
MEMORY_LAWS = tuple(each for each in RUN_LAWS if "memory" in each.about)
THREAD_LAWS = tuple(each for each in RUN_LAWS if "thread" in each.about)

# Cached shapes: as many as the sets of sixteen steps; one is about a kilobyte.
REMEMBERED = 65536

_LAWFUL: set[Hashable] = set()

_STEP_LAWS: dict[Change, list[Law]] = {
    change: [each for each in STEP_LAWS if change in each.about]
    for change in get_args(Change)
}


def check(
    snapshot: DispatcherState, since: DispatcherState | None = None
) -> list[Violation]:
    """Return the violations of the laws of a state.

    `since` is a checked state that the caller still holds; parts that `snapshot` shares
    with it count as checked.
    """
    if snapshot is since:
        return []
    violations: list[Violation] = []
    for each in STATE_LAWS:
        (part,) = each.about
        if since is None or getattr(since, part) is not getattr(snapshot, part):
            violations += each.check(snapshot)
    checked = (
        since.namespaces
        if since is not None
        and since.fallbacks is snapshot.fallbacks
        and since.merges_alias_kinds is snapshot.merges_alias_kinds
        else {}
    )
    for namespace, operators in snapshot.namespaces.items():
        previous = checked.get(namespace, {})
        if previous is operators:
            continue
        for text in replaced_names(previous, operators):
            place = FiledOperator(operators[text], namespace, text, snapshot)
            violations += _check_operator(place)
    return violations


def check_step(
    before: DispatcherState,
    after: DispatcherState,
    change: Change,
    tokens: tuple[RegistrationRecord, ...] | None = None,
) -> list[Violation]:
    """Return the violations of the laws of a step from `before` to `after`.

    `tokens` are the registrations that an add made or a removal ended, None if unknown.
    After a use, the invokers that it left on entries are checked too.
    """
    violations: list[Violation] = []
    if after is not before or tokens:
        step = step_of(before, after, change, tokens)
        violations += _broken(_STEP_LAWS[change], step)
    if change == "use":
        for namespace, operators in after.namespaces.items():
            for text, entry in operators.items():
                if "caller" in entry.memo:
                    place = FiledOperator(entry, namespace, text, after)
                    violations += state_laws.callers_belong_to_their_entry.check(place)
    return violations


def check_run(run: Run) -> list[Violation]:
    """Return the violations of the laws of a run."""
    return _broken(RUN_LAWS, run)


def check_thread(
    calls: Sequence[Call], operations: Sequence[Operation] = ()
) -> list[Violation]:
    """Return the violations of the laws about threads and locks alone."""
    if not (calls or operations):
        return []
    run = Run(EMPTY, EMPTY, calls=tuple(calls), operations=tuple(operations))
    return _broken(THREAD_LAWS, run)


def check_memory(released: Sequence[tuple[str, ReferenceType[Any]]]) -> list[Violation]:
    """Return the violations of the law about memory: `released` must be dead."""
    return _broken(MEMORY_LAWS, Run(EMPTY, EMPTY, released=tuple(released)))


def _broken(laws: Iterable[Law], subject: object) -> list[Violation]:
    """Return all violations, with a fast path for subjects that break no law."""
    try:
        # A list, because a generator costs more than the laws that it would spare.
        if not any([each.find(subject) for each in laws]):  # noqa: C419
            return []
    except Exception:  # noqa: S110  # `Law.check` reports which law could not be checked
        pass
    return [violation for each in laws for violation in each.check(subject)]


def forget() -> None:
    """Forget all verdicts on shapes."""
    _LAWFUL.clear()


def _check_operator(operator: FiledOperator) -> list[Violation]:
    memo = operator.entry.memo
    # The identity detects a memo that was copied from another entry.
    place = (
        id(operator.entry),
        operator.namespace,
        operator.text,
        operator.merges_alias_kinds,
    )
    cached = memo.get("laws")
    if (
        cached is not None
        and cached[0] == place
        and operator.entry.table.fallbacks is operator.fallbacks
    ):
        verdict: list[Violation] = cached[1]
        return verdict
    shape = _shape(operator)
    if shape is not None and shape in _LAWFUL:
        verdict = state_laws.callers_belong_to_their_entry.check(operator)
    else:
        verdict = _broken(OPERATOR_LAWS, operator)
        if shape is not None and not verdict:
            if len(_LAWFUL) >= REMEMBERED:
                _LAWFUL.clear()
            _LAWFUL.add(shape)
    memo["laws"] = (place, verdict)
    return verdict


def _shape(operator: FiledOperator) -> Hashable | None:
    try:
        return shape_of(operator)
    except Exception:  # the laws report what cannot be read
        return None
