"""What is registered, as text: the dumps of an operator, and fingerprints of states.

The formats of dumps are upstream's byte for byte (a data format), except that the table
shown is the live one.  A fingerprint is a whole state as nested text and numbers.  Two
states with equal fingerprints answer every question alike and react alike to every
registration, provided that kernels with equal descriptions behave alike; the harness
gives every step a description of its own.  Its proofs rest on this, and a test changes
every field of a state in turn to see the fingerprint change.

How it works: for a dump an entry is first reduced to its readings (see `token`), and
the rendering is a remembered function of these.  So equal entries share one rendering,
a step of an exploration costs what it touches, and no memory of a text keeps a kernel
alive.  In a fingerprint, kernels are named by their description and by their position
within the entry; the table is taken as it stands, not as it ought to be."""

from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Any

from runtime.dispatch.state import DispatcherState, OperatorEntry, OperatorMap
from runtime.dispatch.table import (
    AMBIGUOUS,
    REMEMBERED,
    FallbackTexts,
    Recipe,
    Table,
    numbers,
)
from runtime.dispatch.token import DefinitionReading, KernelReading
from runtime.keys import SLOTS

# Of each key, by value: the reading of its only kernel, or of all, newest first.
Kernels = tuple[KernelReading | tuple[KernelReading, ...], ...]
StateReading = tuple[str, DefinitionReading | None, Kernels]
TableReading = tuple[Recipe, tuple[KernelReading | None, ...], FallbackTexts]


def dump_state(entry: OperatorEntry) -> str:
    """What is registered for one operator: schema, then kernels by key.

    Rules are not shown, and what has nothing else is no operator: nothing is.
    """
    return _render_state(state_reading(entry)) if entry.total else ""


def dump_table(entry: OperatorEntry) -> str:
    """The live table: one line for every slot that has a kernel."""
    return render_table(table_reading(entry)) if entry.total else ""


def list_keys(entry: OperatorEntry) -> tuple[str, ...]:
    """The names of the keys that a call can reach, `Undefined` left out."""
    return listed_keys(table_reading(entry))


def state_reading(entry: OperatorEntry) -> StateReading:
    """Everything that `dump_state` prints, unrendered."""
    definitions = entry.definitions
    return (
        str(entry.name),
        definitions[0].reading if definitions else None,
        tuple(
            [
                held[0].reading if len(held) == 1 else tuple([t.reading for t in held])
                for held in entry.implementations.values()
            ]
        ),
    )


def table_reading(entry: OperatorEntry) -> TableReading:
    """Everything that `dump_table` prints, unrendered."""
    return reading_of(entry.table)


def reading_of(table: Table) -> TableReading:
    """What a table says about itself; it refers to no kernel."""
    return (
        table.recipe,
        tuple([None if held is None else held.reading for held in table.kernels]),
        table.fallbacks.texts,
    )


@lru_cache(maxsize=REMEMBERED)
def _render_state(reading: StateReading) -> str:
    name, definition, kernels = reading
    lines = [f"name: {name}\n"]
    lines.append("schema: (none)\n" if definition is None else definition.shown)
    for each in kernels:
        readings = each if isinstance(each, tuple) else (each,)
        key = readings[0].key
        alias = "[alias]" if key.is_alias else ""
        for age, kernel in enumerate(readings):
            inactive = " (inactive)" if age else ""
            lines.append(f"{key.name}{alias}{inactive}: {kernel.shown}\n")
    return "".join(lines)


def contents(reading: TableReading) -> list[str | None]:
    """What every slot of a table holds, as text; None where it is missing."""
    recipe, kernels, fallbacks = reading
    spelled: list[str | None] = [None] * len(SLOTS)
    for line, kernel in zip(recipe.lines, kernels, strict=True):
        if kernel is None:
            held = AMBIGUOUS.facts.name
        else:
            held = f"fallthrough {kernel.debug}" if kernel.through else kernel.debug
        for number in numbers(line.slots):
            spelled[number] = f"{held} [{line.provenance}]"
    for slots, debug, through in fallbacks.texts:
        held = f"fallthrough {debug}" if through else debug
        for number in numbers(slots & recipe.rest):
            spelled[number] = f"{held} [backend fallback]"
    return spelled


@lru_cache(maxsize=REMEMBERED)
def render_table(reading: TableReading) -> str:
    """`dump_table` of a reading."""
    return "".join(
        f"{key.name}: {held}\n"
        for key, held in zip(SLOTS, contents(reading), strict=True)
        if held is not None
    )


@lru_cache(maxsize=REMEMBERED)
def listed_keys(reading: TableReading) -> tuple[str, ...]:
    """`list_keys` of a reading."""
    held: Any = contents(reading)
    return tuple(SLOTS[n].name for n in range(1, len(SLOTS)) if held[n] is not None)


def fingerprint(state: DispatcherState) -> Hashable:
    """The state as nested tuples of text and numbers."""
    return (
        tuple(
            [
                (namespace, _namespace_fingerprint(operators))
                for namespace, operators in sorted(state.namespaces.items())
            ]
        ),
        state.fallbacks.texts.texts,
        tuple([(claim.namespace, claim.debug) for claim in state.claims]),
        tuple([held.debug for held in state.subscriptions]),
        state.merges_alias_kinds,
    )


def _namespace_fingerprint(operators: Mapping[str, OperatorEntry]) -> Hashable:
    """The entries of one namespace; remembered with them, as it holds text only."""
    found: Hashable = getattr(operators, "read", None)
    if found is None:
        held = sorted(operators.items())
        found = tuple([entry_fingerprint(entry) for _, entry in held])
        if isinstance(operators, OperatorMap):
            operators.read = found
    return found


def entry_fingerprint(entry: OperatorEntry) -> Hashable:
    """One operator's part of the fingerprint; remembered on the entry."""
    found = entry.memo.get("fingerprint")
    if found is None:
        found = entry.memo["fingerprint"] = _entry_fingerprint(entry)
    return found


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
    """The lines of a recipe, which many entries share, as text and numbers."""
    return tuple([(line.slots, line.provenance) for line in recipe.lines])
