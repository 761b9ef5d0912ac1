"""Packets: what one side of a channel sends, and stores until it is acknowledged.

    Outbox        the window: a message waits until there is room, is numbered when it
                  is sent, and is stored until the peer acknowledges that number or a
                  later one; it is missing if a later packet arrived, and it did not
    PacketWriter  the headers: a HELLO does not name a session of the peer, as it is
                  for the next one; a RESET names the one that is over
    Parts         payloads that are too large for one packet, in parts

Rules of the window: one message always has room, however large; waiting messages keep
their order.

Rules of parts: a packet that takes longer to send than a lease would delay heartbeats;
so the frames of a message that is larger than `packet` are sent ahead of it, each in
parts of half that size, and the message follows without frames; the same applies to a
message with more frames than a packet may have.  Channels keep the order, so the
message receives all parts that arrived before it.  A frame that arrives in one part is
used without a copy, others are copied into one buffer; frames beyond the limit of this
worker are not stored, and their message is refused.
"""

from collections import deque
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from everyorder.runtime.rpc.protocol.events import Buffer, Settings
from everyorder.runtime.rpc.protocol.messages import (
    KINDS,
    Answer,
    Call,
    FramePart,
    Message,
    encode,
)
from everyorder.runtime.rpc.protocol.wire import (
    HEADER,
    MARK,
    NOTHING,
    VERSION,
    Note,
    PacketKind,
    of_note,
    size,
)


class Sent:
    """A sent message: its body, the frames that follow, its size in bytes.

    `stamp` is the number of the last note that was sent before it, `time` the time of
    its first transmission.
    """

    __slots__ = ("body", "sequence", "size", "stamp", "tail", "time")

    def __init__(self, body: bytes, tail: Sequence[Buffer], size: int) -> None:
        self.body = body
        self.tail = tail
        self.size = size
        self.sequence = 0
        self.stamp = 0
        self.time = 0.0

    def written(self) -> Hashable:
        """Return the sent bytes, as a value."""
        return self.body, tuple(map(bytes, self.tail))


class Outbox:
    """Messages that wait in `queue`, and messages in flight, in `flight`."""

    __slots__ = (
        "_bytes",
        "_packets",
        "acked",
        "flight",
        "flying",
        "following",
        "queue",
    )

    def __init__(self, settings: Settings) -> None:
        self._packets = settings.window
        self._bytes = settings.window_bytes
        self.queue: deque[Sent] = deque()
        self.flight: deque[Sent] = deque()
        self.clear()

    def clear(self) -> None:
        """Reset to the state before the first message."""
        self.queue.clear()
        self.restart()

    def restart(self) -> None:
        """Forget messages in flight; queued ones are sent in the next session."""
        self.flight.clear()
        self.flying = 0
        self.following = 1
        self.acked = 0

    def room(self, size: int) -> bool:
        """Return True if one more message of that size may be in flight."""
        return not self.flight or (
            len(self.flight) < self._packets and self.flying + size <= self._bytes
        )

    def number(self, message: Sent, now: float) -> None:
        """Assign a number to a message that is sent for the first time."""
        message.sequence = self.following
        message.time = now
        self.following += 1
        self.flight.append(message)
        self.flying += message.size

    def acknowledge(self, sequence: int) -> float | None:
        """Remove acknowledged messages; return the time when the last one was first
        sent.

        Return None if nothing new is acknowledged, or if the number was not sent yet.
        """
        if not self.acked < sequence < self.following:
            return None
        self.acked = sequence
        flight = self.flight
        time = 0.0
        while flight and flight[0].sequence <= sequence:
            done = flight.popleft()
            self.flying -= done.size
            time = done.time
        return time

    def missing(self, stamp: int, early: Collection[int]) -> list[Sent]:
        """Return the messages that were sent before a received note, and did not
        arrive.
        """
        return [
            each
            for each in self.flight
            if each.stamp < stamp and each.sequence not in early
        ]


_DATA = int(PacketKind.DATA)


class Packet(NamedTuple):
    """A packet to send: the endpoint, and the frames."""

    endpoint: str
    frames: list[Buffer]


