"""Registries of many steps, or with a cache, are proven with the default budget."""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from everyorder.harness import Scenario, explore, step, use


class Words:
    """A registry by name."""

    def __init__(self) -> None:
        self.words: dict[str, int] = {}

    def add(self, name: str) -> Callable[[], object]:
        self.words[name] = len(name)
        return partial(self.words.pop, name)

    def find(self, name: str) -> int | None:
        return self.words.get(name)

    def names(self) -> str:
        return " ".join(sorted(self.words))


class Bus:
    """Handlers by topic; what was looked up is remembered until the topic changes."""

    def __init__(self) -> None:
        self.handlers: dict[str, set[str]] = {topic: set() for topic in "xyz"}
        self.remembered: dict[str, tuple[str, ...]] = {}

    def add(self, name: str) -> Callable[[], object]:
        self.handlers[name[0]].add(name)
        self.remembered.pop(name[0], None)
        return partial(self.remove, name)

    def remove(self, name: str) -> None:
        self.handlers[name[0]].remove(name)
        self.remembered.pop(name[0], None)

    def find(self, topic: str) -> tuple[str, ...]:
        if topic not in self.remembered:
            self.remembered[topic] = tuple(sorted(self.handlers[topic]))
        return self.remembered[topic]

    def names(self) -> str:
        return " ".join(map(str, map(sorted, self.handlers.values())))


class Ordered(Words):
    """The same in a mapping that knows its order, which no answer shows."""

    def __init__(self) -> None:
        super().__init__()
        self.words = OrderedDict()


def scenario(create: Callable[[], Any], names: list[str], finds: str) -> Scenario:
    return Scenario(
        *(step(f"add {name}", partial(_add, name)) for name in names),
        uses=[use(f"find {name}", partial(_find, name)) for name in finds],
        create=create,
        observe=lambda registry: registry.names(),
        name="many states",
    )


def _add(name: str, registry: Any) -> Any:
    return registry.add(name)


def _find(name: str, registry: Any) -> Any:
    return registry.find(name)


@pytest.mark.nightly
def test_ten_plugins_with_three_look_ups_are_proven() -> None:
    report = explore(scenario(Words, [*"abcdefghij"], "abc"))
    assert report.verdict == "proven"
    assert report.exploration.closure is not None
    assert report.exploration.closure.states == 1024


@pytest.mark.nightly
def test_a_bus_with_a_cache_of_three_topics_is_proven() -> None:
    names = [f"{topic}{number}" for topic in "xyz" for number in range(2)]
    assert explore(scenario(Bus, names, "xyz")).verdict == "proven"


def test_the_order_of_an_ordered_dict_is_named_like_that_of_a_dict() -> None:
    assumed = []
    for create in (Words, Ordered):
        report = explore(scenario(create, [*"abcdef"], "a"))
        assert report.verdict == "proven"
        assert report.exploration.closure is not None
        assert report.exploration.closure.states == 64
        assumed.append([each for each in report.assumes if "order of" in each])
    assert assumed[0] == assumed[1] == ["the order of registry.words is never read"]
