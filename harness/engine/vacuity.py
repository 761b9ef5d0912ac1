"""What of a scenario could not have shown a fault, whatever the registry does.

A pass is worth what could have failed.  A typing error makes a step that raises
whatever is active, a use that always answers with the same AttributeError, an
observation that is the same text for ever; a comparison of these with themselves holds.
And who pins the order of two steps hides every difference between their two orders, so
one difference at least must be there: in what was seen, answered or raised.

Rules, over everything that was played:
- a step that raises wherever it is performed is vacuous, whatever it raises; of a
  settled system, whose refusals are answers of its own, only by errors that typing
  errors make (a plain AttributeError, NameError or TypeError), or where no step could
  be done at all;
- a use that raises wherever it is performed, by such errors, is vacuous;
- a step is vacuous that can be done, and after which every look, every answer and what
  other steps and undos raise is what it was before;
- a use whose answer never varies, and an observation that never varies, are vacuous;
- what the relations declare to be so is not told;
- pinned orders are compared between the keys of the same active steps in which nothing
  but the pinned order differs; where all orders are pinned, between all keys of the
  same steps.
"""

from collections.abc import Callable, Hashable, Iterator

from harness.engine.protocol import Key, Operations, Ordering, active, state_of
from harness.engine.result import Vacuity, Violation
from harness.engine.runner import MISSING, Ledger

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


Pair = tuple[int, int]

# Where all orders are pinned and none shows.
NONE_SHOWS = "two orders of the same steps that look different (order_dependent)"


def unpinned(
    ledger: Ledger, operations: Operations, ordering: Ordering
) -> Iterator[Violation]:
    """A violation for each pinned order that never shows."""
    if ordering.pairs is None:
        if not _shows(ledger, lambda key: frozenset(state_of(key))):
            yield _violation(ledger, operations, list(ledger.seen), NONE_SHOWS)
        return
    for pair in sorted(ordering.pairs):
        one, other = pair
        others = sorted(ordering.pairs - {pair})
        if not _shows(ledger, _without(others)):
            both = [k for k in ledger.seen if active(k, one) and active(k, other)]
            text = (
                f"two orders of steps {one + 1} and {other + 1} that can be told apart"
            )
            yield _violation(ledger, operations, both or list(ledger.seen), text)


def _without(pairs: list[Pair]) -> Callable[[Key], Hashable]:
    """A name for the keys that differ in no order but those of other pairs."""

    def name(key: Key) -> Hashable:
        state = state_of(key)
        place = {step: at for at, step in enumerate(state)}
        orders = (
            place[one] < place[other]
            for one, other in pairs
            if one in place and other in place
        )
        return frozenset(state), tuple(orders)

    return name


def _shows(ledger: Ledger, name: Callable[[Key], Hashable]) -> bool:
    """Whether two keys of one name were told apart by anything."""
    first: dict[Hashable, Hashable] = {}
    return any(
        first.setdefault((name(key), what), value) != value
        for key, what, value in _told(ledger)
    )


def _told(ledger: Ledger) -> Iterator[tuple[Key, Hashable, Hashable]]:
    """All that was told: the key, what was asked there, and what came back.

    Of a step that was done, or undone, without an error that is None.
    """
    for key, seen in ledger.seen.items():
        yield key, "look", seen
    for (key, use), answer in ledger.answers.items():
        yield key, ("use", use), answer
    for what, passed, failed in (
        ("do", ledger.passed, ledger.failures),
        ("undo", ledger.retired, ledger.refusals),
    ):
        for key, mask in passed.items():
            for step in range(mask.bit_length()):
                if mask >> step & 1:
                    yield key, (what, step), None
        for (key, step), fields in failed.items():
            yield key, (what, step), fields


def _violation(
    ledger: Ledger, operations: Operations, keys: list[Key], expected: str
) -> Violation:
    """Told at the largest of the keys, all orders of which look like it."""
    key = max(keys, key=lambda each: len(state_of(each)))
    state = state_of(key)
    history = ledger.canonical.get(key) or operations.straight(state)
    return Violation("unpinned", state, expected, ledger.seen[key], history)
