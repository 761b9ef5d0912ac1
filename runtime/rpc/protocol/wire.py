"""Wire format: fields and headers as bytes, and packets outside of a channel.

    FieldReader, of_text, ...    numbers, strings and identities as bytes, and back
    Field, record                the same as tables: how a value is read and written
    HEADER, head, parse          the header of a packet, and its check
    Note, of_note, note          bodies of packets without a message of a channel

Rules of fields:
- a number has a fixed width; a string is its length in two bytes, then UTF-8;
- a `FieldReader` never reads past its end, and `end` reports bytes that are left over;
  each string and each list has a limit, which is checked before its content is read;
- bytes that break a rule raise `MalformedPacket`.

A packet is a list of buffers: the first is header and body, the others are those of a
payload.

    offset  bytes
         0      2  mark
         2      1  version
         3      1  kind of the packet
         4      8  group: the incarnation of its keeper, 0 outside of a group
        12      8  source: the incarnation of the sender
        20      8  target: that of the receiver, 0 if it is unknown
        28      4  session of the sender: how often it began a channel with this peer
        32      4  session of the receiver, as the sender knows it, or 0
        36      8  sequence: of DATA only
        44      8  acknowledged: all messages up to this sequence arrived

Rules of packets: numbers are little-endian; another layout is another version; `parse`
accepts any bytes and never raises.

A packet that is not DATA, whose body is a message of `runtime.rpc.protocol.messages`,
is a note:

    JOIN        Join        a worker asks to join, and does not know the keeper yet
    ADMITTED    Admission   the worker is a member: its number, and all members
    REJECTED    Rejection   the worker is refused: the reason
    HELLO       Hello       a channel begins: the limit of its sender
    WELCOME     Hello       the answer
    PING        Heartbeat   a probe: is the peer alive, and what has it received
    PONG        Heartbeat   the answer, or an acknowledgement only
    RESET, BYE  Nothing     there is no such channel; the sender leaves

A note may be lost or duplicated: the sender repeats it until it is answered, and the
receiver answers each copy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from struct import Struct, error
from typing import Any, NamedTuple, TypeVar

from everyorder.runtime.rpc.protocol.identities import (
    LONGEST_NAME,
    Fork,
    GloballyUniqueId,
    WorkerNode,
)

T = TypeVar("T")

BYTE = Struct("<B")
SHORT = Struct("<H")
LONG = Struct("<Q")
# created_on, local_id, incarnation
UNIQUE = Struct("<iQQ")
# id, incarnation
NODE = Struct("<iQ")

# Limits in bytes; an endpoint holds the path of a socket.
NAME = LONGEST_NAME
ENDPOINT = 1024
KEY = 128
TYPE = 4096
DETAIL = 4096
# Members in an admission; names in `Waiting`.
MEMBERS = 4096


class MalformedPacket(Exception):
    """Bytes do not follow the format; the packet is dropped and counted."""


class FieldReader:
    """Reader of successive fields of a buffer."""

    __slots__ = ("at", "buffer", "stop")

    def __init__(self, buffer: memoryview, at: int = 0) -> None:
        self.buffer = buffer
        self.at = at
        self.stop = buffer.nbytes

    def numbers(self, layout: Struct) -> tuple[int, ...]:
        """Read the numbers of a layout."""
        try:
            numbers = layout.unpack_from(self.buffer, self.at)
        except error:
            raise MalformedPacket from None
        self.at += layout.size
        return numbers

    def number(self, layout: Struct = LONG) -> int:
        """Read one number."""
        return self.numbers(layout)[0]

    def text(self, most: int) -> str:
        """Read a string of `most` bytes at most."""
        length = self.number(SHORT)
        if length > most or self.at + length > self.stop:
            raise MalformedPacket
        start, self.at = self.at, self.at + length
        try:
            return str(self.buffer[start : self.at], "utf-8")
        except UnicodeDecodeError:
            raise MalformedPacket from None

    def many(self, most: int, each: Callable[["FieldReader"], T]) -> tuple[T, ...]:
        """Read a list of `most` elements at most."""
        count = self.number(SHORT)
        if count > most:
            raise MalformedPacket
        return tuple(each(self) for _ in range(count))

    def unique(self) -> GloballyUniqueId:
        """Read a globally unique id."""
        return GloballyUniqueId(*self.numbers(UNIQUE))

    def node(self) -> WorkerNode:
        """Read a worker's life."""
        number, incarnation = self.numbers(NODE)
        return WorkerNode(self.text(NAME), number, incarnation)

    def fork(self) -> Fork:
        """Read a reference."""
        return Fork(self.unique(), self.unique(), self.node(), self.text(TYPE))

    def rest(self) -> memoryview:
        """Return the remaining bytes."""
        start, self.at = self.at, self.stop
        return self.buffer[start:]

    def end(self) -> None:
        """Raise `MalformedPacket` if bytes are left."""
        if self.at != self.stop:
            raise MalformedPacket


