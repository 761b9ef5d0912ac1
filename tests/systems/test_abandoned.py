"""What a system leaves behind ends in that system's context, and prints nothing."""

import gc
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from everyorder.harness.exploration.explore_scenario import explore
from everyorder.harness.scenario import Scenario, step, use
from everyorder.harness.systems.registry import RegistrySystem

DEPTH: ContextVar[int] = ContextVar("depth", default=0)
ENDED: list[str] = []


class Owner:
    """A registry whose end sets a context variable and fails."""

    def __init__(self) -> None:
        self.itself: object = None

    def __del__(self) -> None:
        leave()


def leave() -> None:
    ENDED.append("left")
    DEPTH.set(DEPTH.get() + 1)
    raise RuntimeError("this is not left in its turn")


def entered(_: object) -> Iterator[None]:
    try:
        yield
    finally:
        leave()


def handle_dropped(system: RegistrySystem) -> None:
    handles: list[object] = [system.do(0)]
    system.drop(handles)
    assert handles == [None]


def registry_dropped(system: RegistrySystem) -> None:
    system.reset()


def registry_in_a_cycle_dropped(system: RegistrySystem) -> None:
    system.use(0)
    gc.disable()
    try:
        system.reset()
    finally:
        gc.enable()


def tied(owner: Owner) -> int:
    owner.itself = owner
    return 0


def started(create: Callable[[], Any]) -> RegistrySystem:
    system = RegistrySystem(
        Scenario(step("enter", entered), uses=[use("tie", tied)], create=create)
    )
    system.reset()
    return system


@pytest.mark.parametrize(
    ("create", "drop"),
    [
        (list, handle_dropped),
        (Owner, registry_dropped),
        (Owner, registry_in_a_cycle_dropped),
    ],
)
def test_finalizers_run_in_the_context_of_their_system_and_print_nothing(
    create: Callable[[], Any],
    drop: Callable[[RegistrySystem], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    printed: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", printed.append)
    system = started(create)
    ENDED.clear()
    drop(system)
    assert ENDED == ["left"]
    assert DEPTH.get() == 0
    assert printed == []
    system.close()


class Blocks:
    """Counts the open blocks in a context variable."""

    def __init__(self) -> None:
        self.open: ContextVar[int] = ContextVar("open", default=0)

    def count(self) -> int:
        return self.open.get()


def block(blocks: Blocks) -> Iterator[None]:
    blocks.open.set(blocks.open.get() + 1)
    try:
        yield
    finally:
        blocks.open.set(blocks.open.get() - 1)


def test_blocks_that_are_left_when_they_are_abandoned_are_proven() -> None:
    """The count of an abandoned block changed in the context of the explorer."""
    report = explore(
        Scenario(
            step("block", block),
            step("another block", block),
            uses=[use("count", Blocks.count)],
            create=Blocks,
            observe=lambda blocks: f"{blocks.count()} open",
        )
    )
    assert (report.verdict, report.bounds) == ("proven", ())
