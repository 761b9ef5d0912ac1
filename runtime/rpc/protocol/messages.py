"""Messages between workers, as frozen values and as bytes.

    calls        Call, Answer, Decline, Cancel
    references   Register, ReferenceRegistered, ReferenceRefused, Accept, Delete
    members      MemberJoined, MemberLeft, Idle, Survey, Waiting, Finish
    payloads     FramePart

All of them are sent on a channel: they arrive once, and in order.  Packets outside of a
channel (requests to join, heartbeats) are in `runtime.rpc.protocol.wire`.

Rules of messages:
- `KINDS` is the one table; the number of a kind is a part of the format;
- a reference is carried as a `Fork` whose `fork` is the id of the receiver's reference;
  the sender is its parent; the references of a call are in `carries`, in the order in
  which the payload refers to them.

Rules of bytes:
- the body of a DATA packet is the number of the kind in one byte, then its fields; the
  buffers of a payload follow as separate frames, except the first one, which is at the
  end of the body if it is small;
- messages with a payload are encoded and decoded by hand, for speed; the layout of the
  others follows from their annotations: `_FIELDS` has the field for each;
- a list of references has `references` elements at most; a message refers to the
  packet's buffers, which are not copied.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from struct import Struct, error
from typing import Any, get_args

from everyorder.runtime.rpc.protocol.events import Payload, Reason
from everyorder.runtime.rpc.protocol.identities import (
    Fork,
    ForkId,
    GloballyUniqueId,
    RRefId,
    WorkerNode,
)
from everyorder.runtime.rpc.protocol.wire import (
    BYTE,
    DETAIL,
    FLAG,
    MEMBER,
    MEMBERS,
    NAME,
    NODE_ID,
    NUMBER,
    SHORT,
    UNIQUE_ID,
    Buffer,
    Field,
    FieldReader,
    MalformedPacket,
    Member,
    of_fork,
    of_unique,
    record,
    several,
    text,
)


@dataclass(frozen=True, slots=True)
class Call:
    """A request to a worker; `call` is a number that the caller uses once.

    `milliseconds` is the time left until the deadline.  `creates` and `fork` occur
    together: the value that `remote` creates, and the reference of the caller.
    """

    call: int
    payload: Payload
    carries: tuple[Fork, ...] = ()
    milliseconds: int | None = None
    creates: RRefId | None = None
    fork: ForkId | None = None
    target: RRefId | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a call."""

    call: int
    payload: Payload
    carries: tuple[Fork, ...] = ()
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Decline:
    """A call without an answer; `reason` is the cause."""

    call: int
    reason: Reason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Cancel:
    """The caller does not wait any longer."""

    call: int


@dataclass(frozen=True, slots=True)
class Register:
    """A user informs the owner of its reference, which it received from `parent`."""

    rref: RRefId
    fork: ForkId
    parent: WorkerNode


@dataclass(frozen=True, slots=True)
class ReferenceRegistered:
    """The owner has listed a reference."""

    fork: ForkId


@dataclass(frozen=True, slots=True)
class ReferenceRefused:
    """The owner does not have the value, or has it no longer."""

    fork: ForkId


@dataclass(frozen=True, slots=True)
class Accept:
    """The receiver of a reference informs its parent, which may release its own."""

    fork: ForkId


@dataclass(frozen=True, slots=True)
class Delete:
    """A user informs the owner that it has released a reference."""

    rref: RRefId
    fork: ForkId


@dataclass(frozen=True, slots=True)
class MemberJoined:
    """The keeper announces a new member."""

    member: Member


@dataclass(frozen=True, slots=True)
class MemberLeft:
    """The keeper announces that a worker is not a member any more."""

    node: WorkerNode
    reason: Reason


@dataclass(frozen=True, slots=True)
class Idle:
    """A worker reports that it has finished; `wave` is the survey that it answers.

    `sent` and `received` count messages on open channels; `busy` means that messages
    are still in flight for it.
    """

    wave: int
    sent: int
    received: int
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Survey:
    """The coordinator asks all members again if they are idle."""

    wave: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """The members that have not finished, and the incarnations of all members."""

    names: tuple[str, ...]
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    """All members have finished, and no message is in flight."""


