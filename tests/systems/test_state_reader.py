"""The complete state of a registry: what belongs to it, and what it leaves open."""

import asyncio
import contextlib
import gc
import sqlite3
import sys
import weakref
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from everyorder.harness.base.errors import (
    ExplorationRestart,
    HarnessError,
    NotAScenario,
)
from everyorder.harness.engine.protocol import Caveat, StateForm
from everyorder.harness.exploration.explore_scenario import explore
from everyorder.harness.scenario import Scenario, Step, step, use
from everyorder.harness.systems.registry import RegistrySystem
from everyorder.harness.systems.state_reader import LearnedState, argument_count
from tests.coded import code


class Names:
    """A registry with a cache and a counter."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.cache: dict[str, int | None] = {}
        self.calls = 0

    def add(self, name: str) -> Any:
        self.calls += 1
        place = self.names[name] = len(self.names)

        def undo() -> None:
            if place >= 0:
                del self.names[name]

        return undo

    def find(self, name: str) -> int | None:
        if name not in self.cache:
            self.cache[name] = self.names.get(name)
        return self.cache[name]


def add(name: str) -> Step:
    return step(f"add({name!r})", lambda to: to.add(name))


def started(*steps: Step, **options: Any) -> RegistrySystem:
    given: dict[str, Any] = {
        "create": Names,
        "observe": lambda of: str(sorted(of.names)),
        "uses": [use("find('a')", lambda of: of.find("a"))],
        **options,
    }
    system = RegistrySystem(Scenario(*(steps or (add("a"), add("b"))), **given))
    system.reset()
    return system


def state(system: RegistrySystem, *handles: object) -> StateForm:
    found = system.state((*handles, None, None)[: system.steps])
    assert isinstance(found, StateForm)
    return found


def portrait(system: RegistrySystem, *handles: object) -> Any:
    return system.portrait((*handles, None, None)[: system.steps])


def test_equal_states_have_equal_forms() -> None:
    system = started(ignore=["registry.calls"])
    fresh = state(system)
    handle = system.do(0)
    active = state(system, handle)
    assert active != fresh
    system.undo(0, handle)
    del handle
    assert state(system) == fresh
    system.reset()
    assert state(system) == fresh
    assert state(system, system.do(0)) == active


def test_paths_are_in_words_of_the_scenario() -> None:
    system = started()
    fresh = portrait(system)
    handle = system.do(0)
    active = portrait(system, handle)
    system.use(0)
    assert system.paths(fresh, active) == (
        "undo of add('a'): <absent> / <function Names.add.<locals>.undo>",
        "registry.calls: 0 / 1",
        "registry.names['a']: <absent> / 0",
    )
    assert system.paths(active, portrait(system, handle)) == (
        "registry.cache['a']: <absent> / 0",
    )


def test_what_an_undo_handle_holds_is_state() -> None:
    """The registry is the same, and its future is not."""
    system = started(ignore=["registry.calls"])
    first = system.do(0)
    alone = state(system, first)
    system.undo(0, first)
    other = system.do(1)
    first = system.do(0)
    before = portrait(system, first, other)
    system.undo(1, other)
    assert state(system, first) != alone
    system.undo(0, first)
    first = system.do(0)
    other = system.do(1)
    assert "undo of add('a').<place>: 1 / 0" in system.paths(
        before, portrait(system, first, other)
    )


def test_handles_are_not_kept() -> None:
    system = started()
    handle = system.do(0)
    before = sys.getrefcount(handle)
    state(system, handle)
    portrait(system, handle)
    assert sys.getrefcount(handle) == before


@contextlib.contextmanager
def counted(to: Names) -> Iterator[None]:
    count = len(to.names)
    to.names["c"] = count
    yield
    del to.names["c"]


def test_of_a_context_manager_its_generator_is_state() -> None:
    system = started(step("counted", counted), add("b"))
    fresh = portrait(system)
    handle = system.do(0)
    found = system.paths(fresh, portrait(system, handle))
    assert found[0] == "undo of counted: <absent> / <generator>"


def test_functions_of_the_scenario_are_state_with_what_they_hold() -> None:
    calls: list[str] = []

    def find(of: Names) -> int | None:
        calls.append("a")
        return of.find("a")

    system = started(uses=[use("find('a')", find)])
    before = portrait(system)
    system.use(0)
    assert system.paths(before, portrait(system)) == (
        "registry.cache['a']: <absent> / None",
        "use find('a').<calls>[0]: <absent> / 'a'",
    )


def test_what_is_watched_is_state() -> None:
    module = ModuleType("tables")
    module.table = {}  # type: ignore[attr-defined]  # a module of its own
    sys.modules["tables"] = module

    def fill(_: object) -> Any:
        table = sys.modules["tables"].table
        table["a"] = 1
        return table.clear

    try:
        for watch in (["tables"], [module], {"tables": module}):
            system = started(step("fill", fill), watch=watch)
            before = portrait(system)
            handle = system.do(0)
            assert "tables.table['a']: <absent> / 1" in system.paths(
                before, portrait(system, handle)
            )
            system.undo(0, handle)
    finally:
        del sys.modules["tables"]


def test_a_module_that_is_watched_by_name_is_imported() -> None:
    sys.modules.pop("this_is_no_module", None)
    with pytest.raises(
        NotAScenario, match="'this_is_no_module' in watch=: there is no"
    ):
        started(watch="this_is_no_module")


def test_what_is_ignored_is_no_state() -> None:
    ignoring = started(ignore=["registry.calls", "*.cache"])
    before = state(ignoring)
    ignoring.undo(0, ignoring.do(0))
    ignoring.use(0)
    assert state(ignoring) == before
    assert (
        Caveat("assumed", "registry.cache, registry.calls is ignored")
        in ignoring.caveats()
    )


def test_the_harness_is_no_state() -> None:
    """Neither what performs steps nor what looks on."""
    system = started()
    assert "harness" not in str(portrait(system).tokens)


def test_tasks_that_are_left_are_state() -> None:
    async def serve(of: Names) -> None:
        while True:
            await asyncio.sleep(3600)
            of.calls += 1

    async def start(of: Names) -> Any:
        return asyncio.get_running_loop().create_task(serve(of)).cancel

    system = started(step("start", start))
    before = portrait(system)
    handle = system.do(0)
    paths = system.paths(before, portrait(system, handle))
    assert "pending task 1: <absent> / <coroutine>" in paths
    serving = f"{test_tasks_that_are_left_are_state.__name__}.<locals>.serve"
    opaque = [each.text for each in system.caveats() if each.kind == "opaque"]
    assert f"a task that is pending when an operation ends ({serving})" in opaque
    assert "callbacks that the event loop has yet to call" in opaque
    system.close()


def test_context_variables_are_state_of_one_system() -> None:
    from contextvars import ContextVar

    chosen: ContextVar[str] = ContextVar("chosen", default="none")

    def choose(_: object) -> Any:
        token = chosen.set("a")
        return lambda: chosen.reset(token)

    system = started(
        step("choose", choose), observe=lambda _: chosen.get(), fingerprint=None
    )
    fresh = state(system)
    handle = system.do(0)
    assert state(system, handle) != fresh
    assert system.observe() == (("state", "a"),)
    system.undo(0, handle)
    system.do(0)
    system.reset()
    assert (state(system), system.observe()) == (fresh, (("state", "none"),))


def test_reading_the_state_changes_no_context_that_a_registry_copies() -> None:
    """The decimal context was created by the first look at the thread's state."""
    from contextvars import Context, copy_context

    def copy(to: Any) -> Any:
        to.context = copy_context()
        return lambda: None

    def early_and_late() -> None:
        system = started(step("copy", copy))
        early = system.do(0)
        fresh = portrait(system, early)
        system.undo(0, early)
        system.reset()
        system.check_outside((None,))
        late = system.do(0)
        assert system.paths(fresh, portrait(system, late)) == ()

    # Without the decimal context that this thread may have.
    Context().run(early_and_late)


