"""Large frames that go by blocks of memory, and packets of those who speak of them."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import BlockGone
from runtime.rpc.transport import LinkState
from runtime.rpc.transport.blocks import SUPPORTED, TOKEN, WORTH, Blocks, Borrowed
from runtime.rpc.transport.interface import Buffer
from runtime.rpc.transport.keys import Keys
from runtime.rpc.transport.lending import Kind, Lending, NotAPacket
from runtime.rpc.transport.parts import joined
from runtime.rpc.transport.sockets import SocketTransport
from tests.rpc.transport.inbox import Inbox, Process, folder, process

pytestmark = pytest.mark.skipif(not SUPPORTED, reason="there is no memfd here")

LARGE = b"x" * WORTH


class Two:
    """Two ends that say everything at once, or keep it."""

    def __init__(self) -> None:
        self.said: list[tuple[str, list[Buffer]]] = []
        self.one = Lending("one", self._say, on=True)
        self.two = Lending("two", self._say, on=True)

    def _say(self, endpoint: str, parts: list[Buffer]) -> None:
        self.said.append((endpoint, parts))

    def hand_on(self) -> None:
        """Have everything heard that was said."""
        while self.said:
            endpoint, parts = self.said.pop(0)
            lending = self.one if endpoint == "one" else self.two
            assert lending.frames(bytes(parts[0]), parts[1:]) is None

    def sent(self, *frames: Buffer) -> list[Buffer]:
        return self.one.parts("two", frames)

    def came(self, parts: list[Buffer]) -> list[Buffer] | None:
        return self.two.frames(bytes(parts[0]), parts[1:])

    def close(self) -> None:
        self.one.close()
        self.two.close()

    def know_each_other(self) -> None:
        assert self.sent(LARGE) == joined([LARGE])
        self.hand_on()


@pytest.fixture
def two() -> Iterator[Two]:
    with closing(Two()) as made:
        yield made


def kinds(said: list[tuple[str, list[Buffer]]]) -> list[tuple[str, int]]:
    return [(endpoint, bytes(parts[0])[3]) for endpoint, parts in said]


def test_how_they_come_to_lend(two: Two) -> None:
    assert two.sent(LARGE) == joined([LARGE])
    assert kinds(two.said) == [("two", Kind.SAMPLE)]
    # It is asked once, and large frames travel as they are until it is answered.
    assert two.sent(LARGE) == joined([LARGE])
    endpoint, parts = two.said.pop()
    assert two.came(parts) is None
    assert kinds(two.said) == [("one", Kind.REACHES)]
    assert two.sent(LARGE) == joined([LARGE])
    two.hand_on()
    parts = two.sent(b"a", LARGE, b"b")
    assert len(parts) == 1
    assert bytes(parts[0])[3] == Kind.LENT
    assert two.came(parts) == [b"a", LARGE, b"b"]
    assert endpoint == "two"


def test_small_frames_are_never_lent(two: Two) -> None:
    two.know_each_other()
    for size in (0, 1, WORTH - 1):
        assert two.sent(b"x" * size) == joined([b"x" * size])
    assert two.one.blocks.counts()["lent"] == 0


@given(st.lists(st.booleans(), min_size=1, max_size=9))
def test_any_places(large: list[bool]) -> None:
    with closing(Two()) as two:
        two.know_each_other()
        frames: list[Buffer] = [
            bytes([place]) * (WORTH if each else 3) for place, each in enumerate(large)
        ]
        parts = two.sent(*frames)
        assert len(parts) == 1
        assert two.came(parts) == frames


def test_views_are_given_back(two: Two) -> None:
    two.know_each_other()
    came = two.came(two.sent(LARGE, LARGE))
    assert came is not None
    one, other = came
    del came
    two.two.give_back()
    assert two.said == []
    del one
    two.two.give_back()
    assert kinds(two.said) == [("one", Kind.RETURNED)]
    two.hand_on()
    assert two.one.blocks.counts()["free"] == 1
    del other
    two.two.give_back()
    two.hand_on()
    counts = two.one.blocks.counts()
    assert (counts["free"], counts["lent"]) == (2, 0)


def test_a_packet_that_is_lost_keeps_its_block_until_the_link_ends(two: Two) -> None:
    two.know_each_other()
    two.sent(LARGE)
    assert two.one.blocks.counts()["lent"] == 1
    two.one.forget("two")
    assert two.one.blocks.counts() == {
        "bytes": 0,
        "peak": two.one.blocks.counts()["peak"],
        "lent": 0,
        "free": 0,
    }
    # It is asked again, with another secret.
    two.know_each_other()
    assert two.came(two.sent(LARGE)) == [LARGE]


def test_a_block_that_cannot_be_opened(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The packet is lost, and the next ones travel as they are."""
    two.know_each_other()

    def refuse(*_arguments: object) -> memoryview:
        raise BlockGone(why="a fault")

    with monkeypatch.context() as patch:
        patch.setattr(Borrowed, "open", refuse)
        assert two.came(two.sent(LARGE)) is None
        assert kinds(two.said) == [("one", Kind.CANNOT)]
        two.hand_on()
    assert two.sent(LARGE) == joined([LARGE])
    assert two.said == []
    # A new link is a new chance.
    two.one.forget("two")
    two.know_each_other()
    assert bytes(two.sent(LARGE)[0])[3] == Kind.LENT


