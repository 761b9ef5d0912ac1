"""All laws, and checks that cost as much as what changed.

An entry never changes, so a verdict is kept on it; entries of one shape are judged once
(see `invariants.live`), save for what they remember for calling; and a caller that
holds a state that was checked passes it as `since`: what the new state shares with it
is skipped.

Rules:
- laws are checked and told in the order in which they stand in their modules;
- a law of one operator may read of it only what its shape holds, for that is what
  verdicts are remembered by; `callers_belong_to_their_entry`, which reads the entry's
  memory, is never remembered;
- only good verdicts on shapes are remembered, so a fault is told every time;
- nothing that is remembered refers to a kernel;
- `forget` is for those who exchange the code of the runtime under the laws' feet.
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
    """The laws of a module, in its order."""
    found = (each for each in vars(module).values() if isinstance(each, Law))
    return tuple(each for each in found if each.scope == scope)


_OF_STATES = _laws(state_laws, "state")
OPERATOR_LAWS = tuple(each for each in _OF_STATES if each.per_operator)
STATE_LAWS = tuple(each for each in _OF_STATES if not each.per_operator)
STEP_LAWS = _laws(run, "step")
RUN_LAWS = _laws(run, "run")
LAWS = (*OPERATOR_LAWS, *STATE_LAWS, *STEP_LAWS, *RUN_LAWS)

# These need no state, so that they can be asked of every call, step and look.
MEMORY_LAWS = tuple(each for each in RUN_LAWS if "memory" in each.about)
THREAD_LAWS = tuple(each for each in RUN_LAWS if "thread" in each.about)

# As many as the sets of sixteen steps; a shape is about a kilobyte.
REMEMBERED = 65536

_LAWFUL: set[Hashable] = set()

_STEP_LAWS: dict[Change, list[Law]] = {
    change: [each for each in STEP_LAWS if change in each.about]
    for change in get_args(Change)
}


def check(
    snapshot: DispatcherState, since: DispatcherState | None = None
) -> list[Violation]:
    """The laws of a state that `snapshot` breaks.

    `since` is a state that has been checked, and that the caller still holds; what
    `snapshot` shares with it is taken as checked.
    """
    if snapshot is since:
        return []
    found: list[Violation] = []
    for each in STATE_LAWS:
        (part,) = each.about
        if since is None or getattr(since, part) is not getattr(snapshot, part):
            found += each.check(snapshot)
    known = (
        since.namespaces
        if since is not None
        and since.fallbacks is snapshot.fallbacks
        and since.merges_alias_kinds is snapshot.merges_alias_kinds
        else {}
    )
    for namespace, operators in snapshot.namespaces.items():
        held = known.get(namespace, {})
        if held is operators:
            continue
        for text in replaced_names(held, operators):
            place = FiledOperator(operators[text], namespace, text, snapshot)
            found += _check_operator(place)
    return found


def check_step(
    before: DispatcherState,
    after: DispatcherState,
    change: Change,
    tokens: tuple[RegistrationRecord, ...] | None = None,
) -> list[Violation]:
    """The laws of a step that the step from `before` to `after` breaks.

    `tokens` are the registrations that an add made or a removal ended, None if they
    are not known.  After a use, the callers that it left on entries are checked too.
    """
    found: list[Violation] = []
    if after is not before or tokens:
        step = step_of(before, after, change, tokens)
        found += _broken(_STEP_LAWS[change], step)
    if change == "use":
        for namespace, operators in after.namespaces.items():
            for text, entry in operators.items():
                if "caller" in entry.memo:
                    place = FiledOperator(entry, namespace, text, after)
                    found += state_laws.callers_belong_to_their_entry.check(place)
    return found


def check_run(run: Run) -> list[Violation]:
    """The laws of a run that `run` breaks."""
    return _broken(RUN_LAWS, run)


def check_thread(
    calls: Sequence[Call], operations: Sequence[Operation] = ()
) -> list[Violation]:
    """The laws about threads and locks alone, for calls of which no more is known."""
    if not (calls or operations):
        return []
    run = Run(EMPTY, EMPTY, calls=tuple(calls), operations=tuple(operations))
    return _broken(THREAD_LAWS, run)


def check_memory(released: Sequence[tuple[str, ReferenceType[Any]]]) -> list[Violation]:
    """The law about memory alone: `released` must be dead."""
    return _broken(MEMORY_LAWS, Run(EMPTY, EMPTY, released=tuple(released)))


def _broken(laws: Iterable[Law], subject: object) -> list[Violation]:
    """All violations; most subjects break no law, and then this is all there is."""
    try:
        # A list, because a generator costs more than the laws that it would spare.
        if not any([each.find(subject) for each in laws]):  # noqa: C419
            return []
    except Exception:  # noqa: S110  # `Law.check` says which law could not be asked
        pass
    return [violation for each in laws for violation in each.check(subject)]


def forget() -> None:
    """Forget all verdicts on shapes."""
    _LAWFUL.clear()


def _check_operator(operator: FiledOperator) -> list[Violation]:
    memo = operator.entry.memo
    # The identity shows a memory that was taken over from another entry.
    place = (
        id(operator.entry),
        operator.namespace,
        operator.text,
        operator.merges_alias_kinds,
    )
    kept = memo.get("laws")
    if (
        kept is not None
        and kept[0] == place
        and operator.entry.table.fallbacks is operator.fallbacks
    ):
        verdict: list[Violation] = kept[1]
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
    except Exception:  # whatever cannot be read, the laws will say so
        return None