@dataclass(frozen=True, slots=True)
class FramePart:
    """A part of a frame of the next call or answer, which is too large for a packet.

    `size` is that of the frame, `offset` the position of the part; `payload` is one
    buffer.
    """

    frame: int
    size: int
    offset: int
    payload: Payload


Message = (
    Call
    | Answer
    | Decline
    | Cancel
    | Register
    | ReferenceRegistered
    | ReferenceRefused
    | Accept
    | Delete
    | MemberJoined
    | MemberLeft
    | Idle
    | Survey
    | Waiting
    | Finish
    | FramePart
)

# The numbers of the format are the positions in the union: append new kinds.
KINDS: dict[int, type[Message]] = dict(enumerate(get_args(Message), 1))


# In bytes: a first buffer up to this size is a part of the body, to save a frame.
INLINE = 65536
REFERENCES = 4096

_CALL = Struct("<BQBI")
_ANSWER = Struct("<BQB")
_PART = Struct("<BHQQ")
_CREATES, _TARGET, _DEADLINE, _CARRIES, _INLINE, _FAILED = 1, 2, 4, 8, 16, 32
_OF_CALL = _CREATES | _TARGET | _DEADLINE | _CARRIES | _INLINE
_OF_ANSWER = _CARRIES | _INLINE | _FAILED
# In milliseconds, the largest value of the field: some 49 days.
_LONGEST = 0xFFFFFFFF

_REASONS = tuple(Reason)
_PLACES = {reason: place for place, reason in enumerate(_REASONS)}


def _reason(reader: FieldReader) -> Reason:
    place = reader.number(BYTE)
    if place >= len(_REASONS):
        raise MalformedPacket
    return _REASONS[place]


_NAMES = several(MEMBERS, text(NAME))

# The field of each annotation; calls, answers and parts are encoded by hand.
_FIELDS: dict[Any, Field] = {
    int: NUMBER,
    GloballyUniqueId: UNIQUE_ID,
    WorkerNode: NODE_ID,
    Reason: Field(_reason, lambda reason: BYTE.pack(_PLACES[reason])),
    bool: FLAG,
    str: text(DETAIL),
    Member: MEMBER,
    # Further names are not sent, as no reader accepts more.
    tuple[str, ...]: Field(_NAMES.read, lambda names: _NAMES.write(names[:MEMBERS])),
    tuple[int, ...]: several(MEMBERS, NUMBER),
}
_LAYOUTS = {
    number: record(kind, **{each.name: _FIELDS[each.type] for each in fields(kind)})
    for number, kind in KINDS.items()
    if kind not in (Call, Answer, FramePart)
}
_READERS = {number: each.read for number, each in _LAYOUTS.items()}
_WRITERS = {
    KINDS[number]: (BYTE.pack(number), each.write) for number, each in _LAYOUTS.items()
}
_NOTHING: tuple[Buffer, ...] = ()


def encode(message: Message) -> tuple[bytes, Sequence[Buffer]]:
    """Return the body of a message, and the frames that follow it."""
    kind = type(message)
    if kind is Call:
        assert isinstance(message, Call), "checked by its class"
        return _of_call(message)
    if kind is Answer:
        assert isinstance(message, Answer), "checked by its class"
        return _of_answer(message)
    if kind is FramePart:
        assert isinstance(message, FramePart), "checked by its class"
        start = _PART.pack(16, message.frame, message.size, message.offset)
        return start, message.payload
    number, write = _WRITERS[kind]
    return number + write(message), _NOTHING


