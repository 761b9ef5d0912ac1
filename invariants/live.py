"""The subjects of laws: an operator in its state, and a step between two states.

`FiledOperator` holds everything that a law of one operator may read of a state; the
live table and the second table are expanded at most once, and only when a law reads
them.

The laws depend only on the shape, which excludes kernels: two entries of one shape
are equal for them.  It names tokens by their readings and places, so that it refers to
no token and no kernel; it holds the recipe itself, so that no other recipe can reuse
its address.  An entry that does not fit this description (a kernel in the table that is
not the newest of its key, fallbacks of another state, a token at two places, a reading
that is not its kernel's) lacks a shape, and is checked in full every time; so is an
entry with rules, which are few.  A law that reads a new part of an entry must add it
here.

A state is read part by part.  Two readings are equal if the same registrations are at
the same places, compared by identity of tokens; two separate registrations of the same
thing have different readings, on purpose.  In a `StepSubject` an object that is the
same on both sides is not compared in depth, so that a step costs only what it changed.

The `tokens` of a step are the registrations that an add made live or a removal ended;
None if the caller does not know them, in which case the laws only check that nothing
happened in the other direction.

======== ================================================================== change   the
step ======== ================================================================== add
registrations that succeeded remove   registrations that were closed fail
registrations that were refused use      calls and look-ups again    a registration or
library that was closed a second time ========
==================================================================
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from operator import is_not
from typing import Any, Literal, TypeAlias, get_args

from everyorder.invariants.second_table import Expected, second_table
from everyorder.runtime.dispatch.dispatch_table import Fallbacks, Slot
from everyorder.runtime.dispatch.registration_record import (
    ClassRule,
    Definition,
    Implementation,
    RegistrationRecord,
    Reservation,
)
from everyorder.runtime.dispatch.state import DispatcherState, OperatorEntry


class FiledOperator:
    """One entry, filed in `namespace` under `text`; the rest is the state's."""

    __slots__ = (
        "_expected",
        "_live",
        "entry",
        "fallbacks",
        "merges_alias_kinds",
        "namespace",
        "text",
    )

    def __init__(
        self, entry: OperatorEntry, namespace: str, text: str, state: DispatcherState
    ) -> None:
        self.entry = entry
        self.namespace = namespace
        self.text = text
        self.fallbacks: Fallbacks = state.fallbacks
        self.merges_alias_kinds = state.merges_alias_kinds
        self._live: tuple[Slot, ...] | None = None
        self._expected: tuple[Expected, ...] | None = None

    @property
    def live(self) -> tuple[Slot, ...]:
        """Return the slots that calls of this operator use."""
        if self._live is None:
            self._live = self.entry.table.slots()
        return self._live

    @property
    def expected(self) -> tuple[Expected, ...]:
        """Return the slots that calls should use."""
        if self._expected is None:
            self._expected = second_table(
                self.entry.implementations, self.fallbacks.tokens
            )
        return self._expected


def shape_of(operator: FiledOperator) -> Hashable | None:
    """Return the shape; None for an entry that the laws must check in full."""
    entry = operator.entry
    name, table = entry.name, entry.table
    fallbacks, recipe, masks = table.fallbacks, table.recipe, table.masks
    if fallbacks is not operator.fallbacks or len(recipe.lines) != len(table.kernels):
        return None
    if entry.rules:
        return None
    implementations = entry.implementations
    defined, reserved = entry.definitions, entry.reservations
    live: list[Any] = [*defined, *reserved]
    # Each key, and the readings of its kernels.
    kernels: list[Any] = []
    # A tenth of the time of a checked step is spent here: avoid function calls.
    for key, tokens in implementations.items():
        kernels.append(key)
        for token in tokens:
            reading, kernel = token.reading, token.kernel
            if reading.through is not (kernel.function is None):
                return None
            if reading.facts is not kernel.facts:
                return None
            kernels.append(reading)
        live += tokens
    if len(set(live)) != len(live):
        return None
    ambiguous = 0
    for line, drawn in zip(recipe.lines, table.kernels, strict=True):
        if drawn is not None:
            newest = implementations.get(line.source)
            if not newest or newest[0] is not drawn:
                return None
        else:
            ambiguous |= line.slots
    return (
        operator.namespace,
        operator.text,
        operator.merges_alias_kinds,
        # Spelled out: hashing these is C's work.
        name.name,
        name.overload,
        entry.total,
        tuple([each.reading for each in defined]) if defined else (),
        tuple([each.operator for each in reserved]) if reserved else (),
        tuple(kernels),
        entry.extractor,
        recipe,
        ambiguous,
        fallbacks.present,
        fallbacks.through,
        masks.by_backend,
        masks.per_backend,
    )


