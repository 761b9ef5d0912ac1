"""Operations that could not have shown a fault, whatever the registry does.

Such an operation is *vacuous*.  A typing error makes a step that always raises, a use
that always answers with the same AttributeError, or an observation that is always the
same text; comparing these with themselves always succeeds.
Over all played operations:
- a step that raises at every place is vacuous, whatever it raises; in a settled system,
  whose refusals are answers, only if it raises errors that typing errors make (a plain
  AttributeError, NameError or TypeError), or if no step could be done at all;
- a use that raises such errors at every place is vacuous;
- a step is vacuous if it can be done, but every look, every answer, and the errors of
  other steps and undos are the same before and after it;
- a use whose answer never varies, and an observation that never varies, are vacuous;
- a use that ends steps is judged like a step: by the results before and after it;
- an operation that the relations declare to be so is not reported;
"""

from collections.abc import Hashable, Iterator

from everyorder.harness.engine.player import MISSING
from everyorder.harness.engine.protocol import Key, is_active
from everyorder.harness.engine.result import Vacuity
from everyorder.harness.engine.session import ExplorationSession

# Scope of a constant result: every set of active steps, or only the reached sets.
ALWAYS = "whatever is active"
PERFORMED = "wherever it was performed"

NO_CHANGE = "changes nothing that is looked at or asked"

# Errors that a typing error raises, by exact class.
SLIPS = frozenset({"AttributeError", "NameError", "TypeError", "UnboundLocalError"})


def vacuities(session: ExplorationSession) -> Iterator[Vacuity]:
    """Yield each operation that could not have shown a fault, with the reason."""
    # The system withdraws a declaration if the operation contradicts it.
    declared = session.system.relations.declared
    record, operations = session.record, session.operations
    never = {step for _, step in record.failures}
    for passed in record.passed.values():
        never -= {step for step in never if passed >> step & 1}
    # An upper limit for the number of reachable sets of active steps.
    sets = 1 << operations.steps - len(never)
    for step in range(operations.steps):
        if step in declared:
            continue
        done = [key for key, passed in record.passed.items() if passed >> step & 1]
        failures = [f for (_, failing), f in record.failures.items() if failing == step]
        if not done:
            refused = session.system.settled and any(record.passed.values())
            if not refused or SLIPS.issuperset(map(_error_of, failures)):
                yield from _raises(session, step, failures, _where(failures, sets))
            continue
        before = [key for key in done if not is_active(key, step)]
        if before and not any(_changes(session, key, step) for key in before):
            yield Vacuity(step, NO_CHANGE)
    for use in range(operations.uses):
        operation = operations.steps + use
        if operation in declared:
            continue
        answers = {
            key: a for (key, answered), a in record.answers.items() if answered == use
        }
        changed = [key for key in answers if _ends_any(session, key, operation)]
        if not changed:
            values = list(answers.values())
            yield from _varies(session, operation, values, "answers", sets)
        elif not any(_changes(session, key, operation) for key in changed):
            yield Vacuity(operation, NO_CHANGE)
    if operations.look not in declared:
        observations = list(record.seen.values())
        yield from _varies(session, operations.look, observations, "shows", sets)


def _ends_any(session: ExplorationSession, key: Key, use: int) -> bool:
    """Return True if a use ended steps at a key."""
    ended = session.operations.relations.ends.get(use, frozenset())
    active = any(is_active(key, step) for step in ended)
    return active and (key, use) not in session.record.raised


def _varies(
    session: ExplorationSession,
    operation: int,
    values: list[Hashable],
    verb: str,
    sets: int,
) -> Iterator[Vacuity]:
    """Yield a vacuity if the values could not have differed."""
    errors = [raised for value in values if (raised := _raised(value))]
    where = _where(values, sets)
    if len(errors) == len(values) and SLIPS.issuperset(map(_error_of, errors)):
        yield from _raises(session, operation, errors, where)
    elif len(values) > 1 and all(each == values[0] for each in values):
        yield Vacuity(operation, f"{verb} the same {where}")


def _changes(session: ExplorationSession, key: Key, step: int) -> bool:
    """Return True if any result differs between `key` and the key after the operation.

    It is a step that is done, or a use that ends steps.
    """
    record, operations = session.record, session.operations
    after = session.after(key, step)
    if record.seen.get(key, MISSING) != record.seen.get(after, MISSING):
        return True
    for use in range(operations.uses):
        before = record.answers.get((key, use), MISSING)
        then = record.answers.get((after, use), MISSING)
        if before != then:
            return True
    for other in range(operations.steps):
        # For the step itself only the errors of doing it again count.
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
    """Return `ALWAYS` if every set has a value, else `PERFORMED`."""
    return ALWAYS if len(values) >= sets else PERFORMED


def _raises(
    session: ExplorationSession, operation: int, errors: list[Hashable], where: str
) -> Iterator[Vacuity]:
    """Yield a vacuity for an operation that always raises, if it was tried at all."""
    if errors:
        names = tuple(sorted(set(map(_error_of, errors))))
        reason = f"raises {' and '.join(names)} {where}"
        origin = session.system.origin(errors[0])
        yield Vacuity(operation, reason, names, errors[0], origin)


def _raised(value: Hashable) -> Hashable | None:
    """Return the fields of the error that an answer or a look reports, else None."""
    if isinstance(value, tuple) and value:
        if value[0] == "raised" and len(value) == 2:
            fields: Hashable = value[1]
            return fields
        head = value[0]
        if isinstance(head, tuple) and len(head) == 2 and head[0] == "error":
            return value
    return None


def _error_of(fields: Hashable) -> str:
    """Return the class name of an error from its fields, or "an error"."""
    head = fields[0] if isinstance(fields, tuple) and fields else None
    if isinstance(head, tuple) and len(head) == 2 and head[0] == "error":
        return str(head[1])
    return head if isinstance(head, str) else "an error"
