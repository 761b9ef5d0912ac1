"""The state of a registry of a large package grows with the registry alone."""

import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from everyorder.harness import Budget, Scenario, explore, steps, use
from everyorder.harness.engine.protocol import StateForm
from everyorder.harness.state.heap import Heap

NAME = "large_package"
# The objects that no operation touches, of several kinds and in two modules.
SOURCE = """
from large_package import others

class Thing:
    def __init__(self, number):
        self.number = number
        self.label = f"thing {number}"

THINGS = [Thing(number) for number in range(SIZE)]
BY_NAME = {each.label: each for each in THINGS}

class Registry:
    def __init__(self):
        self.items = {}

    def add(self, name):
        self.items[name] = [name]
        return lambda: self.items.pop(name)

    def report(self):
        return THINGS, BY_NAME, others.ROWS
"""
OTHERS = """
ROWS = [{"number": number, "parts": [number, str(number)]} for number in range(SIZE)]
"""


@pytest.fixture
def package() -> Iterator[Callable[[int], Any]]:
    """A function that loads the package with so many objects of each kind."""

    def load(size: int) -> Any:
        made = types.ModuleType(NAME)
        made.__path__ = []
        others = types.ModuleType(f"{NAME}.others")
        sys.modules |= {NAME: made, others.__name__: others}
        for module, source in ((others, OTHERS), (made, SOURCE)):
            module.__dict__["SIZE"] = size
            vars(made)["others"] = others
            exec(compile(source, module.__name__, "exec"), module.__dict__)
        return made

    yield load
    for name in (NAME, f"{NAME}.others"):
        sys.modules.pop(name, None)


def counted(registry: Any) -> int:
    return len(registry.items)


def reported(registry: Any) -> int:
    registry.report()
    return len(registry.items)


def objects_of(
    package: Any, asked: Callable[[Any], int], monkeypatch: pytest.MonkeyPatch
) -> list[int]:
    """Explore a registry of the package; return how many objects each form has."""
    objects: list[int] = []
    original = Heap.form

    def noted(reader: Heap, *roots: Any) -> StateForm:
        form = original(reader, *roots)
        objects.append(form.objects)
        return form

    monkeypatch.setattr(Heap, "form", noted)
    explore(
        Scenario(
            *steps("add", "ab", package.Registry.add),
            uses=[use("asked", asked)],
            create=package.Registry,
            observe=lambda registry: " ".join(sorted(registry.items)),
        ),
        "graph",
        budget=Budget(steps=100),
    )
    monkeypatch.undo()
    return objects


@pytest.mark.parametrize("asked", [counted, reported])
def test_a_state_has_no_objects_that_no_operation_changes(
    package: Callable[[int], Any],
    asked: Callable[[Any], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each state was read with everything that the package holds."""
    small, large = (
        objects_of(package(size), asked, monkeypatch) for size in (12, 5_000)
    )
    # The first form is a whole walk.
    assert large[0] - small[0] == 4 * (5_000 - 12)
    # Those of two, one and no item, with their undo handles.
    assert {*small[1:]} == {*large[1:]} == {12, 8, 3}
