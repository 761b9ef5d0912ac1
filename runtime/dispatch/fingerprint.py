"""Fingerprints: a whole state as text and numbers.

True only here: completeness.  Two states with equal fingerprints answer every question
alike and react alike to every registration, provided that kernels with equal
descriptions behave alike; the harness gives every step a description of its own.  The
proof strategy of the harness rests on this, and a test changes every field of a state
in turn to see the fingerprint change.

How it works: kernels are named by their description and, within the entry, by their
position; the table is taken as it stands, not as it ought to be.  An entry's part is
remembered on the entry.
"""

from collections.abc import Hashable, Mapping
from functools import lru_cache

from runtime.dispatch.entry import OperatorEntry
from runtime.dispatch.recipe import REMEMBERED, Recipe
from runtime.dispatch.state import DispatcherState, OperatorMap


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
