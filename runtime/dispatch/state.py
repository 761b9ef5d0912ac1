"""The state of a dispatcher and of each operator, as immutable values; their texts.

A state is all that is registered: a snapshot is a reference to such a value, a
fingerprint covers every field, and no other place stores registrations.  An operator's
*entry* exists while something is registered under its name, and is never modified;
`transition` builds a new one.

Rules of an entry:
- `implementations` maps keys, in the order of their values, to their kernels, newest
  first; no key maps to an empty tuple;
- `definitions` holds at most one token (several under the 2020 rule: those whose alias
  kind is set, then the others, each in the order of their texts);
- `rules` holds at most one rule for a class, in the order of their texts;
- `total` counts the live registrations without the rules: an entry with only rules is
  not an operator, and dumps and look-ups ignore it;
- `memo` is for pure functions of this very entry (invokers, texts); it is not state.

Rules of a state:
- operators are stored by namespace, then by printed name, so that a step copies only
  the namespace that it changes;
- mappings are never changed once they are in a state, and their order is meaningless;
- the order of `subscriptions` is the order of subscribing: it is observable.

Both are named tuples because a registration creates one of each, and they are the
fastest to create; two entries are compared by identity, never by `==`.

Rules of texts:
- the formats of dumps are upstream's byte for byte (a data format), except that the
  table shown is the live one;
- a fingerprint is a whole state as nested text and numbers.  Two states with equal
  fingerprints answer every query alike and react alike to every registration,
  provided that kernels with equal descriptions behave alike; the harness describes
  every step differently.  Its proofs depend on this, and a test changes every
  field of a state in turn and checks that the fingerprint changes;
- in a fingerprint, kernels are named by their description and by their position within
  the entry; it covers the actual table, not the table that the rules would give.

For a dump an entry is first reduced to its readings (see `registration_record`), and
the rendering is a cached function of these.  So equal entries share one rendering, a
step of an exploration costs only what it changes, and no cache of a text keeps a kernel
alive.
"""

from collections.abc import Hashable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from everyorder.runtime.dispatch.dispatch_table import (
    AMBIGUOUS,
    NO_FALLBACKS,
    REMEMBERED,
    Fallbacks,
    FallbackTexts,
    Recipe,
    Table,
    numbers,
)
from everyorder.runtime.dispatch.registration_record import (
    Claim,
    ClassRule,
    Definition,
    DispatchArgPositions,
    Implementation,
    KernelSpec,
    OperatorSpec,
    Reservation,
    Subscription,
)
from everyorder.runtime.keys import SLOTS, DispatchKey
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import OperatorName

Implementations = Mapping[DispatchKey, tuple[Implementation, ...]]


class OperatorEntry(NamedTuple):
    """All registrations of one operator, with the table computed from them."""

    name: OperatorName
    definitions: tuple[Definition, ...]
    implementations: Implementations
    reservations: tuple[Reservation, ...]
    rules: tuple[ClassRule, ...]
    total: int
    extractor: DispatchArgPositions
    table: Table
    memo: dict[Any, Any]

    @property
    def definition(self) -> Definition | None:
        """Return the definition in force, or None."""
        return self.definitions[0] if self.definitions else None

    @property
    def schema(self) -> Schema | None:
        """Return the schema in force, or None."""
        return self.definitions[0].reading.schema if self.definitions else None


Namespaces = Mapping[str, Mapping[str, OperatorEntry]]


class OperatorMap(dict[str, OperatorEntry]):
    """The operators of one namespace, by printed name; never changed once published.

    The slots are caches, unset at first, and not state: the `fingerprint`, the
    `packets` of overloads by operator, and `bound_kernels` of programs that call
    several operators, by a key of each program.
    """

    __slots__ = ("bound_kernels", "fingerprint", "packets")
    bound_kernels: dict[object, Any]
    fingerprint: Hashable
    packets: Mapping[str, list[OperatorEntry]]

    def overloads(self, name: str) -> list[OperatorEntry]:
        """Return the entries of all overloads of an operator, by overload name."""
        try:
            return self.packets.get(name, [])
        except AttributeError:
            packets: dict[str, list[OperatorEntry]] = {}
            for entry in self.values():
                packets.setdefault(entry.name.name, []).append(entry)
            for entries in packets.values():
                entries.sort(key=lambda entry: entry.name.overload)
            self.packets = packets
            return packets.get(name, [])


