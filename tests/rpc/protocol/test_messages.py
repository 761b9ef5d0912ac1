"""Codec: every message is read as it was written; whatever else comes is malformed."""

from dataclasses import is_dataclass, replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everyorder.runtime.rpc.protocol.events import Reason
from everyorder.runtime.rpc.protocol.identities import (
    Fork,
    GloballyUniqueId,
    WorkerNode,
)
from everyorder.runtime.rpc.protocol.messages import (
    INLINE,
    KINDS,
    Answer,
    Call,
    Decline,
    FramePart,
    Message,
    Register,
    Waiting,
    decode,
    encode,
)
from everyorder.runtime.rpc.protocol.wire import (
    NOTHING,
    MalformedPacket,
    Note,
    PacketKind,
    note,
    of_note,
)
from tests.rpc.protocol.every_message import EVERY, NOTES

# Small: each of many kinds has a test.
FEW = settings(max_examples=20)


def plain(message: Message) -> Message:
    """A message whose payload is bytes again."""
    if isinstance(message, Call | Answer):
        return replace(message, payload=tuple(map(bytes, message.payload)))
    return message


def read(body: bytes, *tail: bytes) -> Message:
    return plain(decode(memoryview(body), tail))


def test_every_kind_is_in_the_tables() -> None:
    assert set(EVERY) == set(KINDS.values()) == set(get_args(Message))
    assert set(NOTES) == set(PacketKind) - {PacketKind.DATA}
    for kind in KINDS.values():
        assert is_dataclass(kind)
        assert vars(kind)["__dataclass_params__"].frozen, kind


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
@FEW
@given(data=st.data())
def test_a_message_is_read_as_it_was_written(
    kind: type[Message], data: st.DataObject
) -> None:
    message = data.draw(EVERY[kind])
    body, tail = encode(message)
    assert read(body, *map(bytes, tail)) == message


@pytest.mark.parametrize("kind", NOTES, ids=lambda kind: kind.name)
@FEW
@given(data=st.data())
def test_a_note_is_read_as_it_was_written(
    kind: PacketKind, data: st.DataObject
) -> None:
    written = data.draw(NOTES[kind])
    assert note(kind, memoryview(of_note(written))) == written


OWNER = WorkerNode("b", 1, 6)
FORK = Fork(GloballyUniqueId(0, 1, 5), GloballyUniqueId(0, 2, 5), OWNER)


def test_the_layout_of_calls_and_answers_is_pinned() -> None:
    call = Call(7, (b"pay", b"load"), (), 1000)
    assert encode(call) == (
        bytes.fromhex("01 0700000000000000 14 e8030000") + b"pay",
        (b"load",),
    )
    body, _ = encode(Call(7, (), (), None, FORK.rref, FORK.fork, FORK.rref))
    unique = "00000000 {}00000000000000 0500000000000000"
    assert body == bytes.fromhex(
        f"01 0700000000000000 03 00000000 {unique.format('01')}"
        f"{unique.format('02')} {unique.format('01')}"
    )
    assert encode(Answer(7, (b"",), (), failed=True)) == (
        bytes.fromhex("02 0700000000000000 30"),
        (),
    )
    body, _ = encode(Answer(7, (), (FORK,)))
    assert body == bytes.fromhex(
        f"02 0700000000000000 08 0100 {unique.format('01')}{unique.format('02')}"
        "01000000 0600000000000000 0100 62 0000"
    )


def test_the_layout_of_the_others_is_pinned() -> None:
    assert encode(Decline(1, Reason.TOO_LARGE, "é"))[0].hex(" ") == (
        "03 01 00 00 00 00 00 00 00 07 02 00 c3 a9"
    )
    assert encode(Waiting(("a", "bc"), (7,)))[0].hex(" ") == (
        "0e 02 00 01 00 61 02 00 62 63 01 00 07 00 00 00 00 00 00 00"
    )


def test_a_small_first_buffer_ends_the_body_and_a_large_one_does_not() -> None:
    for length in (INLINE, INLINE + 1):
        payload = (bytes(length), b"rest")
        body, tail = encode(Call(1, payload))
        assert [*map(len, tail)] == ([4] if length == INLINE else [length, 4])
        assert read(body, *map(bytes, tail)) == Call(1, payload)


