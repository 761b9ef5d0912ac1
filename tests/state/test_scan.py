"""Ids of objects as they lie in memory, and looks that somebody writes between."""

import ctypes
import signal
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from everyorder.harness.state import scan
from everyorder.harness.state import untracked_writes as module_of_boundary
from everyorder.harness.state.untracked_writes import Boundary, Extent, Snapshot
from tests.state.test_untracked_writes import plant

__all__ = ["plant"]


def test_ids_are_read_as_they_lie_in_memory() -> None:
    objects: list[Any] = [None, 1, "a", [], {}, object(), type, (1, 2)]
    for count in range(len(objects) + 1):
        found = objects[:count]
        assert list(scan._addresses(found)) == list(map(id, found))
        assert scan._numbers(found) == scan._addresses(tuple(found))


LIAR = """
called = []
class Liar(dict):
    def __len__(self):
        called.append("len")
        return 0
    def __iter__(self):
        called.append("iter")
        return iter(())
liar = Liar(a=1)
"""


def test_a_dict_of_somebodys_own_is_not_asked(plant: Any) -> None:
    module = plant(LIAR)
    outside = Boundary(Extent)
    before = outside.snapshot()
    dict.update(module.liar, b=2)
    assert outside.changes(before) == ("planted.liar",)
    assert module.called == []


@pytest.mark.parametrize("way", ["_addresses", "_numbers"])
def test_both_ways_to_read_ids_see_the_same(
    way: str, plant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = plant("table = {'a': [1]}\nclass Box: pass\nbox = Box()\nbox.a = 1")
    monkeypatch.setattr(scan, "ids_of", getattr(scan, way))
    outside = Boundary(Extent)
    before = outside.snapshot()
    assert outside.changes(before) == ()
    module.table["a"].append(2)
    module.box.a = 2
    assert outside.changes(before) == ("planted.box", "planted.table['a']")


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """List the full scans.

    The class is replaced before a snapshot: a later change of this module would be one
    of the reported changes.
    """
    listed: list[object] = []

    def counted(*of: Any) -> scan.Scan:
        listed.append(of)
        return scan.Scan(*of)

    monkeypatch.setattr(module_of_boundary, "Scan", counted)
    return listed


def test_what_was_told_is_what_is_compared_with(
    plant: Any, scans: list[object]
) -> None:
    module = plant("items = []")
    outside = Boundary(Extent)
    before = outside.snapshot()
    module.items.append(1)
    told, now = outside.compare(before)
    assert told == ("planted.items",)
    # Nothing changed since, and that is found without another scan.
    scans.clear()
    told, after = outside.compare(now)
    assert (told, after, scans) == ((), now, [])


@contextmanager
def writing(module: types.ModuleType) -> Iterator[None]:
    """Context: names come and go in a module, again and again, at any moment."""

    def write(*_: object) -> None:
        names = vars(module)
        for at in range(200):
            if names.pop(f"name{at}", None) is None:
                names[f"name{at}"] = [at]

    usual = signal.signal(signal.SIGALRM, write)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, usual)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
def test_somebody_writes_while_it_is_looked(plant: Any) -> None:
    module = plant("items = []")
    outside = Boundary(Extent)
    with writing(module):
        before = outside.snapshot()
        for _ in range(8):
            told, before = outside.compare(before)
            assert all(each.startswith("planted") for each in told), told