def of_text(text: str, most: int) -> bytes:
    """Encode a string, cut at a character to `most` bytes, the limit of all readers."""
    written = text.encode("utf-8", "replace")
    if len(written) > most:
        written = written[:most].decode("utf-8", "ignore").encode()
    return SHORT.pack(len(written)) + written


def of_unique(each: GloballyUniqueId) -> bytes:
    """Encode a globally unique id."""
    return UNIQUE.pack(each.created_on, each.local_id, each.incarnation)


def of_node(node: WorkerNode) -> bytes:
    """Encode a worker's life."""
    return NODE.pack(node.id, node.incarnation) + of_text(node.name, NAME)


def of_fork(fork: Fork) -> bytes:
    """Encode a reference."""
    return b"".join(
        (
            of_unique(fork.rref),
            of_unique(fork.fork),
            of_node(fork.owner),
            of_text(fork.type, TYPE),
        )
    )


class Field(NamedTuple):
    """How a value is read and written."""

    read: Callable[[FieldReader], Any]
    write: Callable[[Any], bytes]


def _read_flag(reader: FieldReader) -> bool:
    byte = reader.number(BYTE)
    if byte > 1:
        raise MalformedPacket
    return byte == 1


FLAG = Field(_read_flag, BYTE.pack)
NUMBER = Field(FieldReader.number, LONG.pack)
UNIQUE_ID = Field(FieldReader.unique, of_unique)
NODE_ID = Field(FieldReader.node, of_node)


def text(most: int) -> Field:
    """Return the field of a string of `most` bytes at most."""
    return Field(lambda reader: reader.text(most), lambda value: of_text(value, most))


def several(most: int, each: Field) -> Field:
    """Return the field of a tuple; a reader accepts `most` values at most."""
    return Field(
        lambda reader: reader.many(most, each.read),
        lambda values: SHORT.pack(len(values)) + b"".join(map(each.write, values)),
    )


def record(kind: Callable[..., Any], **parts: Field) -> Field:
    """Return the field of an object of `kind`; `parts` are in the order of bytes."""
    fields = [(name, *part) for name, part in parts.items()]

    def read(reader: FieldReader) -> Any:
        return kind(**{name: read_part(reader) for name, read_part, _ in fields})

    def write(value: Any) -> bytes:
        return b"".join([put(getattr(value, name)) for name, _, put in fields])

    return Field(read, write)


Buffer = bytes | bytearray | memoryview

MARK = b"eo"
VERSION = 1
HEADER = Struct("<2sBBQQQIIQQ")


class PacketKind(IntEnum):
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


# The largest number of a kind; the numbers are consecutive from 1.
LAST = max(PacketKind)


class PacketError(Enum):
    """Why a packet is dropped; each reason is counted under its name."""

    CUT = "it is shorter than a header"
    MARK = "it does not begin with the mark"
    VERSION = "it is of another version"
    KIND = "its kind is unknown"
    BODY = "its body is malformed"
    LARGE = "it is larger than this worker accepts"
    COUNT = "it has more frames than this worker accepts"
    GROUP = "it is of another group"
    TARGET = "it is for another life of this worker, or for another worker"
    STRANGER = "its sender is not a member"
    KEY = "its key is not that of the sender"
    SESSION = "it is of a session that is over"
    SEQUENCE = "its number is outside of the window"


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
    """Return the bytes of a header."""
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
    """Return the total size of all buffers in bytes."""
    whole = 0
    for each in frames:
        whole += each.nbytes if isinstance(each, memoryview) else len(each)
    return whole


def parse(frames: Sequence[Buffer]) -> Head | PacketError:
    """Return the header of a packet, or its first error."""
    if not frames:
        return PacketError.CUT
    first = frames[0]
    if (first.nbytes if isinstance(first, memoryview) else len(first)) < HEADER.size:
        return PacketError.CUT
    header = Head._make(HEADER.unpack_from(first))
    if header.mark != MARK:
        return PacketError.MARK
    if header.version != VERSION:
        return PacketError.VERSION
    if not 1 <= header.kind <= LAST:
        return PacketError.KIND
    return header