class DispatcherState(NamedTuple):
    """All that is registered.

    `claims` are the live DEF libraries, sorted by namespace; `merges_alias_kinds` is
    the 2020 rule for second definitions, a setting of the dispatcher.
    """

    namespaces: Namespaces = {}  # noqa: RUF012  # never changed, like every mapping here
    fallbacks: Fallbacks = NO_FALLBACKS
    claims: tuple[Claim, ...] = ()
    subscriptions: tuple[Subscription, ...] = ()
    merges_alias_kinds: bool = False

    def entry(self, name: OperatorName) -> OperatorEntry | None:
        """Return the entry of an operator, or None if nothing is registered for it."""
        operators = self.namespaces.get(name.name.partition("::")[0])
        return None if operators is None else operators.get(str(name))

    def find(self, namespace: str, text: str) -> OperatorEntry | None:
        """Return the entry of an operator by its namespace and printed name."""
        operators = self.namespaces.get(namespace)
        return None if operators is None else operators.get(text)

    def overloads(self, name: OperatorName) -> list[OperatorEntry]:
        """Return the entries of all overloads of an operator, by overload name."""
        operators = self.namespaces.get(name.name.partition("::")[0])
        if operators is None:
            return []
        if isinstance(operators, OperatorMap):
            return operators.overloads(name.name)
        entries = [e for e in operators.values() if e.name.name == name.name]
        return sorted(entries, key=lambda entry: entry.name.overload)

    def entries(self) -> Iterator[OperatorEntry]:
        """Yield every entry, sorted by name."""
        for _, operators in sorted(self.namespaces.items()):
            for _, entry in sorted(operators.items()):
                yield entry


EMPTY = DispatcherState()


# For each key, by value: the reading of its only kernel, or of all, newest first.
Kernels = tuple[KernelSpec | tuple[KernelSpec, ...], ...]
StateReading = tuple[str, OperatorSpec | None, Kernels]
TableReading = tuple[Recipe, tuple[KernelSpec | None, ...], FallbackTexts]


def dump_state(entry: OperatorEntry) -> str:
    """Return the registrations of one operator: the schema, then kernels by key.

    Rules are not shown; the text of an entry with only rules is empty.
    """
    return _render_state(state_reading(entry)) if entry.total else ""


def dump_table(entry: OperatorEntry) -> str:
    """Return the live table: one line for every slot that has a kernel."""
    return render_table(table_reading(entry.table)) if entry.total else ""


def state_reading(entry: OperatorEntry) -> StateReading:
    """Return everything that `dump_state` prints, unrendered."""
    definitions = entry.definitions
    return (
        str(entry.name),
        definitions[0].reading if definitions else None,
        tuple(
            [
                tokens[0].reading
                if len(tokens) == 1
                else tuple([t.reading for t in tokens])
                for tokens in entry.implementations.values()
            ]
        ),
    )


def table_reading(table: Table) -> TableReading:
    """Return everything that `dump_table` prints, unrendered, without kernels."""
    return (
        table.recipe,
        tuple([None if token is None else token.reading for token in table.kernels]),
        table.fallbacks.texts,
    )


@lru_cache(maxsize=REMEMBERED)
def _render_state(reading: StateReading) -> str:
    name, definition, kernels = reading
    lines = [f"name: {name}\n"]
    lines.append("schema: (none)\n" if definition is None else definition.dump)
    for each in kernels:
        readings = each if isinstance(each, tuple) else (each,)
        key = readings[0].key
        alias = "[alias]" if key.is_alias else ""
        for age, kernel in enumerate(readings):
            inactive = " (inactive)" if age else ""
            lines.append(f"{key.name}{alias}{inactive}: {kernel.dump}\n")
    return "".join(lines)


