"""Parts: payloads that are too large for one packet, sent in pieces and put together.

True only here: how large a packet is at most.  A packet that takes longer than a lease
to be written keeps signs of life from coming; so what is larger than `packet` goes
ahead of its message, each frame in pieces of half of that, and the message follows
without frames; so does what has more frames than a packet.  Channels keep the order, so
the message takes all that came before it.

Rules: a frame that came in one piece is taken as it is, others are copied into one
buffer; what is larger than is taken here is not kept, and its message is refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from runtime.rpc.messages.codec import encode
from runtime.rpc.messages.kinds import Answer, Call, Message, Part
from runtime.rpc.session.events import Buffer
from runtime.rpc.wire import size

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
            yield encode(Part(number, view.nbytes, start, (piece,)))
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

    def take(self, part: Part, largest: int) -> None:
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
