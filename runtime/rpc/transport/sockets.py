"""Transports by sockets of ZeroMQ: between processes of one machine, and machines.

True only here: everything that touches a socket.

How it works: a worker binds one PULL socket, at which everybody sends to it, and
connects one PUSH socket to each worker that it sends to.  Sending happens on the
caller's thread, under a lock of that one socket; one thread waits at the PULL socket
and tells what comes in; another one, asleep nearly always, watches the links.  So a
call changes threads once on its way, at the receiver.

Rules:
- nothing is ever received at a PUSH socket, and there are no names of sockets that a
  stranger could take: who sent a packet is told by its key alone;
- small frames of a packet travel joined, after a table of their lengths, as one part; a
  large frame is a part of its own and is not copied; a packet whose table does not fit
  is dropped and counted;
- a socket that cannot take a packet now loses it and counts it: nobody waits;
- a context belongs to one transport and to one process; a forked child keeps what it
  inherited untouched and unused.
"""

import threading
from collections import deque
from collections.abc import Sequence
from itertools import count
from struct import Struct
from typing import Any

import zmq
from zmq.utils.monitor import parse_monitor_message

from runtime.errors.rpc import AddressUnusable
from runtime.locks import renewed
from runtime.rpc.transport.alarms import Alarm
from runtime.rpc.transport.interface import (
    LOG,
    Buffer,
    Link,
    LinkState,
    OnLink,
    OnPacket,
    OnTime,
    closed_in_child,
)

# A frame from here on is a part of its own, and not copied: there a copy costs as much
# as another part.
LARGE = 16 * 1024
# In the table, a frame that is a part of its own.
_APART = 0xFFFFFFFF
# More frames than a packet of ours has.
MOST_FRAMES = 1 << 16
# Packets that wait for one peer; sessions have fewer under way.
MOST_WAITING = 1 << 17

_STATES = {
    zmq.EVENT_HANDSHAKE_SUCCEEDED: LinkState.UP,
    zmq.EVENT_DISCONNECTED: LinkState.DOWN,
    zmq.EVENT_CLOSED: LinkState.ABSENT,
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: LinkState.REFUSED,
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: LinkState.REFUSED,
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: LinkState.REFUSED,
}

_TABLES = [Struct(f"<{1 + n}I") for n in range(9)]
_WORD = Struct("<I")
_NUMBERS = count()
# What a forked child inherited: to drop a socket is to close it, and that is the
# parent's.
_INHERITED: list[object] = []


def _table(n: int) -> Struct:
    return _TABLES[n] if n < len(_TABLES) else Struct(f"<{1 + n}I")


def joined(frames: Sequence[Buffer]) -> list[Buffer]:
    """The parts by which a packet travels: its table and small frames, then the large.

    >>> joined([b"ab", b"c"])
    [b'\\x02\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x01\\x00\\x00\\x00abc']
    """
    lengths: list[int] = [len(frames)]
    small: list[Buffer] = [b""]
    parts: list[Buffer] = [b""]
    for frame in frames:
        size = frame.nbytes if isinstance(frame, memoryview) else len(frame)
        if size < LARGE:
            lengths.append(size)
            small.append(frame)
        else:
            lengths.append(_APART)
            parts.append(frame)
    small[0] = _table(len(frames)).pack(*lengths)
    parts[0] = b"".join(small)
    return parts


def parted(parts: Sequence[Buffer]) -> list[Buffer] | None:
    """The frames of a packet; None where the parts are no packet of ours."""
    first = parts[0]
    if len(first) < _WORD.size:
        return None
    (n,) = _WORD.unpack_from(first)
    if n > MOST_FRAMES:
        return None
    table = _table(n)
    at = table.size
    if len(first) < at:
        return None
    frames: list[Buffer] = []
    large = 0
    for length in table.unpack_from(first)[1:]:
        if length == _APART:
            large += 1
            if large == len(parts):
                return None
            frames.append(parts[large])
        else:
            frames.append(first[at : at + length])
            at += length
    if at != len(first) or large != len(parts) - 1:
        return None
    return frames