# What one operation does to the module, and whether that is found without a scan.
CHANGES: dict[str, tuple[str, str, Any, bool]] = {
    "a number": ("count = 1000", "count", 2000, True),
    "a text": ("name = 'a b'", "name", "b a", True),
    "nothing": ("name = 'a b'", "name", None, True),
    "a new name": ("", "made", 1.5, True),
    "what stands nearer": ("a = []\nb = 1", "b", sys, True),
    "another list": ("items = []", "items", [1], False),
    "another function": ("f = len", "f", lambda: None, False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_comes_and_goes_is_told_as_by_a_scan(
    change: str, plant: Any, scans: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, name, value, quick = CHANGES[change]
    module = plant(source)
    outside = Boundary(Extent)
    before = outside.snapshot()
    setattr(module, name, value)
    whole, anew = Boundary(Extent).compare(_apart(before))
    scans.clear()
    told, now = outside.compare(before)
    assert told == whole == (f"planted.{name}",)
    assert (scans == []) is quick
    assert [*map(_contents, now.levels)] == [*map(_contents, anew.levels)]
    assert outside.changes(now) == ()
    monkeypatch.setattr(module, name, b"0")
    assert outside.changes(now) == (f"planted.{name}",)


def test_what_went_from_a_level_is_looked_for_by_a_scan(plant: Any) -> None:
    """It stands lower now, or nowhere: what refers to it last is told by its path."""
    module = plant("inner = [[]]\nouter = [[1, inner]]\n")
    outside = Boundary(Extent)
    before = outside.snapshot()
    module.inner = 1
    told, now = outside.compare(before)
    assert told == ("planted.inner",)
    module.outer[0][1][0].append(2)
    assert outside.changes(now) == ("planted.outer[0][1][0]",)


def test_what_is_followed_no_more_is_looked_into(plant: Any) -> None:
    module = plant("table = 1")
    members: set[int] = set()
    outside = Boundary(lambda: Extent(frozenset(members)))
    before = outside.snapshot()
    module.table = [1]
    members.add(id(module.table))
    told, now = outside.compare(before)
    assert told == ("planted.table",)
    members.clear()
    _, now = outside.compare(now)
    module.table.append(2)
    assert outside.changes(now) == ("planted.table",)


class Large:
    """As large as a dict, and no dict: nobody's `__len__` is to be run."""

    __slots__ = ("a", "b", "c", "d")

    def __len__(self) -> int:
        raise AssertionError


def test_another_object_stands_where_a_dict_was(plant: Any) -> None:
    module = plant("table = {}")
    module.Large = Large
    outside = Boundary(Extent)
    before, was = outside.snapshot(), id(module.table)
    for _ in range(8):  # what is kept to be a dict again is full by then
        kept: list[object] = [{} for _ in range(400)]
        del kept
    module.table = None
    others: list[object] = []
    while id(other := Large()) != was and len(others) < 10_000:
        others.append(other)
    module.table = other
    del others, other
    assert outside.changes(before) == ("planted.table",)


def test_who_is_named_is_looked_into(plant: Any) -> None:
    """What looks on is noise until somebody names it."""
    module = plant("count = 1000")
    noisy = types.ModuleType("coverage.planted")
    noisy.count = 1000  # type: ignore[attr-defined]  # a module's attribute
    modules: set[str] = set()
    outside = Boundary(lambda: Extent(modules=frozenset(modules)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, noisy.__name__, noisy)
        before = outside.snapshot()
        modules.add("coverage")
        module.count = 2000
        told, now = outside.compare(before)
        assert "planted.count" in told
        noisy.count = 2000  # type: ignore[attr-defined]  # as above
        assert "coverage.planted.count" in outside.changes(now)


def test_noise_that_is_no_module_any_more_is_looked_into(plant: Any) -> None:
    module = plant("count = 1000")
    module.kept = noisy = types.ModuleType("coverage.planted")
    outside = Boundary(Extent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, noisy.__name__, noisy)
        before = outside.snapshot()
    _, now = outside.compare(before)
    module.kept.count = 2000
    assert outside.changes(now) == ("planted.kept.count",)


def test_what_moves_within_one_container_is_found_without_a_scan(
    plant: Any, scans: list[object]
) -> None:
    module = plant("table = {str(n): [n] for n in range(200)}")
    outside = Boundary(Extent)
    before = outside.snapshot()
    module.table["0"] = module.table.pop("0")
    scans.clear()
    assert outside.changes(before) == ("planted.table",)
    assert scans == []


def _apart(snapshot: Snapshot) -> Snapshot:
    """The same, of which nobody can tell what a second scan meets."""
    return replace(snapshot, met=frozenset({0}))


def _contents(level: scan.Level) -> set[tuple[int, int]]:
    return set(zip(level.nodes, level.kinds, strict=True))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 1000, 1_000_003])
def test_reading_objects_leaves_no_type_of_an_array_behind(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.13 has such types in a dict, which changed at each new length."""
    monkeypatch.setattr(scan, "_ARRAYS", scan._ARRAYS[:20])
    before = len(ctypes.Array.__subclasses__())
    owners = [f"object {number}" for number in range(count)]
    words = scan._addresses(owners)
    found = scan._objects(words, owners)
    assert len(found) == count
    assert all(one is other for one, other in zip(found, owners, strict=True))
    assert len(ctypes.Array.__subclasses__()) == before
