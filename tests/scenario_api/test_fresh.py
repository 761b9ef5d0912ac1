"""Whether `create` makes fresh registries: what is compared, and what it outweighs.

The registry is not that of `test_audited`: a subclass with a finalizer is in reach of
all registries of its base, which are then explored with the collector as an operation.
"""

import sys
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar, cast

import pytest

from everyorder.harness import Scenario, explore, steps, use
from everyorder.harness.report.verdict import Report
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


def explored(
    kind: type[Registry],
    *,
    names: str = "ab",
    strategy: str = "auto",
    stop_after: int = 5,
    **others: Any,
) -> Report:
    others.setdefault("observe", lambda registry: " ".join(sorted(registry.held)))
    return explore(
        Scenario(
            *steps("add", names, lambda registry, name: registry.add(name)),
            uses=[use("names", lambda registry: registry.names())],
            create=kind,
            **others,
        ),
        strategy,
        stop_after=stop_after,
    )


class First(Registry):
    """Only the first one of the process is wrong; something weak is in its reach."""

    made = 0
    most = 1

    def __init__(self) -> None:
        super().__init__()
        self.seen = weakref.WeakSet[Registry]()
        First.made += 1
        self.wrong = First.made <= First.most

    def names(self) -> str:
        return " ".join(self.held) if self.wrong else super().names()


@pytest.mark.parametrize("strategy", ["graph", "auto"])
@pytest.mark.parametrize("most", [1, 2])
def test_the_first_one_is_what_all_others_have_to_be(strategy: str, most: int) -> None:
    First.made, First.most = 0, most
    assert explored(First, strategy=strategy).verdict == "not fresh"


class Dirty(Registry):
    """Leaves something where it is let go of, unless somebody has looked."""

    left = False
    order = "a"

    def __init__(self) -> None:
        super().__init__()
        self.dirty = False

    def add(self, name: str) -> Callable[[], object]:
        self.dirty = True
        return super().add(name)

    def names(self) -> str:
        self.dirty = False
        return "wrong" if Dirty.left and "a" in self.held else super().names()

    def __del__(self) -> None:
        Dirty.left |= self.dirty and "".join(self.held) == Dirty.order


@pytest.mark.parametrize("order", ["a", "b", "ab", "ba"])
def test_what_is_let_go_of_before_somebody_looks(order: str) -> None:
    Dirty.left, Dirty.order = False, order
    report = explored(Dirty, observe=Dirty.names)
    assert report.verdict == "not fresh"
    assert all(each.paths for each in report.exploration.violations)


UNDO = """
class Undo:
    def __init__(self, function):
        self.function = function
    def __call__(self):
        self.function()
"""


@pytest.fixture
def undo(monkeypatch: pytest.MonkeyPatch) -> type:
    """An undo of another package, of which nothing is followed before one is met."""
    module = ModuleType("foreign_undo")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(UNDO, vars(module))
    return cast(type, vars(module)["Undo"])


class Foreign(Registry):
    """Leaves something after one order; another one has an undo of another package."""

    left = False
    undo: type

    def add(self, name: str) -> Callable[[], object]:
        undo = super().add(name)
        foreign = Foreign.left and "".join(self.held) == "bc"
        return cast(Callable[[], object], Foreign.undo(undo)) if foreign else undo

    def names(self) -> str:
        return "wrong" if Foreign.left and "a" in self.held else super().names()

    def __del__(self) -> None:
        Foreign.left |= "".join(self.held) == "ba"


def test_what_is_left_before_more_is_followed(undo: type) -> None:
    """What the first attempt left is there before the second one begins."""
    Foreign.left, Foreign.undo = False, undo
    report = explored(Foreign, names="abc")
    assert report.verdict == "not fresh"
    assert all(each.paths for each in report.exploration.violations)


class Named(Registry):
    """Answers the first name of the process, which may have another undo."""

    first = ""
    undo: type

    def add(self, name: str) -> Callable[[], object]:
        undo, is_first = super().add(name), not Named.first
        Named.first = Named.first or name
        foreign = is_first and name == "b"
        return cast(Callable[[], object], Named.undo(undo)) if foreign else undo

    def names(self) -> str:
        return Named.first if self.held else ""


@needs_fork
def test_a_new_process_that_follows_more_forgets_nothing(undo: type) -> None:
    Named.first, Named.undo = "", undo
    assert explored(Named, names="abc").verdict == "not fresh"


class Counted(Registry):
    """Knows how many there are; an object of the module changes at some pairs."""

    living = 0
    noted: ClassVar[list[str]] = [""]

    def __init__(self) -> None:
        super().__init__()
        Counted.noted[0] = ""
        Counted.living += 1

    def add(self, name: str) -> Callable[[], object]:
        undo = super().add(name)
        self.note()
        return lambda: (undo(), self.note())

    def note(self) -> str:
        names = "".join(sorted(self.held))
        Counted.noted[0] = names if names in ("ac", "bd") else ""
        return names

    def __del__(self) -> None:
        Counted.living -= 1


def test_a_restart_keeps_no_registry_alive() -> None:
    Counted.living = 0
    assert explored(Counted, names="abcd").verdict == "proven"


LEFT = [0]


class Ordered(Registry):
    """Shows its order, and leaves something that breaks a law once."""

    def names(self) -> str:
        return " ".join(self.held)

    def __del__(self) -> None:
        LEFT[0] += [*self.held] == ["b", "a"]


def test_a_law_that_breaks_later_takes_no_refutation_away() -> None:
    LEFT[0] = 0
    report = explored(
        Ordered,
        stop_after=1,
        fingerprint=lambda registry: tuple(registry.held),
        check=lambda registry: ["once"] * (LEFT[0] == 2 and not registry.held),
    )
    (violation,) = report.exploration.violations
    # What is left behind is hidden by the fingerprint, so the law may break first.
    assert violation.kind in ("law", "order", "use")
