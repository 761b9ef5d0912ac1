"""What of a scenario could not have shown a fault, whatever the registry does.

True only here: a pass is worth what could have failed.  A typing error makes a step
that raises whatever is active, a use that always answers with the same AttributeError,
an observation that is the same text for ever; a comparison of these with themselves
holds.

Rules, over everything that was played:
- a step that raises wherever it is performed is vacuous, whatever it raises; of a
  settled system, whose refusals are answers of its own, only by errors that typing
  errors make (a plain AttributeError, NameError or TypeError), or where no step could
  be done at all;
- a use that raises wherever it is performed, by such errors, is vacuous;
- a step is vacuous that can be done, and after which every look, every answer and what
  other steps and undos raise is what it was before;
- a use whose answer never varies, and an observation that never varies, are vacuous;
- what the relations declare to be so is not told.
"""

from collections.abc import Hashable, Iterator

from harness.engine.ledger import MISSING, Ledger
from harness.engine.operations import Key, Operations, Ordering, active
from harness.engine.result import Vacuity

# Where something is so that could have been otherwise: everywhere, or as far as it was
# looked.
ALWAYS = "whatever is active"
PERFORMED = "wherever it was performed"

# What a typing error raises, by exact class.
SLIPS = frozenset({"AttributeError", "NameError", "TypeError", "UnboundLocalError"})


def vacuous(
    ledger: Ledger, operations: Operations, ordering: Ordering, *, settled: bool
) -> Iterator[Vacuity]:
    """Each operation that could not have shown a fault, and why.

    `settled` says whether the system is.
    """
    declared = operations.relations.declared
    never = {step for _, step in ledger.failures}
    for passed in ledger.passed.values():
        never -= {step for step in never if passed >> step & 1}
    # At most so many sets of active steps can be reached.
    sets = 1 << operations.steps - len(never)
    for step in range(operations.steps):
        if step in declared:
            continue
        done = [key for key, passed in ledger.passed.items() if passed >> step & 1]
        failures = [f for (_, failing), f in ledger.failures.items() if failing == step]
        if not done:
            errors = [_error_of(each) for each in failures]
            refused = settled and any(ledger.passed.values())
            if not refused or SLIPS.issuperset(errors):
                yield from _raises(step, errors, _where(failures, sets))
            continue
        before = [key for key in done if not active(key, step)]
        if before and not any(
            _changes(ledger, operations, ordering, key, step) for key in before
        ):
            yield Vacuity(step, "changes nothing that is looked at or asked")
    for use in range(operations.uses):
        operation = operations.steps + use
        if operation not in declared:
            answers = [a for (_, asked), a in ledger.answers.items() if asked == use]
            yield from _varies(operation, answers, "answers", sets)
    if operations.look not in declared:
        seen = list(ledger.seen.values())
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


def _where(values: list[Hashable], sets: int) -> str:
    """In words, whether as many values were seen as there are sets."""
    return ALWAYS if len(values) >= sets else PERFORMED


def _raises(operation: int, errors: list[str], where: str) -> Iterator[Vacuity]:
    """What is raised everywhere, unless nothing was tried."""
    if errors:
        names = tuple(sorted(set(errors)))
        yield Vacuity(operation, f"raises {' and '.join(names)} {where}", names)


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
