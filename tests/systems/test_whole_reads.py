"""The state of a registry is read whole a few times, and then only what changes."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from everyorder.harness.exploration.explore_scenario import explore
from everyorder.harness.scenario import Scenario, steps, use
from everyorder.harness.state.heap import Heap
from everyorder.harness.systems.registry import RegistrySystem


class Registry:
    def __init__(self) -> None:
        self.items: dict[str, str] = {}

    def add(self, name: str) -> Callable[[], object]:
        self.items[name] = name.upper()
        return lambda: self.items.pop(name)


def loading() -> type[Registry]:
    """Return a class of which the first registration in a process fills a table."""

    class Loading(Registry):
        loaded: dict[str, bool] = {}  # noqa: RUF012  # it belongs to the class

        def add(self, name: str) -> Callable[[], object]:
            self.loaded.setdefault("plugins", True)
            return super().add(name)

    return Loading


def scenario(kind: type[Registry], names: str) -> Scenario:
    return Scenario(
        *steps("add", names, kind.add),
        uses=[use("names", lambda registry: len(registry.items))],
        create=kind,
        observe=lambda registry: " ".join(sorted(registry.items)),
    )


class Reads:
    """Counts of whole walks, of forms and of fresh systems, at any moment."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now: Counter[str] = Counter()
        self.before_operations: Counter[str] | None = None
        for owner, name in (
            (Heap, "_walk"),
            (Heap, "form"),
            (RegistrySystem, "reset"),
            (RegistrySystem, "do"),
            (RegistrySystem, "use"),
        ):
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__

        def counted(*arguments: Any, **more: Any) -> Any:
            if name in ("do", "use") and self.before_operations is None:
                self.before_operations = self.now.copy()
            self.now[name] += 1
            return function(*arguments, **more)

        return counted


@pytest.mark.parametrize("make", [lambda: Registry, loading], ids=["plain", "lazy"])
@pytest.mark.parametrize("names", ["a", "abcdef"])
def test_few_systems_are_read_whole_before_the_first_operation(
    make: Callable[[], type[Registry]], names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """15 to 21 fresh systems were read whole before the first operation."""
    reads = Reads(monkeypatch)
    explore(scenario(make(), names), "histories:1")
    before = reads.before_operations
    assert before is not None
    # The first form, twice the limits of the state, the fixed part, and a portrait.
    assert 0 < before["_walk"] <= 5
    assert before["reset"] <= 4


@pytest.mark.parametrize("names", ["a", "abc"])
def test_whole_reads_do_not_grow_with_the_operations(
    names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = Reads(monkeypatch)
    explore(scenario(Registry, names))
    assert reads.now["form"] > 1000
    assert reads.now["_walk"] <= 8
