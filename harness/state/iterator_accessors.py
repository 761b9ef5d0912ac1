"""Accessors of iterators: what is left, as `__reduce__` of a built-in type returns it.

A reduction copies the rest and does not advance the iterator.  Some reductions leave
out what the next item depends on.  These iterators are opaque, with the reduction as a
part, unless they are exhausted for ever:

- over dicts and sets: the size at their beginning and a position, which matter when the
  container changes;
- over deques: the number of changes until they began, how many items are left, and the
  block they are in;
- `groupby` and its groups: the last key, the last item, and the group they belong to;
- `zip_longest`: whether it ended because one of its iterators raised an error.
"""

import array
import collections
import gc
import itertools
from collections.abc import Callable
from typing import Any

from everyorder.harness.state.layout import (
    Accessor,
    Parts,
    Unreadable,
    namespace_of,
    reduction,
)


def _rest_of(kind: type) -> Accessor:
    """Return the accessor of an iterator over a dict or a set: rest and source."""
    reduce: Any = kind.__reduce__

    def read(o: Any) -> Parts:
        try:
            left: Any = reduce(o)[1]
        except RuntimeError:  # the size changed: iterating raises
            left = "invalid"
        referents = gc.get_referents(o)
        parts: Parts = [("left", left), *(("of", each) for each in referents)]
        # An exhausted one has dropped its container.
        if any(issubclass(type(each), _TABLES) for each in referents):
            raise Unreadable(parts)
        return parts

    return Accessor(parts=read)


_TABLES = dict, set, frozenset


def _lossy(kind: type, ended: Callable[[Any], bool] = lambda _: False) -> Accessor:
    """Return the accessor of a type with a reduction that leaves out some state."""
    reduced = reduction(kind).parts
    assert reduced is not None, "a reduction has parts"

    def read(o: Any) -> Parts:
        parts = reduced(o)
        if ended(o):
            return parts
        raise Unreadable(parts)

    return Accessor(parts=read)


class _Sequence:
    """A class that `iter` accepts as a sequence."""

    def __getitem__(self, index: int) -> int:
        raise IndexError(index)


def _over_tables() -> list[Any]:
    """Return one iterator over a dict or a set of every kind."""
    plain: dict[Any, Any] = {}
    views: list[Any] = [plain.keys(), plain.values(), plain.items()]
    return [iter(set()), *(each for v in views for each in (iter(v), reversed(v)))]


def _others() -> list[Any]:
    """Return one iterator of every other kind that has no name."""
    texts: list[Any] = ["", "\u00e9\u20ac", b"", bytearray()]
    numbers: list[Any] = [range(0), range(1 << 70), array.array("b")]
    return [
        *map(iter, [[], (), *texts, *numbers, _Sequence()]),
        *map(reversed, [[], ()]),
        iter(int, 0),
        enumerate(()),
        zip(),
        map(int, ()),
        filter(int, ()),
    ]


def _table() -> dict[type, Accessor]:
    table = {type(each): _rest_of(type(each)) for each in _over_tables()}
    for kind in [*map(type, _others()), *vars(itertools).values()]:
        if type(kind) is type and "__reduce__" in namespace_of(kind):
            table[kind] = reduction(kind)
    for kind in _LOSSY:
        if kind in table:
            table[kind] = _lossy(kind)
    deque: Any = collections.deque()
    table[type(iter(deque))] = _lossy(type(iter(deque)))
    backwards: Any = type(reversed(deque))
    # Forwards it raises an error if the deque changed, even at its end.
    table[backwards] = _lossy(backwards, lambda o: not backwards.__length_hint__(o))
    return table


_LOSSY: tuple[type, ...] = (
    itertools.groupby,
    itertools.zip_longest,
    getattr(itertools, "_grouper", itertools.groupby),
)
ITERATORS = _table()
