"""The dispatch table and its masks, computed a second time by other means.

True only here: an independent reading of the same specification.  The runtime states
its rules as sets of slots and fills a table set by set; here every slot asks its own
questions, one after the other, and the first answer counts.  No code and no data are
shared: a mistake would have to be made twice.

Rules:
- a table draws on names: which kernel a name stands for is put in afterwards;
- the answer for a set of names is remembered by that set.

Source of the rules: the order of upstream's table computation, 2.13, with an autograd
key guarding the backend of its own for every backend.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from invariants.second_model import (
    AUTOGRAD_ALIAS,
    AUTOGRAD_OTHER,
    BACKENDS,
    BATCHED,
    BEHIND_AUTOGRAD_OTHER,
    EXPLICIT,
    EXPLICIT_NON_FUNCTIONAL,
    GUARDS,
    IMPLICIT,
    IMPLICIT_NESTED,
    LAYERS,
    MEMBERS,
    PLACES,
    SLOTS,
    UNDEFINED,
)
from runtime.dispatch.state import Implementations
from runtime.dispatch.token import Fallback, Implementation

# Provenances of slots that draw on no key of the operator.
FALLBACK = "backend fallback"
MISSING = "missing"
AMBIGUOUS = "ambiguous autogradother"

# All subsets of twelve keys.
REMEMBERED = 4096

# Makes a named tuple of its fields, in half the time that its own class takes.
_MAKE = tuple.__new__
_BACKEND_BITS = (1 << len(BACKENDS)) - 1
_ALL_BITS = (1 << (len(BACKENDS) + len(LAYERS))) - 1


class Expected(NamedTuple):
    """What a slot must hold: a registration (None: none, or ambiguous) and why."""

    key: str
    token: Implementation | Fallback | None
    provenance: str

    @property
    def falls_through(self) -> bool:
        """Whether the slot's kernel is one that is never called."""
        return self.token is not None and self.token.kernel.function is None


def second_table(
    implementations: Implementations, fallbacks: Iterable[Fallback]
) -> tuple[Expected, ...]:
    """What each of the 137 slots must hold, by number."""
    newest = {key.name: held[0] for key, held in implementations.items() if held}
    spread = {key.name: token for token in fallbacks for key in token.keys}
    found = []
    for slot, (source, provenance) in zip(
        SLOTS, _sources(frozenset(newest)), strict=True
    ):
        token: Implementation | Fallback | None
        if provenance is None:
            token = spread.get(slot)
            provenance = MISSING if token is None else FALLBACK
        else:
            token = newest[source] if source else None
        found.append(_MAKE(Expected, (slot, token, provenance)))
    return tuple(found)


def second_masks(table: Iterable[Expected]) -> tuple[int, ...]:
    """One mask a backend: all bits but those of layers that fall through there."""
    everywhere, cleared = _ALL_BITS, [0] * len(BACKENDS)
    for slot in table:
        token = slot.token
        if token is None or token.kernel.function is not None or slot.key == UNDEFINED:
            continue
        layer, own = PLACES[slot.key]
        bit = 1 << (len(BACKENDS) + layer)
        if own is None:
            everywhere &= ~bit
        else:
            cleared[own] |= bit
    return tuple([everywhere & ~bits for bits in cleared])


def slot_reached(
    arguments: int, included: int, excluded: int, masks: Sequence[int]
) -> str:
    """The slot of a call, from the joined keysets of its tensors.

    The mask is chosen by the highest backend among the arguments alone; a call without
    any takes the first.  Exclusion never takes a backend away.
    """
    backends = [b for b in range(len(BACKENDS)) if arguments >> b & 1]
    bits = (arguments | included) & (~excluded | _BACKEND_BITS)
    bits &= masks[backends[-1] if backends else 0]
    backends = [b for b in range(len(BACKENDS)) if bits >> b & 1]
    for index in reversed(range(len(LAYERS))):
        if bits >> (len(BACKENDS) + index) & 1:
            backend = BACKENDS[backends[-1] if backends else 0]
            return LAYERS[index].replace("*", backend)
    return UNDEFINED


@lru_cache(maxsize=REMEMBERED)
def _sources(present: frozenset[str]) -> tuple[tuple[str | None, str | None], ...]:
    """For each slot: the key that it draws on, and why; (None, None) for neither."""
    return tuple(_source(slot, present) for slot in SLOTS)


def _source(slot: str, present: frozenset[str]) -> tuple[str | None, str | None]:
    """First match wins."""
    undefined = slot == UNDEFINED
    if slot in present:
        return slot, "kernel"
    for alias in (EXPLICIT_NON_FUNCTIONAL, EXPLICIT):
        if alias in present and (undefined or slot in MEMBERS[alias]):
            return alias, "default backend kernel"
    if IMPLICIT_NESTED in present and slot in MEMBERS[IMPLICIT_NESTED]:
        return IMPLICIT_NESTED, "nested kernel"
    if IMPLICIT in present and (undefined or slot in MEMBERS[IMPLICIT]):
        if slot == AUTOGRAD_OTHER and present & BEHIND_AUTOGRAD_OTHER:
            return None, AMBIGUOUS
        if EXPLICIT not in present and not present & GUARDS.get(slot, frozenset()):
            return IMPLICIT, "math kernel"
    if AUTOGRAD_ALIAS in present and slot in MEMBERS[AUTOGRAD_ALIAS]:
        return AUTOGRAD_ALIAS, "autograd kernel"
    if BATCHED in present and slot in MEMBERS[BATCHED]:
        return BATCHED, "batched kernel"
    return None, None
