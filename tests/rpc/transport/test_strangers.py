"""Attackers: unknown keys, none, forged ones, and those who would take a name."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest
import zmq

from everyorder.runtime.rpc.transport import Link, LinkState, interface
from everyorder.runtime.rpc.transport.addresses import Keys
from everyorder.runtime.rpc.transport.interface import join_frames
from everyorder.runtime.rpc.transport.sockets import SocketTransport
from tests.rpc.transport.inbox import Inbox, folder

WORKER, FRIEND, STRANGER = (Keys.drawn() for _ in range(3))


class World:
    """A worker who lets in itself and a friend, and sockets of others."""

    def __init__(self, ends: ExitStack) -> None:
        self.inbox = Inbox()
        keys = replace(WORKER, others=frozenset({FRIEND.public}))
        self.worker = ends.enter_context(
            closing(SocketTransport("tcp://127.0.0.1:0", keys))
        )
        self.inbox.start(self.worker)
        self.where = self.worker.endpoint.partition("#")[0]
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        ends.callback(self.context.destroy, linger=0)
        self._ends = ends

    def transport(self, keys: Keys) -> tuple[SocketTransport, Inbox]:
        made, inbox = SocketTransport("tcp://127.0.0.1:0", keys), Inbox()
        self._ends.callback(made.close, linger=0)
        inbox.start(made)
        return made, inbox

    def socket(
        self, keys: Keys | None, *, kind: int = zmq.PUSH, name: bytes = b""
    ) -> "zmq.Socket[bytes]":
        """A socket as an attacker makes it."""
        made = self.context.socket(kind)
        made.linger = 0
        self._ends.callback(made.close)
        if name:
            made.routing_id = name
        if keys is not None:
            made.curve_serverkey = bytes.fromhex(WORKER.public)
            made.curve_publickey = bytes.fromhex(keys.public)
            made.curve_secretkey = bytes.fromhex(keys.secret)
        made.connect(self.where)
        return made

    def until_refused(self, many: int) -> None:
        """Wait until so many were not let in, which is not told each time."""

        def refused() -> bool:
            self.worker.wake_at(0.01)
            return self.worker.counts()["refused"] >= many

        self.inbox.until(refused)

    def only(self, *expected: bytes) -> None:
        """Check that packets of the friend come in, and that none other did."""
        friend, _ = self.transport(replace(FRIEND, keeper=WORKER.public))
        friend.send(self.where, [b"friend"])
        self.inbox.until(lambda: [b"friend"] in self.inbox.packets)
        assert self.inbox.packets == [[each] for each in expected] + [[b"friend"]]
        assert self.inbox.keys[-1] == FRIEND.public


@pytest.fixture
def world() -> Iterator[World]:
    with ExitStack() as ends:
        yield World(ends)


def test_a_friend_is_told_by_its_key(world: World) -> None:
    friend, inbox = world.transport(FRIEND)
    friend.send(world.worker.endpoint, [b"hello"])
    world.inbox.until_packets(1)
    assert world.inbox.keys == [FRIEND.public] == [friend.key]
    inbox.until_link(world.worker.endpoint, LinkState.UP)


def test_an_unknown_key(world: World) -> None:
    """Nothing that it sends comes in, and both sides are told."""
    stranger, inbox = world.transport(STRANGER)
    stranger.send(world.worker.endpoint, [b"attack"])
    assert inbox.until_link(world.worker.endpoint, LinkState.REFUSED) == Link(
        world.worker.endpoint, LinkState.REFUSED
    )
    assert world.inbox.until_link("", LinkState.STRANGER) == Link(
        "",
        LinkState.STRANGER,
        STRANGER.public,
        "the key is not among the allowed ones",
    )
    world.only()
    assert world.worker.counts()["refused"] >= 1
    # It is told once, though it tries again and again.
    strangers = [e for e in world.inbox.links if e.state is LinkState.STRANGER]
    assert len(strangers) == 1


def test_no_key(world: World) -> None:
    socket = world.socket(None)
    socket.send(join_frames([b"attack"])[0])
    world.until_refused(1)
    world.only()


def test_somebody_elses_public_key(world: World) -> None:
    """Who names a friend's public key without its secret gets nowhere."""
    forged = replace(STRANGER, public=FRIEND.public)
    socket = world.socket(forged)
    monitor = socket.get_monitor_socket(
        zmq.EVENT_HANDSHAKE_SUCCEEDED
        | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
        | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
        | zmq.EVENT_HANDSHAKE_FAILED_AUTH
        | zmq.EVENT_DISCONNECTED
    )
    socket.send(join_frames([b"attack"])[0])
    assert monitor.poll(60_000)
    monitor.close()
    world.only()