Reading: TypeAlias = dict[str, Any]
"""Name of a part -> its content."""

OperatorToken: TypeAlias = Definition | Implementation | Reservation | ClassRule

_TOKENS = get_args(RegistrationRecord)


def tokens_of(entry: OperatorEntry) -> list[OperatorToken]:
    """Return the live registrations of one operator."""
    return [
        *entry.definitions,
        *(token for kernels in entry.implementations.values() for token in kernels),
        *entry.reservations,
        *entry.rules,
    ]


def live_tokens(
    state: DispatcherState, other: DispatcherState | None = None
) -> list[RegistrationRecord]:
    """Return all live registrations, including claims and subscriptions.

    Namespaces that `state` shares with `other` are skipped.
    """
    shared = {} if other is None else other.namespaces
    tokens: list[RegistrationRecord] = [
        *state.claims,
        *state.subscriptions,
        *state.fallbacks.tokens,
    ]
    for namespace, operators in state.namespaces.items():
        if shared.get(namespace) is not operators:
            for entry in operators.values():
                tokens += tokens_of(entry)
    return tokens


def replaced_names(
    before: Mapping[str, OperatorEntry], after: Mapping[str, OperatorEntry]
) -> list[str]:
    """Return the names whose entry in a namespace is another object than before.

    A scenario may run among hundreds of operators that no step changes.
    """
    if [*before] == [*after]:
        return [*compress(after, map(is_not, after.values(), before.values()))]
    return [text for text, entry in after.items() if before.get(text) is not entry]


def describe(token: RegistrationRecord) -> str:
    """Return a description of a registration without addresses."""
    return f"{type(token).__name__.lower()} {token.debug!r}"


def describe_all(tokens: Sequence[RegistrationRecord]) -> str:
    """Return a description of several registrations, in their order."""
    return ", ".join(describe(token) for token in tokens) or "nothing"


def reading(state: DispatcherState) -> Reading:
    """Return the state by parts, for comparisons with another one."""
    parts: Reading = {
        "the claims": state.claims,
        "the listeners": state.subscriptions,
        "the fallbacks": state.fallbacks.tokens,
        "the rule for alias kinds": state.merges_alias_kinds,
    }
    for operators in state.namespaces.values():
        for text, entry in operators.items():
            parts[text] = entry_reading(entry)
    return parts


def entry_reading(entry: OperatorEntry) -> Reading:
    """Return one operator by parts."""
    table = entry.table
    lines = [(line.slots, line.provenance) for line in table.recipe.lines]
    return {
        "definitions": entry.definitions,
        "kernels": dict(entry.implementations),
        "reservations": frozenset(entry.reservations),
        "rules": entry.rules,
        "total": entry.total,
        "arguments": (entry.extractor.tensors, entry.extractor.lists),
        "table": (lines, table.recipe.rest, table.kernels, table.fallbacks.tokens),
        "masks": table.masks,
    }


def differences(before: Reading, after: Reading) -> list[tuple[str, Any, Any]]:
    """Return (part, before, after) where readings differ; operators part by part."""
    changes: list[tuple[str, Any, Any]] = []
    for part in sorted(before.keys() | after.keys()):
        old, new = before.get(part), after.get(part)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            changes += [
                (f"{part}, {inner}", old[inner], new[inner])
                for inner in old
                if old[inner] != new[inner]
            ]
        else:
            changes.append((part, old, new))
    return changes


