"""The dispatch table of an operator: which kernel each of the 137 slots runs, and why.

`RULES` states as data from which key a slot draws its kernel.  Evaluated for a set of
keys with kernels, they yield a *recipe*: a handful of lines, each a source and the set
of slots that it fills.  A *table* is a recipe with kernels filled in, and the masks of
the fallthrough kernels.  It is stored in that factored form, because one registration
then costs a few assignments instead of 137; `slots` expands it.  Calls use exactly the
kernels that the table names, and `dump_table` prints it.

Rules:
- `RULES` is read from top to bottom; each row fills those of the still empty slots that
  are in `slots`, if its source has a kernel and its condition holds.  A direct kernel
  comes before all rows, a fallback after them;
- sets of slots are ints with bit `i` for slot `i`; slot 0, the call without any key,
  belongs to three aliases although it is not a member of them;
- a recipe depends only on *which* keys have kernels;
- a fallthrough kernel is never called: the mask that is applied to a call's keyset
  lacks its bit.  A fallthrough at `AutogradCPU` clears the Autograd bit in CPU's
  mask only.  Backend bits are set in every mask.

The laws (`invariants`) have a second statement of the same rules, written by other
means; neither may import the other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from everyorder.runtime.dispatch.kernel import Kernel, boxed
from everyorder.runtime.dispatch.registration_record import Fallback, Implementation
from everyorder.runtime.errors.call import CannotRun
from everyorder.runtime.keys import (
    AUTOGRADOTHER_BACKENDS,
    FULL,
    SLOTS,
    DispatchKey,
    members,
)
from everyorder.runtime.keys.dispatch_key import guarded_backends
from everyorder.runtime.keys.key_tables import BACKENDS

# Slot 0 is `Undefined`: no dispatch key is left.
UNDEFINED_SLOT = 1
ALL_SLOTS = (1 << len(SLOTS)) - 1


def slots_of(keys: Iterable[DispatchKey]) -> int:
    """Return the set of the slots of runtime keys."""
    mask = 0
    for key in keys:
        assert key.slot is not None, "only runtime keys have a slot"
        mask |= 1 << key.slot
    return mask


@dataclass(frozen=True, slots=True)
class TableRule:
    """One row: `source` supplies `slots`, as `provenance`, under a condition.

    `condition` is `"always"`, `"unguarded"` (no kernel at a backend that the slot's
    autograd key guards, and none at CompositeExplicitAutograd) or `"ambiguous"` (some
    backend of AutogradOther has a direct kernel; the slot gets a kernel that raises).
    """

    source: DispatchKey
    slots: int
    provenance: str
    condition: str = "always"


_CENF = DispatchKey.CompositeExplicitAutogradNonFunctional
_CE = DispatchKey.CompositeExplicitAutograd
_CINT = DispatchKey.CompositeImplicitAutogradNestedTensor
_CI = DispatchKey.CompositeImplicitAutograd
_FTBD = DispatchKey.FuncTorchBatchedDecomposition

RULES = (
    TableRule(
        _CENF, slots_of(members(_CENF)) | UNDEFINED_SLOT, "default backend kernel"
    ),
    TableRule(_CE, slots_of(members(_CE)) | UNDEFINED_SLOT, "default backend kernel"),
    TableRule(_CINT, slots_of(members(_CINT)), "nested kernel"),
    TableRule(
        _CI,
        slots_of([DispatchKey.AutogradOther]),
        "ambiguous autogradother",
        "ambiguous",
    ),
    TableRule(_CI, slots_of(members(_CI)) | UNDEFINED_SLOT, "math kernel", "unguarded"),
    TableRule(
        DispatchKey.Autograd, slots_of(members(DispatchKey.Autograd)), "autograd kernel"
    ),
    TableRule(_FTBD, slots_of(members(_FTBD)), "batched kernel"),
)

# The key whose kernel makes every slot count as guarded.
GUARDS_EVERYTHING = _CE

# For every backend key: the autograd slots that a kernel there guards.
GUARDED_SLOTS: dict[DispatchKey, int] = {}
for _slot_key in SLOTS[1:]:
    for _backend in guarded_backends(_slot_key):
        _held = GUARDED_SLOTS.get(_backend, 0)
        GUARDED_SLOTS[_backend] = _held | slots_of([_slot_key])

AUTOGRADOTHER_SLOTS = slots_of(AUTOGRADOTHER_BACKENDS)


# Cached recipes: enough for every subset of sixteen keys; one is about a kilobyte.
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
    `sources` repeats for each line what a table needs: the source (None: a kernel that
    raises) and the slots.
    """

    number: int
    lines: tuple[Line, ...]
    rest: int
    sources: tuple[tuple[DispatchKey | None, int], ...]


_BIT = {key: 1 << key.value for key in DispatchKey}
_bit_of = _BIT.__getitem__


def recipe_of(keys: Iterable[DispatchKey]) -> Recipe:
    """Return the recipe for the keys that have kernels, whatever their order."""
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


_BACKEND_BITS = (1 << len(BACKENDS)) - 1


