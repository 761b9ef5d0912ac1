"""Parts: a payload of any size comes as it was, and nobody seems dead meanwhile."""

from dataclasses import replace

import pytest

from everyorder.runtime.rpc.protocol.events import (
    Answered,
    Called,
    Event,
    Failed,
    Lost,
    Reason,
)
from everyorder.runtime.rpc.protocol.messages import (
    Answer,
    Call,
    Cancel,
    FramePart,
    decode,
    encode,
)
from everyorder.runtime.rpc.protocol.packets import Packet, Parts, split
from everyorder.runtime.rpc.protocol.wire import size
from tests.rpc.protocol.network import Network
from tests.rpc.protocol.times import TIMES

SMALL = replace(TIMES, packet=100, largest=10_000, window_bytes=200, bulky=10)
PAYLOADS = [
    [b"x", bytes(range(256)) * 3],
    [b"x", b"", b"y" * 49, b"z" * 50, b"w" * 51, b""],
    [b"x" * 99_000, b"y"],
    [b"x", b"y" * 98],
    [b"x", memoryview(bytearray(400)).cast("i")],
]


def joined(event: Event) -> list[bytes]:
    assert isinstance(event, Called | Answered)
    return [bytes(each) for each in event.payload]


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_a_payload_comes_as_it_was_there_and_back(payload: list[bytes]) -> None:
    network = Network(replace(SMALL, largest=100_000))
    network.group("a", "b")
    sizes: list[int] = []

    def hook(source: str, target: str, packet: Packet) -> tuple[float, ...]:
        sizes.append(size(packet.frames[1:]))
        return (0.001,)

    network.hook = hook
    network.serve = lambda name, called: called.payload
    network.call("a", "b", *payload)
    network.run(5.0)
    sent = [bytes(each) for each in payload]
    assert [joined(each) for each in network.told("b", Called)] == [sent]
    assert [joined(each) for each in network.told("a", Answered)] == [sent]
    assert max(sizes) <= 100


def test_parts_are_lost_and_late_like_everything() -> None:
    network = Network(SMALL)
    network.group("a", "b")
    count = 0

    def hook(source: str, target: str, packet: Packet) -> tuple[float, ...]:
        nonlocal count
        count += 1
        return () if count % 5 == 0 else (0.001 if count % 3 else 0.07,)

    network.hook = hook
    payload = [b"x", bytes(range(250)) * 5]
    for _ in range(3):
        network.call("a", "b", *payload, timeout=30.0)
    network.run(20.0)
    assert [joined(each) for each in network.told("b", Called)] == [payload] * 3


def test_a_slow_way_is_no_death() -> None:
    """A byte takes its time: what is large keeps signs of life from coming."""
    network = Network(replace(SMALL, packet=1000, window_bytes=1000))
    network.group("a", "b")
    free: dict[str, float] = {"a": 0.0, "b": 0.0}

    def hook(source: str, target: str, packet: Packet) -> tuple[float, ...]:
        begins = max(free[source], network.now)
        free[source] = begins + size(packet.frames) / 4000
        return (free[source] - network.now,)

    network.run(1.0)
    network.hook = hook
    network.serve = lambda name, called: [b"got it"]
    network.call("a", "b", b"x", bytes(8000), timeout=60.0)
    network.run(30.0)
    assert len(network.told("a", Answered)) == 1
    assert network.told("a", Lost) == network.told("b", Lost) == []


def test_what_is_too_large_in_all_is_refused() -> None:
    network = Network(SMALL)
    caller, callee = network.group("a", "b")
    network.run(0.2)
    callee.settings = replace(SMALL, largest=900)
    call = network.call("a", "b", b"x", *[bytes(400)] * 3)
    after = network.call("a", "b", b"x", *[bytes(400)] * 2)
    network.run(1.0)
    assert network.told("a", Failed) == [Failed(call, Reason.TOO_LARGE)]
    (answered,) = network.told("a", Answered)
    assert isinstance(answered, Answered)
    assert answered.call == after
    assert caller.counts()["calls"] == 0


def take(*parts: FramePart, largest: int = 1000) -> Parts:
    taken = Parts()
    for part in parts:
        taken.take(part, largest)
    return taken


def piece(frame: int, whole: int, offset: int, length: int) -> FramePart:
    return FramePart(frame, whole, offset, (bytes([frame]) * length,))


def test_one_piece_is_taken_as_it_is_and_others_are_copied_once() -> None:
    part = piece(0, 4, 0, 4)
    message = take(part).complete(Answer(1, (b"x",)))
    assert isinstance(message, Answer)
    assert message.payload[1] is part.payload[0]
    taken = take(piece(0, 4, 0, 3), piece(0, 4, 3, 1), piece(1, 0, 0, 0))
    assert taken
    assert taken.complete(Call(1, (b"x",))) == Call(1, (b"x", bytes(4), b""))
    assert not taken


@pytest.mark.parametrize(
    "parts",
    [
        [piece(1, 4, 0, 4)],
        [piece(0, 4, 0, 2)],
        [piece(0, 4, 0, 2), piece(1, 4, 0, 4)],
        [piece(0, 4, 0, 2), piece(0, 4, 1, 2)],
        [piece(0, 4, 0, 2), piece(1, 4, 2, 2)],
        [piece(0, 4, 0, 2), piece(0, 4, 2, 3)],
        [piece(0, 4, 0, 5)],
        [piece(0, 1001, 0, 5)],
        [piece(0, 600, 0, 600), piece(1, 600, 0, 600)],
        [piece(0, 4, 2, 2)],
    ],
    ids=range(10),
)
def test_pieces_that_do_not_fit_refuse_their_message_alone(
    parts: list[FramePart],
) -> None:
    taken = take(*parts)
    assert taken
    assert taken.complete(Answer(1, ())) is None
    taken.take(piece(0, 4, 0, 4), 1000)
    assert taken.complete(Answer(1, ())) == Answer(1, (bytes(4),))


def test_all_that_is_taken_is_taken() -> None:
    taken = take(piece(0, 600, 0, 600), piece(1, 400, 0, 400), largest=1000)
    assert taken.complete(Answer(1, ())) == Answer(1, (bytes(600), b"\1" * 400))
    # What came before does not count.
    taken.take(piece(0, 1000, 0, 1000), 1000)
    assert taken.complete(Answer(1, ())) == Answer(1, (bytes(1000),))


def test_what_cannot_have_a_payload_is_refused() -> None:
    assert take(piece(0, 1, 0, 1)).complete(Cancel(1)) is None


def test_pieces_are_in_order_and_the_message_is_last() -> None:
    body, tail = encode(Answer(1, (b"x", b"abcde", b"")))
    packets = list(split(body, tail, 4))
    read = [decode(memoryview(each), tuple(frames)) for each, frames in packets]
    assert read == [
        FramePart(0, 5, 0, (b"ab",)),
        FramePart(0, 5, 2, (b"cd",)),
        FramePart(0, 5, 4, (b"e",)),
        FramePart(1, 0, 0, (b"",)),
        Answer(1, (b"x",)),
    ]
