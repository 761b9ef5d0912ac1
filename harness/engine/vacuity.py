"""What of a scenario could not have shown a fault, whatever the registry does.

True only here: a pass is worth what could have failed.  A typing error makes a step
that raises at every set of active steps, a use that always answers with the same
AttributeError, an observation that is the same text for ever; a comparison of these
with themselves holds.

Rules, over everything that was played:
- a step or a use that raises wherever it is performed, by an error that typing errors
  make (a plain AttributeError, NameError or TypeError), is vacuous;
- a step is vacuous that can be done, and after which every look, every answer and what
  other steps raise is what it was before;
- a use whose answer never varies, and an observation that never varies, are vacuous;
- what the relations declare to be so is not told.
"""

from collections.abc import Hashable, Iterable, Iterator

from harness.engine.ledger import MISSING, Ledger
from harness.engine.operations import Key, Operations, Ordering, active
from harness.engine.result import Vacuity

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
        reason = _varies(ledger.seen.values(), "shows")
        if reason:
            yield Vacuity(operations.look, reason)


def _varies(values: Iterable[Hashable], verb: str) -> str:
    """Why the values could not have differed; "" where they did."""
    found = list(values)
    if len(found) < 2 or any(each != found[0] for each in found):
        slips = {name for each in found if (name := slip(each))}
        if found and len(slips) == 1 and all(map(slip, found)):
            return f"raises {slips.pop()} at every set of active steps"
        return ""
    name = slip(found[0])
    if name:
        return f"raises {name} at every set of active steps"
    return f"{verb} the same at every set of active steps"


def _step(ledger: Ledger, operations: Operations, ordering: Ordering, step: int) -> str:
    done = [key for key, passed in ledger.passed.items() if passed >> step & 1]
    if not done:
        failures = [f for (_, failing), f in ledger.failures.items() if failing == step]
        names = {slip(each) for each in failures}
        if failures and len(names) == 1 and (name := names.pop()):
            return f"raises {name} at every set of active steps"
        return ""
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
        if other == step or active(key, other):
            continue
        before = ledger.failures.get((key, other), MISSING)
        then = ledger.failures.get((after, other), MISSING)
        if before != then:
            return True
    return False


def slip(value: Hashable) -> str:
    """The class of a typing error that a failure or an answer tells of, or ""."""
    while isinstance(value, tuple) and value:
        head = value[0]
        if head == "raised" and len(value) == 2:
            value = value[1]
            continue
        if isinstance(head, tuple) and len(head) == 2 and head[0] == "error":
            head = head[1]
        return head if isinstance(head, str) and head in SLIPS else ""
    return ""
