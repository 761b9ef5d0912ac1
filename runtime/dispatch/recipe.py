"""Recipes: which key each slot draws from, for a set of keys that have kernels.

True only here: a recipe depends on *which* keys have kernels and on nothing else, so
there is one per set, and it is remembered by that set.  It covers the 137 slots by at
most a handful of lines; a table is a recipe with kernels put in.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from runtime.dispatch.rules import (
    ALL_SLOTS,
    AUTOGRADOTHER_SLOTS,
    GUARDED_SLOTS,
    GUARDS_EVERYTHING,
    RULES,
)
from runtime.keys import DispatchKey

# Enough for every subset of sixteen keys; a recipe is about a kilobyte.
REMEMBERED = 65536


@dataclass(frozen=True, slots=True)
class Line:
    """`slots` (a set of slot numbers as an int) draw from `source`."""

    source: DispatchKey
    slots: int
    provenance: str
    ambiguous: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """The lines of one set of keys; `rest` are the slots left to fallbacks.

    `number` is the set itself, as an int over key values: equal sets, equal recipes.
    `sources` repeats of each line what a table needs: whose kernel (None: a refusing
    one), for which slots.
    """

    number: int
    lines: tuple[Line, ...]
    rest: int
    sources: tuple[tuple[DispatchKey | None, int], ...]


_BIT = {key: 1 << key.value for key in DispatchKey}
_bit_of = _BIT.__getitem__


def recipe_of(keys: Iterable[DispatchKey]) -> Recipe:
    """The recipe for the keys that have kernels, whatever their order."""
    # Keys are distinct, so their bits add up.
    return _recipe(sum(map(_bit_of, keys)))


@lru_cache(maxsize=REMEMBERED)
def _recipe(number: int) -> Recipe:
    present = [key for key in DispatchKey if number & _BIT[key]]
    empty = ALL_SLOTS
    guarded = 0
    lines = []
    for key in present:
        guarded |= GUARDED_SLOTS.get(key, 0)
        if key.slot is not None:
            lines.append(Line(key, 1 << key.slot, "kernel"))
            empty &= ~(1 << key.slot)
    if GUARDS_EVERYTHING in present:
        guarded = ALL_SLOTS
    direct = ALL_SLOTS & ~empty
    for rule in RULES:
        if rule.source not in present:
            continue
        slots = rule.slots & empty
        if rule.condition == "unguarded":
            slots &= ~guarded
        elif rule.condition == "ambiguous" and not direct & AUTOGRADOTHER_SLOTS:
            continue
        if slots:
            ambiguous = rule.condition == "ambiguous"
            lines.append(Line(rule.source, slots, rule.provenance, ambiguous))
            empty &= ~slots
    sources = [(None if line.ambiguous else line.source, line.slots) for line in lines]
    return Recipe(number, tuple(lines), empty, tuple(sources))