@dataclass(frozen=True, slots=True)
class Masks:
    """One mask for each backend, as raw bits; `per_backend` is true if two differ."""

    by_backend: tuple[int, ...]
    per_backend: bool


@lru_cache(maxsize=1024)
def masks_of(fallthrough_slots: int) -> Masks:
    """Return the masks for the set of slots (bit `i` is slot `i`) that fall through."""
    masks = [FULL.bits] * len(BACKENDS)
    for number, key in enumerate(SLOTS):
        if not fallthrough_slots >> number & 1:
            continue
        functionality = key.bits & ~_BACKEND_BITS
        own = (key.bits & _BACKEND_BITS).bit_length() - 1
        for backend in range(len(masks)) if own < 0 else (own,):
            masks[backend] &= ~functionality
    return Masks(tuple(masks), any(mask != masks[0] for mask in masks))


class Slot(NamedTuple):
    """One slot of an expanded table; `kernel` is None if the slot is `missing`."""

    key: DispatchKey
    kernel: Kernel | None
    token: Implementation | Fallback | None
    debug: str
    provenance: str


@dataclass(frozen=True, slots=True, eq=False)
class FallbackTexts:
    """The texts of fallbacks in dumps: slots, description, and True for a fallthrough.

    Equal texts are one object, so that it can serve as a cheap key in their place.
    """

    texts: tuple[tuple[int, str, bool], ...]


# Enough for the sets of fallbacks under exploration at a time.
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
    raise CannotRun(
        code="AmbiguousKernel", operator=str(operator.name), state=operator.dump_state()
    )


# What a slot of provenance "ambiguous autogradother" runs; both names are a format.
AMBIGUOUS = boxed(_refuse_ambiguity, "ambiguous_autogradother")


class Table(NamedTuple):
    """A recipe, the active kernel of each line (None: raises), fallbacks and masks."""

    recipe: Recipe
    kernels: tuple[Implementation | None, ...]
    fallbacks: Fallbacks
    masks: Masks

    def content(self, number: int) -> Implementation | Fallback | Kernel | None:
        """Return the registration or raising kernel of a slot; None if it is empty."""
        line = _lines(self.recipe)[number]
        if line == REST:
            return self.fallbacks.slots[number]
        return self.kernels[line] or AMBIGUOUS

    def slot(self, number: int) -> Slot:
        """Return one slot; numbers are those of `runtime.keys.SLOTS`."""
        bit = 1 << number
        for line, token in zip(self.recipe.lines, self.kernels, strict=True):
            if line.slots & bit:
                return _line_slot(SLOTS[number], line, token)
        return _fallback_slot(SLOTS[number], self.fallbacks.slots[number])

    def slots(self) -> tuple[Slot, ...]:
        """Return all 137 slots, by number."""
        slots: list[Slot | None] = [None] * len(SLOTS)
        for line, token in zip(self.recipe.lines, self.kernels, strict=True):
            # Slots of one line differ only in the key.
            _, *content = _line_slot(DispatchKey.Undefined, line, token)
            for number in numbers(line.slots):
                slots[number] = tuple.__new__(Slot, (SLOTS[number], *content))
        rest = self.fallbacks.slots
        return tuple(
            [
                _fallback_slot(SLOTS[number], rest[number]) if slot is None else slot
                for number, slot in enumerate(slots)
            ]
        )


def _line_slot(key: DispatchKey, line: Line, token: Implementation | None) -> Slot:
    """Return a slot that a line of the recipe fills."""
    if token is None:
        return Slot(key, AMBIGUOUS, None, AMBIGUOUS.facts.name, line.provenance)
    return Slot(key, token.kernel, token, token.reading.debug, line.provenance)


def _fallback_slot(key: DispatchKey, token: Fallback | None) -> Slot:
    """Return a slot that is left to the fallbacks."""
    if token is None:
        return Slot(key, None, None, "missing", "missing")
    return Slot(key, token.kernel, token, token.debug, "backend fallback")


def table_of(
    kernels: Mapping[DispatchKey, tuple[Implementation, ...]], fallbacks: Fallbacks
) -> Table:
    """Return the table of an operator, a pure function of kernels and fallbacks."""
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
    # `tuple.__new__` needs half the time of the class's constructor.
    return tuple.__new__(Table, (recipe, tuple(active), fallbacks, masks_of(through)))


# Marks a slot that is left to the fallbacks; recipes have fewer lines than this.
REST = 255


@lru_cache(maxsize=REMEMBERED)
def _lines(recipe: Recipe) -> bytes:
    """Return the number of the line that fills each slot; `REST` for none."""
    lines = bytearray([REST]) * len(SLOTS)
    for index in reversed(range(len(recipe.lines))):
        for number in numbers(recipe.lines[index].slots):
            lines[number] = index
    return bytes(lines)


def numbers(slots: int) -> list[int]:
    """Return the slot numbers in a set of slots, ascending."""
    ascending = []
    while slots:
        low = slots & -slots
        ascending.append(low.bit_length() - 1)
        slots ^= low
    return ascending
