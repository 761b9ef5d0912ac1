"""Turns at a socket: who leads, who goes away, and who is woken for what."""

import errno
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from queue import SimpleQueue
from threading import Event, Thread, current_thread, get_ident

import pytest

from everyorder.runtime.rpc.transport import receiver
from everyorder.runtime.rpc.transport.interface import Buffer
from everyorder.runtime.rpc.transport.receiver import ReceiveLeadership
from everyorder.runtime.rpc.transport.sockets import SocketTransport
from tests.rpc.transport.inbox import SECONDS, Inbox, folder

pytestmark = pytest.mark.skipif(
    not receiver.SUPPORTED, reason="nobody leads where the system has no epoll"
)


Arm = Callable[[ReceiveLeadership, int], None]
Give = Callable[..., None]
Files = Callable[[int, int], int]


@pytest.fixture
def one() -> Iterator[SocketTransport]:
    with ExitStack() as ends:
        where = ends.enter_context(folder())
        made = SocketTransport(f"ipc://{where}/")
        ends.callback(made.close, linger=0)
        yield made


@pytest.fixture
def inbox(one: SocketTransport) -> Inbox:
    made = Inbox()
    made.start(one)
    return made


def led(one: SocketTransport, over: Callable[[], bool]) -> None:
    """Lead until something is so; another thread may have the turn for a moment."""
    while not over():
        one.lead(over, SECONDS)


def test_who_leads_receives_by_itself(one: SocketTransport) -> None:
    tellers: list[Thread] = []
    one.start(lambda *_: tellers.append(current_thread()), lambda: None)
    for _ in range(50):
        tellers.clear()
        sent: list[bool] = []

        def over(sent: list[bool] = sent) -> bool:
            if not sent:
                # From now on this thread has the turn.
                sent.append(True)
                one.send(one.endpoint, [b"x"])
            return bool(tellers)

        while not one.lead(over, SECONDS):
            pass
        assert tellers == [current_thread()]


def test_what_comes_behind_is_told_by_others(
    one: SocketTransport, inbox: Inbox
) -> None:
    """Who led leaves packets in the socket, of which the system tells nobody again."""
    for _ in range(20):
        before = len(inbox.packets)
        for number in range(50):
            one.send(one.endpoint, [b"%d" % number])
        led(one, lambda before=before: len(inbox.packets) > before)  # type: ignore[misc]  # it is bound here
        inbox.until_packets(before + 50)
        assert inbox.packets[before:] == [[b"%d" % number] for number in range(50)]


def test_one_leads_at_a_time_and_is_nudged(one: SocketTransport, inbox: Inbox) -> None:
    leads, over = Event(), Event()

    def asked() -> bool:
        leads.set()
        return over.is_set()

    leader = Thread(target=led, args=(one, asked))
    leader.start()
    assert leads.wait(SECONDS)
    while one._receiving.turns.leader == 0:
        leads.wait(0.001)
    assert not one.lead(lambda: True, SECONDS)
    over.set()
    one.nudge()
    leader.join(SECONDS)
    assert not leader.is_alive()
    one.send(one.endpoint, [b"behind"])
    inbox.until_packets(1)
    assert leader not in inbox.threads


def test_who_leads_may_be_interrupted_by_who_leads(
    one: SocketTransport, inbox: Inbox
) -> None:
    """As the handler of a signal that calls does, while this thread sleeps."""
    inner: list[bool] = []

    def over() -> bool:
        if not inner:
            one.send(one.endpoint, [b"for the handler"])
            inner.append(one.lead(lambda: len(inbox.packets) == 1, SECONDS))
        return True

    while not one.lead(over, SECONDS):
        pass
    assert inner == [True]
    one.send(one.endpoint, [b"behind"])
    inbox.until_packets(2)


class Came(Exception):
    """What a handler of a signal raises."""


