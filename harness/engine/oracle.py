"""Plays one history on a fresh system, and judges whether its result is a fault.

A replay compares nothing with other histories; it is the raw material for the
determinism check, the shrinker and a person.  The judge compares its end with the
canonical history of the same state (`reference.py`; ascending adds if there is none),
which is replayed once and cached.  So the verdict on a history depends on the history
alone, not on the operations played before in the exploration.  Only the end of a
history is judged, because an earlier fault fails a prefix.

Rules:
- a look is played where the history has one, and always one more at the end.  With
  `watch` there is a look after every operation; that may hide a fault of kind `cold`;
- operations that make no sense at the current state are reported as skipped;
- the judge is limited by a count of operations, so that its results are the same on
  every machine; the limit in seconds only guards against very slow systems;
- faults of one family (see `STATEFUL`) are interchangeable, because only a short
  history shows which of their names fits.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Final, Literal, TypeAlias

from everyorder.harness.engine.player import Broken, Player
from everyorder.harness.engine.protocol import (
    History,
    Key,
    Operations,
    Ordering,
    State,
    StateForm,
    System,
    operations_of,
    ordering_of,
    state_of,
)
from everyorder.harness.engine.record import ObservationRecord
from everyorder.harness.engine.result import Kind

OperationKind: TypeAlias = Literal[
    "add",
    "remove",
    "failing",
    "refused",
    "repeat",
    "skipped",
    "use",
    "end",
    "look",
    "collect",
]
"""The kind of an operation at the place where it was played.

