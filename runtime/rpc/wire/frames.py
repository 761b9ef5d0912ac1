"""Frames: the header of a packet, and what makes a packet one of ours.

True only here: the layout of the header and the kinds of packets.  A packet is a list
of buffers: the first is header and body, the others are those of a payload.

    offset  bytes
         0      2  mark
         2      1  version
         3      1  kind of the packet
         4      8  group: the incarnation of its keeper, 0 for who is in none yet
        12      8  source: the incarnation of the sender
        20      8  target: that of the receiver, 0 where it is not known
        28      4  session of the sender: how often it began a channel with this peer
        32      4  session of the receiver, as the sender knows it, or 0
        36      8  sequence: of DATA only
        44      8  acknowledged: all up to this sequence came

Rules: numbers are little-endian; another layout is another version; `parse` takes any
bytes and never raises.
"""

from collections.abc import Sequence
from enum import Enum, IntEnum
from struct import Struct
from typing import NamedTuple

Buffer = bytes | bytearray | memoryview

MARK = b"eo"
VERSION = 1
HEADER = Struct("<2sBBQQQIIQQ")


class Kind(IntEnum):
    """Kinds of packets."""

    DATA = 1
    HELLO = 2
    WELCOME = 3
    PING = 4
    PONG = 5
    RESET = 6
    BYE = 7
    JOIN = 8
    ADMITTED = 9
    REJECTED = 10


# The largest number of a kind: they are those from 1 on.
LAST = max(Kind)


class Flaw(Enum):
    """Why a packet is dropped; each is counted under its name."""

    CUT = "it is shorter than a header"
    MARK = "it does not begin with the mark"
    VERSION = "it is of another version"
    KIND = "its kind is not known"
    BODY = "its body is not what its kind has"
    LARGE = "it is larger than is taken here"
    COUNT = "it has more parts than are taken here"
    GROUP = "it is of another group"
    TARGET = "it is for another life of this worker, or for another worker"
    STRANGER = "its sender is no member"
    KEY = "its key is not that of the sender"
    SESSION = "it is of a session that is over"
    SEQUENCE = "its number is out of the window"


class Head(NamedTuple):
    """The header of a packet."""

    mark: bytes
    version: int
    kind: int
    group: int
    source: int
    target: int
    mine: int
    theirs: int
    sequence: int
    acknowledged: int


def head(
    kind: int,
    group: int,
    source: int,
    target: int,
    mine: int = 0,
    theirs: int = 0,
    sequence: int = 0,
    acknowledged: int = 0,
) -> bytes:
    """The bytes of a header."""
    return HEADER.pack(
        MARK,
        VERSION,
        kind,
        group,
        source,
        target,
        mine,
        theirs,
        sequence,
        acknowledged,
    )


def size(frames: Sequence[Buffer]) -> int:
    """The bytes of all buffers."""
    whole = 0
    for each in frames:
        whole += each.nbytes if isinstance(each, memoryview) else len(each)
    return whole


def parse(frames: Sequence[Buffer]) -> Head | Flaw:
    """The header of a packet, or the first thing that is wrong with it."""
    if not frames:
        return Flaw.CUT
    first = frames[0]
    if (first.nbytes if isinstance(first, memoryview) else len(first)) < HEADER.size:
        return Flaw.CUT
    found = Head._make(HEADER.unpack_from(first))
    if found.mark != MARK:
        return Flaw.MARK
    if found.version != VERSION:
        return Flaw.VERSION
    if not 1 <= found.kind <= LAST:
        return Flaw.KIND
    return found
