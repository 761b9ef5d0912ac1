"""Ids of objects as they lie in memory, and looks that somebody writes between."""

import signal
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from harness.heap import boundary as module_of_boundary
from harness.heap import flat
from harness.heap.boundary import Boundary, Extent
from tests.heap.test_boundary import plant

__all__ = ["plant"]


def test_ids_are_read_as_they_lie_in_memory() -> None:
    objects: list[Any] = [None, 1, "a", [], {}, object(), type, (1, 2)]
    for count in range(len(objects) + 1):
        found = objects[:count]
        assert list(flat._addresses(found)) == list(map(id, found))
        assert flat._numbers(found) == flat._addresses(tuple(found))


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
    assert outside.changed(before) == ("planted.liar",)
    assert module.called == []


@pytest.mark.parametrize("way", ["_addresses", "_numbers"])
def test_both_ways_to_read_ids_see_the_same(
    way: str, plant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = plant("table = {'a': [1]}\nclass Box: pass\nbox = Box()\nbox.a = 1")
    monkeypatch.setattr(flat, "_ids", getattr(flat, way))
    outside = Boundary(Extent)
    before = outside.snapshot()
    assert outside.changed(before) == ()
    module.table["a"].append(2)
    module.box.a = 2
    assert outside.changed(before) == ("planted.box", "planted.table['a']")


def test_what_was_told_is_what_is_compared_with(
    plant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = plant("items = []")
    outside = Boundary(Extent)
    before = outside.snapshot()
    module.items.append(1)
    told, now = outside.since(before)
    assert told == ("planted.items",)
    # Nothing changed since, and that is found without another walk.
    monkeypatch.delattr(module_of_boundary, "Walk")
    told, after = outside.since(now)
    assert (told, after) == ((), now)


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
            told, before = outside.since(before)
            assert all(each.startswith("planted") for each in told), told
