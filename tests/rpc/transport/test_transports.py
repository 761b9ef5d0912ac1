"""What every transport does, whatever its packets travel by."""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from threading import Event, Thread, current_thread
from typing import Any

import pytest

from everyorder.runtime.rpc.transport import Link, LinkState, LocalTransport, Transport
from everyorder.runtime.rpc.transport.addresses import Keys
from everyorder.runtime.rpc.transport.interface import LARGE, Buffer
from everyorder.runtime.rpc.transport.sockets import UNCOPIED, SocketTransport
from tests.rpc.faulty_agent import FaultyTransport
from tests.rpc.transport.inbox import Inbox, folder

KEYS = Keys.drawn()
Make = Callable[[], Transport]


def _faulty() -> Transport:
    return FaultyTransport(LocalTransport())


def _tcp() -> Transport:
    return SocketTransport("tcp://127.0.0.1:0", KEYS)


@pytest.fixture(params=["local", "faulty", "ipc", "tcp"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Makes transports of one kind, which are closed in the end."""
    with ExitStack() as ends:
        where = ends.enter_context(folder())
        kinds: dict[str, Make] = {
            "local": LocalTransport,
            "faulty": _faulty,
            "ipc": lambda: SocketTransport(f"ipc://{where}/"),
            "tcp": _tcp,
        }

        def made() -> Transport:
            transport = kinds[request.param]()
            ends.callback(transport.close, linger=0)
            return transport

        yield made


def started(make: Make) -> tuple[Transport, Inbox]:
    transport, inbox = make(), Inbox()
    inbox.start(transport)
    return transport, inbox


def test_packets_arrive_whole_and_in_order(make: Make) -> None:
    (one, inbox), (two, other) = started(make), started(make)
    sent = [[b"%d" % number, b"", b"x" * number] for number in range(300)]
    for packet in sent:
        one.send(two.endpoint, packet)
        two.send(one.endpoint, packet)
    other.until_packets(300)
    inbox.until_packets(300)
    assert other.packets == inbox.packets == sent
    assert {*other.keys, *inbox.keys} == {one.key} == {two.key}


SIZES = [0, 1, LARGE - 1, LARGE, LARGE + 1, UNCOPIED - 1, UNCOPIED, 1 << 20]


def test_frames_of_every_size(make: Make) -> None:
    (one, _), (two, other) = started(make), started(make)
    frames: list[Buffer] = []
    for number, size in enumerate(SIZES):
        frames.append(bytes([number]) * size)
        frames.append(bytearray([number + 50]) * size)
        frames.append(memoryview(bytearray([number + 100]) * (size + 8))[4:-4])
    packets: list[list[Buffer]] = [
        frames,
        frames[::-1],
        [],
        [b""],
        frames[:1],
        frames[-1:],
    ]
    for packet in packets:
        one.send(two.endpoint, packet)
    other.until_packets(len(packets))
    assert other.packets == [[bytes(each) for each in packet] for packet in packets]


def test_views_of_any_shape(make: Make) -> None:
    (one, _), (two, other) = started(make), started(make)
    numbers = memoryview(bytearray(range(240)) * 100)
    views: list[memoryview[Any]] = [
        numbers.cast("d"),
        numbers.cast("B", [240, 100]),
        numbers[::2],
        memoryview(bytes(240))[::-1],
        numbers.toreadonly(),
    ]
    for view in views:
        one.send(two.endpoint, [view, b"behind it"])
    other.until_packets(len(views))
    assert other.packets == [[view.tobytes(), b"behind it"] for view in views]


def test_what_arrives_is_nobody_elses(make: Make) -> None:
    """Large frames are writable, and writing them is seen nowhere else."""
    (one, _), (two, other) = started(make), started(make)
    for size in (100, LARGE, UNCOPIED):
        kept = bytearray(b"k") * size
        other.raw.clear()
        other.packets.clear()
        one.send(two.endpoint, [kept])
        one.send(two.endpoint, [kept])
        other.until_packets(2)
        first, second = other.raw[-2][0], other.raw[-1][0]
        if size >= LARGE:
            writable = memoryview(first)
            assert not writable.readonly
            writable[:1] = b"w"
        assert bytes(second) == kept == bytearray(b"k") * size


def test_a_transport_sends_to_itself(make: Make) -> None:
    one, inbox = started(make)
    one.send(one.endpoint, [b"self", b"x" * LARGE])
    inbox.until_packets(1)
    assert inbox.packets == [[b"self", b"x" * LARGE]]


def test_each_thread_sends_in_order(make: Make) -> None:
    (one, _), (two, other) = started(make), started(make)

    def send(name: bytes) -> None:
        for number in range(200):
            one.send(
                two.endpoint, [name, b"%d" % number, b"x" * (LARGE * (number % 2))]
            )

    threads = [Thread(target=send, args=(b"%d" % name,)) for name in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.until_packets(1000)
    for name in range(5):
        numbers = [each[1] for each in other.packets if each[0] == b"%d" % name]
        assert numbers == [b"%d" % number for number in range(200)]


def test_its_own_threads_tell_everything(
    make: Make, request: pytest.FixtureRequest
) -> None:
    one, inbox = started(make)
    one.wake_at(0)
    one.send(one.endpoint, [b"a"])
    one.send("local://nobody", [b"a"])
    inbox.until(lambda: bool(inbox.times and inbox.packets and inbox.links))
    by_queue = request.node.callspec.params["make"] in ("local", "faulty")
    assert len(inbox.threads) <= (1 if by_queue else 2)
    assert current_thread() not in inbox.threads


def test_packets_are_told_one_after_the_other(make: Make) -> None:
    one, inbox = make(), Inbox()
    inside: list[bytes] = []
    most = 0

    def told(frames: list[Buffer], key: str) -> None:
        nonlocal most
        inside.append(bytes(frames[0]))
        most = max(most, len(inside))
        inbox.packet(frames, key)
        inside.pop()

    one.start(told, inbox.time, inbox.link)
    for number in range(300):
        one.send(one.endpoint, [b"%d" % number])
        one.lead(lambda: True, 0.0)
    inbox.until_packets(300)
    assert inbox.packets == [[b"%d" % number] for number in range(300)]
    assert most == 1


def test_time_is_told_when_it_was_set(make: Make) -> None:
    one, inbox = started(make)
    one.wake_at(3600)
    one.wake_at(0.01)
    inbox.until(lambda: inbox.times == 1)
    one.wake_at(3600)
    one.wake_at(None)
    one.wake_at(0)
    inbox.until(lambda: inbox.times == 2)


def test_time_that_was_set_before_the_start(make: Make) -> None:
    one, inbox = make(), Inbox()
    one.wake_at(0.01)
    inbox.start(one)
    inbox.until(lambda: inbox.times == 1)


def test_time_is_told_among_packets(make: Make) -> None:
    """A stream of packets does not keep the thread from looking at the clock."""
    one, inbox = make(), Inbox()
    one.start(lambda *_: one.send(one.endpoint, [b"on"]), inbox.time)
    one.send(one.endpoint, [b"on"])
    one.wake_at(0.05)
    inbox.until(lambda: inbox.times == 1)


def test_time_from_the_thread_that_tells(make: Make) -> None:
    one, inbox = make(), Inbox()

    def told() -> None:
        inbox.time()
        if inbox.times < 3:
            one.wake_at(0.001)

    one.start(inbox.packet, told, inbox.link)
    one.wake_at(0)
    inbox.until(lambda: inbox.times == 3)


def test_what_a_callback_raises_is_logged(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    one, inbox = started(make)
    inbox.fails.append(ValueError("a fault of the agent"))
    with caplog.at_level(logging.ERROR, "everyorder.runtime.rpc"):
        one.send(one.endpoint, [b"first"])
        one.send(one.endpoint, [b"second"])
        inbox.until_packets(2)
        # Another thread may have received the second one.
        inbox.until(lambda: caplog.records != [])
    (record,) = caplog.records
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "a fault of the agent"


ABSENT = {
    "local": "local://nobody",
    "faulty": "local://nobody",
    "ipc": "",
    "tcp": "tcp://127.0.0.1:1",
}


def test_nobody_is_there(make: Make, request: pytest.FixtureRequest) -> None:
    """Nothing is raised, nothing waits, and it is told once."""
    one, inbox = started(make)
    nobody = ABSENT[request.node.callspec.params["make"]]
    if not nobody:
        gone = make()
        nobody = gone.endpoint
        gone.close()
    for _ in range(1000):
        one.send(nobody, [b"lost", b"x" * LARGE])
    assert inbox.until_link(nobody, LinkState.ABSENT).key == ""
    one.send(one.endpoint, [b"still here"])
    inbox.until_packets(1)
    assert inbox.packets == [[b"still here"]]
    links = [each for each in inbox.links if each.endpoint != one.endpoint]
    assert links == [Link(nobody, LinkState.ABSENT, detail=links[0].detail)]


def test_forgotten_and_sent_to_again(make: Make) -> None:
    (one, _), (two, other) = started(make), started(make)
    one.send(two.endpoint, [b"before"])
    other.until_packets(1)
    one.forget(two.endpoint)
    one.forget(two.endpoint)
    one.forget("local://unknown")
    one.send(two.endpoint, [b"after"])
    other.until_packets(2)
    assert other.packets == [[b"before"], [b"after"]]


def test_closed(make: Make) -> None:
    (one, inbox), (two, other) = started(make), started(make)
    one.close()
    one.close()
    one.send(two.endpoint, [b"late"])
    one.wake_at(0)
    one.forget(two.endpoint)
    two.send(one.endpoint, [b"to the dead"])
    two.send(two.endpoint, [b"alive"])
    other.until_packets(1)
    assert (other.packets, inbox.packets, inbox.times) == ([[b"alive"]], [], 0)


def test_what_was_sent_leaves_before_the_end(make: Make) -> None:
    (one, _), (two, other) = started(make), started(make)
    sent = [[b"%d" % number, b"x" * LARGE] for number in range(100)]
    for packet in sent:
        one.send(two.endpoint, packet)
    one.close(linger=30)
    other.until_packets(100)
    assert other.packets == sent


def test_closed_by_what_is_told(make: Make) -> None:
    one, ended = make(), Event()

    def told(_frames: list[Buffer], _key: str) -> None:
        one.close()
        ended.set()

    one.start(told, lambda: None)
    one.send(one.endpoint, [b"end"])
    assert ended.wait(60)


def test_closed_before_the_start(make: Make) -> None:
    make().close()


def test_nothing_is_told_after_the_end(make: Make) -> None:
    one, inbox = started(make)
    for _ in range(1000):
        one.send(one.endpoint, [b"x"])
    one.close()
    many = len(inbox.packets)
    one.send(one.endpoint, [b"x"])
    assert len(inbox.packets) == many


def test_counts(make: Make) -> None:
    (one, inbox), (two, other) = started(make), started(make)
    for _ in range(3):
        one.send(two.endpoint, [b"x"])
    other.until_packets(3)
    assert (one.counts()["sent"], two.counts()["received"]) == (3, 3)
    assert one.counts()["lost"] == two.counts()["lost"] == 0
    assert inbox.packets == []


def test_links_are_values() -> None:
    assert Link("a", LinkState.UP) == Link("a", LinkState.UP, key="", detail="")