def test_a_worker_with_the_wrong_key(world: World) -> None:
    """Who stands at a friend's address without its key is told nothing."""
    false = f"{world.where}#{STRANGER.public}"
    friend, inbox = world.transport(FRIEND)
    friend.send(false, [b"for another one"])
    inbox.until_link(false, LinkState.REFUSED)
    assert [each.state for each in inbox.links] == [LinkState.REFUSED]
    world.only()


def test_a_name_cannot_be_taken(world: World) -> None:
    """Sockets of one name are two senders, each told by its key alone."""
    keys = [WORKER, FRIEND, WORKER]
    for number, each in enumerate(keys):
        socket = world.socket(each, name=b"same")
        socket.send(join_frames([b"%d" % number])[0])
        world.inbox.until_packets(number + 1)
    assert world.inbox.packets == [[b"0"], [b"1"], [b"2"]]
    assert world.inbox.keys == [each.public for each in keys]
    stranger = world.socket(STRANGER, name=b"same")
    stranger.send(join_frames([b"attack"])[0])
    world.inbox.until_link("", LinkState.STRANGER)
    world.only(b"0", b"1", b"2")


def test_a_name_that_looks_like_a_wake_up(world: World) -> None:
    """What wakes the thread from inside does nothing from outside."""
    friend = world.socket(FRIEND)
    friend.send(b"")
    friend.send(join_frames([b"behind"])[0])
    world.inbox.until_packets(1)
    assert world.inbox.packets == [[b"behind"]]
    assert world.inbox.keys == [FRIEND.public]


@pytest.mark.parametrize(
    "kind", [zmq.DEALER, zmq.PUB, zmq.REQ, zmq.PAIR, zmq.PULL, zmq.ROUTER]
)
def test_other_kinds_of_sockets(world: World, kind: int) -> None:
    """A friend whose socket is of another kind is cut off; others are not."""
    other = world.socket(FRIEND, kind=kind)
    monitor = other.get_monitor_socket(
        zmq.EVENT_HANDSHAKE_SUCCEEDED
        | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
        | zmq.EVENT_DISCONNECTED
    )
    monitor.linger = 0
    assert monitor.poll(60_000)
    monitor.close()
    world.only()


def test_a_worker_that_answers_at_our_sending_socket() -> None:
    """Nothing comes in by the socket that sends; it fills up nothing either."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    server = context.socket(zmq.PAIR)
    port = server.bind_to_random_port("tcp://127.0.0.1")
    try:
        with closing(SocketTransport("tcp://127.0.0.1:0", unprotected=True)) as worker:
            inbox = Inbox()
            inbox.start(worker)
            worker.send(f"tcp://127.0.0.1:{port}", [b"x"])
            # Which side is the first to see that their sockets do not fit is chance.
            ends = (LinkState.DOWN, LinkState.REFUSED)
            inbox.until(lambda: any(link.state in ends for link in inbox.links))
            assert inbox.packets == []
    finally:
        context.destroy(linger=0)


def test_a_worker_without_keys_sends_to_nobody_by_tcp() -> None:
    """What it sends could be read; and the other side has keys, or is open to all."""
    with folder() as home, closing(SocketTransport(f"ipc://{home}/")) as worker:
        inbox = Inbox()
        inbox.start(worker)
        worker.send("tcp://127.0.0.1:5", [b"x"])
        link = inbox.until_link("tcp://127.0.0.1:5", LinkState.REFUSED)
        assert "without keys" in link.detail
        assert worker.counts()["lost"] == 1


def test_a_worker_does_not_send_into_an_open_folder() -> None:
    with folder() as home, folder() as trap, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{trap}/w")
        server.listen()
        os.chmod(trap, 0o755)
        with closing(SocketTransport(f"ipc://{home}/")) as worker:
            inbox = Inbox()
            inbox.start(worker)
            worker.send(f"ipc://{trap}/w", [b"x"])
            link = inbox.until_link(f"ipc://{trap}/w", LinkState.REFUSED)
            assert "its mode is 0755" in link.detail
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_strangers_are_told_until_there_are_many(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interface, "MOST_STRANGERS", 2)
    for _ in range(4):
        refused = world.worker.counts()["refused"]
        world.socket(Keys.drawn())
        world.until_refused(refused + 1)
    told = {each.key for each in world.inbox.links}
    world.only()
    assert len(told) == 2
