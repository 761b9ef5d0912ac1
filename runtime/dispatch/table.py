"""Tables: the 137 slots of one operator, each with its kernel and its provenance.

True only here: a table is a recipe with kernels put in.  It is held in that factored
form (a few lines, each with the set of slots that it fills; the rest are fallbacks),
because one registration then costs a few assignments instead of 137; `slots` spells
it out.  The slots named by a table *are* what calls use: callers are built from them,
and `dump_table` prints them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from runtime.dispatch.kernel import Kernel, boxed
from runtime.dispatch.masks import Masks, masks_of
from runtime.dispatch.recipe import REMEMBERED, Line, Recipe, recipe_of
from runtime.dispatch.token import Fallback, Implementation
from runtime.errors.call import AmbiguousKernel
from runtime.keys import SLOTS, DispatchKey


class Slot(NamedTuple):
    """One slot, spelled out; `kernel` is None if the slot is `missing`."""

    key: DispatchKey
    kernel: Kernel | None
    token: Implementation | Fallback | None
    debug: str
    provenance: str


@dataclass(frozen=True, slots=True, eq=False)
class FallbackTexts:
    """What dumps show of each fallback: its slots, its description, if it falls
    through.

    Equal texts are one object, so that it can stand for them in a cheap key.
    """

    texts: tuple[tuple[int, str, bool], ...]


# As many as there are sets of fallbacks under exploration at a time.
@lru_cache(maxsize=1024)
def _texts(texts: tuple[tuple[int, str, bool], ...]) -> FallbackTexts:
    return FallbackTexts(texts)


@dataclass(frozen=True, slots=True, eq=False)
class Fallbacks:
    """The fallback of every slot; `present` and `through` are sets of slots.

    `tokens` are the live registrations in canonical order (by their first slot).
    """

    slots: tuple[Fallback | None, ...]
    tokens: tuple[Fallback, ...]
    texts: FallbackTexts
    present: int
    through: int


def fallbacks_of(tokens: Iterable[Fallback]) -> Fallbacks:
    """Spread tokens over the slots; the caller has checked that none collide."""
    ordered = tuple(sorted(tokens, key=lambda token: token.keys[0].slot or 0))
    slots: list[Fallback | None] = [None] * len(SLOTS)
    texts = []
    present = through = 0
    for token in ordered:
        own = 0
        for key in token.keys:
            assert key.slot is not None, "fallbacks are registered for runtime keys"
            slots[key.slot] = token
            own |= 1 << key.slot
        falls = token.kernel.function is None
        texts.append((own, token.debug, falls))
        present |= own
        through |= own if falls else 0
    return Fallbacks(tuple(slots), ordered, _texts(tuple(texts)), present, through)


NO_FALLBACKS = fallbacks_of(())


def _refuse_ambiguity(operator: Any, keyset: Any, stack: list[Any]) -> None:
    raise AmbiguousKernel(operator=str(operator.name), state=operator.dump_state())


# What a slot of provenance "ambiguous autogradother" runs; both names are a format.
AMBIGUOUS = boxed(_refuse_ambiguity, "ambiguous_autogradother")


class Table(NamedTuple):
    """A recipe, the active kernel of each of its lines (None: refuses), the rest."""

    recipe: Recipe
    kernels: tuple[Implementation | None, ...]
    fallbacks: Fallbacks
    masks: Masks

    def held(self, number: int) -> Implementation | Fallback | Kernel | None:
        """What fills a slot: a registration, a refusing kernel, or nothing."""
        line = _lines(self.recipe)[number]
        if line == REST:
            return self.fallbacks.slots[number]
        return self.kernels[line] or AMBIGUOUS

    def slot(self, number: int) -> Slot:
        """One slot; numbers are those of `runtime.keys.SLOTS`."""
        bit = 1 << number
        for line, token in zip(self.recipe.lines, self.kernels, strict=True):
            if line.slots & bit:
                return _filled(SLOTS[number], line, token)
        return _left(SLOTS[number], self.fallbacks.slots[number])

    def slots(self) -> tuple[Slot, ...]:
        """All 137 slots, by number."""
        spelled: list[Slot | None] = [None] * len(SLOTS)
        for line, token in zip(self.recipe.lines, self.kernels, strict=True):
            # But for the key, slots of one line are the same.
            _, *content = _filled(DispatchKey.Undefined, line, token)
            for number in numbers(line.slots):
                spelled[number] = tuple.__new__(Slot, (SLOTS[number], *content))
        left = self.fallbacks.slots
        return tuple(
            [
                _left(SLOTS[number], left[number]) if slot is None else slot
                for number, slot in enumerate(spelled)
            ]
        )


def _filled(key: DispatchKey, line: Line, token: Implementation | None) -> Slot:
    """A slot that a line of the recipe fills."""
    if token is None:
        return Slot(key, AMBIGUOUS, None, AMBIGUOUS.facts.name, line.provenance)
    return Slot(key, token.kernel, token, token.reading.debug, line.provenance)


def _left(key: DispatchKey, held: Fallback | None) -> Slot:
    """A slot that is left to the fallbacks."""
    if held is None:
        return Slot(key, None, None, "missing", "missing")
    return Slot(key, held.kernel, held, held.debug, "backend fallback")


def table_of(
    kernels: Mapping[DispatchKey, tuple[Implementation, ...]], fallbacks: Fallbacks
) -> Table:
    """The table of an operator: a pure function of its kernels and the fallbacks."""
    recipe = recipe_of(kernels)
    through = recipe.rest & fallbacks.through
    active: list[Implementation | None] = []
    for source, slots in recipe.sources:
        if source is None:
            active.append(None)
            continue
        newest = kernels[source][0]
        active.append(newest)
        if newest.reading.through:
            through |= slots
    # Made by tuple, which takes half the time that the class takes.
    return tuple.__new__(Table, (recipe, tuple(active), fallbacks, masks_of(through)))


# Stands for the line of a slot that is left to the fallbacks; there are fewer lines.
REST = 255


@lru_cache(maxsize=REMEMBERED)
def _lines(recipe: Recipe) -> bytes:
    """Which line of a recipe fills each slot, by their numbers; `REST` for none."""
    found = bytearray([REST]) * len(SLOTS)
    for at in reversed(range(len(recipe.lines))):
        for number in numbers(recipe.lines[at].slots):
            found[number] = at
    return bytes(found)


def numbers(slots: int) -> list[int]:
    """The slot numbers in a set of slots, ascending."""
    found = []
    while slots:
        low = slots & -slots
        found.append(low.bit_length() - 1)
        slots ^= low
    return found
