"""Objects of a registry in a weak set of another package; and a progress callback."""

import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, ClassVar

import pytest

from everyorder.harness import explore
from tests.forking import needs_fork
from tests.systems.lazy_registries import LAZY, Base, scenario
from tests.systems.test_lazy_state import remarks

# The weak containers of "another package", which no root of a state leads to.
OTHER: Any = ModuleType("package_that_tracks")
OTHER.THINGS = weakref.WeakSet()
OTHER.NOTES = weakref.WeakKeyDictionary()
sys.modules[OTHER.__name__] = OTHER


def tracking() -> Any:
    return sys.modules["package_that_tracks"]


class Thing:
    """An object that can be tracked."""


class WithLock(Base):
    """Has a lock that another package renews after a fork, as our own runtime has."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        tracking().THINGS.add(self.lock)


class WithNotes(Base):
    """Has an object with a note in a dict of weak keys."""

    def __init__(self) -> None:
        super().__init__()
        self.thing = Thing()
        tracking().NOTES[self.thing] = "note"


class OfEachStep(Base):
    """Tracks an object of each step."""

    def __init__(self) -> None:
        super().__init__()
        self.things: dict[str, Thing] = {}

    def add(self, name: str) -> Callable[[], object]:
        thing = self.things[name] = Thing()
        tracking().THINGS.add(thing)
        undo = super().add(name)

        def ending() -> None:
            del self.things[name]
            undo()

        return ending


@needs_fork
@pytest.mark.parametrize("kind", [WithLock, WithNotes, OfEachStep])
def test_objects_in_a_tracked_weak_set_are_state(kind: type[Base]) -> None:
    """These were "holds": `_RENEWED.data` changed outside of the followed state."""
    report = explore(scenario(kind))
    assert report.verdict == "proven"
    assert all("is not read" in each for each in remarks(report))


class Kept(OfEachStep):
    """Keeps what it tracks; another package's set shows it in the next registry."""

    kept: ClassVar[list[Thing]] = []

    def add(self, name: str) -> Callable[[], object]:
        undo = super().add(name)
        Kept.kept[:] = self.things.values()
        return undo

    def get(self, name: str) -> Any:
        return len(tracking().THINGS) > len(self.things), super().get(name)


@needs_fork
def test_what_a_tracked_weak_set_shows_of_an_earlier_registry_is_not_fresh() -> None:
    assert explore(scenario(Kept)).verdict == "not fresh"


class Untracked(OfEachStep):
    """Forgets the oldest one, so that the set remembers the order."""

    def add(self, name: str) -> Callable[[], object]:
        undo = super().add(name)
        tracking().THINGS.discard(self.things[next(iter(self.things))])
        return undo

    def get(self, name: str) -> Any:
        thing = self.things.get(name)
        return thing in tracking().THINGS if thing else None


@needs_fork
def test_membership_in_a_tracked_weak_set_is_compared() -> None:
    assert explore(scenario(Untracked, names="abc")).verdict in ("order", "wedged")


@needs_fork
def test_a_progress_callback_changes_nothing() -> None:
    calls: list[tuple[int, int]] = []
    build = LAZY["plugins_that_are_loaded_once"]
    quiet, told = (
        explore(build(), progress=progress).exploration
        for progress in (None, lambda *counts: calls.append(counts))
    )
    assert calls
    assert replace(told, seconds=quiet.seconds) == quiet


@dataclass(frozen=True)
class Key:
    """A key whose hash derives from the address of an object."""

    held: object


class WithKeys(Base):
    """Has its keys in a weak set, which asks them for their hashes."""

    def __init__(self) -> None:
        super().__init__()
        self.keys = [Key(object()), Key(object())]
        self.live = weakref.WeakSet(self.keys)


@needs_fork
def test_the_hash_of_a_living_key_is_not_state() -> None:
    """It is another one in each fresh system: the registry was FLAKY."""
    report = explore(scenario(WithKeys))
    assert report.verdict == "proven", report.exploration.violations
