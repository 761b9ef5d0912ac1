"""What deceitful cases are made of, and how each is judged.

A case builds roots and changes something that is hidden in a deceitful place.  Two
builds must have one form, the change must give another, and no code of the case may run
while its form is made.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from everyorder.harness.state import FollowedScope, Heap, differences


@dataclass(frozen=True)
class Case:
    """How to build roots, and how to change what they reach."""

    build: Callable[[], Any]
    change: Callable[[Any], object]
    restore: Callable[[Any], object] | None = None


class Box:
    """An object with attributes."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


ran: list[str] = []


class Loud:
    """An object that tells when any of its code runs."""

    def __init__(self, **attributes: Any) -> None:
        object.__getattribute__(self, "__dict__").update(attributes)

    def __getattribute__(self, name: str) -> Any:
        ran.append(name)
        return object.__getattribute__(self, name)

    def __eq__(self, other: object) -> bool:
        ran.append("==")
        return self is other

    def __hash__(self) -> int:
        ran.append("hash")
        return 7

    def __iter__(self) -> Iterator[Any]:
        ran.append("iter")
        return iter(())

    def __len__(self) -> int:
        ran.append("len")
        return 0

    def __bool__(self) -> bool:
        ran.append("bool")
        return False

    def __repr__(self) -> str:
        ran.append("repr")
        return "loud"

    def __str__(self) -> str:
        ran.append("str")
        return "loud"

    def __reduce_ex__(self, protocol: Any) -> Any:
        ran.append("reduce")
        return (Loud, ())

    @property
    def __class__(self) -> type:
        ran.append("class")
        return int

    @__class__.setter
    def __class__(self, value: type) -> None:
        raise AssertionError(value)


def put(name: str, value: Any) -> Callable[[Any], None]:
    def change(o: Any) -> None:
        object.__getattribute__(o, "__dict__")[name] = value

    return change


class Cases(dict[str, Case]):
    """Cases by name."""

    def add(self, name: str, build: Any, change: Any, restore: Any = None) -> None:
        assert name not in self
        self[name] = Case(build, change, restore)


def ring(size: int) -> Box:
    """Objects of which each is the `next` of another."""
    boxes = [Box() for _ in range(size)]
    for place, box in enumerate(boxes):
        box.__dict__["next"] = boxes[place - 1]
    return boxes[0]


def judge(one: Case, packages: set[str], *, opaque: bool = False) -> None:
    """Assert that a hidden change gives another form, and nothing else does.

    An opaque object is named only if there is one.
    """
    heap = Heap(FollowedScope(frozenset(packages)))
    roots = {"root": one.build()}
    ran.clear()
    before = heap.form(roots)
    portrait = heap.portrait(roots)
    assert heap.form(roots) == before, "a look changes nothing"
    assert ran == [], "no code of the state runs"
    twin = one.build()
    ran.clear()
    again = heap.form({"root": twin})
    assert differences(portrait, heap.portrait({"root": twin})) == ()
    assert again == before, "two builds have one form"
    try:
        one.change(roots["root"])
        ran.clear()
        after = heap.form(roots)
        assert after.blind != before.blind
        found = differences(portrait, heap.portrait(roots))
        assert found, "a difference has a path"
        assert ran == [], "no code of the state runs"
    finally:
        if one.restore is not None:
            one.restore(roots["root"])
        ran.clear()
    assert any(each.kind == "opaque" for each in heap.caveats()) == opaque