def test_each_system_has_a_decimal_context_of_its_own() -> None:
    from decimal import getcontext

    def narrow(_: object) -> Any:
        getcontext().prec = 3
        return lambda: None

    before = getcontext().prec
    system = started(step("narrow", narrow), observe=lambda _: str(getcontext().prec))
    system.do(0)
    assert system.observe() == (("state", "3"),)
    system.reset()
    assert system.observe() == (("state", str(before)),)
    assert getcontext().prec == before


def test_a_fingerprint_of_the_registry_alone() -> None:
    system = started(fingerprint=lambda of: sorted(of.names))
    fresh = state(system)
    handle = system.do(0)
    assert state(system, handle) != fresh
    system.use(0)
    system.undo(0, handle)
    assert state(system) == fresh
    assert [each for each in system.caveats() if "C functions" not in each.text] == [
        Caveat("assumed", "fingerprint= returns the whole state"),
        Caveat("assumed", "the undo handles have no state"),
    ]


def test_a_fingerprint_of_the_registry_and_the_handles() -> None:
    seen: list[dict[str, object]] = []

    def tell(of: Names, handles: dict[str, object]) -> object:
        seen.append(handles.copy())
        return sorted(handles)

    system = started(fingerprint=tell)
    fresh = state(system)
    handle = system.do(1)
    assert state(system, None, handle) != fresh
    assert seen == [{}, {"add('b')": handle.resource}]  # type: ignore[attr-defined]  # a function's handle
    assert Caveat("assumed", "fingerprint= returns the whole state") in system.caveats()
    assert not any("undo handles" in each.text for each in system.caveats())


def test_a_fingerprint_that_cannot_be_had() -> None:
    assert started(fingerprint=lambda _: None).state((None, None)) is None


