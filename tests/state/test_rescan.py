"""A scan that goes on along an old one sees what a new one sees, whatever happens."""

import random
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

from everyorder.harness.state.container_changes import ContainerNode, ContainerTable
from everyorder.harness.state.scan import Rescan, Scan, rescan


class Open:
    """Attributes of any name."""


class Narrow:
    """As large as a dict, and stands where one was."""

    __slots__ = ("a", "b", "c", "d")


FRESH: tuple[Callable[[random.Random], Any], ...] = (
    lambda _: [],
    lambda _: {},
    lambda _: Open(),
    lambda _: Narrow(),
    lambda _: OrderedDict(),
    lambda _: None,
    lambda chance: chance.random(),
    lambda chance: chance.randrange(10**6),
    lambda chance: (chance.random(), []),
)


def inside(found: Any) -> list[Any]:
    if isinstance(found, dict):
        return list(found.values())
    if isinstance(found, list | tuple):
        return list(found)
    if isinstance(found, Open):
        return list(vars(found).values())
    if isinstance(found, Narrow):
        return [getattr(found, name, None) for name in Narrow.__slots__]
    return []


def reached(root: Any) -> list[Any]:
    objects = {id(root): root}
    todo = [root]
    for each in todo:  # grows while it is read
        for inner in inside(each):
            if id(inner) not in objects:
                objects[id(inner)] = inner
                todo.append(inner)
    return todo


def change(chance: random.Random, root: Any) -> None:
    """One write: something comes, goes, moves, or stands at two places."""
    found = reached(root)
    where = chance.choice(found)
    fresh = chance.choice(FRESH)(chance)
    what = chance.choice(found) if chance.random() < 0.4 else fresh
    name = chance.choice("abcd")
    gone = chance.random() < 0.3
    if isinstance(where, list):
        if where and gone:
            where.pop(chance.randrange(len(where)))
        else:
            where.insert(chance.randrange(len(where) + 1), what)
        if chance.random() < 0.2:
            chance.shuffle(where)
    elif isinstance(where, dict):
        if name in where and chance.random() < 0.2:
            where[name] = where.pop(name)
        elif gone:
            where.pop(name, None)
        else:
            where[name] = what
    elif isinstance(where, Open | Narrow):
        if not gone:
            setattr(where, name, what)
        elif hasattr(where, name):
            delattr(where, name)


def noise(module: str) -> bool:
    """Nothing is."""
    return not module


def contents(levels: Any) -> dict[int, tuple[int, ContainerNode]]:
    table = ContainerTable(levels)
    return {owner: (at, table[owner]) for owner, at in table.places.items()}


@pytest.mark.parametrize("seed", range(40))
def test_it_sees_what_a_new_walk_sees(seed: int) -> None:
    chance = random.Random(seed)
    root: dict[str, Any] = {}
    skipped = frozenset(map(id, (Open, Narrow, OrderedDict)))
    for _ in range(30):
        change(chance, root)
    scan = Scan([root], skipped, noise)
    levels, values, times = tuple(scan.levels), list(scan.values), 0
    del scan
    for _ in range(60):
        for _ in range(chance.randrange(1, 3)):
            change(chance, root)
        seen: Rescan | None = rescan(
            [root], levels, ContainerTable(levels).places, skipped
        )
        scan = Scan([root], skipped, noise)
        if seen is None:
            levels, values = tuple(scan.levels), list(scan.values)
        else:
            times += 1
            levels = seen.levels
            values += seen.values
            assert contents(levels) == contents(scan.levels)
            assert {*map(id, scan.values)} <= {*map(id, values)}
        del scan, seen
    assert times > 10