def _of_call(call: Call) -> tuple[bytes, Sequence[Buffer]]:
    flags = 0
    middle = b""
    milliseconds = 0
    if call.milliseconds is not None:
        flags = _DEADLINE
        milliseconds = min(call.milliseconds, _LONGEST)
    if call.creates is not None:
        assert call.fork is not None, "`creates` and `fork` are set together"
        flags |= _CREATES
        middle = of_unique(call.creates) + of_unique(call.fork)
    if call.target is not None:
        flags |= _TARGET
        middle += of_unique(call.target)
    if call.carries:
        flags |= _CARRIES
        middle += _of_carries(call.carries)
    payload = call.payload
    if payload and len(first := payload[0]) <= INLINE:
        start = _CALL.pack(1, call.call, flags | _INLINE, milliseconds)
        return b"".join((start, middle, first)), payload[1:]
    return _CALL.pack(1, call.call, flags, milliseconds) + middle, payload


def _of_answer(answer: Answer) -> tuple[bytes, Sequence[Buffer]]:
    flags = _FAILED if answer.failed else 0
    middle = b""
    if answer.carries:
        flags |= _CARRIES
        middle = _of_carries(answer.carries)
    payload = answer.payload
    if payload and len(first := payload[0]) <= INLINE:
        start = _ANSWER.pack(2, answer.call, flags | _INLINE)
        return b"".join((start, middle, first)), payload[1:]
    return _ANSWER.pack(2, answer.call, flags) + middle, payload


def _of_carries(carries: tuple[Fork, ...]) -> bytes:
    return SHORT.pack(len(carries)) + b"".join([of_fork(each) for each in carries])


def decode(
    body: memoryview, payload: Payload = (), references: int = REFERENCES
) -> Message:
    """Decode the message of a body, and of the frames that followed it.

    Raises:
        MalformedPacket: the bytes are not a message.
    """
    if not body.nbytes:
        raise MalformedPacket
    number = body[0]
    if number == 1:
        return _call(body, payload, references)
    if number == 2:
        return _answer(body, payload, references)
    if number == 16:
        return _part(body, payload)
    if number not in _READERS or payload:
        raise MalformedPacket
    reader = FieldReader(body, 1)
    message: Message = _READERS[number](reader)
    reader.end()
    return message


def _part(body: memoryview, payload: Payload) -> FramePart:
    if body.nbytes != _PART.size or len(payload) != 1:
        raise MalformedPacket
    _, frame, whole, offset = _PART.unpack(body)
    return FramePart(frame, whole, offset, tuple(payload))


def _call(body: memoryview, payload: Payload, references: int) -> Call:
    try:
        _, call, flags, milliseconds = _CALL.unpack_from(body)
    except error:
        raise MalformedPacket from None
    if flags == _INLINE | _DEADLINE:
        return Call(call, (body[_CALL.size :], *payload), (), milliseconds)
    if flags & ~_OF_CALL or (milliseconds and not flags & _DEADLINE):
        raise MalformedPacket
    reader = FieldReader(body, _CALL.size)
    creates = reader.unique() if flags & _CREATES else None
    fork = reader.unique() if flags & _CREATES else None
    target = reader.unique() if flags & _TARGET else None
    carries = reader.many(references, FieldReader.fork) if flags & _CARRIES else ()
    return Call(
        call,
        _payload(reader, flags, payload),
        carries,
        milliseconds if flags & _DEADLINE else None,
        creates,
        fork,
        target,
    )


def _answer(body: memoryview, payload: Payload, references: int) -> Answer:
    try:
        _, call, flags = _ANSWER.unpack_from(body)
    except error:
        raise MalformedPacket from None
    if flags == _INLINE:
        return Answer(call, (body[_ANSWER.size :], *payload))
    if flags & ~_OF_ANSWER:
        raise MalformedPacket
    reader = FieldReader(body, _ANSWER.size)
    carries = reader.many(references, FieldReader.fork) if flags & _CARRIES else ()
    return Answer(
        call, _payload(reader, flags, payload), carries, bool(flags & _FAILED)
    )


def _payload(reader: FieldReader, flags: int, payload: Payload) -> Payload:
    if flags & _INLINE:
        return (reader.rest(), *payload)
    reader.end()
    return tuple(payload)
