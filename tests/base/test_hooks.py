"""Hooks: each is set once.  Plug-ins: added by name, whole, when an area is loaded."""

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import count, permutations
from types import ModuleType

import pytest

from everyorder.runtime.base import hooks
from everyorder.runtime.base.hooks import (
    PLUG_INS,
    Hook,
    PlugIn,
    ready,
    register_plug_in,
)
from everyorder.runtime.base.registry import Closeable, Registry, RegistryHandle
from everyorder.runtime.errors.registration import AlreadyRegistered

HOOKS = {name: hook for name, hook in vars(hooks).items() if isinstance(hook, Hook)}


@pytest.mark.parametrize("name", HOOKS)
def test_each_is_answered_when_all_is_loaded(name: str) -> None:
    for area in (
        "everyorder.runtime.bootstrap",
        "everyorder.runtime.jit",
        "everyorder.runtime.script.tracing",
    ):
        import_module(area)
    assert HOOKS[name].get() is HOOKS[name].answer
    assert len({hook.question for hook in HOOKS.values()}) == len(HOOKS)


def test_a_hook_has_one_answer_until_that_is_closed() -> None:
    hook: Hook[Callable[[], int]] = Hook("how many")
    with pytest.raises(AssertionError, match="how many: no area has answered"):
        hook.get()

    def one() -> int:
        return 1

    with hook.set(one):
        assert hook.get() is one
        with pytest.raises(AlreadyRegistered):
            hook.set(lambda: 2)
        assert hook.get() is one
    assert hook.answer is None


FAILING_ONCE = """
hook.set(answer)
if answer == 1:
    raise KeyboardInterrupt
"""


def test_a_module_that_is_imported_anew_answers_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C behind the answer ends a first import; the next one must be possible."""
    hook: Hook[int] = Hook("a number")
    for answer in (1, 2):
        module = ModuleType("interrupted")
        module.__dict__.update(hook=hook, answer=answer)
        monkeypatch.setitem(sys.modules, "interrupted", module)
        with suppress(KeyboardInterrupt):
            exec(FAILING_ONCE, module.__dict__)  # as an import does
        monkeypatch.delitem(sys.modules, "interrupted")
        assert hook.get() == answer


def test_a_hook_without_an_answer_has_none_to_return() -> None:
    with pytest.raises(AssertionError, match="a number: no area has answered"):
        Hook[int]("a number").get()


AREA = "tests.area"


class Log:
    """Plug-ins that note what is added and removed."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def plug_in(self, name: str, area: str = AREA) -> PlugIn:
        def install() -> Iterator[Closeable]:
            for part in (1, 2):
                self.lines.append(f"+{name}{part}")
                yield RegistryHandle(partial(self.lines.append, f"-{name}{part}"))

        return register_plug_in(area, name, install)


_NUMBERS = count(1)


def fresh_area() -> str:
    """Return the name of an area that was never loaded in this process."""
    return f"{AREA}.{next(_NUMBERS)}"


def test_plug_ins_of_an_area_are_added_by_name_in_every_order_of_events() -> None:
    """Register a, register b, and the area's own loading, in all orders."""
    results = set()
    for events in permutations(("a", "b", "ready")):
        log, area = Log(), fresh_area()
        made: list[PlugIn] = []
        for event in events:
            if event == "ready":
                ready(area)
            else:
                made.append(log.plug_in(event, area))
        ready(area)
        results.add((frozenset(log.lines), len(log.lines)))
        log.lines.clear()
        for each in made:
            each.close()
            each.close()
        assert sorted(log.lines) == ["-a1", "-a2", "-b1", "-b2"]
        assert [line[1] for line in log.lines].index("a") in (0, 2)
        assert log.lines[0][2] == log.lines[2][2] == "2"
    assert results == {(frozenset({"+a1", "+a2", "+b1", "+b2"}), 4)}
    assert not [area for area, _ in PLUG_INS.rows if area.startswith(AREA)]


def test_plug_ins_that_wait_are_added_by_name() -> None:
    for order in permutations("abc"):
        log, area = Log(), fresh_area()
        made = [log.plug_in(name, area) for name in order]
        assert log.lines == []
        ready(area)
        assert log.lines == ["+a1", "+a2", "+b1", "+b2", "+c1", "+c2"]
        for each in made:
            each.close()


def test_a_plug_in_that_is_closed_before_its_area_loads_is_never_added() -> None:
    log, area = Log(), fresh_area()
    log.plug_in("a", area).close()
    ready(area)
    assert log.lines == []


def test_an_interrupted_addition_is_removed_and_made_again() -> None:
    registry: Registry[str, int] = Registry("numbers", order=str)
    area, interrupts = fresh_area(), [True]

    def install() -> Iterator[Closeable]:
        yield registry.register("one", 1)
        if interrupts.pop():
            raise KeyboardInterrupt
        yield registry.register("two", 2)

    with register_plug_in(area, "numbers", install):
        with pytest.raises(KeyboardInterrupt):
            ready(area)
        assert dict(registry.rows) == {}
        interrupts.append(False)
        ready(area)
        assert dict(registry.rows) == {"one": 1, "two": 2}
    assert dict(registry.rows) == {}


def test_a_plug_in_of_a_loaded_area_is_added_at_once() -> None:
    log, area = Log(), fresh_area()
    ready(area)
    with log.plug_in("a", area):
        assert log.lines == ["+a1", "+a2"]
    assert log.lines == ["+a1", "+a2", "-a2", "-a1"]


def test_an_area_whose_loading_failed_is_not_loaded() -> None:
    log, area = Log(), fresh_area()

    def install() -> list[Closeable]:
        raise KeyboardInterrupt

    with (
        register_plug_in(area, "interrupts", install),
        pytest.raises(KeyboardInterrupt),
    ):
        ready(area)
    with log.plug_in("later", area):
        assert log.lines == []
        ready(area)
        assert log.lines == ["+later1", "+later2"]
