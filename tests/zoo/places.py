"""Hiding places: where a registry's memory can be, as source beside a `Frame`.

A place defines `create()`, which returns a fresh registry, and that registry's
`load()` and `store(value)`; values are numbers below `SIZE`, and 0 is the fresh one.
Whatever lives longer than a registry is put back by `create`, except where a place is
`"process"`, whose very fault is that it is not.

`seal` says what no form of the objects can show:

- `"opaque"`: the memory is in a C object that tells nobody;
- `"outside"`: it is in another package or in the interpreter itself;
- `"process"`: `create` does not make a fresh system;
- `"volatile"`: collecting garbage puts the memory back to 0 (and a form can show it).
"""

from dataclasses import dataclass
from typing import Literal

Seal = Literal["", "opaque", "outside", "process", "volatile"]


@dataclass(frozen=True)
class Place:
    """A hiding place; a memory of at most `capacity` values fits in."""

    kind: str
    name: str
    source: str
    capacity: int = 6
    seal: Seal = ""


def box(
    kind: str, name: str, fresh: str, load: str, store: str, **more: object
) -> Place:
    """A place inside of the registry: one statement, expression, statement."""
    head = str(more.pop("head", ""))
    source = f"""\
{head}
class Registry(Frame):
    def __init__(self):
        super().__init__()
        {_indented(fresh)}

    def load(self):
        {_indented(load)}

    def store(self, value):
        {_indented(store)}


def create():
    return Registry()
"""
    return Place(kind, name, source, **more)  # type: ignore[arg-type]  # its fields


def _indented(text: str) -> str:
    return text.strip("\n").replace("\n", "\n        ")
