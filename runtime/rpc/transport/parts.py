"""Packets as parts: small frames joined behind a table of lengths, large ones apart.

True only here: how the frames of a packet lie in the parts of a message of ZeroMQ.
Each part costs both sides a call and a switch of threads, copying a few thousand bytes
does not; large frames are not copied.

Rules: the first part is a table of 32-bit words, little-endian, and the small frames:
how many frames there are, then the length of each, or `_APART` for one that follows as
a part of its own.  What does not fit exactly is no packet.
"""

from collections.abc import Sequence
from struct import Struct

from runtime.rpc.transport.interface import Buffer

# A frame from here on is a part of its own: there a copy costs as much as another part.
LARGE = 16 * 1024
# More frames than a packet of ours has; a table of them is 256 KiB.
MOST_FRAMES = 1 << 16

# In the table, a frame that is a part of its own.
_APART = 0xFFFFFFFF
_WORD = Struct("<I")
# Of packets with few frames, which nearly all are.
_TABLES = tuple(Struct(f"<{1 + n}I") for n in range(9))


def _table(frames: int) -> Struct:
    return _TABLES[frames] if frames < len(_TABLES) else Struct(f"<{1 + frames}I")


def flat(buffer: Buffer) -> Buffer:
    """A buffer whose length is that of its bytes; only a scattered one is copied."""
    if isinstance(buffer, bytes | bytearray):
        return buffer
    view = memoryview(buffer)
    return view.cast("B") if view.c_contiguous else view.tobytes()


def joined(frames: Sequence[Buffer]) -> list[Buffer]:
    """The parts by which a packet travels.

    >>> joined([b"ab", b"c"])
    [b'\\x02\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x01\\x00\\x00\\x00abc']
    """
    if len(frames) == 1 and type(each := frames[0]) is bytes and len(each) < LARGE:
        # As nearly all are.
        return [_TABLES[1].pack(1, len(each)) + each]
    lengths = [len(frames)]
    small: list[Buffer] = [b""]
    parts: list[Buffer] = [b""]
    for each in frames:
        frame = flat(each)
        if len(frame) < LARGE:
            lengths.append(len(frame))
            small.append(frame)
        else:
            lengths.append(_APART)
            parts.append(frame)
    small[0] = _table(len(frames)).pack(*lengths)
    parts[0] = b"".join(small)
    return parts


def parted(first: bytes, others: Sequence[Buffer]) -> list[Buffer] | None:
    """The frames of a packet; None where the parts are no packet of ours."""
    if len(first) < _WORD.size:
        return None
    (many,) = _WORD.unpack_from(first)
    table = _table(many) if many <= MOST_FRAMES else None
    if table is None or len(first) < table.size:
        return None
    frames: list[Buffer] = []
    at = table.size
    apart = 0
    for length in table.unpack_from(first)[1:]:
        if length == _APART:
            if apart == len(others):
                return None
            frames.append(others[apart])
            apart += 1
        else:
            frames.append(first[at : at + length])
            at += length
    return frames if at == len(first) and apart == len(others) else None
