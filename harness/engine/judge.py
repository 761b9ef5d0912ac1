"""Plays one history on a fresh system, and tells whether what happened is wrong.

A replay compares nothing with other histories; it is the raw material from which the
determinism check, the shrinker and a person judge.  The judge compares its end with the
canonical history of the same state (`reference.py`; ascending adds where there is
none), replayed once and remembered.  So the verdict on a history depends on the history
alone, not on what was played before in the exploration; and only the end of a history
is judged, as what goes wrong earlier fails a prefix.

Rules:
- a look is played where the history has one, and one more at the end, always.  With
  `watch` there is a look after every operation; that may hide a fault of the cold kind;
- operations that make no sense where the system stands are told as skipped;
- the judge stops by operations played, so that what it finds is the same on every
  machine; the limit in seconds is only a guard against systems that are very slow;
- faults of one family (see `STATEFUL`) stand for each other, because which of their
  names fits is known only when the history is short.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Final, Literal, TypeAlias

from harness.engine.protocol import (
    History,
    Key,
    Operations,
    Ordering,
    State,
    System,
    operations_of,
    ordering_of,
    state_of,
)
from harness.engine.result import Kind
from harness.engine.runner import Broken, Ledger, Runner

Deed: TypeAlias = Literal[
    "add", "remove", "failing", "refused", "again", "skipped", "use", "look", "collect"
]


@dataclass(frozen=True, slots=True)
class Action:
    """One operation played: what it did, the active steps after it, what came back.

    `value` holds the fields of a failing step or a refused undo, a use's answer or a
    look's observation; else it is None.  `fingerprint` is the state of a settled
    system, where there is one.
    """

    operation: int
    deed: Deed
    state: State
    value: Hashable
    fingerprint: Hashable | None


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong within the history alone, after `position` operations.

    It is `hidden` if expected and found are states, and `looked` if it is not what the
    last operation gave that differs, but what is there at the end.
    """

    kind: Kind
    state: State
    expected: Hashable
    found: Hashable
    position: int
    hidden: bool = False
    looked: bool = False


@dataclass(frozen=True, slots=True)
class Replay:
    """What happened; `actions` ends with the final look unless an undo raised.

    `fresh` is the state of the fresh system, where it is settled and shows it.
    """

    history: History
    actions: tuple[Action, ...]
    faults: tuple[Fault, ...]
    fresh: Hashable | None = None

    @property
    def unlooked(self) -> Hashable | None:
        """The state after the history, before the final look."""
        if not self.history:
            return self.fresh
        return self.actions[-2].fingerprint if len(self.actions) > 1 else None

    @property
    def state(self) -> State:
        """The active steps at the end."""
        return self.actions[-1].state if self.actions else ()


def replay(
    system: System,
    history: Sequence[int],
    *,
    order_dependent: bool = False,
    watch: bool = False,
) -> Replay:
    """Play the history from a fresh system.

    Raises `CannotReplay` for a history of another system.
    """
    operations = operations_of(system)
    history = tuple(history)
    operations.check(history)
    faults: list[Fault] = []

    def report(
        kind: Kind, key: Key, expected: Hashable, found: Hashable, hidden: bool
    ) -> None:
        at = len(actions) + 1
        faults.append(Fault(kind, state_of(key), expected, found, at, hidden))

    ordering = ordering_of(system, order_dependent=order_dependent)
    runner = Runner(system, operations, Ledger(), report, ordering=ordering)
    played: list[int] = []
    for operation in history:
        played += (operation, operations.look) if watch else (operation,)
    if not watch or not history:
        played.append(operations.look)
    actions: list[Action] = []
    runner.reset()
    fresh = runner.state() if runner.printed else None
    try:
        for operation in played:
            before = runner.mask
            sensible = runner.sensible(operation)
            value = runner.play(operation)
            actions.append(
                Action(
                    operation,
                    _deed(operations, operation, before, runner.mask, value)
                    if sensible
                    else "skipped",
                    state_of(runner.key),
                    value,
                    runner.state() if runner.printed else None,
                )
            )
    except Broken:
        pass
    runner.drop()
    return Replay(history, tuple(actions), tuple(faults), fresh)


def portrait(
    system: System, history: Sequence[int], *, order_dependent: bool
) -> object:
    """What the system looks like inside after a history, seen by nobody else.

    None where the system has no portrait.
    """
    runner = _runner(system, order_dependent=order_dependent)
    try:
        for operation in history:
            runner.play(operation)
        return system.portrait(runner.handles)
    except Broken:
        return None
    finally:
        runner.drop()


def arrival(
    system: System, history: Sequence[int], *, order_dependent: bool
) -> tuple[Hashable | None, Hashable, Hashable | None]:
    """The state before the last operation, what that gave, and the state after it.

    Raises `Broken` where an undo raises that must not.
    """
    runner = _runner(system, order_dependent=order_dependent)
    try:
        for operation in history[:-1]:
            runner.play(operation)
        before = runner.state()
        value = runner.play(history[-1])
        return before, value, runner.state()
    finally:
        runner.drop()


def let_go(system: System, history: History, *, order_dependent: bool) -> None:
    """Play a history, and let go of the system there, without a look at it."""
    runner = _runner(system, order_dependent=order_dependent)
    try:
        for operation in history:
            runner.play(operation)
    except Broken:
        pass
    finally:
        runner.drop()


def _runner(system: System, *, order_dependent: bool) -> Runner:
    """Who plays on a fresh system, and judges nothing."""
    operations = operations_of(system)
    ordering = ordering_of(system, order_dependent=order_dependent)
    runner = Runner(system, operations, Ledger(), _ignored, ordering=ordering)
    runner.watching = False
    runner.reset()
    return runner


def _ignored(
    kind: Kind, key: Key, expected: Hashable, found: Hashable, hidden: bool
) -> None:
    """Nothing is judged here."""


def _deed(
    operations: Operations, operation: int, before: int, after: int, value: Hashable
) -> Deed:
    if operation == operations.look:
        return "look"
    if operation == operations.collect:
        return "collect"
    if operation >= operations.steps:
        return "use"
    if before != after:
        return "remove" if before >> operation & 1 else "add"
    if not before >> operation & 1:
        return "failing"
    if value is None:
        return "again"
    return "failing" if operation in operations.relations.again else "refused"


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