def part_text(value: Any, otherwise: str) -> str:
    """Return a part of a reading as text; `otherwise` if that would be too long."""
    match value:
        case None:
            return "nothing"
        case bool() | int():
            return str(value)
        case {"definitions": _}:
            return "an operator"
        case dict():
            rows = sorted(value.items(), key=lambda row: row[0].value)
            return describe_all([token for _, kernels in rows for token in kernels])
        case frozenset():
            return describe_all(sorted(value, key=describe))
        case tuple() if all(isinstance(each, _TOKENS) for each in value):
            return describe_all(value)
        case _:
            return otherwise


Change: TypeAlias = Literal["add", "remove", "fail", "use", "again"]

Row: TypeAlias = tuple[str, str, Sequence[Any], Sequence[Any]]
"""Operator (empty: the state itself), part, content before and content after."""


@dataclass(slots=True)
class StepSubject:
    """The subject of step laws; created by `step_of`, and not changed after that.

    `added` and `removed` are the tokens that are live on one side only, by the places
    where they are; `rows` are the sequences of tokens that are not the same object;
    `quiet` are the entries that were replaced although none of their tokens was added
    or removed.
    """

    before: DispatcherState
    after: DispatcherState
    change: Change
    tokens: tuple[RegistrationRecord, ...] | None
    added: list[RegistrationRecord] = field(default_factory=list)
    removed: list[RegistrationRecord] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    quiet: list[tuple[str, OperatorEntry, OperatorEntry]] = field(default_factory=list)

    def compare(
        self, operator: str, part: str, before: Sequence[Any], after: Sequence[Any]
    ) -> None:
        """Add the differences of one sequence of tokens, before and after."""
        if before is not after:
            self.rows.append((operator, part, before, after))
            self.added += [token for token in after if token not in before]
            self.removed += [token for token in before if token not in after]

    def compare_operators(
        self, text: str, before: OperatorEntry | None, after: OperatorEntry | None
    ) -> None:
        """Add the differences of one operator; None if it does not exist."""
        moved = len(self.added) + len(self.removed)
        old = {} if before is None else before.implementations
        new = {} if after is None else after.implementations
        if new is not old:
            fresh = 0
            for key, kernels in new.items():
                old_kernels = old.get(key, ())
                if old_kernels is not kernels:
                    fresh += not old_kernels
                    self.compare(text, key.name, old_kernels, kernels)
            if len(old) > len(new) - fresh:
                for key, kernels in old.items():
                    if key not in new:
                        self.compare(text, key.name, kernels, ())
        previous = () if before is None else before.definitions
        now = () if after is None else after.definitions
        if previous is not now:
            self.compare(text, "definitions", previous, now)
        reserved = () if before is None else before.reservations
        left = () if after is None else after.reservations
        if reserved is not left:
            self.compare(text, "reservations", reserved, left)
        ruled = () if before is None else before.rules
        rules = () if after is None else after.rules
        if ruled is not rules:
            self.compare(text, "rules", ruled, rules)
        if before and after and len(self.added) + len(self.removed) == moved:
            self.quiet.append((text, before, after))


def step_of(
    before: DispatcherState,
    after: DispatcherState,
    change: Change,
    tokens: tuple[RegistrationRecord, ...] | None = None,
) -> StepSubject:
    """Return the step from one published state to the next."""
    step = StepSubject(before, after, change, tokens, [], [], [], [])
    if before.claims is not after.claims:
        step.compare("", "claims", before.claims, after.claims)
    if before.subscriptions is not after.subscriptions:
        step.compare("", "listeners", before.subscriptions, after.subscriptions)
    if before.fallbacks is not after.fallbacks:
        step.compare("", "fallbacks", before.fallbacks.tokens, after.fallbacks.tokens)
    old, new = before.namespaces, after.namespaces
    for namespace, operators in new.items():
        previous = old.get(namespace, {})
        if previous is operators:
            continue
        fresh = len(operators)
        for text in replaced_names(previous, operators):
            old_entry = previous.get(text)
            fresh -= old_entry is None
            step.compare_operators(text, old_entry, operators[text])
        if fresh < len(previous):
            for text in previous.keys() - operators.keys():
                step.compare_operators(text, previous[text], None)
    for namespace in old.keys() - new.keys():
        for text, entry in old[namespace].items():
            step.compare_operators(text, entry, None)
    return step
