"""The levels of a walk taken apart: each container by its id.

True only here: a level is taken apart when one of its containers is asked for.  Of two
walks most levels are the same, and are compared as a whole.
"""

from collections.abc import Hashable, Sequence
from itertools import accumulate, compress
from typing import NamedTuple, TypeAlias

from harness.heap.flat import MARK, Level

_Ids: TypeAlias = tuple[int, ...]


class Node(NamedTuple):
    """One container, by ids; `token` is the state that it keeps in C."""

    kind: int
    slots: _Ids
    keys: _Ids
    token: Hashable


class Table:
    """The containers of some levels by their ids."""

    def __init__(self, levels: Sequence[Level]) -> None:
        self.levels = levels
        # The collector looks into every set, but not into a dict of numbers.
        self.places: dict[int, int] = {}
        for at, level in enumerate(levels):
            self.places.update(dict.fromkeys(level.nodes, at))
        self._parts: dict[int, dict[int, Node]] = {}

    def __contains__(self, owner: int) -> bool:
        return owner in self.places

    def __getitem__(self, owner: int) -> Node:
        return self._part(self.places[owner])[owner]

    def kind(self, owner: int) -> int | None:
        """The type of a container, by its id; None for what is none."""
        place = self.places.get(owner)
        return None if place is None else self._part(place)[owner].kind

    def references(self, owner: int) -> _Ids:
        """All that a container refers to."""
        node = self[owner]
        return node.slots + node.keys

    def different(self, other: "Table") -> list[int]:
        """The containers that both tables have and that are not the same in both."""
        found = []
        for at, level in enumerate(self.levels):
            if at < len(other.levels) and _is_same(level, other.levels[at]):
                continue  # so none of its containers is on another level there
            for owner, node in self._part(at).items():
                if owner in other and other[owner] != node:
                    found.append(owner)
        return found

    def forget(self) -> None:
        """Put together what was taken apart, which is large."""
        self._parts.clear()

    def _part(self, at: int) -> dict[int, Node]:
        part = self._parts.get(at)
        if part is None:
            part = self._parts[at] = _taken_apart(self.levels[at])
        return part


def _is_same(one: Level, other: Level) -> bool:
    """Whether all is the same in two levels; a reader may be another each time."""
    return one is other or (
        one.nodes == other.nodes
        and one.kinds == other.kinds
        and one.slots == other.slots
        and one.keyed == other.keyed
        and one.sizes == other.sizes
        and one.keys == other.keys
        and one.tokens == other.tokens
        and one.locals == other.locals
    )


def _taken_apart(level: Level) -> dict[int, Node]:
    special = level.nodes[len(level.nodes) - len(level.codes) :]
    read = compress(special, level.readers)
    tokens: dict[int, Hashable] = dict(zip(read, level.tokens, strict=True))
    inner: dict[int, _Ids] = {}
    for owner, each in level.locals:
        inner[owner] = (*inner.get(owner, ()), each)
    keys: dict[int, _Ids] = {}
    given, start = tuple(level.keys), 0
    for owner, size in zip(level.keyed, level.sizes, strict=True):
        keys[owner] = given[start : start + size]
        start += size
    found: dict[int, Node] = {}
    mark, slots, start = id(MARK), tuple(level.slots), 0
    for owner, kind in zip(level.nodes, level.kinds, strict=True):
        end = slots.index(mark, start)
        referents = slots[start:end] + inner.get(owner, ())
        found[owner] = Node(kind, referents, keys.get(owner, ()), tokens.get(owner))
        start = end + 1
    return found


def shortest(levels: Sequence[Level], owner: int) -> list[int]:
    """A shortest way to a container from a root, by what refers to the next."""
    way = [owner]
    depth = next(at for at, level in enumerate(levels) if owner in level.nodes)
    for level in reversed(levels[:depth]):
        if way[-1] in level.slots:
            at = level.slots.index(way[-1])
            way.append(level.nodes[level.slots[:at].count(id(MARK))])
        elif way[-1] in level.keys:
            at = level.keys.index(way[-1])
            ends = accumulate(level.sizes)
            way.append(
                next(o for o, end in zip(level.keyed, ends, strict=True) if at < end)
            )
        else:
            way.append(next(o for o, inner in level.locals if inner == way[-1]))
    return way[::-1]
