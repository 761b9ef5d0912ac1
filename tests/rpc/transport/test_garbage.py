"""Peers that speak garbage: bytes that are no ZMTP, messages that are no packets."""

import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from everyorder.runtime.rpc.transport import LinkState
from everyorder.runtime.rpc.transport.addresses import Keys, parse_address
from everyorder.runtime.rpc.transport.interface import (
    LARGE,
    MOST_FRAMES,
    Buffer,
    join_frames,
    split_frames,
)
from everyorder.runtime.rpc.transport.sockets import SocketTransport
from tests.rpc.transport.inbox import Inbox

KEYS = Keys.drawn()
SIZES = st.integers(0, 40) | st.integers(LARGE - 2, LARGE + 2)
FRAMES = st.lists(SIZES.map(bytes), max_size=12)


def again(parts: list[Buffer]) -> list[bytes] | None:
    frames = split_frames(bytes(parts[0]), parts[1:])
    return None if frames is None else [bytes(each) for each in frames]


@given(FRAMES)
def test_a_packet_is_what_it_was(frames: list[bytes]) -> None:
    assert again(join_frames(frames)) == frames


def test_a_packet_of_the_most_frames() -> None:
    frames = [b"x"] * MOST_FRAMES
    assert again(join_frames(frames)) == frames
    assert again(join_frames([*frames, b"x"])) is None


def test_where_a_frame_is_apart() -> None:
    small, large = b"s" * (LARGE - 1), b"l" * LARGE
    parts = join_frames([b"ab", large, small, b"", large])
    table = b"".join(
        number.to_bytes(4, "little")
        for number in (5, 2, 0xFFFFFFFF, len(small), 0, 0xFFFFFFFF)
    )
    assert parts == [table + b"ab" + small, large, large]
    assert parts[1] is large


@given(FRAMES, st.data())
def test_a_packet_that_was_cut_is_none(
    frames: list[bytes], data: st.DataObject
) -> None:
    parts = join_frames(frames)
    cut = data.draw(st.integers(0, len(parts[0]) - 1))
    assert again([parts[0][:cut], *parts[1:]]) is None
    assert again([bytes(parts[0]) + b"x", *parts[1:]]) is None
    assert again([*parts, b"more"]) is None
    if len(parts) > 1:
        assert again(parts[:-1]) is None


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=4))
def test_anything_is_a_packet_or_none(parts: list[Buffer]) -> None:
    frames = again(parts)
    if frames is not None and all(len(each) < LARGE for each in frames):
        assert join_frames(frames) == parts or len(parts) > 1


@given(st.integers(0, 1 << 32 - 1), st.binary(max_size=30))
def test_any_number_of_frames(many: int, rest: bytes) -> None:
    again([many.to_bytes(4, "little") + rest])


class World:
    """A worker with or without keys, and a peer that may send to it."""

    def __init__(self, ends: ExitStack, keys: Keys | None, largest: int) -> None:
        self.inbox = Inbox()
        self.keys = keys
        self.worker = ends.enter_context(closing(self.transport(largest)))
        self.inbox.start(self.worker)
        self.other = ends.enter_context(closing(self.transport(largest)))
        self.port = parse_address(self.worker.endpoint).port

    def transport(self, largest: int) -> SocketTransport:
        return SocketTransport(
            "tcp://127.0.0.1:0", self.keys, unprotected=True, largest=largest
        )

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), 60)

    def lives(self) -> None:
        """Check that packets of others come in, and nothing else did."""
        self.other.send(self.worker.endpoint, [b"alive"])
        self.inbox.until(lambda: [b"alive"] in self.inbox.packets)
        assert self.inbox.packets == [[b"alive"]]


