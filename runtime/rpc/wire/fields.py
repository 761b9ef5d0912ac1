"""Fields: numbers, texts and identities as bytes, read with every length checked.

True only here: how a field is written.  A number has a fixed width; a text is its
length in two bytes, then UTF-8.

Rules: a `Reader` never reads past its end, and whoever reads calls `end`, so that bytes
left over are an error; each text and each list has a limit, which is looked at before
anything of it is read.

Raises: Malformed, wherever bytes are not what belongs there.
"""

from collections.abc import Callable
from struct import Struct, error
from typing import TypeVar

from runtime.rpc.identities import LONGEST_NAME, Fork, GloballyUniqueId, Node

T = TypeVar("T")

BYTE = Struct("<B")
SHORT = Struct("<H")
LONG = Struct("<Q")
# created_on, local_id, incarnation
UNIQUE = Struct("<iQQ")
# id, incarnation
NODE = Struct("<iQ")

# In bytes; an endpoint holds the path of a socket.
NAME = LONGEST_NAME
ENDPOINT = 1024
KEY = 128
TYPE = 4096
DETAIL = 4096


class Malformed(Exception):
    """Bytes are not what belongs there; told to nobody, only counted."""


class Reader:
    """Reads fields from a buffer, one after the other."""

    __slots__ = ("at", "buffer", "stop")

    def __init__(self, buffer: memoryview, at: int = 0) -> None:
        self.buffer = buffer
        self.at = at
        self.stop = buffer.nbytes

    def numbers(self, layout: Struct) -> tuple[int, ...]:
        """Numbers of a layout."""
        try:
            found = layout.unpack_from(self.buffer, self.at)
        except error:
            raise Malformed from None
        self.at += layout.size
        return found

    def number(self, layout: Struct = LONG) -> int:
        """One number."""
        return self.numbers(layout)[0]

    def text(self, most: int) -> str:
        """A text of so many bytes at most."""
        length = self.number(SHORT)
        if length > most or self.at + length > self.stop:
            raise Malformed
        start, self.at = self.at, self.at + length
        try:
            return str(self.buffer[start : self.at], "utf-8")
        except UnicodeDecodeError:
            raise Malformed from None

    def many(self, most: int, each: Callable[["Reader"], T]) -> tuple[T, ...]:
        """A list of so many at most."""
        count = self.number(SHORT)
        if count > most:
            raise Malformed
        return tuple(each(self) for _ in range(count))

    def unique(self) -> GloballyUniqueId:
        """A number that no two workers give twice."""
        return GloballyUniqueId(*self.numbers(UNIQUE))

    def node(self) -> Node:
        """A worker's life."""
        number, incarnation = self.numbers(NODE)
        return Node(self.text(NAME), number, incarnation)

    def fork(self) -> Fork:
        """A reference."""
        return Fork(self.unique(), self.unique(), self.node(), self.text(TYPE))

    def rest(self) -> memoryview:
        """What is left."""
        start, self.at = self.at, self.stop
        return self.buffer[start:]

    def end(self) -> None:
        """Nothing may be left."""
        if self.at != self.stop:
            raise Malformed


def of_text(text: str, most: int) -> bytes:
    """A text; too long a one is cut where it may be, as no reader would take it."""
    written = text.encode("utf-8", "replace")
    if len(written) > most:
        written = written[:most].decode("utf-8", "ignore").encode()
    return SHORT.pack(len(written)) + written


def of_unique(each: GloballyUniqueId) -> bytes:
    """A number that no two workers give twice."""
    return UNIQUE.pack(each.created_on, each.local_id, each.incarnation)


def of_node(node: Node) -> bytes:
    """A worker's life."""
    return NODE.pack(node.id, node.incarnation) + of_text(node.name, NAME)


def of_fork(fork: Fork) -> bytes:
    """A reference."""
    return b"".join(
        (
            of_unique(fork.rref),
            of_unique(fork.fork),
            of_node(fork.owner),
            of_text(fork.type, TYPE),
        )
    )
