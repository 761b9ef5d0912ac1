"""Packets: what one side of a channel sends, and keeps until it is acknowledged.

    Outbox     the window: a message waits until there is room for it, gets the next
               number when it is sent, and is kept until the peer acknowledges that
               number or a later one; it is missing if something that was sent after it
               came, and it did not
    Writer     the headers: a HELLO names no session of the peer, as it is for the next
               one; a RESET names the one that is over
    Parts      payloads that are too large for one packet, in pieces
    Lease      since when each side is known to be there

Rules of the window: one message has room always, however large; what waits keeps its
order.

Rules of parts: a packet that takes longer than a lease to be written keeps signs of
life from coming; so what is larger than `packet` goes ahead of its message, each frame
in pieces of half of that, and the message follows without frames; so does what has more
frames than a packet.  Channels keep the order, so the message takes all that came
before it.  A frame that came in one piece is taken as it is, others are copied into one
buffer; what is larger than is taken here is not kept, and its message is refused.

Rules of the lease: what proves that the peer is there is not when its answer came, but
when that was sent to which it is the answer: `proven`.  The peer heard of this side
then or later, and releases nothing until `expire` after that; this side gives up `dead`
after `proven`, which is earlier, however long the answer took.  What this side keeps
for the peer it keeps until `expire` after `heard`, when anything came last.  A note has
a stamp, and the next packet from the peer that echoes it proves the time of that note;
stamps of late or doubled packets prove what they say, which is less.
"""

from collections import deque
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import replace
from math import inf
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
    VERSION,
    Note,
    PacketKind,
    of_note,
    size,
)


class Sent:
    """A message: its body, the frames that follow, its bytes.

    `stamp` is the number of the last note that was sent before it, `time` when it was
    sent first.
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
        """What is sent, as a value."""
        return self.body, tuple(map(bytes, self.tail))


class Outbox:
    """Messages that wait in `queue`, and those that are on their way in `flight`."""

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
        """As before the first message."""
        self.queue.clear()
        self.restart()

    def restart(self) -> None:
        """Forget what is on its way; what waits is sent in the next session."""
        self.flight.clear()
        self.flying = 0
        self.following = 1
        self.acked = 0

    def room(self, size: int) -> bool:
        """Whether one more message may be on its way."""
        return not self.flight or (
            len(self.flight) < self._packets and self.flying + size <= self._bytes
        )

    def number(self, message: Sent, now: float) -> None:
        """A message is sent for the first time."""
        message.sequence = self.following
        message.time = now
        self.following += 1
        self.flight.append(message)
        self.flying += message.size

    def acknowledge(self, sequence: int) -> float | None:
        """All up to a number came: when the last of them was sent first.

        None where nothing follows from it, or nothing of that number was sent.
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
        """What was sent before a note that came, and did not come."""
        return [
            each
            for each in self.flight
            if each.stamp < stamp and each.sequence not in early
        ]


_DATA = int(PacketKind.DATA)


class Packet(NamedTuple):
    """What is to be sent: the endpoint, and the frames."""

    endpoint: str
    frames: list[Buffer]


class PacketWriter:
    """Writes the packets of one side of a channel; `me` and `peer` are incarnations."""

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
        """A message of a session; all up to `received` came."""
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
        """A note, with the numbers of its kind."""
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


def message_name(frames: Sequence[Buffer]) -> str:
    """How the message in a packet of a channel is called; "" where there is none."""
    first = memoryview(frames[0])
    head = HEADER.unpack_from(first)
    if head[2] != _DATA or first.nbytes == HEADER.size:
        return ""
    kind = KINDS.get(first[HEADER.size])
    return kind.__name__ if kind is not None else ""


# The times of so many notes are remembered; an answer to an older one proves nothing.
_REMEMBERED = 8


class LeaseTimes:
    """Times of one session; `stamp` is that of the last note, `echo` the peer's."""

    __slots__ = ("_dead", "_expire", "_notes", "echo", "heard", "proven", "stamp")

    def __init__(self, settings: Settings) -> None:
        self._dead = settings.dead
        self._expire = settings.expire
        self._notes: deque[tuple[int, float]] = deque(maxlen=_REMEMBERED)
        self.clear()

    def clear(self) -> None:
        """As before a session."""
        self._notes.clear()
        self.stamp = 0
        self.echo = 0
        self.heard = -inf
        self.proven = -inf

    def note(self, now: float) -> int:
        """A note is sent: its stamp."""
        self.stamp += 1
        self._notes.append((self.stamp, now))
        return self.stamp

    def echoed(self, stamp: int) -> None:
        """The peer has a note."""
        for number, time in self._notes:
            if number == stamp:
                self.prove(time)

    def prove(self, time: float) -> None:
        """The peer has something that was sent at a time."""
        if time > self.proven:
            self.proven = time

    def ends(self) -> float:
        """When this side gives up."""
        return self.proven + self._dead

    def expires(self) -> float:
        """When the peer has given up for certain."""
        return self.heard + self._expire

    def picture(self, now: float) -> Hashable:
        """The times, relative to now, and the stamps, to the last one."""
        return (
            None if self.heard == -inf else round(self.heard - now, 6),
            None if self.proven == -inf else round(self.proven - now, 6),
            tuple(
                (self.stamp - stamp, round(time - now, 6))
                for stamp, time in self._notes
            ),
        )


# The buffers of a payload: the field that numbers them has no more.
BUFFERS = 1 << 16


def split(
    body: bytes, tail: Sequence[Buffer], packet: int
) -> Iterator[tuple[bytes, Sequence[Buffer]]]:
    """A message as packets: its frames in pieces, and then the message."""
    most = max(1, packet // 2)
    for number, frame in enumerate(tail):
        view = memoryview(frame).cast("B")
        for start in range(0, max(1, view.nbytes), most):
            piece = view[start : start + most]
            yield encode(FramePart(number, view.nbytes, start, (piece,)))
    yield body, ()


class Parts:
    """Frames that came ahead of their message."""

    __slots__ = ("_filled", "_frames", "_size", "_wrong")

    def __init__(self) -> None:
        self.clear()

    def __bool__(self) -> bool:
        return bool(self._frames) or self._wrong

    def clear(self) -> None:
        """Forget what came."""
        self._frames: list[Buffer] = []
        self._filled = 0
        self._size = 0
        # Whether a piece was none that belongs there, or too much.
        self._wrong = False

    def take(self, part: FramePart, largest: int) -> None:
        """A piece came; those of one message have `largest` bytes at most."""
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
        """The message that follows, with its frames; None if it is to be refused."""
        wrong = self._wrong or self._unfinished()
        frames = self._frames
        self.clear()
        if wrong or not isinstance(message, Call | Answer):
            return None
        return replace(message, payload=(*message.payload, *frames))
