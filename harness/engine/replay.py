"""Plays one history on a fresh system and tells what happened at each operation.

True only here: nothing is compared with a reference of other histories; a replay is the
raw material from which the determinism check, the shrinker and a person judge.

Rules: a look is played where the history has one, and one more at the end, always.
With `watch` there is a look after every operation; that may hide a fault of the cold
kind. Operations that make no sense where the system stands are told as skipped.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.engine.ledger import Ledger
from harness.engine.operations import (
    Operations,
    operations_of,
    ordering_of,
    state_of,
)
from harness.engine.protocol import History, State, System
from harness.engine.result import Kind
from harness.engine.runner import Broken, Runner

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

    Raises `UnknownOperation` for a history of another system.
    """
    operations = operations_of(system)
    history = tuple(history)
    operations.check(history)
    faults: list[Fault] = []

    def report(kind: Kind, expected: Hashable, found: Hashable, hidden: bool) -> None:
        at, state = len(actions) + 1, state_of(runner.key)
        faults.append(Fault(kind, state, expected, found, at, hidden))

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


def _ignored(kind: Kind, expected: Hashable, found: Hashable, hidden: bool) -> None:
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