@dataclass(frozen=True, slots=True)
class Member:
    """A member as other workers reach it: its node, its endpoint, its public key."""

    node: WorkerNode
    endpoint: str
    key: str = ""


MEMBER = record(Member, node=NODE_ID, endpoint=text(ENDPOINT), key=text(KEY))

# Requested ids, and sizes of groups, with -1 for None.
SIGNED = Struct("<q")
# Limit of the early packets that a heartbeat lists; the next one lists more.
EARLY = 64

# Limit of the named figures in a request to join.
FIGURES = 16

_BEAT = Struct("<QQ")
_DOUBLE = Struct("<d")


@dataclass(frozen=True, slots=True)
class Join:
    """A request to join; `id` is the requested number, None for any.

    `shared` are settings that must be equal for all members of a group, by name.
    """

    name: str
    endpoint: str
    key: str = ""
    id: int | None = None
    shared: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Admission:
    """The worker is a member now, as `node`; the keeper is the first of `members`.

    `world_size` is None in an open group; `complete` means that the group had so many
    members at some time.
    """

    node: WorkerNode
    members: tuple[Member, ...]
    world_size: int | None = None
    complete: bool = False


@dataclass(frozen=True, slots=True)
class Rejection:
    """The worker does not become a member."""

    why: str


@dataclass(frozen=True, slots=True)
class Hello:
    """A channel begins; `largest` limits the payloads that its sender accepts, in
    bytes.
    """

    largest: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A proof of life: its number, the peer's last number, sequences received early.

    A number of 0 means that there is none.
    """

    stamp: int = 0
    echo: int = 0
    early: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Nothing:
    """The body of a packet whose kind is its only content."""


NOTHING = Nothing()

Note = Join | Admission | Rejection | Hello | Heartbeat | Nothing


def _read_beat(reader: FieldReader) -> Heartbeat:
    stamp, echo = reader.numbers(_BEAT)
    rest = reader.rest()
    if rest.nbytes % LONG.size or rest.nbytes > EARLY * LONG.size:
        raise MalformedPacket
    return Heartbeat(stamp, echo, tuple(each[0] for each in LONG.iter_unpack(rest)))


def _of_beat(beat: Heartbeat) -> bytes:
    early = beat.early[:EARLY]
    return _BEAT.pack(beat.stamp, beat.echo) + b"".join(map(LONG.pack, early))


def _read_optional(reader: FieldReader) -> int | None:
    number = reader.number(SIGNED)
    return None if number < 0 else number


_OPTIONAL = Field(_read_optional, lambda n: SIGNED.pack(-1 if n is None else n))
_FIGURE = Field(
    lambda reader: (reader.text(NAME), reader.numbers(_DOUBLE)[0]),
    lambda named: of_text(named[0], NAME) + _DOUBLE.pack(named[1]),
)

# The layout of each class of notes, in the order of the bytes.
_LAYOUTS: dict[type[Note], Field] = {
    Heartbeat: Field(_read_beat, _of_beat),
    Hello: record(Hello, largest=NUMBER),
    Join: record(
        Join,
        id=_OPTIONAL,
        name=text(NAME),
        endpoint=text(ENDPOINT),
        key=text(KEY),
        shared=several(FIGURES, _FIGURE),
    ),
    Admission: record(
        Admission,
        world_size=_OPTIONAL,
        complete=FLAG,
        node=NODE_ID,
        members=several(MEMBERS, MEMBER),
    ),
    Rejection: record(Rejection, why=text(DETAIL)),
    Nothing: Field(lambda reader: NOTHING, lambda note: b""),
}
_CLASSES: dict[PacketKind, type[Note]] = {
    PacketKind.HELLO: Hello,
    PacketKind.WELCOME: Hello,
    PacketKind.PING: Heartbeat,
    PacketKind.PONG: Heartbeat,
    PacketKind.RESET: Nothing,
    PacketKind.BYE: Nothing,
    PacketKind.JOIN: Join,
    PacketKind.ADMITTED: Admission,
    PacketKind.REJECTED: Rejection,
}
_READERS = {kind: _LAYOUTS[each].read for kind, each in _CLASSES.items()}


def of_note(note: Note) -> bytes:
    """Return the body of a note."""
    return _LAYOUTS[type(note)].write(note)


def note(kind: int, body: memoryview) -> Note:
    """Decode the note of a packet that is not DATA.

    Raises:
        MalformedPacket: the bytes are not a note.
    """
    reader = FieldReader(body)
    content: Note = _READERS[PacketKind(kind)](reader)
    reader.end()
    return content
