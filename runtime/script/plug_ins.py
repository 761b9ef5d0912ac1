"""Plug-ins: what areas above add to one of the compiler's, as soon as that is loaded.

An area that is loaded gets an addition at once; one that is not gets it at the end of
its own loading, so that the compiler is not loaded only to add something to it.

    register_plug_in    what is to be added, and to which area; `close` takes it back
    ready               an area says that it is loaded: the last line of its `__init__`
    add_row             one row for a table of an area, as `register_...` of it adds it

Rules:
- an area is a package by its full name, such as `runtime.script.emission`;
- an addition is a function; it gives the functions that take back what it has added,
  which are called in the reverse order;
- it is made once for each registration, in the order of the registrations;
- this module knows no plug-in.
"""

from collections.abc import Callable, Iterable
from typing import Self, TypeVar

from runtime.locks import LOADING

Remove = Callable[[], None]
Install = Callable[[], Iterable[Remove]]

K = TypeVar("K")
V = TypeVar("V")

# The areas that are loaded.
_READY: dict[str, None] = {}
# What is registered, oldest first.
_PLUG_INS: list["PlugIn"] = []


class PlugIn:
    """An addition to an area; `close` takes it back."""

    __slots__ = ("area", "install", "removes")

    def __init__(self, area: str, install: Install) -> None:
        self.area = area
        self.install = install
        # What takes back what was added; None: nothing has been.
        self.removes: list[Remove] | None = None

    def add(self) -> None:
        """Make the addition, unless it has been made."""
        if self.removes is None:
            self.removes = []
            self.removes += self.install()

    def close(self) -> None:
        """Take back what was added, and add nothing later; again is harmless."""
        with LOADING:
            if self in _PLUG_INS:
                _PLUG_INS.remove(self)
            while self.removes:
                self.removes.pop()()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def register_plug_in(area: str, install: Install) -> PlugIn:
    """Let `install` add to an area: now, or when that has been loaded."""
    made = PlugIn(area, install)
    with LOADING:
        _PLUG_INS.append(made)
        if area in _READY:
            made.add()
    return made


def ready(area: str) -> None:
    """Let everything be added that is registered for an area."""
    with LOADING:
        _READY[area] = None
        for each in tuple(_PLUG_INS):
            if each.area == area:
                each.add()


def add_row(table: dict[K, V], key: K, value: V, taken: str = "is there") -> Remove:
    """Put a row of a plug-in into a table; what comes back takes it out again.

    `taken` says of a key, in an assertion, what it is or has already.
    """
    assert key not in table, f"{key} {taken} already"
    table[key] = value

    def remove() -> None:
        if table.get(key) is value:
            del table[key]

    return remove
