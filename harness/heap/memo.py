"""What was worked out once about an object, found by identity.

True only here: nothing is hashed or compared, and nothing is kept alive: what stands at
the address of an object that is gone is another one.
"""

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

# Dead entries, of generated code mostly; refilled in a moment.
_MOST = 50_000


class Memo(Generic[K, V]):
    """Calls a function once for each object that can be referred to weakly."""

    __slots__ = ("_known", "_work")

    def __init__(self, work: Callable[[K], V]) -> None:
        self._work = work
        self._known: dict[int, tuple[weakref.ref[K], V]] = {}

    def __call__(self, o: K) -> V:
        """What the function returned of this object."""
        entry = self._known.get(id(o))
        if entry is not None and entry[0]() is o:
            return entry[1]
        value = self._work(o)
        if len(self._known) > _MOST:
            self._known.clear()
        self._known[id(o)] = (weakref.ref(o), value)
        return value
