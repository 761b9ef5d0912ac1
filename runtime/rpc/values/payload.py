"""Payloads: what becomes of values on their way, and what is kept of a message.

True only here: the frames of a payload, and who is asked about references.

    frame 0     what was written, then the table of tensors if there is one, then the
                sizes of both, and in the last byte how it was written
    others      elements of large tensors, then other large buffers, as they are

Rules:
- each payload is of one message: who writes or reads it is known to the thread, so that
  reducers find where to put what travels beside the pickle.
"""

import struct
from collections.abc import Sequence
from functools import cache
from threading import local
from typing import Any, NamedTuple, Protocol

from runtime.errors.rpc import Undecodable
from runtime.locks import load
from runtime.rpc.session.events import Buffer, Payload
from runtime.rpc.values.tensors import IncomingTensors, OutgoingTensors

# How a payload was written: its last byte.  Plain ones have one frame, and no table.
PLAIN, PICKLED, RESTRICTED, SWAPPED = 1, 2, 3, 4

# Of the table, and of the frames that tensors have for themselves.
_SIZES = struct.Struct("<IIB")


class Packed(NamedTuple):
    """A payload, and the references that it carries."""

    payload: list[Buffer]
    carries: list[Any]


class References(Protocol):
    """Who knows of references to values of other workers."""

    # The classes of references.
    kinds: tuple[type, ...]

    def carry(self, reference: Any) -> Any:
        """What a session is told of a reference that leaves."""

    def receive(self, carried: Any) -> Any:
        """The reference to what a session told of it."""


class _None:
    """No references."""

    kinds: tuple[type, ...] = ()

    def carry(self, reference: Any) -> Any:
        raise AssertionError("there are no classes of references")

    def receive(self, carried: Any) -> Any:
        raise AssertionError("nothing was carried")


NO_REFERENCES: References = _None()


class Mute:
    """References that are known and not asked, for who looks whether a value fits."""

    def __init__(self, references: References) -> None:
        self.kinds = references.kinds

    def carry(self, reference: Any) -> Any:
        """Nothing."""
        return None

    def receive(self, carried: Any) -> Any:
        """Nothing."""
        return None


class Outgoing:
    """What is kept while a payload is written."""

    # Most messages have none of these.
    _places: dict[int, tuple[int, Any]] | None = None
    _tensors: OutgoingTensors | None = None
    buffers: list[Buffer] | None = None

    def __init__(self, references: References) -> None:
        self.references = references
        self.carries: list[Any] = []

    @property
    def is_plain(self) -> bool:
        """Whether nothing travels beside what was written."""
        return not (self.carries or self.buffers or self._tensors)

    @property
    def tensors(self) -> OutgoingTensors:
        """The tensors of the payload."""
        if self._tensors is None:
            self._tensors = OutgoingTensors()
        return self._tensors

    def carried(self, reference: Any) -> int:
        """The place of a reference among those that are carried, of one object one."""
        if self._places is None:
            self._places = {}
        place, _ = self._places.get(id(reference), (-1, None))
        if place < 0:
            place = len(self.carries)
            self.carries.append(self.references.carry(reference))
            # As long as it is kept, no other object has its number.
            self._places[id(reference)] = place, reference
        return place

    def beside(self, buffer: Buffer) -> None:
        """Let a buffer travel in a frame of its own."""
        if self.buffers is None:
            self.buffers = []
        self.buffers.append(buffer)

    def tail(self, kind: int) -> tuple[bytes, list[Buffer]]:
        """The end of frame 0, and the other frames."""
        table, frames = (b"", []) if self._tensors is None else self._tensors.written()
        sizes = _SIZES.pack(len(table), len(frames), kind)
        return table + sizes, [*frames, *(self.buffers or ())]


@cache
def _whole() -> None:
    """Let what arrives be computed with, also where no tensor was before."""
    load("runtime.whole")


class Incoming:
    """What is kept while a payload is read.

    Raises:
        Undecodable: its frames are not those of a payload.
    """

    __slots__ = ("_table", "_tensors", "body", "buffers", "carries", "references")

    def __init__(
        self, payload: Payload, references: References, carries: Sequence[Any]
    ) -> None:
        frame = memoryview(payload[0])
        end = len(frame) - _SIZES.size
        if end < 0:
            raise Undecodable(found="A payload", reason="it is cut")
        size, count, _ = _SIZES.unpack_from(frame, end)
        if size > end or count > len(payload) - 1:
            raise Undecodable(found="A payload", reason="it is cut")
        self.references = references
        # All of them, used or not: who sent them waits for each.
        self.carries = [references.receive(each) for each in carries]
        self.body = frame[: end - size]
        self.buffers = payload[1 + count :]
        self._table = frame[end - size : end], payload[1 : 1 + count]
        self._tensors: IncomingTensors | None = None

    @property
    def tensors(self) -> IncomingTensors:
        """The tensors of the payload.  Raises `Undecodable`."""
        if self._tensors is None:
            _whole()
            self._tensors = IncomingTensors(*self._table)
        return self._tensors

    def reference(self, place: int) -> Any:
        """The reference at a place.  Raises `Undecodable`."""
        if not 0 <= place < len(self.carries):
            raise Undecodable(found="A reference", reason="it was not carried along")
        return self.carries[place]


class Current(local):
    """The messages that this thread writes and reads; None outside of `pack`."""

    outgoing: Outgoing | None = None
    incoming: Incoming | None = None
    # A pickler and its file, for the next message.
    pickler: Any = None


CURRENT = Current()


def outgoing() -> Outgoing:
    """The message that is written now; nobody asks outside of one."""
    found = CURRENT.outgoing
    assert found is not None, "what asks is known to picklers of messages only"
    return found


def incoming() -> Incoming:
    """The message that is read now.  Raises `Undecodable` outside of one."""
    found = CURRENT.incoming
    if found is None:
        raise Undecodable(found="A part of a message", reason="it is read outside")
    return found
