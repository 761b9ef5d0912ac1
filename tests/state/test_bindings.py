"""Names of observing modules are compared at once, as they are one by one.

`Bindings.is_valid` is the fast form of a comparison by `rebound_names`.
"""

import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from everyorder.harness.state.container_changes import bindings, rebound_names

NAMES = ("observing_one", "observing_two")
SOURCE = """
LIMIT = 1000
NOTHING = None

class Own:
    shared = []
    def method(self): ...

def function(value: int = 1, *, named=2): ...

def labelled(): ...
labelled.calls = 1
"""


@pytest.fixture
def subject() -> Iterator[Any]:
    """Two observing modules, of which the first is changed."""
    try:
        for name in NAMES:
            sys.modules[name] = types.ModuleType(name)
            exec(compile(SOURCE, name, "exec"), vars(sys.modules[name]))
        yield sys.modules[NAMES[0]]
    finally:
        for name in (*NAMES, "observing_three"):
            sys.modules.pop(name, None)


def observes(name: str) -> bool:
    return name.startswith("observing_")


def third(subject: Any) -> None:
    sys.modules["observing_three"] = types.ModuleType("observing_three")


def another(subject: Any) -> None:
    sys.modules[NAMES[1]] = types.ModuleType(NAMES[1])


def no_module(subject: Any) -> None:
    sys.modules[NAMES[1]] = subject.Own()


def other_class(subject: Any) -> None:
    subject.Own = type("Own", (), {"__module__": NAMES[0]})


CHANGES: dict[str, Callable[[Any], object]] = {
    "a name is bound": lambda s: setattr(s, "planted", 1),
    "a name is rebound": lambda s: setattr(s, "LIMIT", 1001),
    "a name is rebound to another type": lambda s: setattr(s, "LIMIT", 1000.0),
    "a name is deleted": lambda s: delattr(s, "NOTHING"),
    "a class has an attribute": lambda s: setattr(s.Own, "planted", 1),
    "an attribute of a class is rebound": lambda s: setattr(s.Own, "shared", ()),
    "a class is another one": other_class,
    "a function has an attribute": lambda s: setattr(s.function, "planted", 1),
    "a method has an attribute": lambda s: setattr(s.Own.method, "planted", 1),
    "an attribute of a function is rebound": lambda s: setattr(s.labelled, "calls", 2),
    "an attribute of a function is deleted": lambda s: delattr(s.labelled, "calls"),
    "a module more": third,
    "a module less": lambda s: sys.modules.pop(NAMES[1]),
    "another module": another,
    "an object in the place of a module": no_module,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen_as_in_a_comparison_one_by_one(
    subject: Any, change: str
) -> None:
    before = bindings(observes, None)
    assert bindings(observes, before) is before

    CHANGES[change](subject)

    now = bindings(observes, before)
    assert now is not before
    rebound = [*rebound_names(before, now)]
    assert rebound == [*rebound_names(before, bindings(observes, None))]
    # A module is listed apart, and what is not one has no names.
    assert rebound or change == "a module more"
    assert bindings(observes, now) is now


def test_what_is_equal_all_the_same_is_compared_one_by_one(subject: Any) -> None:
    before = bindings(observes, None)
    subject.LIMIT = int("1000")
    subject.function.__annotations__  # noqa: B018  # reading them makes a dict
    now = bindings(observes, before)
    assert now is not before
    assert [*rebound_names(before, now)] == []
