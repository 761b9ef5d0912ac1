"""What of a scenario could not have shown a fault, whatever the registry does.

True only here: a pass is worth what could have failed.  A typing error makes a step
that raises whatever is active, a use that always answers with the same AttributeError,
an observation that is the same text for ever; a comparison of these with themselves
holds.

Rules, over everything that was played:
- a step or a use that raises wherever it is performed, by errors that typing errors
  make (a plain AttributeError, NameError or TypeError), is vacuous;
- where no step could be done at all, all that were tried are, whatever they raised;
- a step is vacuous that can be done, and after which every look, every answer and what
  other steps and undos raise is what it was before;
- a use whose answer never varies, and an observation that never varies, are vacuous;
- what the relations declare to be so is not told.
"""

from collections.abc import Hashable, Iterator

from harness.engine.ledger import MISSING, Ledger
from harness.engine.operations import Key, Operations, Ordering, active
from harness.engine.result import Vacuity

# Where something is so that could have been otherwise.
ALWAYS = "whatever is active"

# What a typing error raises, by exact class.
SLIPS = frozenset({"AttributeError", "NameError", "TypeError", "UnboundLocalError"})


def vacuous(
    ledger: Ledger, operations: Operations, ordering: Ordering
) -> Iterator[Vacuity]:
    """Each operation that could not have shown a fault, and why."""
    declared = operations.relations.declared
    for step in range(operations.steps):
        if step not in declared:
            reason = _step(ledger, operations, ordering, step)
            if reason:
                yield Vacuity(step, reason)
    for use in range(operations.uses):
        operation = operations.steps + use
        if operation not in declared:
            answers = [a for (_, asked), a in ledger.answers.items() if asked == use]
            reason = _varies(answers, "answers")
            if reason:
                yield Vacuity(operation, reason)
    if operations.look not in declared:
        reason = _varies(list(ledger.seen.values()), "shows")
        if reason:
            yield Vacuity(operations.look, reason)


def _varies(values: list[Hashable], verb: str) -> str:
    """Why the values could not have differed; "" where they did."""
    errors = [_error_of(raised) for value in values if (raised := _raised(value))]
    if values and len(errors) == len(values) and SLIPS.issuperset(errors):
        return _raises(errors)
    if len(values) < 2 or any(each != values[0] for each in values):
        return ""
    return f"{verb} the same {ALWAYS}"


def _step(ledger: Ledger, operations: Operations, ordering: Ordering, step: int) -> str:
    done = [key for key, passed in ledger.passed.items() if passed >> step & 1]
    if not done:
        failures = [f for (_, failing), f in ledger.failures.items() if failing == step]
        errors = [_error_of(each) for each in failures]
        nothing = not any(ledger.passed.values())
        return _raises(errors) if nothing or SLIPS.issuperset(errors) else ""
    keys = [key for key in done if not active(key, step)]
    if keys and not any(_changes(ledger, operations, ordering, k, step) for k in keys):
        return "changes nothing that is looked at or asked"
    return ""


def _changes(
    ledger: Ledger, operations: Operations, ordering: Ordering, key: Key, step: int
) -> bool:
    """Whether anything differs between the key and the key with the step done."""
    after = ordering.toggled(key, step)
    if ledger.seen.get(key, MISSING) != ledger.seen.get(after, MISSING):
        return True
    for use in range(operations.uses):
        before = ledger.answers.get((key, use), MISSING)
        then = ledger.answers.get((after, use), MISSING)
        if before != then:
            return True
    for other in range(operations.steps):
        # Of the step itself only that doing it again may raise.
        failed = (
            ledger.failures.get((key, other), MISSING) if other != step else MISSING
        )
        if failed != ledger.failures.get((after, other), MISSING):
            return True
        if other == step:
            continue
        refused = ledger.refusals.get((key, other), MISSING)
        if refused != ledger.refusals.get((after, other), MISSING):
            return True
    return False


def _raises(errors: list[str]) -> str:
    """What is raised everywhere, in words; "" of nothing."""
    names = " and ".join(sorted(set(errors)))
    return f"raises {names} {ALWAYS}" if names else ""


def _raised(value: Hashable) -> Hashable | None:
    """The fields of an error, if it is what an answer or a look tells of."""
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
