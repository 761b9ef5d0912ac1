"""Wire: the layout of packets is pinned; any bytes are a packet, or have a flaw."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everyorder.runtime.rpc.protocol.identities import (
    Fork,
    GloballyUniqueId,
    WorkerNode,
)
from everyorder.runtime.rpc.protocol.wire import (
    HEADER,
    NAME,
    FieldReader,
    Head,
    MalformedPacket,
    PacketError,
    PacketKind,
    head,
    of_fork,
    of_node,
    of_text,
    of_unique,
    parse,
    size,
)

PACKED = head(PacketKind.DATA, 2, 3, 4, 5, 6, 7, 8)


def test_the_layout_is_pinned() -> None:
    assert PACKED.hex(" ", 4) == (
        "656f0101 02000000 00000000 03000000 00000000 04000000 00000000 "
        "05000000 06000000 07000000 00000000 08000000 00000000"
    )
    assert HEADER.size == len(PACKED) == 52
    assert head(PacketKind.BYE, 2, 3, 4) == head(PacketKind.BYE, 2, 3, 4, 0, 0, 0, 0)


def test_a_header_is_read_as_it_was_written() -> None:
    assert parse([PACKED, b"more"]) == Head(b"eo", 1, 1, 2, 3, 4, 5, 6, 7, 8)
    assert parse([memoryview(bytearray(PACKED + b"body"))]) == parse([PACKED])


@pytest.mark.parametrize(
    ("frames", "flaw"),
    [
        ([], PacketError.CUT),
        ([b""], PacketError.CUT),
        ([PACKED[:-1]], PacketError.CUT),
        ([b"EO" + PACKED[2:]], PacketError.MARK),
        ([PACKED[:2] + b"\x02" + PACKED[3:]], PacketError.VERSION),
        ([PACKED[:3] + b"\x00" + PACKED[4:]], PacketError.KIND),
        ([PACKED[:3] + bytes([max(PacketKind) + 1]) + PACKED[4:]], PacketError.KIND),
    ],
)
def test_what_is_wrong_is_named(frames: list[bytes], flaw: PacketError) -> None:
    assert parse(frames) is flaw


@given(st.lists(st.binary(max_size=80), max_size=3))
def test_any_bytes_are_a_header_or_have_a_flaw(frames: list[bytes]) -> None:
    found = parse(frames)
    assert isinstance(found, PacketError) or HEADER.pack(*found) == frames[0][:52]


def test_sizes_count_bytes() -> None:
    numbers = memoryview(bytearray(8)).cast("i")
    assert size([b"abc", bytearray(4), numbers]) == 15


NODE = WorkerNode("w-1:ä", 3, 2**62)
UNIQUE = GloballyUniqueId(-1, 2**63, 7)
FORK = Fork(UNIQUE, GloballyUniqueId(1, 2, 3), NODE, "List[int]")


def test_fields_are_read_as_they_were_written() -> None:
    written = of_node(NODE) + of_unique(UNIQUE) + of_fork(FORK) + of_text("é", 4)
    reader = FieldReader(memoryview(written))
    found = (reader.node(), reader.unique(), reader.fork(), reader.text(4))
    assert found == (NODE, UNIQUE, FORK, "é")
    reader.end()


@pytest.mark.parametrize("length", range(len(of_fork(FORK))))
def test_a_field_that_is_cut_is_malformed(length: int) -> None:
    with pytest.raises(MalformedPacket):
        FieldReader(memoryview(of_fork(FORK)[:length])).fork()


def test_bytes_left_over_are_malformed() -> None:
    reader = FieldReader(memoryview(of_unique(UNIQUE) + b"x"))
    reader.unique()
    with pytest.raises(MalformedPacket):
        reader.end()


def test_texts_have_a_limit_when_they_are_written_and_when_they_are_read() -> None:
    long = "é" * NAME
    assert FieldReader(memoryview(of_text(long, NAME))).text(NAME) == "é" * (NAME // 2)
    with pytest.raises(MalformedPacket):
        FieldReader(memoryview(of_text("abcd", 4))).text(3)
    with pytest.raises(MalformedPacket):
        FieldReader(memoryview(b"\x02\x00\xff\xff")).text(4)


def test_lists_have_a_limit_before_anything_is_read() -> None:
    read = []

    def one(reader: FieldReader) -> None:
        read.append(reader.number())

    with pytest.raises(MalformedPacket):
        FieldReader(memoryview(b"\x03\x00" + bytes(24))).many(2, one)
    assert read == []
    FieldReader(memoryview(b"\x02\x00" + bytes(16))).many(2, one)
    assert read == [0, 0]