def test_one_that_does_not_reach_says_nothing(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one on another machine."""
    monkeypatch.setattr(Borrowed, "reaches", lambda *_: False)
    two.know_each_other()
    assert two.sent(LARGE) == joined([LARGE])
    assert two.said == []


def test_no_room(two: Two) -> None:
    two.know_each_other()
    two.one.blocks.most = 3 * WORTH
    assert bytes(two.sent(LARGE)[0])[3] == Kind.LENT
    assert two.sent(LARGE, LARGE) == joined([LARGE, LARGE])


def test_where_it_is_off() -> None:
    said: list[object] = []
    lending = Lending("one", lambda *each: said.append(each), on=False)
    assert lending.parts("two", [LARGE]) == joined([LARGE])
    assert said == []
    assert lending.frames(bytes(joined([b"a"])[0]), []) == [b"a"]
    for kind in range(1, 7):
        with pytest.raises(NotAPacket):
            lending.frames(bytes(joined([b"two", b"s", b"x"], kind)[0]), [])


def test_others_speak_for_nobody(two: Two) -> None:
    """Who does not know the secret changes nothing."""
    two.sent(LARGE)

    def forge(kind: Kind, *frames: bytes) -> None:
        parts = joined([b"two", b"wrong secret of 16", *frames], kind)
        assert two.one.frames(bytes(parts[0]), []) is None

    forge(Kind.REACHES)
    assert two.sent(LARGE) == joined([LARGE])
    two.hand_on()
    two.sent(LARGE)
    forge(Kind.CANNOT)
    forge(Kind.RETURNED, (1).to_bytes(8, "little"))
    assert two.one.blocks.counts()["lent"] == 1
    assert bytes(two.sent(LARGE)[0])[3] == Kind.LENT


WORDS = st.binary(max_size=70) | st.sampled_from(
    [b"one", b"two", bytes(TOKEN), b"\xff"]
)


@given(st.integers(0, 255), st.lists(WORDS, max_size=6))
def test_anything_is_a_packet_or_none(kind: int, frames: list[Buffer]) -> None:
    with closing(Two()) as two:
        parts = joined(frames, kind)
        try:
            came = two.came(parts)
        except NotAPacket:
            return
        assert came is None or (kind == Kind.PLAIN and came == frames)


@given(st.data())
def test_packets_that_were_changed(data: st.DataObject) -> None:
    with closing(Two()) as two:
        two.know_each_other()
        parts = two.sent(b"a", LARGE, b"b", LARGE)
        wire = bytearray(parts[0])
        place = data.draw(st.integers(4, len(wire) - 1))
        wire[place] ^= data.draw(st.integers(1, 255))
        with suppress(NotAPacket):
            two.two.frames(bytes(wire), [])


@pytest.fixture(params=["ipc", "tcp"])
def transports(
    request: pytest.FixtureRequest,
) -> Iterator[tuple[SocketTransport, SocketTransport]]:
    with ExitStack() as ends:
        address, keys = "tcp://127.0.0.1:0", Keys.drawn()
        if request.param == "ipc":
            address = f"ipc://{ends.enter_context(folder())}/"
        one, two = (SocketTransport(address, keys) for _ in range(2))
        ends.callback(one.close, linger=0)
        ends.callback(two.close, linger=0)
        yield one, two


def lent(transport: SocketTransport) -> int:
    return transport._lending.blocks.counts()["lent"]


def test_between_transports(
    transports: tuple[SocketTransport, SocketTransport],
) -> None:
    """In order with all others, writable, and given back."""
    one, two = transports
    here, there = Inbox(), Inbox()
    here.start(one)
    there.start(two)
    one.send(two.endpoint, [LARGE])
    # The answer whether it reaches came before this one.
    there.until_packets(1)
    two.send(one.endpoint, [b"ping"])
    here.until_packets(1)
    sent: list[list[Buffer]] = [
        [b"%d" % number, bytes([number]) * (WORTH * (number % 2) + 1)]
        for number in range(20)
    ]
    for packet in sent:
        one.send(two.endpoint, packet)
    there.until_packets(21)
    assert there.packets[1:] == sent
    assert lent(one) == 10
    views = [memoryview(frames[1]) for frames in there.raw[1:] if len(frames[1]) > 1]
    assert not any(view.readonly for view in views)
    for view in views:
        view[:] = bytes(len(view))
    views.clear()
    there.raw.clear()
    del view

    def returned() -> bool:
        one.send(two.endpoint, [b"any packet"])
        one.wake_at(0.05)
        return lent(one) == 0

    here.until(returned)


def test_a_borrower_that_is_killed() -> None:
    """What it had is closed, and large frames go on to others."""
    with ExitStack() as ends:
        address = f"ipc://{ends.enter_context(folder())}/"
        one = ends.enter_context(closing(SocketTransport(address)))
        inbox = Inbox()
        inbox.start(one)
        programs: list[Process] = [
            ends.enter_context(process(address, module="tests.rpc.transport.echoing"))
            for _ in range(2)
        ]
        endpoints = [each.line() for each in programs]
        me = one.endpoint.encode()

        def has_borrowed() -> bool:
            one.wake_at(0.05)
            for endpoint in endpoints:
                one.send(endpoint, [me, LARGE])
            return len(one._lending._reach) == 2

        inbox.until(has_borrowed)
        programs[0].run.send_signal(signal.SIGSTOP)
        for _ in range(5):
            one.send(endpoints[0], [me, LARGE])
        assert lent(one) >= 5
        programs[0].run.send_signal(signal.SIGKILL)
        inbox.until_link(endpoints[0], LinkState.DOWN)
        assert one._lending._reach == {endpoints[1]}
        many = len(inbox.packets)
        one.send(endpoints[1], [me, LARGE, b"still here"])
        inbox.until(lambda: [LARGE, b"still here"] in inbox.packets[many:])


def test_it_may_be_turned_off() -> None:
    with folder() as home:
        address = f"ipc://{home}/"
        with (
            closing(SocketTransport(address, lend=False)) as one,
            closing(SocketTransport(address)) as two,
        ):
            here, there = Inbox(), Inbox()
            here.start(one)
            there.start(two)
            for _ in range(3):
                one.send(two.endpoint, [LARGE])
                two.send(one.endpoint, [LARGE])
            here.until_packets(3)
            there.until_packets(3)
            assert lent(one) == lent(two) == 0


def test_blocks_are_let_go_at_the_end() -> None:
    blocks = Blocks[str]()
    blocks.close()
    assert blocks.counts()["bytes"] == 0