A step that raises is `failing`, an undo that raises is `refused`; an active step that
is done again is a `repeat`; a use that ended steps is an `end`; an operation that made
no sense there is `skipped`.
"""


@dataclass(frozen=True, slots=True)
class Action:
    """One played operation: its kind, the active steps after it, and its result.

    `value` holds the fields of a failing step or a refused undo, the answer of a use or
    the observation of a look; else it is None.  `fingerprint` is the state of a settled
    system, if it shows one.
    """

    operation: int
    kind: OperationKind
    state: State
    value: Hashable
    fingerprint: Hashable | None


@dataclass(frozen=True, slots=True)
class HistoryFault:
    """A fault of the history alone, after `position` operations.

    It is `hidden` if expected and found are states, and `at_end` if the system after
    the last operation differs, not the result of that operation.
    """

    kind: Kind
    state: State
    expected: Hashable
    found: Hashable
    position: int
    hidden: bool = False
    at_end: bool = False


@dataclass(frozen=True, slots=True)
class Replay:
    """The record of a replay; `actions` ends with the final look unless an undo raised.

    `fresh` is the state of the fresh system, if it is settled and shows its state.
    """

    history: History
    actions: tuple[Action, ...]
    faults: tuple[HistoryFault, ...]
    fresh: Hashable | None = None

    @property
    def before_look(self) -> Hashable | None:
        """Return the state after the history, before the final look."""
        if not self.history:
            return self.fresh
        return self.actions[-2].fingerprint if len(self.actions) > 1 else None

    @property
    def state(self) -> State:
        """Return the active steps at the end."""
        return self.actions[-1].state if self.actions else ()


def replay(
    system: System,
    history: Sequence[int],
    *,
    order_dependent: bool = False,
    watch: bool = False,
) -> Replay:
    """Play the history from a fresh system.

    Raises:
        CannotReplay: the history has an operation that the system does not have.
    """
    operations = operations_of(system)
    history = tuple(history)
    operations.check(history)
    faults: list[HistoryFault] = []

    def report(
        kind: Kind, key: Key, expected: Hashable, actual: Hashable, hidden: bool
    ) -> None:
        at = len(actions) + 1
        faults.append(HistoryFault(kind, state_of(key), expected, actual, at, hidden))

    ordering = ordering_of(system, order_dependent=order_dependent)
    player = Player(system, operations, ObservationRecord(), report, ordering=ordering)
    played: list[int] = []
    for operation in history:
        played += (operation, operations.look) if watch else (operation,)
    if not watch or not history:
        played.append(operations.look)
    actions: list[Action] = []
    player.reset()
    fresh = player.state() if player.printed else None
    try:
        for operation in played:
            before = player.mask
            sensible = player.sensible(operation)
            value = player.play(operation)
            actions.append(
                Action(
                    operation,
                    _kind_of(operations, operation, before, player.mask, value)
                    if sensible
                    else "skipped",
                    state_of(player.key),
                    value,
                    player.state() if player.printed else None,
                )
            )
    except Broken:
        pass
    player.drop()
    return Replay(history, tuple(actions), tuple(faults), fresh)


def portrait(
    system: System, history: Sequence[int], *, order_dependent: bool
) -> object:
    """Return the internal state after playing `history` on a fresh system.

    None if the system has no portrait.
    """
    player = silent_player(system, order_dependent=order_dependent)
    try:
        for operation in history:
            player.play(operation)
        return system.portrait(player.handles)
    except Broken:
        return None
    finally:
        player.drop()


def arrival(
    system: System, history: Sequence[int], *, order_dependent: bool
) -> tuple[Hashable | None, Hashable, Hashable | None]:
    """Return the state before the last operation, its result, and the state after it.

    Raises:
        Broken: an undo raises that must not raise.
    """
    player = silent_player(system, order_dependent=order_dependent)
    try:
        for operation in history[:-1]:
            player.play(operation)
        before = player.state()
        value = player.play(history[-1])
        return before, value, player.state()
    finally:
        player.drop()


def abandon(system: System, history: History, *, order_dependent: bool) -> None:
    """Play a history and drop the system, without a look at it."""
    player = silent_player(system, order_dependent=order_dependent)
    try:
        for operation in history:
            player.play(operation)
    except Broken:
        pass
    finally:
        player.drop()


def silent_player(system: System, *, order_dependent: bool) -> Player:
    """Return a player on a fresh system that reports nothing."""
    operations = operations_of(system)
    ordering = ordering_of(system, order_dependent=order_dependent)
    player = Player(system, operations, ObservationRecord(), _ignore, ordering=ordering)
    player.watching = False
    player.reset()
    return player


def _ignore(
    kind: Kind, key: Key, expected: Hashable, actual: Hashable, hidden: bool
) -> None:
    """Drop a report."""


def _kind_of(
    operations: Operations, operation: int, before: int, after: int, value: Hashable
) -> OperationKind:
    if operation == operations.look:
        return "look"
    if operation == operations.collect:
        return "collect"
    if operation >= operations.steps:
        return "use" if before == after else "end"
    if (before ^ after) >> operation & 1:
        return "remove" if before >> operation & 1 else "add"
    if not before >> operation & 1:
        return "failing"
    if value is None:
        return "repeat"
    return "failing" if operation in operations.relations.again else "refused"


# Kinds that mean: the observation depends on more than the active steps.
STATEFUL: Final = frozenset[Kind]({"order", "cold", "use", "wedged", "hidden"})

# Kinds of faults that a single history can show.
EVERY: Final = STATEFUL | frozenset[Kind]({"law", "error", "undo", "leak"})

# Operations for shrinking one violation: two seconds at 30 microseconds an operation.
MOST_OPERATIONS = 60_000


# Reading a complete state takes as long as some ten operations.
STATE_COST = 10

# A guard for systems that take a millisecond an operation: the limit for one history.
MOST_SECONDS = 20.0


class OperationsExhausted(Exception):
    """The judge has spent its allowance of operations."""


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
        self._histories = canonical
        self.ordering = ordering
        self._proving = proving
        self._operations = operations_of(system)
        self.look = self._operations.look
        self._references: dict[History, Replay] = {}
        self.left = operations
        self._ends = monotonic() + MOST_SECONDS

    def new_judge(self) -> "Judge":
        """Return a judge of the same system with an empty cache of replays."""
        return Judge(
            self.system,
            self._histories,
            ordering=self.ordering,
            proving=self._proving,
        )

    def extend(self, length: int) -> None:
        """Allow the replay of one more history and of its references."""
        self.left = max(self.left, 0) + 4 * length + 16
        self._ends = max(self._ends, monotonic() + 1.0)

    def canonical(self, state: State) -> History:
        """Return the canonical history of a state, or its steps one by one."""
        history = self._histories.get(self.ordering.key(state))
        return self._operations.history_to(state) if history is None else history

    def replay(self, history: History) -> Replay:
        """Replay a history.

        Raises:
            OperationsExhausted: the allowance is spent.
        """
        if self.left < len(history) or monotonic() > self._ends:
            raise OperationsExhausted
        self.left -= len(history) + 1
        return replay(self.system, history, order_dependent=self.ordering.total)

    def fault(self, history: History, kind: Kind | None) -> HistoryFault | None:
        """Return the fault at the end of the history, in the family of `kind`."""
        return self.inspect(history, self.replay(history), kind)

    def form(self, history: History) -> Hashable | None:
        """Return the complete state after a history; None if it has none.

        Raises:
            OperationsExhausted: the allowance is spent.
        """
        if self.left < len(history) or monotonic() > self._ends:
            raise OperationsExhausted
        self.left -= len(history) + STATE_COST
        order_dependent = self.ordering.total
        player = silent_player(self.system, order_dependent=order_dependent)
        try:
            for operation in history:
                player.play(operation)
            state = player.state()
        except Broken:
            return None
        finally:
            player.drop()
        return state.exact if isinstance(state, StateForm) else state

    def inspect(
        self, history: History, played: Replay, kind: Kind | None
    ) -> HistoryFault | None:
        """Return the fault of a history that was replayed already, as `fault` does."""
        family = EVERY if kind is None else frozenset({kind})
        if kind in STATEFUL:
            family = STATEFUL
        for fault in played.faults:
            if fault.kind in family:
                return _with_precise_kind(fault, played)
        if len(played.actions) > len(history):
            contradiction = self._contradiction(history, played, family)
            if contradiction is not None:
                return _with_precise_kind(contradiction, played)
        return None

    def differs(self, one: Action, other: Action) -> bool:
        """Return True if two looks at the same state show different things."""
        if one.state != other.state:
            return False
        return one.value != other.value or (
            self._proving and one.fingerprint != other.fingerprint
        )

    def _contradiction(
        self, history: History, played: Replay, family: frozenset[Kind]
    ) -> HistoryFault | None:
        at = len(history)
        final = played.actions[at]
        if history:
            before = played.actions[at - 2].state if at > 1 else ()
            last = played.actions[at - 1]
            other = self._reference((*self.canonical(before), history[-1]), at=-2)
            if last.kind in _ANSWERING and "use" in family:
                ends = history[-1] in self._operations.relations.ends
                same_place = self._reaches(before) if ends else other.state == before
                same_place = same_place and other.kind in _ANSWERING
                if same_place and other.value != last.value:
                    return HistoryFault("use", before, other.value, last.value, at)
            elif "error" in family and _RAISING & {last.kind, other.kind}:
                differs = (other.kind, other.value) != (last.kind, last.value)
                if self._reaches(before) and differs:
                    return HistoryFault("error", before, other.value, last.value, at)
        if "order" in family:
            other = self._reference(self.canonical(final.state), at=-1)
            # A visible difference says more than a fingerprint, so it has priority.
            if final.state == other.state and final.value != other.value:
                return HistoryFault(
                    *("order", final.state, other.value, final.value, at), at_end=True
                )
            hidden = self._hidden(played, final, other)
            if hidden is not None:
                return hidden
            if self.differs(other, final):
                expected, actual = other.fingerprint, final.fingerprint
                return HistoryFault(
                    *("order", final.state, expected, actual, at, True), at_end=True
                )
        return None

    def _hidden(
        self, played: Replay, final: Action, other: Action
    ) -> HistoryFault | None:
        """Return a fault of complete states that the final look removes or causes."""
        if not self._proving or final.state != other.state:
            return None
        at, state = len(played.history), final.state
        expected = self._references[self.canonical(state)].before_look
        if played.before_look != expected:
            return HistoryFault(
                *("order", state, expected, played.before_look, at, True), at_end=True
            )
        if final.fingerprint != expected:
            return HistoryFault(
                *("cold", state, expected, final.fingerprint, at + 1, True), at_end=True
            )
        return None

    def _reaches(self, state: State) -> bool:
        """Return True if the canonical history of a state leads to it."""
        return self._reference(self.canonical(state), at=-1).state == state

    def _reference(self, history: History, at: int) -> Action:
        """Return an action of a reference history, which is replayed once."""
        reference = self._references.get(history)
        if reference is None:
            reference = self._references[history] = self.replay(history)
        actions = reference.actions
        return actions[at] if len(actions) > len(history) else actions[-1]


def _with_precise_kind(fault: HistoryFault, played: Replay) -> HistoryFault:
    """Return the fault with the kind that fits the operations of the history."""
    if fault.kind not in STATEFUL or fault.position > len(played.history):
        return fault
    if fault.kind == "use" and played.actions[fault.position - 1].kind == "end":
        return fault
    kinds = {action.kind for action in played.actions[: len(played.history)]}
    names = (name for kind, name in _NAMES.items() if kind in kinds)
    return replace(fault, kind=next(names, "order"))


# Kinds of operations whose errors are compared.
_RAISING: Final = frozenset[OperationKind]({"failing", "refused"})

# Kinds of operations that have an answer.
_ANSWERING: Final = frozenset[OperationKind]({"use", "end"})

# Every operation of a minimal history is to blame; the rarest kind among its operations
# names the fault.
_NAMES: Final[Mapping[OperationKind, Kind]] = {
    "failing": "wedged",
    "refused": "wedged",
    "use": "use",
    "look": "cold",
}