def contents(reading: TableReading) -> list[str | None]:
    """Return the content of every slot of a table as text; None for a missing one."""
    recipe, kernels, fallbacks = reading
    texts: list[str | None] = [None] * len(SLOTS)
    for line, kernel in zip(recipe.lines, kernels, strict=True):
        if kernel is None:
            text = AMBIGUOUS.facts.name
        else:
            text = f"fallthrough {kernel.debug}" if kernel.through else kernel.debug
        for number in numbers(line.slots):
            texts[number] = f"{text} [{line.provenance}]"
    for slots, debug, through in fallbacks.texts:
        text = f"fallthrough {debug}" if through else debug
        for number in numbers(slots & recipe.rest):
            texts[number] = f"{text} [backend fallback]"
    return texts


@lru_cache(maxsize=REMEMBERED)
def render_table(reading: TableReading) -> str:
    """Return the `dump_table` of a reading."""
    return "".join(
        f"{key.name}: {text}\n"
        for key, text in zip(SLOTS, contents(reading), strict=True)
        if text is not None
    )


@lru_cache(maxsize=REMEMBERED)
def listed_keys(reading: TableReading) -> tuple[str, ...]:
    """Return the names of the keys that a call can reach, without `Undefined`."""
    texts = contents(reading)
    return tuple(SLOTS[n].name for n in range(1, len(SLOTS)) if texts[n] is not None)


def fingerprint(state: DispatcherState) -> Hashable:
    """Return the state as nested tuples of text and numbers."""
    return (
        tuple(
            [
                (namespace, _namespace_fingerprint(operators))
                for namespace, operators in sorted(state.namespaces.items())
            ]
        ),
        state.fallbacks.texts.texts,
        tuple([(claim.namespace, claim.debug) for claim in state.claims]),
        tuple([subscription.debug for subscription in state.subscriptions]),
        state.merges_alias_kinds,
    )


def _namespace_fingerprint(operators: Mapping[str, OperatorEntry]) -> Hashable:
    """Return the entries of one namespace as text, which `OperatorMap` caches."""
    cached: Hashable = getattr(operators, "fingerprint", None)
    if cached is None:
        ordered = sorted(operators.items())
        cached = tuple([entry_fingerprint(entry) for _, entry in ordered])
        if isinstance(operators, OperatorMap):
            operators.fingerprint = cached
    return cached


def entry_fingerprint(entry: OperatorEntry) -> Hashable:
    """Return one operator's part of the fingerprint, cached on the entry."""
    cached = entry.memo.get("fingerprint")
    if cached is None:
        cached = entry.memo["fingerprint"] = _entry_fingerprint(entry)
    return cached


def _entry_fingerprint(entry: OperatorEntry) -> Hashable:
    table = entry.table
    positions: dict[int, tuple[int, int]] = {}
    kernels = []
    for key, tokens in entry.implementations.items():
        value = key.value
        kernels.append((value, tuple([token.reading.texts for token in tokens])))
        for age, token in enumerate(tokens):
            positions[id(token)] = value, age
    return (
        str(entry.name),
        tuple([token.reading.texts for token in entry.definitions]),
        tuple(kernels),
        tuple(sorted([token.debug for token in entry.reservations])),
        tuple([rule.texts for rule in entry.rules]),
        entry.total,
        entry.extractor.tensors,
        entry.extractor.lists,
        _lines(table.recipe),
        table.recipe.rest,
        tuple(
            [
                None if token is None else positions.get(id(token), token.debug)
                for token in table.kernels
            ]
        ),
        table.fallbacks.texts.texts,
        table.masks,
    )


@lru_cache(maxsize=REMEMBERED)
def _lines(recipe: Recipe) -> Hashable:
    """Return the lines of a recipe, which many entries share, as text and numbers."""
    return tuple([(line.slots, line.provenance) for line in recipe.lines])
