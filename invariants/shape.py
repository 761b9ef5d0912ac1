"""The shape of an entry: all that the laws of one operator depend on, without kernels.

True only here: when two entries are the same to those laws.  A shape names tokens by
their readings and places, so that it refers to no token and no kernel; it holds the
recipe itself, so that no other recipe can take its place.  Whatever does not fit this
description (a kernel in the table that is not the newest of its key, fallbacks of
another state, a token at two places, a reading that is not its kernel's) has no shape,
and is judged in full every time; so is an entry with rules, which few have.

What depends on this file: a law of one operator that reads something new of an entry
needs it here.
"""

from collections.abc import Hashable
from typing import Any

from invariants.placed import Placed


def shape_of(operator: Placed) -> Hashable | None:
    """The shape; None for an entry that the laws must look at in full."""
    entry = operator.entry
    name, table = entry.name, entry.table
    fallbacks, recipe, masks = table.fallbacks, table.recipe, table.masks
    if fallbacks is not operator.fallbacks or len(recipe.lines) != len(table.kernels):
        return None
    if entry.rules:
        return None
    held = entry.implementations
    defined, reserved = entry.definitions, entry.reservations
    live: list[Any] = [*defined, *reserved]
    # Each key, and the readings of its kernels.
    kernels: list[Any] = []
    # A tenth of a checked step is spent here: no call that can be done without.
    for key, tokens in held.items():
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
            newest = held.get(line.source)
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
