"""Masks: which functionality bits a call may still use, per backend.

True only here: a fallthrough kernel is never called; instead its bit is missing from
the mask that a call's keyset is cut with.  A fallthrough at `AutogradCPU` clears the
Autograd bit in CPU's mask only.  Backend bits are set in every mask.
"""

from dataclasses import dataclass
from functools import lru_cache

from runtime.keys import FULL, SLOTS
from runtime.keys.model import BACKENDS

_BACKEND_BITS = (1 << len(BACKENDS)) - 1


@dataclass(frozen=True, slots=True)
class Masks:
    """One mask a backend, as raw bits; `per_backend` says whether any two differ."""

    by_backend: tuple[int, ...]
    per_backend: bool


@lru_cache(maxsize=1024)
def masks_of(fallthrough_slots: int) -> Masks:
    """The masks, given the set of slots (bit `i` is slot `i`) that fall through."""
    masks = [FULL.bits] * len(BACKENDS)
    for number, key in enumerate(SLOTS):
        if not fallthrough_slots >> number & 1:
            continue
        functionality = key.bits & ~_BACKEND_BITS
        own = (key.bits & _BACKEND_BITS).bit_length() - 1
        for backend in range(len(masks)) if own < 0 else (own,):
            masks[backend] &= ~functionality
    return Masks(tuple(masks), any(mask != masks[0] for mask in masks))