class _Peer:
    """One that is sent to: its socket, under its lock."""

    __slots__ = ("lock", "socket")

    def __init__(self, socket: zmq.Socket[bytes] | None) -> None:
        self.lock = renewed()
        self.socket = socket


class SocketTransport:
    """A transport to other processes, bound at `address` from the start.

    Args:
        address: `ipc:///folder/name` or `tcp://HOST:PORT`; port 0 draws one.

    Raises:
        AddressUnusable: another worker is there, or it is no address.
    """

    key = ""

    def __init__(self, address: str) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._name = next(_NUMBERS)
        self._lock = renewed()
        self._peers: dict[str, _Peer] = {}
        self._alarm = Alarm()
        self._links: deque[Link] = deque()
        self._closed = False
        self._threads: list[threading.Thread] = []
        self._sent = self._received = self._lost = self._garbage = 0
        self._watch: deque[tuple[str, zmq.Socket[bytes]]] = deque()
        self._told: dict[str, LinkState] = {}
        self._unwatch: deque[str] = deque()
        self._in = self._context.socket(zmq.PULL)
        self._wakes: list[_Peer] = []
        try:
            self._in.linger = 0
            self._in.bind(
                address.replace(":0", ":*") if address.endswith(":0") else address
            )
            self.endpoint: str = self._in.last_endpoint.rstrip(b"\0").decode()
        except zmq.ZMQError as error:
            self._in.close()
            self._context.term()
            raise AddressUnusable(address=address, why=str(error)) from error
        self._in.bind("inproc://wake")
        self._watched = self._context.socket(zmq.PULL)
        self._watched.bind("inproc://watch")
        for where in ("inproc://wake", "inproc://watch"):
            wake = self._context.socket(zmq.PUSH)
            wake.linger = 0
            wake.connect(where)
            self._wakes.append(_Peer(wake))
        closed_in_child(self)

    def start(
        self, on_packet: OnPacket, on_time: OnTime, on_link: OnLink | None = None
    ) -> None:
        """As `Transport.start`."""
        for run, args in (
            (self._receive, (on_packet, on_time, on_link)),
            (self._watch_links, ()),
        ):
            thread = threading.Thread(
                target=run, args=args, name=f"rpc {self.endpoint}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def send(self, endpoint: str, frames: Sequence[Buffer]) -> None:
        """As `Transport.send`."""
        peer = self._peers.get(endpoint) or self._connect(endpoint)
        parts = joined(frames)
        with peer.lock:
            socket = peer.socket
            if socket is None:
                self._lost += 1
                return
            try:
                if len(parts) == 1:
                    socket.send(parts[0], zmq.NOBLOCK)
                else:
                    last = len(parts) - 1
                    for place, part in enumerate(parts):
                        flags = zmq.NOBLOCK | (zmq.SNDMORE if place < last else 0)
                        socket.send(part, flags, copy=place == 0)
                self._sent += 1
            except zmq.ZMQError:
                self._lost += 1

    def wake_at(self, seconds_from_now: float | None) -> None:
        """As `Transport.wake_at`."""
        if self._alarm.set(seconds_from_now):
            self._wake(0)

    def forget(self, endpoint: str) -> None:
        """As `Transport.forget`."""
        with self._lock:
            peer = self._peers.pop(endpoint, None)
        if peer is not None:
            self._unwatch.append(endpoint)
            self._wake(1)
            self._end(peer, 0)

    def counts(self) -> dict[str, int]:
        """As `Transport.counts`."""
        return {
            "sent": self._sent,
            "received": self._received,
            "lost": self._lost,
            "garbage": self._garbage,
        }

    def close(self, linger: float = 1.0) -> None:
        """As `Transport.close`."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            peers = [*self._peers.values()]
            self._peers.clear()
        for peer in peers:
            self._end(peer, linger)
        for number in range(len(self._wakes)):
            self._wake(number)
        me = threading.current_thread()
        ending = threading.Thread(
            target=self._finish,
            args=([t for t in self._threads if t is not me],),
            name=f"rpc {self.endpoint} ends",
            daemon=True,
        )
        ending.start()
        if me not in self._threads:
            ending.join(linger + 5)

    def in_child(self) -> None:
        """Be closed: the process was forked, and the sockets are the parent's."""
        _INHERITED.append(self.__dict__.copy())
        self._closed = True
        self._peers = {}
        self._wakes = []
        self._lock = renewed()

    def _connect(self, endpoint: str) -> _Peer:
        with self._lock:
            peer = self._peers.get(endpoint)
            if peer is not None:
                return peer
            peer = _Peer(None if self._closed else self._socket_to(endpoint))
            if not self._closed:
                self._peers[endpoint] = peer
            return peer

    def _socket_to(self, endpoint: str) -> zmq.Socket[bytes] | None:
        socket = self._context.socket(zmq.PUSH)
        try:
            socket.linger = 0
            socket.sndhwm = MOST_WAITING
            socket.reconnect_ivl = 20
            socket.reconnect_ivl_max = 500
            at = f"inproc://link-{next(_NUMBERS)}"
            monitor = socket.get_monitor_socket(zmq.EVENT_ALL, at)
            monitor.linger = 0
            socket.connect(endpoint)
        except zmq.ZMQError as error:
            socket.disable_monitor()
            socket.close()
            self._links.append(Link(endpoint, LinkState.ABSENT, detail=str(error)))
            self._wake(0)
            return None
        self._watch.append((endpoint, monitor))
        self._wake(1)
        return socket

    def _end(self, peer: _Peer, linger: float) -> None:
        with peer.lock:
            socket, peer.socket = peer.socket, None
        if socket is not None:
            socket.monitor(None, 0)
            socket.close(linger=int(linger * 1000))

    def _wake(self, number: int) -> None:
        wake = self._wakes[number]
        with wake.lock:
            if wake.socket is not None:
                wake.socket.send(b"", zmq.NOBLOCK)

    def _receive(
        self, on_packet: OnPacket, on_time: OnTime, on_link: OnLink | None
    ) -> None:
        """What the receiving thread does."""
        socket = self._in
        while not self._closed:
            try:
                seconds = self._alarm.sleep()
                socket.rcvtimeo = -1 if seconds is None else int(seconds * 1000) + 1
                try:
                    parts = socket.recv_multipart()
                except zmq.Again:
                    parts = None
                self._alarm.awake()
                if self._closed:
                    break
                if parts is not None and parts != [b""]:
                    frames = parted(parts)
                    if frames is None:
                        self._garbage += 1
                    else:
                        self._received += 1
                        on_packet(frames, "")
                while self._links:
                    link = self._links.popleft()
                    if on_link is not None:
                        on_link(link)
                if self._alarm.rings():
                    on_time()
            except Exception:
                LOG.exception("a callback of %s failed", self.endpoint)

    def _watch_links(self) -> None:
        """What the watching thread does."""
        watched: dict[Any, str] = {}
        poller = zmq.Poller()
        poller.register(self._watched, zmq.POLLIN)
        while not self._closed:
            for socket, _ in poller.poll():
                if socket is self._watched:
                    socket.recv()
                    continue
                event = parse_monitor_message(socket.recv_multipart())
                self._saw(watched[socket], event)
            while self._watch:
                endpoint, monitor = self._watch.popleft()
                watched[monitor] = endpoint
                poller.register(monitor, zmq.POLLIN)
        for monitor in watched:
            monitor.close()

    def _saw(self, endpoint: str, event: Any) -> None:
        state = _STATES.get(event["event"])
        # A link that is tried again and again is told about once.
        if state is None or self._told.get(endpoint) is state:
            return
        if state is LinkState.ABSENT and self._told.get(endpoint) is LinkState.REFUSED:
            return
        self._told[endpoint] = state
        self._links.append(Link(endpoint, state))
        self._wake(0)

    def _finish(self, threads: list[threading.Thread]) -> None:
        for thread in threads:
            thread.join()
        for wake in self._wakes:
            self._end(wake, 0)
        self._in.close()
        self._watched.close()
        self._context.term()
