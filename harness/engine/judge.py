"""Says whether a history fails, by replaying it and comparing its end.

True only here: the verdict on a history depends on the history alone, not on what was
played before in the exploration.  The reference is the canonical history of the state
where the history ends (`canonical.py`; ascending adds where there is none), replayed
once and remembered.  Only the end of a history is judged: what goes wrong earlier fails
a prefix.

Rules: the judge stops by operations played, so that what it finds is the same on every
machine; the limit in seconds is only a guard against systems that are very slow.
Faults of one family (see `STATEFUL`) stand for each other, because which of their names
fits is known only when the history is short.
"""

from collections.abc import Mapping
from dataclasses import replace
from time import monotonic
from typing import Final

from harness.engine.operations import Key, Ordering, operations_of
from harness.engine.protocol import History, State, System
from harness.engine.replay import Action, Deed, Fault, Replay, replay
from harness.engine.result import Kind

# Kinds that say: what is seen depends on more than the active steps.
STATEFUL: Final = frozenset[Kind]({"order", "cold", "use", "wedged", "hidden"})

# What a single history can show to be wrong.
EVERY: Final = STATEFUL | frozenset[Kind]({"law", "error", "undo", "leak"})

# Operations for shrinking one violation: two seconds at 30 microseconds an operation.
MOST_OPERATIONS = 60_000


# A guard for systems of a millisecond an operation: nobody waits longer for a history.
MOST_SECONDS = 20.0


class Exhausted(Exception):
    """The judge has played all the operations that it may."""


class Judge:
    """Replays histories against canonical ones, within an allowance of operations."""

    def __init__(
        self,
        system: System,
        canonical: Mapping[Key, History],
        *,
        ordering: Ordering,
        proving: bool,
        operations: int = MOST_OPERATIONS,
    ) -> None:
        self.system = system
        self._canonical = canonical
        self.ordering = ordering
        self._proving = proving
        self._operations = operations_of(system)
        self.look = self._operations.look
        self._references: dict[History, Replay] = {}
        self.left = operations
        self._ends = monotonic() + MOST_SECONDS

    def anew(self) -> "Judge":
        """A judge of the same system that has seen nothing yet."""
        return Judge(
            self.system,
            self._canonical,
            ordering=self.ordering,
            proving=self._proving,
        )

    def extend(self, length: int) -> None:
        """Allow the replay of one more history and of its references."""
        self.left = max(self.left, 0) + 4 * length + 16
        self._ends = max(self._ends, monotonic() + 1.0)

    def way(self, state: State) -> History:
        """The canonical history of a state, or its steps one by one."""
        known = self._canonical.get(self.ordering.key(state))
        return self._operations.straight(state) if known is None else known

    def replay(self, history: History) -> Replay:
        """Replay a history; raises `Exhausted` when the allowance is used up."""
        if self.left < len(history) or monotonic() > self._ends:
            raise Exhausted
        self.left -= len(history) + 1
        return replay(self.system, history, order_dependent=self.ordering.total)

    def fault(self, history: History, kind: Kind | None) -> Fault | None:
        """What is wrong at the end of the history, of the family of `kind` if any."""
        return self.inspect(history, self.replay(history), kind)

    def inspect(
        self, history: History, played: Replay, kind: Kind | None
    ) -> Fault | None:
        """The same for a history that was replayed already."""
        family = EVERY if kind is None else frozenset({kind})
        if kind in STATEFUL:
            family = STATEFUL
        for fault in played.faults:
            if fault.kind in family:
                return _renamed(fault, played)
        if len(played.actions) > len(history):
            contradiction = self._contradiction(history, played, family)
            if contradiction is not None:
                return _renamed(contradiction, played)
        return None

    def differs(self, seen: Action, other: Action) -> bool:
        """Whether two looks at the same state show two things."""
        if seen.state != other.state:
            return False
        return seen.value != other.value or (
            self._proving and seen.fingerprint != other.fingerprint
        )

    def _contradiction(
        self, history: History, played: Replay, family: frozenset[Kind]
    ) -> Fault | None:
        at = len(history)
        final = played.actions[at]
        if history:
            before = played.actions[at - 2].state if at > 1 else ()
            last = played.actions[at - 1]
            other = self._reference((*self.way(before), history[-1]), at=-2)
            if last.deed == "use" and "use" in family and other.deed == "use":
                if other.state == before and other.value != last.value:
                    return Fault("use", last.state, other.value, last.value, at)
            elif "error" in family and _REFUSING & {last.deed, other.deed}:
                same_place = self._reference(self.way(before), at=-1).state == before
                if same_place and (other.deed, other.value) != (last.deed, last.value):
                    return Fault("error", before, other.value, last.value, at)
        if "order" in family:
            other = self._reference(self.way(final.state), at=-1)
            # What can be seen says more than a fingerprint, so it comes first.
            if final.state == other.state and final.value != other.value:
                return Fault(
                    *("order", final.state, other.value, final.value, at), looked=True
                )
            hidden = self._hidden(played, final, other)
            if hidden is not None:
                return hidden
            if self.differs(other, final):
                expected, found = other.fingerprint, final.fingerprint
                return Fault(
                    *("order", final.state, expected, found, at, True), looked=True
                )
        return None

    def _hidden(self, played: Replay, final: Action, other: Action) -> Fault | None:
        """A difference of complete states that the final look takes away, or makes."""
        if not self._proving or final.state != other.state:
            return None
        at, state = len(played.history), final.state
        expected = self._references[self.way(state)].unlooked
        if played.unlooked != expected:
            return Fault(
                *("order", state, expected, played.unlooked, at, True), looked=True
            )
        if final.fingerprint != expected:
            return Fault(
                *("cold", state, expected, final.fingerprint, at + 1, True), looked=True
            )
        return None

    def _reference(self, history: History, at: int) -> Action:
        """An action of a reference history, which is replayed once."""
        known = self._references.get(history)
        if known is None:
            known = self._references[history] = self.replay(history)
        actions = known.actions
        return actions[at] if len(actions) > len(history) else actions[-1]


def _renamed(fault: Fault, played: Replay) -> Fault:
    """The fault under the name that fits what the history needs to show it."""
    if fault.kind not in STATEFUL or fault.position > len(played.history):
        return fault
    deeds = [action.deed for action in played.actions[: len(played.history)]]
    kind: Kind = "order"
    for deed, name in _NAMES.items():
        if deed in deeds:
            kind = name
            break
    return replace(fault, kind=kind)


# What a step that raises does; so does one whose undo is refused.
_REFUSING: Final = frozenset[Deed]({"failing", "refused"})

# In a history from which nothing can be taken away every operation is to blame; the
# rarest deed among its operations names the fault.
_NAMES: Final[Mapping[Deed, Kind]] = {
    "failing": "wedged",
    "refused": "wedged",
    "use": "use",
    "look": "cold",
}
