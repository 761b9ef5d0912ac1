"""What is called by chance, by a clock or into hidden places is seen wherever it is."""

import colorsys
import gc
import linecache
import os
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from everyorder.harness import Scenario, explore, step, steps, use
from everyorder.harness.report.verdict import Report
from everyorder.harness.state.untracked_writes import Snapshot
from everyorder.harness.systems.registry import RegistrySystem
from tests.forking import needs_fork


class Registry:
    """Sound, as far as its own code goes."""

    def __init__(self) -> None:
        self.held: dict[str, int] = {}

    def add(self, name: str) -> Callable[[], object]:
        self.held[name] = 1
        return lambda: self.held.pop(name)

    def names(self) -> str:
        return " ".join(sorted(self.held))


class Chance(Registry):
    """Only with something registered it asks chance."""

    def names(self) -> str:
        return " ".join(sorted(filter(self.alive, self.held)))

    def alive(self, _: str) -> bool:
        return os.urandom(8) != b"at last."


LOG: ContextVar[list[str]] = ContextVar("log", default=[])  # noqa: B039  # the fault


class Pool(Registry):
    """Remembers everybody in the default of a context variable, and fills up."""

    def __init__(self) -> None:
        super().__init__()
        LOG.get().clear()

    def add(self, name: str) -> Callable[[], object]:
        LOG.get().append(name)
        if len(LOG.get()) > 100_000:
            raise RuntimeError("full")
        return super().add(name)


def explored(kind: type[Registry], **others: Any) -> Report:
    return explore(
        Scenario(
            *steps("add", "ab", lambda registry, name: registry.add(name)),
            uses=[use("names", lambda registry: registry.names())],
            create=kind,
            observe=lambda registry: " ".join(sorted(registry.held)),
            **others,
        )
    )


def test_a_clean_registry_is_proven() -> None:
    report = explored(Registry)
    assert (report.verdict, report.assumes) == ("proven", ())


def test_what_a_use_calls_when_something_is_active() -> None:
    report = explored(Chance)
    assert report.verdict == "holds"
    assert "calls os.urandom, which answers by chance" in report.bounds


def test_what_the_check_calls() -> None:
    report = explored(Registry, check=lambda _: [] if os.urandom(1) else ["never"])
    assert report.verdict == "holds"
    assert "calls os.urandom, which answers by chance" in report.bounds


def test_the_default_of_a_context_variable_is_state() -> None:
    report = explored(Pool)
    assert report.verdict == "holds"
    assert any(
        "the states did not close" in text for text in report.exploration.skipped
    )


def test_the_loop_of_a_coroutine_is_no_call_of_an_operation() -> None:
    async def add(registry: Registry, name: str) -> Callable[[], object]:
        return registry.add(name)

    report = explore(
        Scenario(
            *steps("add", "ab", add),
            uses=[use("names", lambda registry: registry.names())],
            create=Registry,
            observe=lambda registry: registry.names(),
        )
    )
    assert (report.verdict, report.exploration.caveats) == ("proven", ())


def test_a_tool_that_operations_name_is_looked_at() -> None:
    """`linecache` keeps lines of files; who writes there keeps a state in it."""

    def add(registry: Registry) -> Callable[[], object]:
        linecache.cache["<planted>"] = (1, None, ["a"], "<planted>")
        return registry.add("a")

    try:
        report = explore(
            Scenario(
                step("add", add),
                step("other", lambda registry: registry.add("b")),
                uses=[use("held", lambda registry: len(registry.held))],
                create=Registry,
                observe=lambda registry: " ".join(sorted(registry.held)),
            )
        )
    finally:
        linecache.cache.pop("<planted>", None)
    told = [each.text for each in report.exploration.caveats]
    assert told
    assert all(text.startswith("linecache.cache") for text in told)
    assert report.verdict == "holds"


def test_what_was_seen_outside_is_let_go() -> None:
    """It is as large as all that is loaded, and an exploration is full of circles."""
    gc.collect()
    gc.disable()
    try:
        assert explored(Registry).verdict == "proven"
        kept = sum(type(each) is Snapshot for each in gc.get_objects())
    finally:
        gc.enable()
    assert kept == 0


class Plugin:
    """Refers to itself, so that only the collector ends it."""

    def __init__(self) -> None:
        self.me = self


PLUGINS = weakref.WeakSet[Plugin]()
_first: list[Plugin] = []


@needs_fork
def test_what_was_there_before_may_become_garbage() -> None:
    _first.append(Plugin())
    PLUGINS.update(_first)

    def drop(registry: Registry) -> None:
        _first.clear()
        registry.held["dropped"] = 1

    scenario = Scenario(
        step("drop", drop, undo=None),
        uses=[use("count", lambda _: len(PLUGINS))],
        create=Registry,
        observe=lambda registry: " ".join(sorted(registry.held)),
        isolation="fork",
    )
    assert explore(scenario, "graph").verdict == "order"


def test_garbage_of_before_is_no_state() -> None:
    """The first registry was seen beside a class that a collection took away later."""
    explored(Registry)
    type("Gone", (Registry,), {})
    assert explored(Registry).verdict == "proven"


COUNTED = "counted"  # in `colorsys`, which nobody follows


class Elsewhere(Registry):
    """Counts in a table of another package, which the next look-up empties."""

    def __init__(self) -> None:
        super().__init__()
        vars(colorsys).setdefault(COUNTED, {}).clear()

    def add(self, name: str) -> Callable[[], object]:
        counted = vars(colorsys)[COUNTED]
        counted[name] = min(counted.get(name, 0) + 1, 5)
        return super().add(name)

    def find(self, name: str) -> str:
        often = vars(colorsys)[COUNTED].pop(name, 0) == 5
        return "too often" if often else str(name in self.held)


def test_it_is_looked_outside_before_a_use_takes_it_back() -> None:
    Elsewhere()
    system = RegistrySystem(
        Scenario(
            step("add", lambda registry: registry.add("a")),
            uses=[use("find", lambda registry: registry.find("a"))],
            create=Elsewhere,
        )
    )
    system.reset()
    system.do(0)
    assert system.use(0) == "True"
    text = "colorsys.counted changed outside of the followed state; name it in watch="
    assert text in [each.text for each in system.caveats()]
    del vars(colorsys)[COUNTED]


class Renamed:
    """Its own name tells how often something was added."""


class Renaming(Registry):
    def __init__(self) -> None:
        super().__init__()
        Renamed.__name__ = "Renamed"

    def add(self, name: str) -> Callable[[], object]:
        if len(Renamed.__name__) < 10:
            Renamed.__name__ += "!"
        return super().add(name)

    def names(self) -> str:
        told = "too often" if len(Renamed.__name__) == 10 else super().names()
        Renamed.__name__ = "Renamed"
        return told


def test_the_name_of_a_class_is_state() -> None:
    assert explored(Renaming).verdict == "order"


def test_a_step_that_needs_another_is_looked_after_as_well() -> None:
    Elsewhere()
    system = RegistrySystem(
        Scenario(
            step("first", lambda registry: Registry.add(registry, "b")),
            step("second", lambda registry: Registry.add(registry, "c")),
            step(
                "add", lambda registry: registry.add("a"), requires=("first", "second")
            ),
            uses=[use("find", lambda registry: registry.find("a"))],
            create=Elsewhere,
        )
    )
    system.reset()
    for each in range(3):
        system.do(each)
    assert system.use(0) == "True"
    text = "colorsys.counted changed outside of the followed state; name it in watch="
    assert text in [each.text for each in system.caveats()]
    del vars(colorsys)[COUNTED]