def test_what_is_read_is_a_view_of_what_came() -> None:
    came = bytearray(encode(Answer(1, (b"abc",)))[0])
    answer = decode(memoryview(came))
    assert isinstance(answer, Answer)
    came[-1] = ord("d")
    assert bytes(answer.payload[0]) == b"abd"


@pytest.mark.parametrize(
    "number", sorted(set(KINDS) - {1, 2, 16}), ids=lambda n: KINDS[n].__name__
)
@FEW
@given(data=st.data())
def test_a_body_of_another_length_is_malformed(
    number: int, data: st.DataObject
) -> None:
    body, _ = encode(data.draw(EVERY[KINDS[number]]))
    cut = data.draw(st.integers(0, len(body) - 1))
    for wrong in (body[:cut], body + b"\x00"):
        with pytest.raises(MalformedPacket):
            read(wrong)
    with pytest.raises(MalformedPacket):
        read(body, b"payload")


@pytest.mark.parametrize(
    "kind", sorted(set(NOTES) - {PacketKind.PING, PacketKind.PONG})
)
@FEW
@given(data=st.data())
def test_a_note_of_another_length_is_malformed(
    kind: PacketKind, data: st.DataObject
) -> None:
    body = of_note(data.draw(NOTES[kind]))
    with pytest.raises(MalformedPacket):
        note(kind, memoryview(body + b"\x00"))
    if body:
        with pytest.raises(MalformedPacket):
            note(kind, memoryview(body[:-1]))


def wrong_bodies() -> dict[str, bytes]:
    call, _ = encode(Call(7, (b"x",), (), 1000))
    plain_call, _ = encode(Call(7, ()))
    answer, _ = encode(Answer(7, ()))
    idle = bytes.fromhex("0c" + "00" * 24 + "02")
    return {
        "empty": b"",
        "a part of nothing": encode(FramePart(0, 0, 0, (b"",)))[0],
        "a part and more": encode(FramePart(0, 0, 0, (b"",)))[0] + b"x",
        "unknown kind": bytes([max(KINDS) + 1]),
        "kind 0": b"\x00",
        "cut call": call[:13],
        "call with an unknown flag": call[:9] + b"\x94" + call[10:],
        "milliseconds without a deadline": plain_call[:10] + b"\x01\x00\x00\x00",
        "bytes behind a call": plain_call + b"x",
        "creation without names": plain_call[:9] + b"\x01" + plain_call[10:],
        "cut answer": answer[:9],
        "answer with an unknown flag": answer[:9] + b"\x01",
        "answer without its references": answer[:9] + b"\x08",
        "a flag that is neither": idle,
        "an unknown reason": bytes.fromhex("03" + "00" * 8 + "ff" + "0000"),
    }


@pytest.mark.parametrize("what", wrong_bodies())
def test_what_is_no_message_is_malformed(what: str) -> None:
    with pytest.raises(MalformedPacket):
        read(wrong_bodies()[what])


def test_references_are_counted_before_they_are_read() -> None:
    body, _ = encode(Call(1, (), (FORK,) * 3))
    assert decode(memoryview(body), (), 3) == Call(1, (), (FORK,) * 3)
    with pytest.raises(MalformedPacket):
        decode(memoryview(body), (), 2)
    with pytest.raises(MalformedPacket):
        decode(memoryview(encode(Answer(1, (), (FORK,) * 3))[0]), (), 2)


@given(st.binary(max_size=120), st.lists(st.binary(max_size=3), max_size=2))
def test_any_bytes_are_a_message_or_malformed(body: bytes, tail: list[bytes]) -> None:
    try:
        message = read(body, *tail)
    except MalformedPacket:
        return
    again, rest = encode(message)
    assert read(again, *map(bytes, rest)) == message


@given(st.sampled_from(sorted(NOTES)), st.binary(max_size=120))
def test_any_bytes_are_a_note_or_malformed(kind: PacketKind, body: bytes) -> None:
    try:
        found: Note = note(kind, memoryview(body))
    except MalformedPacket:
        return
    assert of_note(found) == body or found is NOTHING


def test_a_message_says_all_of_itself() -> None:
    register = Register(FORK.rref, FORK.fork, OWNER)
    assert read(encode(register)[0]) == register