def test_opaque_objects_are_told() -> None:
    system = started(
        step("table", lambda to: to.close, undo=lambda to: None),
        create=lambda: sqlite3.connect(":memory:"),
        observe=lambda _: "",
    )
    state(system)
    assert (
        Caveat("opaque", "what a sqlite3.Connection holds (registry)")
        in system.caveats()
    )
    system._target.close()


def test_what_does_not_count_is_told() -> None:
    system = started(
        uses=[use("names", lambda of: list(of.names), unordered=True)], unordered=True
    )
    told = [each.text for each in system.caveats()]
    assert told[:2] == [
        "the order of what names answers does not count",
        "the order of observed lines does not count",
    ]


def test_the_base_of_our_errors_is_in_no_package_of_handles() -> None:
    space = {"close": lambda _: None, "__module__": "far.away"}
    far: Any = type("Handle", (HarnessError,), space)
    system = started(step("add", lambda _: far()), observe=lambda _: "")
    with pytest.raises(ExplorationRestart, check=code("ScopeGrown")) as caught:
        system.do(0)
    assert caught.value.packages == ("far",)


def test_packages_of_handles_are_followed() -> None:
    """The registry is of one package, what undoes of another."""
    far = type("Handle", (), {"close": lambda _: None, "__module__": "far.away"})
    system = started(step("add", lambda _: far()), observe=lambda _: "")
    with pytest.raises(ExplorationRestart, check=code("ScopeGrown")) as caught:
        system.do(0)
    assert str(caught.value) == (
        "undo handles come from far: the exploration must be restarted"
    )
    system.reset()
    fresh = portrait(system)
    handle = system.do(0)
    far.count = 1  # type: ignore[attr-defined]  # the handles' class is state now
    (first, *_) = system.paths(fresh, portrait(system, handle))
    assert first == "undo of add: <absent> / <Handle>"
    before = portrait(system, handle)
    far.count = 2  # type: ignore[attr-defined]  # the handles' class is state now
    (path,) = system.paths(before, portrait(system, handle))
    assert path.endswith("count: 1 / 2")


@pytest.mark.parametrize("isolation", [None, "fork"])
def test_exploring_begins_again_where_more_is_followed(isolation: Any) -> None:
    class Put:
        def __init__(self, to: set[str]) -> None:
            to.add("a")
            self.to = to

        def close(self) -> None:
            self.to.discard("a")

    Put.__module__ = "far.away"
    # The class is no part of the step, nor of its module.
    kinds = {"put": Put}
    made = Scenario(
        step("put", lambda to: kinds["put"](to)),
        create=set,
        observe=str,
        isolation=isolation,
    )
    report = explore(made, "walk:1")
    assert set(report.exploration.states.values()) == {
        (("state", "set()"),),
        (("state", "{'a'}"),),
    }


def test_what_is_learnt_goes_to_the_next_process() -> None:
    made = step("a", lambda _: None, undo=None, raises=LookupError)
    one = started(made)
    one.do(0)
    memory = one.memory()
    assert memory.performances == {("do", 0, 0): 1}
    assert memory.checks_outside
    other = RegistrySystem(one.scenario)
    other.remember(
        LearnedState(
            memory.performances, frozenset({"far"}), frozenset({0}), memory.caveats
        )
    )
    assert other.relations.declared == frozenset()
    assert other.memory().packages == {"far"}
    assert other.memory().undeclared == {0}


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda: None, 0),
        (lambda a: a, 1),
        (lambda a, b: a, 2),
        (lambda a, b=None, c=None: a, 1),
        (lambda a=None: a, 0),
        (lambda *a: a, 2),
        (lambda a, *more: a, 2),
        (lambda a, b=None, *more: a, 1),
        (lambda a, *, b: a, 1),
        (frozenset, 1),
        ({}.clear, 0),
    ],
)
def test_how_many_arguments_a_function_is_given(function: Any, count: int) -> None:
    assert argument_count(function, 0) == count
    assert argument_count(function) == max(count, 1)


def test_an_optional_parameter_of_a_fingerprint_keeps_its_default() -> None:
    def told(registry: Names, keys: tuple[str, ...] = ("a", "b")) -> object:
        return tuple(registry.names.get(key) for key in keys)

    system = started(fingerprint=told)
    state(system)
    texts = {each.text for each in system.caveats()}
    assert "the undo handles have no state" in texts


def test_an_optional_parameter_of_a_reset_keeps_its_default() -> None:
    given: list[object] = []
    system = started(reset=lambda registry="own": given.append(registry))
    system.reset()
    assert given == ["own"]


def test_a_system_goes_with_its_last_reference() -> None:
    # What it knows of the process is large, and the collector would not be in a hurry.
    gc.collect()
    gc.disable()
    try:
        system = started()
        state(system)
        alive = weakref.ref(system)
        system.close()
        del system
        assert alive() is None
    finally:
        gc.enable()
