"""Garbage of older objects is found in the warm-up, not at the end of a search."""

import weakref
from collections.abc import Callable
from typing import Any

import pytest

from everyorder.harness import Scenario, explore, steps
from everyorder.harness.base.errors import ExplorationRestart
from everyorder.harness.engine import warm_up
from everyorder.harness.systems.garbage import GarbageCollector


class Member:
    """A member of a cycle."""

    def __init__(self) -> None:
        self.own = self


class Watching:
    """Replaces an object that is older than the exploration, and is in a cycle."""

    older = Member()

    def __init__(self) -> None:
        self.items: dict[str, Member] = {}
        self.seen = weakref.WeakSet[Member]()

    def add(self, name: str) -> Callable[[], object]:
        self.items[name] = Member()
        self.seen.add(self.items[name])
        type(self).older = Member()
        return lambda: self.items.pop(name)


def scenario() -> Scenario:
    return Scenario(
        *steps("add", "ab", Watching.add),
        create=Watching,
        observe=lambda registry: " ".join(sorted(registry.items)),
    )


def test_older_garbage_begins_the_warm_up_anew_and_not_the_exploration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A search through the models of Django was thrown away after half of the time."""
    places: list[str] = []
    played = warm_up.warm_up

    def noted(*arguments: Any) -> None:
        places.append("begins")
        played(*arguments)
        places.append("ends")

    made = ExplorationRestart.__init__

    def restarts(error: ExplorationRestart, **fields: Any) -> None:
        places.append(fields["code"])
        made(error, **fields)

    monkeypatch.setattr(warm_up, "warm_up", noted)
    monkeypatch.setattr(ExplorationRestart, "__init__", restarts)
    explore(scenario())
    assert "OlderGarbage" in places[: places.index("ends")], places
    assert "OlderGarbage" not in places[places.index("ends") :], places


def test_checks_of_the_warm_up_take_the_place_of_no_later_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[dict[Any, int]] = []
    played = warm_up.warm_up

    def noted(session: Any) -> None:
        played(session)
        counted.append(dict(session.system._complete.collector.checks))

    monkeypatch.setattr(warm_up, "warm_up", noted)
    checked: list[bool] = []
    check = GarbageCollector.check

    def checking(collector: GarbageCollector) -> bool:
        checked.append(bool(collector._collected))
        return check(collector)

    monkeypatch.setattr(GarbageCollector, "check", checking)

    class Quiet(Watching):
        def add(self, name: str) -> Callable[[], object]:
            self.items[name] = Member()
            self.seen.add(self.items[name])
            return lambda: self.items.pop(name)

    explore(
        Scenario(
            *steps("add", "ab", Quiet.add),
            create=Quiet,
            observe=lambda registry: " ".join(sorted(registry.items)),
        )
    )
    assert counted[0] == {}
    assert any(checked)
