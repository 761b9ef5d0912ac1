"""A transport that fails on purpose: packets that are lost, and some that are late."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest

from everyorder.runtime.rpc.transport import LocalTransport
from everyorder.runtime.rpc.transport.interface import Buffer
from tests.rpc.faulty_agent import FaultyTransport
from tests.rpc.transport.inbox import Inbox


class Two:
    """A faulty transport, and one that hears it."""

    def __init__(self) -> None:
        self.one = FaultyTransport(LocalTransport())
        self.two = LocalTransport()
        self.inbox = Inbox()
        self.inbox.start(self.two)

    def send(self, *texts: bytes) -> None:
        for text in texts:
            self.one.send(self.two.endpoint, [text])

    def heard(self) -> list[bytes]:
        return [each[0] for each in self.inbox.packets]


@pytest.fixture
def two() -> Iterator[Two]:
    made = Two()
    with closing(made.one), closing(made.two):
        yield made


def test_what_is_to_fail_is_lost(two: Two) -> None:
    asked = []

    def fail(endpoint: str, frames: Sequence[Buffer]) -> bool:
        asked.append((endpoint, bytes(frames[0])))
        return bytes(frames[0]).startswith(b"bad")

    two.one.fail = fail
    two.send(b"a", b"bad 1", b"b", b"bad 2", b"c")
    two.inbox.until_packets(3)
    assert two.heard() == [b"a", b"b", b"c"]
    assert asked == [
        (two.two.endpoint, text) for text in (b"a", b"bad 1", b"b", b"bad 2", b"c")
    ]
    assert two.one.counts() == {"sent": 3, "received": 0, "lost": 0, "failed": 2}


def test_what_is_to_be_late_is_overtaken(two: Two) -> None:
    late = {b"latest": 0.6, b"late": 0.5, b"never": 3600.0}
    two.one.delay = lambda _, frames: late.get(bytes(frames[0]), 0.0)
    two.send(b"never", b"latest", b"late", b"now")
    two.inbox.until_packets(3)
    assert two.heard() == [b"now", b"late", b"latest"]


def test_what_is_late_by_as_much_stays_in_order(two: Two) -> None:
    two.one.delay = lambda *_: 0.01
    sent = [b"%d" % number for number in range(50)]
    two.send(*sent)
    two.inbox.until_packets(50)
    assert two.heard() == sent


def test_what_is_late_at_the_end_is_lost(two: Two) -> None:
    two.one.delay = lambda *_: 3600.0
    two.send(b"a", b"b")
    two.one.close()
    two.send(b"c")
    two.two.send(two.two.endpoint, [b"alive"])
    two.inbox.until_packets(1)
    assert two.heard() == [b"alive"]


def test_it_stands_for_the_one_inside() -> None:
    with closing(LocalTransport("inside")) as inside:
        faulty = FaultyTransport(inside)
        assert (faulty.endpoint, faulty.key) == ("local://inside", "")
