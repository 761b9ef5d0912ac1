"""An operator and where it stands in its state: what operator laws look at.

True only here: what of a state a law of one operator may use.  The live table and the
second table are spelled out at most once, and only when a law asks.
"""

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
