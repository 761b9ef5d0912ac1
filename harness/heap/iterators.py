"""How iterators are read: by what is left, as `__reduce__` tells it.

The `__reduce__` of an iterator of a built-in type gives a copy of what it needs to go
on, and leaves the iterator where it is.  Iterators over dicts and sets also tell which
one they run over, because they notice when it changes.
"""

import array
import collections
import gc
import itertools
from typing import Any

from harness.heap.known import Known, Parts, reduced
from harness.heap.layout import namespace_of


def _left(kind: type) -> Known:
    """An iterator over a dict or a set: what is left, and of which one."""
    reduce: Any = kind.__reduce__

    def read(o: Any) -> Parts:
        try:
            left: Any = reduce(o)[1]
        except RuntimeError:  # it changed size: whoever goes on is told so
            left = "invalid"
        return [("left", left), *(("of", each) for each in gc.get_referents(o))]

    return Known(parts=read)


class _Sequence:
    """Something that `iter` takes for a sequence."""

    def __getitem__(self, index: int) -> int:
        raise IndexError(index)


def _over_tables() -> list[Any]:
    """One iterator over a dict or a set of every kind."""
    plain: dict[Any, Any] = {}
    views: list[Any] = [plain.keys(), plain.values(), plain.items()]
    return [iter(set()), *(each for v in views for each in (iter(v), reversed(v)))]


def _others() -> list[Any]:
    """One iterator of every other kind that has no name."""
    deque: Any = collections.deque()
    texts: list[Any] = ["", "\u00e9\u20ac", b"", bytearray()]
    numbers: list[Any] = [range(0), range(1 << 70), array.array("b")]
    return [
        *map(iter, [[], (), *texts, *numbers, deque, _Sequence()]),
        *map(reversed, [[], (), deque]),
        iter(int, 0),
        enumerate(()),
        zip(),
        map(int, ()),
        filter(int, ()),
    ]


def _table() -> dict[type, Known]:
    found = {type(each): _left(type(each)) for each in _over_tables()}
    for kind in [*map(type, _others()), *vars(itertools).values()]:
        if type(kind) is type and "__reduce__" in namespace_of(kind):
            found[kind] = reduced(kind)
    return found


ITERATORS = _table()
