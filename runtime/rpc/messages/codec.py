"""Codec: messages as bytes, and back.

True only here: the layout of each message.  The body of a DATA packet is the number of
its kind in one byte, then its fields; the buffers of a payload follow as frames of
their own, but for the first one, which ends the body where it is small.

Rules: what has a payload is written and read by hand, as all else waits for it; the
others by the table `FIELDS`, a reader and a writer for each field.  A list of
references has `references` at most.  What is read is a view of what came: nothing is
copied.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from struct import Struct, error
from typing import Any

from runtime.rpc.identities import Fork
from runtime.rpc.messages.kinds import KINDS, Answer, Call, Member, Message, Part
from runtime.rpc.session.events import Payload, Reason
from runtime.rpc.wire import (
    BYTE,
    DETAIL,
    ENDPOINT,
    KEY,
    LONG,
    NAME,
    SHORT,
    Buffer,
    Malformed,
    Reader,
    of_fork,
    of_node,
    of_text,
    of_unique,
)

# A first buffer of this size or less is a part of the body: one frame less to send.
INLINE = 65536
# Members, in the list that a new one gets; names, where somebody is waited for.
MEMBERS = 4096
REFERENCES = 4096

_CALL = Struct("<BQBI")
_ANSWER = Struct("<BQB")
_PART = Struct("<BHQQ")
_CREATES, _TARGET, _DEADLINE, _CARRIES, _INLINE, _FAILED = 1, 2, 4, 8, 16, 32
_OF_CALL = _CREATES | _TARGET | _DEADLINE | _CARRIES | _INLINE
_OF_ANSWER = _CARRIES | _INLINE | _FAILED
# The largest that the field holds: some 49 days.
_LONGEST = 0xFFFFFFFF

_REASONS = tuple(Reason)
_PLACES = {reason: place for place, reason in enumerate(_REASONS)}


def _reason(reader: Reader) -> Reason:
    place = reader.number(BYTE)
    if place >= len(_REASONS):
        raise Malformed
    return _REASONS[place]


def _flag(reader: Reader) -> bool:
    found = reader.number(BYTE)
    if found > 1:
        raise Malformed
    return found == 1


def member(reader: Reader) -> Member:
    """A member."""
    return Member(reader.node(), reader.text(ENDPOINT), reader.text(KEY))


def of_member(each: Member) -> bytes:
    """A member."""
    return (
        of_node(each.node) + of_text(each.endpoint, ENDPOINT) + of_text(each.key, KEY)
    )


def of_names(names: Sequence[str]) -> bytes:
    """Names, as many as are read."""
    written = [of_text(name, NAME) for name in names[:MEMBERS]]
    return SHORT.pack(len(written)) + b"".join(written)


_Field = tuple[Callable[[Reader], Any], Callable[[Any], bytes]]
_NUMBER: _Field = (Reader.number, LONG.pack)
_UNIQUE: _Field = (Reader.unique, of_unique)
_NODE: _Field = (Reader.node, of_node)
_REASON: _Field = (_reason, lambda reason: BYTE.pack(_PLACES[reason]))
_FLAG: _Field = (_flag, BYTE.pack)
_DETAIL: _Field = (lambda reader: reader.text(DETAIL), lambda t: of_text(t, DETAIL))
_MEMBER: _Field = (member, of_member)
_NAMES: _Field = (
    lambda reader: reader.many(MEMBERS, lambda each: each.text(NAME)),
    of_names,
)
_INCARNATIONS: _Field = (
    lambda reader: reader.many(MEMBERS, Reader.number),
    lambda each: SHORT.pack(len(each)) + b"".join(map(LONG.pack, each)),
)

# The fields of each kind, in order; of calls, answers and parts see below.
FIELDS: dict[str, tuple[tuple[str, _Field], ...]] = {
    "Decline": (("call", _NUMBER), ("reason", _REASON), ("detail", _DETAIL)),
    "Cancel": (("call", _NUMBER),),
    "Register": (("rref", _UNIQUE), ("fork", _UNIQUE), ("parent", _NODE)),
    "Registered": (("fork", _UNIQUE),),
    "Refused": (("fork", _UNIQUE),),
    "Accept": (("fork", _UNIQUE),),
    "Delete": (("rref", _UNIQUE), ("fork", _UNIQUE)),
    "MemberJoined": (("member", _MEMBER),),
    "MemberLeft": (("node", _NODE), ("reason", _REASON)),
    "Idle": (
        ("wave", _NUMBER),
        ("sent", _NUMBER),
        ("received", _NUMBER),
        ("busy", _FLAG),
    ),
    "Survey": (("wave", _NUMBER),),
    "Waiting": (("names", _NAMES), ("members", _INCARNATIONS)),
    "Finish": (),
}

_WRITERS = {
    kind: (
        BYTE.pack(number),
        tuple((attrgetter(name), write) for name, (_, write) in FIELDS[kind.__name__]),
    )
    for number, kind in KINDS.items()
    if kind.__name__ in FIELDS
}
_READERS = {
    number: (kind, tuple(read for _, (read, _) in FIELDS[kind.__name__]))
    for number, kind in KINDS.items()
    if kind.__name__ in FIELDS
}
_NOTHING: tuple[Buffer, ...] = ()


def encode(message: Message) -> tuple[bytes, Sequence[Buffer]]:
    """The body of a message, and the frames that follow it."""
    kind = type(message)
    if kind is Call:
        assert isinstance(message, Call), "its class is"
        return _of_call(message)
    if kind is Answer:
        assert isinstance(message, Answer), "its class is"
        return _of_answer(message)
    if kind is Part:
        assert isinstance(message, Part), "its class is"
        start = _PART.pack(16, message.frame, message.size, message.offset)
        return start, message.payload
    number, fields = _WRITERS[kind]
    return number + b"".join([write(get(message)) for get, write in fields]), _NOTHING


def _of_call(call: Call) -> tuple[bytes, Sequence[Buffer]]:
    flags = 0
    middle = b""
    milliseconds = 0
    if call.milliseconds is not None:
        flags = _DEADLINE
        milliseconds = min(call.milliseconds, _LONGEST)
    if call.creates is not None:
        assert call.fork is not None, "they come together"
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
    """The message of a body, and of the frames that followed it.

    Raises:
        Malformed: it is none.
    """
    if not body.nbytes:
        raise Malformed
    number = body[0]
    if number == 1:
        return _call(body, payload, references)
    if number == 2:
        return _answer(body, payload, references)
    if number == 16:
        return _part(body, payload)
    if number not in _READERS or payload:
        raise Malformed
    kind, fields = _READERS[number]
    reader = Reader(body, 1)
    message = kind(*[read(reader) for read in fields])
    reader.end()
    return message


def _part(body: memoryview, payload: Payload) -> Part:
    if body.nbytes != _PART.size or len(payload) != 1:
        raise Malformed
    _, frame, whole, offset = _PART.unpack(body)
    return Part(frame, whole, offset, tuple(payload))


def _call(body: memoryview, payload: Payload, references: int) -> Call:
    try:
        _, call, flags, milliseconds = _CALL.unpack_from(body)
    except error:
        raise Malformed from None
    if flags == _INLINE | _DEADLINE:
        return Call(call, (body[_CALL.size :], *payload), (), milliseconds)
    if flags & ~_OF_CALL or (milliseconds and not flags & _DEADLINE):
        raise Malformed
    reader = Reader(body, _CALL.size)
    creates = reader.unique() if flags & _CREATES else None
    fork = reader.unique() if flags & _CREATES else None
    target = reader.unique() if flags & _TARGET else None
    carries = reader.many(references, Reader.fork) if flags & _CARRIES else ()
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
        raise Malformed from None
    if flags == _INLINE:
        return Answer(call, (body[_ANSWER.size :], *payload))
    if flags & ~_OF_ANSWER:
        raise Malformed
    reader = Reader(body, _ANSWER.size)
    carries = reader.many(references, Reader.fork) if flags & _CARRIES else ()
    return Answer(
        call, _payload(reader, flags, payload), carries, bool(flags & _FAILED)
    )


def _payload(reader: Reader, flags: int, payload: Payload) -> Payload:
    if flags & _INLINE:
        return (reader.rest(), *payload)
    reader.end()
    return tuple(payload)
