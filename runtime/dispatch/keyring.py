"""What a dispatcher knows of its handles, and keeps none alive by it.

A *keyring* belongs to one dispatcher: it finds the handle of a name again as long as
somebody keeps it, and has the keys under which entries remember what is bound for this
dispatcher (see `runtime.dispatch.call`).

Rules:
- nothing that was interned is kept alive;
- a name has one living object at most: `is` compares operators;
- no lock, and nothing that a fork could cut in two.  A lock would be taken inside of
  finalizers, which may ask at any moment.

How interning works: a name leads to a weak reference, and a dead one to its successor.
Both steps are a `dict.setdefault`, of which only the first one counts: a successor is
set once, and only behind a reference that was seen dead, which it stays.  So the last
reference of a chain is the only one that may be alive.  Chains are cut short from
their head, for speed alone: a head that lags behind still leads to the end.
"""

from typing import Any, Generic, Protocol, TypeVar
from weakref import ref

from runtime.dispatch.state import DispatcherState
from runtime.dispatch.token import DefinitionReading

Held = TypeVar("Held")

# The one key of `_Reference.after`.
_NEXT = "next"


class _Reference(ref[Held], Generic[Held]):
    """A weak reference that knows what came after its object."""

    __slots__ = ("after",)

    after: "dict[str, _Reference[Held]]"


class Interned(Generic[Held]):
    """Objects by name; see the rules above."""

    __slots__ = ("_heads",)

    def __init__(self) -> None:
        self._heads: dict[str, _Reference[Held]] = {}

    def get(self, name: str) -> Held | None:
        """The living object of that name, if it is found at once."""
        head = self._heads.get(name)
        return None if head is None else head()

    def settle(self, name: str, made: Held) -> Held:
        """The object of that name from now on: `made`, or one that came before it."""
        mine = _Reference(made)
        mine.after = {}
        last = self._heads.setdefault(name, mine)
        while last is not mine:
            found = last()
            if found is not None:
                return found
            last = last.after.setdefault(_NEXT, mine)
        self._heads[name] = mine
        return made

    def __len__(self) -> int:
        """How many names were asked for so far."""
        return len(self._heads)


class Keyring:
    """What belongs to one dispatcher and keeps nothing: the keys of its call stubs.

    And the handles of its operators and their packets, as long as somebody has them.
    """

    __slots__ = ("handles", "keys", "packets")

    def __init__(self) -> None:
        self.keys: dict[DefinitionReading, object] = {}
        self.handles: Interned[Any] = Interned()
        self.packets: Interned[Any] = Interned()

    def key(self, reading: DefinitionReading) -> object:
        """The key under which entries remember the bound kernels of a call stub."""
        return self.keys.setdefault(reading, object())


class Published(Protocol):
    """Whoever publishes a state: a dispatcher."""

    state: DispatcherState
    keyring: Keyring