@pytest.fixture(params=["keys", "open"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with ExitStack() as ends:
        keys = KEYS if request.param == "keys" else None
        yield World(ends, keys, largest=1 << 20)


GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x05READY\x0bSocket-Type\x00\x00\x00\x04PUSH"
HELLO = GREETING + b"\x04" + bytes([len(READY)]) + READY

WIRES = {
    "nothing": b"",
    "a browser": b"GET / HTTP/1.1\r\nHost: worker\r\n\r\n",
    "a handshake of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "zeros": bytes(100_000),
    "ones": b"\xff" * 100_000,
    "half a greeting": GREETING[:30],
    "a greeting of the future": GREETING[:10] + b"\x63" + GREETING[11:],
    "an unknown mechanism": GREETING[:12] + b"MAGIC".ljust(20, b"\0") + bytes(32),
    "a command that is none": GREETING + b"\x04\x05\x04BLAH",
    "an endless command": GREETING + b"\x06" + b"\x7f" + b"\xff" * 7 + bytes(1000),
    "an empty command": GREETING + b"\x04\x00",
    "a message before READY": GREETING + b"\x00\x05hello",
    "an endless message": HELLO + b"\x02\x00\x00\x10" + bytes(5) + bytes(100_000),
    "a message that is too large": HELLO + b"\x02" + b"\xff" * 8 + bytes(1000),
    "reserved flags": HELLO + b"\xf8\x03abc",
    "a message that is cut": HELLO + b"\x00\xc8short",
    "no packet": HELLO + b"\x00\x03abc",
    "no packet, in parts": HELLO + b"\x01\x03abc" * 1000 + b"\x00\x00",
    "commands without end": HELLO + b"\x04\x05\x04PING\x00\x00" * 1000,
}


@pytest.mark.parametrize("wire", WIRES)
def test_bytes_that_are_no_protocol(world: World, wire: str) -> None:
    with world.connect() as peer:
        peer.setblocking(False)
        with suppress(OSError):
            peer.send(WIRES[wire])
        world.lives()


def test_random_bytes(world: World) -> None:
    draw = random.Random(14)
    for start in (b"", GREETING[:11], GREETING, HELLO):
        for _ in range(25):
            with world.connect() as peer:
                peer.sendall(start + draw.randbytes(draw.randrange(200)))
    world.lives()


def test_many_that_say_nothing(world: World) -> None:
    with ExitStack() as peers:
        for _ in range(100):
            peers.enter_context(world.connect())
        world.lives()


def test_messages_of_any_number_and_size(world: World) -> None:
    """From one who may send; none is a packet, all are counted."""
    draw = random.Random(15)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    peer = context.socket(zmq.PUSH)
    peer.linger = 0
    if world.keys is not None:
        peer.curve_serverkey = bytes.fromhex(world.keys.public)
        peer.curve_publickey = bytes.fromhex(world.keys.public)
        peer.curve_secretkey = bytes.fromhex(world.keys.secret)
    peer.connect(f"tcp://127.0.0.1:{world.port}")
    try:
        for _ in range(300):
            parts = [b"\xff" * draw.choice([4, 5, 99, LARGE, 99_999])]
            many = draw.choice([0, 0, 1, 5, 200])
            parts += [draw.randbytes(draw.choice([0, 1, 30, LARGE]))] * many
            peer.send_multipart(parts)

        def counted() -> bool:
            world.worker.wake_at(0.01)
            return world.worker.counts()["garbage"] == 300

        world.inbox.until(counted)
        world.lives()
        assert world.worker.counts()["received"] == 1
    finally:
        peer.close()
        context.term()


def test_the_largest_frame(world: World) -> None:
    """A larger one is not sent, and counted."""
    largest = 1 << 20
    with closing(world.transport(largest)) as other:
        other.send(world.worker.endpoint, [b"small", b"x" * (largest + 1)])
        other.send(world.worker.endpoint, [b"y" * largest])
        other.send(world.worker.endpoint, [b"z" * largest, b"small"])
        world.inbox.until_packets(2)
        assert other.counts()["lost"] == 1
    assert [len(each[0]) for each in world.inbox.packets] == [largest, largest]


def test_a_frame_that_is_too_large(world: World) -> None:
    """Whoever sends it nevertheless is cut off, and others are not."""
    inbox = Inbox()
    with closing(world.transport(1 << 30)) as other:
        inbox.start(other)
        other.send(world.worker.endpoint, [b"x" * (3 << 20)])
        inbox.until_link(world.worker.endpoint, LinkState.DOWN)
        world.lives()
