"""An operator where it stands in its state, and its shape: what operator laws look at.

`Placed` is all that a law of one operator may use of a state; the live table and the
second table are spelled out at most once, and only when a law asks.

The shape is all that these laws depend on, without kernels: two entries of one shape
are the same to them.  It names tokens by their readings and places, so that it refers
to no token and no kernel; it holds the recipe itself, so that no other recipe can take
its place.  Whatever does not fit this description (a kernel in the table that is not
the newest of its key, fallbacks of another state, a token at two places, a reading that
is not its kernel's) has no shape, and is judged in full every time; so is an entry with
rules, which few have.  A law that reads something new of an entry needs it here.
"""

from collections.abc import Hashable
from typing import Any

from invariants.second_table import Expected, second_table
from runtime.dispatch.state import DispatcherState, OperatorEntry
from runtime.dispatch.table import Fallbacks, Slot


class Placed:
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
        """The slots that calls of this operator use."""
        if self._live is None:
            self._live = self.entry.table.slots()
        return self._live

    @property
    def expected(self) -> tuple[Expected, ...]:
        """The slots that calls ought to use."""
        if self._expected is None:
            self._expected = second_table(
                self.entry.implementations, self.fallbacks.tokens
            )
        return self._expected


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