class PacketWriter:
    """Writer of packets of a channel side; `me` and `peer` are incarnations."""

    __slots__ = ("_endpoint", "_group", "_me", "_packets", "_peer")

    def __init__(
        self, packets: list[Packet], endpoint: str, group: int, me: int, peer: int
    ) -> None:
        self._packets = packets
        self._endpoint = endpoint
        self._group = group
        self._me = me
        self._peer = peer

    def message(self, message: Sent, mine: int, theirs: int, received: int) -> None:
        """Write a message of a session; acknowledge messages up to `received`."""
        header = HEADER.pack(
            MARK,
            VERSION,
            _DATA,
            self._group,
            self._me,
            self._peer,
            mine,
            theirs,
            message.sequence,
            received,
        )
        frames: list[Buffer] = [header + message.body]
        if message.tail:
            frames += message.tail
        self._packets.append(Packet(self._endpoint, frames))

    def note(
        self,
        kind: PacketKind,
        note: Note,
        mine: int,
        theirs: int,
        sequence: int,
        acknowledged: int,
    ) -> None:
        """Write a note, with the numbers of its kind."""
        header = HEADER.pack(
            MARK,
            VERSION,
            kind,
            self._group,
            self._me,
            self._peer,
            mine,
            theirs,
            sequence,
            acknowledged,
        )
        self._packets.append(Packet(self._endpoint, [header + of_note(note)]))

    def reset(self, theirs: int, mine: int = 0) -> None:
        """Write that a session of the peer is over."""
        self.note(PacketKind.RESET, NOTHING, mine, theirs, 0, 0)


def message_name(frames: Sequence[Buffer]) -> str:
    """Return the name of the message in a packet of a channel; "" for a note."""
    first = memoryview(frames[0])
    head = HEADER.unpack_from(first)
    if head[2] != _DATA or first.nbytes == HEADER.size:
        return ""
    kind = KINDS.get(first[HEADER.size])
    return kind.__name__ if kind is not None else ""


# Buffers of a payload: the field for their number has two bytes.
BUFFERS = 1 << 16


def split(
    body: bytes, tail: Sequence[Buffer], packet: int
) -> Iterator[tuple[bytes, Sequence[Buffer]]]:
    """Yield a message as packets: its frames in parts, and then the message."""
    most = max(1, packet // 2)
    for number, frame in enumerate(tail):
        view = memoryview(frame).cast("B")
        for start in range(0, max(1, view.nbytes), most):
            piece = view[start : start + most]
            yield encode(FramePart(number, view.nbytes, start, (piece,)))
    yield body, ()


class Parts:
    """Frames that arrived ahead of their message."""

    __slots__ = ("_filled", "_frames", "_size", "_wrong")

    def __init__(self) -> None:
        self.clear()

    def __bool__(self) -> bool:
        return bool(self._frames) or self._wrong

    def clear(self) -> None:
        """Forget the parts."""
        self._frames: list[Buffer] = []
        self._filled = 0
        self._size = 0
        # True after a misplaced part, or too many bytes.
        self._wrong = False

    def take(self, part: FramePart, largest: int) -> None:
        """Add a part; the parts of one message have `largest` bytes at most."""
        (piece,) = part.payload
        length = size((piece,))
        if not part.offset:
            self._size += part.size
            whole = length == part.size
            self._wrong |= (
                self._size > largest
                or part.frame != len(self._frames)
                or self._unfinished()
            )
            if not self._wrong:
                self._frames.append(piece if whole else bytearray(part.size))
                self._filled = 0
        elif part.frame != len(self._frames) - 1 or part.offset != self._filled:
            self._wrong = True
        if self._wrong:
            self._frames.clear()
            return
        frame = self._frames[-1]
        if frame is not piece:
            if self._filled + length > len(frame):
                self._wrong = True
                return
            memoryview(frame)[self._filled : self._filled + length] = piece
        self._filled += length

    def _unfinished(self) -> bool:
        return bool(self._frames) and self._filled != size(self._frames[-1:])

    def complete(self, message: Message) -> Message | None:
        """Return the message with its frames; None if it must be refused."""
        wrong = self._wrong or self._unfinished()
        frames = self._frames
        self.clear()
        if wrong or not isinstance(message, Call | Answer):
            return None
        return replace(message, payload=(*message.payload, *frames))
