"""What values tests share: references, workers, things that other modules can name."""

import _thread
from typing import Any

from everyorder.runtime.rpc.codec import Packed, pack, unpack
from everyorder.runtime.rpc.protocol.events import Buffer
from everyorder.runtime.rpc.protocol.identities import WorkerInfo

HERE = WorkerInfo("here", 0)
THERE = WorkerInfo("there", 1)
BEYOND = WorkerInfo("beyond", 2)


class Reference:
    """Stands for a reference: two are equal if they mean the same."""

    def __init__(self, to: str) -> None:
        self.to = to

    def __reduce__(self) -> Any:
        raise AssertionError("a reference is carried, never pickled")


class Known:
    """Knows of references, and counts what it is asked."""

    kinds: tuple[type, ...] = (Reference,)

    def __init__(self) -> None:
        self.carried: list[str] = []
        self.received: list[str] = []

    def carry(self, reference: Any) -> Any:
        self.carried.append(reference.to)
        return f"fork of {reference.to}"

    def receive(self, carried: Any) -> Any:
        self.received.append(carried)
        return Reference(carried.removeprefix("fork of "))


def as_received(packed: Packed) -> list[Buffer]:
    """The frames as a socket would give them: writable, of their own."""
    return [bytearray(each) for each in packed.payload]


def there(value: Any) -> Any:
    """The value as another process would get it."""
    return unpack(as_received(pack(value)))


def double(value: Any) -> Any:
    return value + value


class Point:
    def __init__(self, x: int, y: int) -> None:
        self.x, self.y = x, y

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and vars(self) == vars(other)

    __hash__ = object.__hash__

    def norm(self) -> int:
        return self.x * self.x + self.y * self.y

    @classmethod
    def origin(cls) -> "Point":
        return cls(0, 0)


class Slotted:
    """Keeps what it is given in a slot."""

    __slots__ = ("inner",)

    def __init__(self, inner: Any) -> None:
        self.inner = inner


class Weight:
    """A class for which a module of a user registers a reducer."""

    def __init__(self, value: int) -> None:
        self.value = value


LOCK = _thread.allocate_lock()