@pytest.mark.parametrize("place", ["take", "lead", "before giving", "give"])
def test_an_interruption_leaves_the_turn_to_others(
    one: SocketTransport, inbox: Inbox, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """At any line: before it is known who has it, and while it is given back."""
    here = current_thread()
    came: list[str] = []

    def comes() -> None:
        if current_thread() is here and not came:
            assert one.leads() == (place != "give")
            came.append(place)
            raise Came

    def told() -> int:
        if place == "take":
            comes()
        return get_ident()

    def arm(
        self: ReceiveLeadership, events: int, inner: Arm = ReceiveLeadership._arm
    ) -> None:
        if (place, bool(events)) in (("lead", False), ("give", True)):
            comes()
        inner(self, events)

    def give(
        self: ReceiveLeadership, *, more: bool, inner: Give = ReceiveLeadership.give
    ) -> None:
        if place == "before giving":
            comes()
        inner(self, more=more)

    monkeypatch.setattr(receiver, "get_ident", told)
    monkeypatch.setattr(ReceiveLeadership, "_arm", arm)
    monkeypatch.setattr(ReceiveLeadership, "give", give)

    def leads() -> None:
        # Another thread may have the turn for a moment.
        while not one.lead(lambda: True, SECONDS):
            pass

    with pytest.raises(Came):
        leads()
    assert came == [place]
    assert not one.leads()
    one.send(one.endpoint, [b"behind"])
    inbox.until_packets(1)
    led(one, lambda: True)


def test_without_files_nothing_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []

    def eventfd(value: int, flags: int, inner: Files = os.eventfd) -> int:
        if given:
            raise OSError(errno.EMFILE, "too many")
        given.append(inner(value, flags))
        return given[0]

    monkeypatch.setattr(os, "eventfd", eventfd)
    with folder() as where, pytest.raises(OSError, match="too many"):
        SocketTransport(f"ipc://{where}/")
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(given[0])


def test_what_comes_in_between_wakes_who_sleeps(
    one: SocketTransport, inbox: Inbox
) -> None:
    """It may have received what the other one, who is interrupted, sleeps for.

    It sleeps, too, inside of the sleep of the other one.
    """
    late: list[bool] = []
    out = Event()

    def slept() -> None:
        while not one._receiving.turns.waits and not out.is_set():
            out.wait(0.001)

    def send() -> None:
        slept()
        one.send(one.endpoint, [b"for both"])

    def handler(*_: object) -> None:
        assert not one.leads()
        sender = Thread(target=send)

        def over() -> bool:
            if not sender.ident:
                sender.start()
            return bool(inbox.packets)

        assert one.lead(over, SECONDS)
        sender.join(SECONDS)

    def interrupt() -> None:
        slept()
        os.kill(os.getpid(), signal.SIGUSR1)
        if not out.wait(SECONDS / 4):
            late.append(True)
            one.nudge()

    before = signal.signal(signal.SIGUSR1, handler)
    other = Thread(target=interrupt)
    other.start()
    try:
        led(one, lambda: bool(inbox.packets))
    finally:
        out.set()
        other.join(SECONDS)
        signal.signal(signal.SIGUSR1, before)
    assert not late


def test_who_went_away_comes_back_whatever_is_raised(
    one: SocketTransport, caplog: pytest.LogCaptureFixture
) -> None:
    told: SimpleQueue[bool] = SimpleQueue()

    def follow_up() -> None:
        raise SystemExit

    def on_packet(frames: list[Buffer], key: str) -> Callable[[], object] | None:
        may = one.yields()
        told.put(may)
        return follow_up if may else None

    one.start(on_packet, lambda: None)
    for _ in range(3):
        one.send(one.endpoint, [b"x"])
        assert told.get(timeout=SECONDS)
        receives = one._receiving.turns
        end = Event()
        for _ in range(1000):
            if not receives.away:
                break
            end.wait(0.01)
        assert not receives.away
    assert {each.name for each in one._threads if not each.is_alive()} == set()


def test_time_ends_it(one: SocketTransport, inbox: Inbox) -> None:
    while not one.lead(lambda: False, 0.01):
        pass
    assert inbox.packets == []


def test_nobody_leads_before_the_start_and_after_the_end(one: SocketTransport) -> None:
    assert not one.lead(lambda: True, SECONDS)
    one.start(lambda *_: None, lambda: None)
    one.close()
    assert not one.lead(lambda: True, SECONDS)
    one.nudge()


def test_the_end_wakes_who_leads(one: SocketTransport, inbox: Inbox) -> None:
    leads = Event()

    def over() -> bool:
        leads.set()
        return False

    leader = Thread(target=one.lead, args=(over, SECONDS))
    leader.start()
    while not leads.wait(0.01) and leader.is_alive():
        pass
    one.close()
    leader.join(SECONDS)
    assert not leader.is_alive()
    assert not any(each.is_alive() for each in one._threads)


def test_one_goes_away_at_a_time_and_another_receives(one: SocketTransport) -> None:
    inbox, gate = Inbox(), Event()
    yields: list[bool] = []
    gone: list[object] = []

    def away() -> None:
        gone.append(current_thread())
        assert gate.wait(SECONDS)

    def told(frames: list[Buffer], key: str) -> Callable[[], object] | None:
        yields.append(one.yields())
        inbox.packet(frames, key)
        return away if yields[-1] else None

    one.start(told, inbox.time)
    for number in range(10):
        one.send(one.endpoint, [b"%d" % number])
    inbox.until_packets(10)
    assert yields == [True] + [False] * 9
    while not gone:
        gate.wait(0.001)
    one.send(one.endpoint, [b"behind"])
    inbox.until_packets(11)
    assert yields[10:] == [False]
    # Nobody waits for who is away, and who comes back finds the end.
    one.close(linger=0)
    (thread,) = gone
    assert isinstance(thread, Thread)
    assert thread.is_alive()
    gate.set()
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_what_is_done_behind_may_fail(
    one: SocketTransport, caplog: pytest.LogCaptureFixture
) -> None:
    inbox = Inbox()

    def told(frames: list[Buffer], key: str) -> Callable[[], object] | None:
        inbox.packet(frames, key)
        return (lambda: 1 / 0) if one.yields() else None

    one.start(told, inbox.time)
    one.send(one.endpoint, [b"first"])
    inbox.until_packets(1)
    while not caplog.records:
        threading.Event().wait(0.001)
    one.send(one.endpoint, [b"second"])
    inbox.until_packets(2)
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_rings_nobody(one: SocketTransport, inbox: Inbox) -> None:
    child = os.fork()
    if child == 0:
        one.nudge()
        one._receiving.turns.ring()
        os._exit(0 if not one.lead(lambda: True, SECONDS) else 1)
    assert os.waitpid(child, 0)[1] == 0
    one.send(one.endpoint, [b"still here"])
    inbox.until_packets(1)


def test_turns_are_taken_and_given() -> None:
    reader, writer = os.pipe()
    made = ReceiveLeadership(reader)
    try:
        assert made.take()
        assert not made.take()
        assert not made.lead()
        made.give(more=False)
        assert made.lead()
        assert made.leader == made.holder == threading.get_ident()
        made.nudge()
        made.wait(60_000)
        os.write(writer, b"x")
        made.wait(60_000)
        made.give(more=True)
        assert (made.leader, made.holder) == (0, 0)
        made.sleep()
    finally:
        made.close()
        made.ring()
        made.nudge()
        os.close(reader)
        os.close(writer)
