"""Transports by ZeroMQ sockets: between processes of one machine, and machines.

A worker binds one PULL socket, to which all others send, and connects one PUSH socket
to each worker that it sends to.  A packet is sent on the calling thread, under the lock
of that one socket.  Threads take turns at the PULL socket
(`runtime.rpc.transport.receiver`). One more thread, nearly always asleep, watches the
links and the clock, and answers requests to admit a key
(`runtime.rpc.transport.link_watch`).

Rules:
- a PUSH socket never receives, and sockets do not have names that a stranger could
  claim: the sender of a packet is identified by the key that it was encrypted with;
- a socket that other users can reach needs keys; without keys it is in a folder that
  only this user can open;
- a packet that a socket cannot accept now is lost and counted: `send` never waits;
- a context belongs to one transport and to one process; a forked child does not touch
  the inherited one;
- IPv6 is for numeric addresses, as names are ambiguous.
"""

import atexit
import errno
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from queue import Empty
from time import monotonic
from typing import TypeAlias
from weakref import WeakSet

import zmq
from zmq.utils import garbage

from everyorder.runtime.base.locks import renewed
from everyorder.runtime.errors.rpc import AddressUnusable, UnsafeKeys
from everyorder.runtime.rpc.transport.addresses import (
    EVERYWHERE,
    Address,
    Keys,
    is_listening,
    locked_folder,
    own_address,
    parse_address,
    private_folder,
    resolve_host,
)
from everyorder.runtime.rpc.transport.interface import (
    BEFORE_CLOSING,
    LARGE,
    MOST_FRAMES,
    Buffer,
    Link,
    LinkState,
    OnLink,
    OnPacket,
    OnTime,
    closed_in_child,
    join_frames,
    split_frames,
)
from everyorder.runtime.rpc.transport.link_watch import (
    LinkWatch,
    Monitored,
    set_heartbeats,
)
from everyorder.runtime.rpc.transport.receiver import Receiver

# In bytes: larger parts are sent without a copy; waiting for the notice that a part was
# sent costs as much as copying this many.
UNCOPIED = 256 * 1024
# Bytes of one frame, by default.
LARGEST = 2 << 30
# Packets that wait for one peer; sessions have fewer in flight.
MOST_WAITING = 1 << 17
# Bytes that encryption adds to a part, and more than a table of few frames has.
_MARGIN = 64 * 1024
# Sockets of a transport; each peer needs three for packets, and three for its pulse.
_SOCKETS = 8192
# Milliseconds: the first pause before a broken link is retried, and the longest.
_RETRY, _RETRY_MOST = 20, 500
# Seconds, by default: much less than workers allow each other, and more than a thread
# that does next to nothing has to wait on a busy machine.
PULSE = 6.0
# Milliseconds that a connecting peer has for its handshake.
_HANDSHAKE = 10_000
# Seconds between two checks, at the end, for a thread that is away.
_AWAY = 0.05
# The longest path of a socket on all systems (`sun_path` less its zero).
_LONGEST_PATH = 103

_DOMAIN = b"everyorder"
_ZAP = "inproc://zeromq.zap.01"
_WATCH = "inproc://watch"

_FAILURES = (
    zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
)
_WHY = {
    errno.EADDRINUSE: "another worker or program listens there",
    errno.EADDRNOTAVAIL: "it is not an address of this machine",
    errno.ENODEV: "it is not an address of this machine",
    errno.EACCES: "this user may not listen there",
}

_Socket: TypeAlias = zmq.Socket[bytes]

_NUMBERS = count()
# Sockets that a forked child inherited: freeing one would close it for the parent.
_INHERITED: list[object] = []


class _Peer:
    """A peer that packets are sent to: its socket, used under its lock."""

    __slots__ = ("lock", "socket")

    def __init__(self, socket: _Socket | None) -> None:
        self.lock = renewed()
        self.socket = socket


class SocketTransport:
    """A transport to other processes, bound from the start.

    Args:
        address: where it listens (`runtime.rpc.transport.addresses`).
        keys: its key pair and the allowed keys; required for `tcp`.
        advertise: the host in its endpoint, if it listens on all interfaces.
        largest: bytes of one frame; a larger frame is not sent, and a peer that
            announces one is disconnected.
        unprotected: listen at the loopback address without keys: every user of this
            machine may send.
        pulse: seconds after which a peer whose process does not answer is not `alive`.

    Raises:
        AddressUnusable: the address is in use, or not an address of this machine.
        UnsafeKeys: other users could reach it, and there are no keys; or the folder of
            the socket is open to other users.
    """

    def __init__(
        self,
        address: str,
        keys: Keys | None = None,
        *,
        advertise: str = "",
        largest: int = LARGEST,
        unprotected: bool = False,
        pulse: float = PULSE,
    ) -> None:
        self.key = keys.public if keys is not None else ""
        self._keys = keys
        self._largest = largest
        self._unprotected = unprotected
        self._lock = renewed()
        self._peers: dict[str, _Peer] = {}
        self._pulse = pulse
        self._closed = False
        self._threads: tuple[threading.Thread, ...] = ()
        # The thread that closes everything, and the time until which it is waited for.
        self._ends: tuple[threading.Thread, float] | None = None
        self._sent = self._received = self._lost = self._garbage = 0
        self._context: zmq.Context[_Socket] = zmq.Context()
        self._context.set(zmq.MAX_SOCKETS, _SOCKETS)
        self._own: list[_Socket] = []
        try:
            zap = self._bound(zmq.REP, _ZAP)
            woken = self._bound(zmq.PULL, _WATCH)
            self._server = self._socket(zmq.PULL)
            failures = self._monitored(self._server, _FAILURES)
            self._own.append(failures)
            self.endpoint = self._listen(parse_address(address), advertise)
            self._watch = LinkWatch(
                zap, woken, keys, self._open_pulse, pulse, self._in_short()
            )
            self._watch.watch("", failures)
            self.alive = self._watch.alive
            self._receiving = Receiver(
                int(self._server.get(zmq.FD)),
                self._packet,
                self._has_more,
                self._in_short(),
            )
            self.lead, self.leads = self._receiving.lead, self._receiving.leads
            self.nudge = self._receiving.turns.nudge
            self.yields = self._receiving.yields
            self._wakers: tuple[_Peer, ...] = (_Peer(self._to(_WATCH)),)
        except BaseException:
            self._context.destroy(linger=0)
            raise
        closed_in_child(self)
        _OPEN.add(self)

    # Listening.

    def _socket(self, kind: int) -> _Socket:
        socket = self._context.socket(kind)
        socket.set(zmq.LINGER, 0)
        self._own.append(socket)
        return socket

    def _bound(self, kind: int, where: str) -> _Socket:
        socket = self._socket(kind)
        socket.bind(where)
        return socket

    def _to(self, where: str) -> _Socket:
        socket = self._socket(zmq.PUSH)
        socket.connect(where)
        return socket

    def _monitored(self, socket: _Socket, events: int) -> _Socket:
        """Return a socket that receives the events of another one."""
        where = f"inproc://events-{next(_NUMBERS)}"
        socket.monitor(where, events)
        monitor = self._context.socket(zmq.PAIR)
        try:
            monitor.set(zmq.LINGER, 0)
            monitor.connect(where)
        except zmq.ZMQError:
            monitor.close(linger=0)
            raise
        return monitor

    def _listen(self, address: Address, advertise: str) -> str:
        """Bind, and return the endpoint for other workers."""
        server, keys = self._server, self._keys
        server.set(zmq.MAXMSGSIZE, self._largest + _MARGIN)
        server.set(zmq.HANDSHAKE_IVL, _HANDSHAKE)
        if keys is not None:
            # Refuse all keys without an answer of the ZAP handler.
            server.set(zmq.ZAP_DOMAIN, _DOMAIN)
            server.set(zmq.ZAP_ENFORCE_DOMAIN, 1)
            server.set(zmq.CURVE_SERVER, 1)
            server.set(zmq.CURVE_SECRETKEY, bytes.fromhex(keys.secret))
        if address.scheme == "ipc":
            path = self._listen_in_folder(address.path)
            return str(Address("ipc", path=path, key=self.key))
        host = resolve_host(address)
        at = Address("tcp", host, address.port)
        if keys is None and not (self._unprotected and at.is_loopback()):
            raise UnsafeKeys(code="KeysNeeded", address=str(address))
        server.set(zmq.IPV6, ":" in host)
        self._bind(str(at), str(address))
        port = int(self._last_endpoint().rpartition(":")[2])
        advertised = address.host
        if advertised in EVERYWHERE:
            advertised = advertise or own_address(":" in host)
        return str(Address("tcp", advertised, port, key=self.key))

    def _bind(self, where: str, address: str) -> None:
        try:
            self._server.bind(where)
        except zmq.ZMQError as error:
            why = _WHY.get(error.errno or 0, error.strerror or "it cannot be bound")
            raise AddressUnusable(address=address, why=why) from error

    def _last_endpoint(self) -> str:
        endpoint = self._server.get(zmq.LAST_ENDPOINT)
        assert isinstance(endpoint, bytes), "this option has bytes"
        return endpoint.rstrip(b"\0").decode()

    def _listen_in_folder(self, path: str) -> str:
        """Bind in a private folder, and return the real path of the socket."""
        address = f"ipc://{path}"
        if path.endswith("/") or os.path.isdir(path):
            path = os.path.join(path, f"{os.getpid()}-{os.urandom(4).hex()}")
        folder, name = os.path.split(path)
        folder = private_folder(folder, create=True)
        path = os.path.join(folder, name)
        if len(os.fsencode(path)) > _LONGEST_PATH:
            why = f"the path of a socket has at most {_LONGEST_PATH} bytes"
            raise AddressUnusable(address=address, why=why)
        # Binding would replace an existing socket.
        with locked_folder(folder):
            if is_listening(path):
                raise AddressUnusable(address=address, why=_WHY[errno.EADDRINUSE])
            self._bind(f"ipc://{path}", address)
        return path

    # The interface of `Transport`.

    def start(
        self, on_packet: OnPacket, on_time: OnTime, on_link: OnLink | None = None
    ) -> None:
        """Start to receive, as `Transport.start`."""
        assert not self._threads, "a transport is started once"
        watches = threading.Thread(
            target=self._watch.run,
            args=(on_time, on_link),
            name=f"rpc links {self._in_short()}",
            daemon=True,
        )
        self._threads = (watches, *self._receiving.threads(on_packet))
        for each in self._threads:
            each.start()

    def send(self, endpoint: str, frames: Sequence[Buffer]) -> None:
        """Send a packet, as `Transport.send`."""
        peer = self._peers.get(endpoint) or self._connected(endpoint)
        parts = join_frames(frames)
        with peer.lock:
            socket = peer.socket
            if socket is None or max(map(len, parts)) > self._largest:
                self._lost += 1
                return
            last = len(parts) - 1
            try:
                for place, part in enumerate(parts):
                    # If the first part is accepted, the others are.
                    flags = zmq.DONTWAIT | (zmq.SNDMORE if place < last else 0)
                    socket.send(part, flags, copy=len(part) < UNCOPIED)
                self._sent += 1
            except zmq.Again:
                self._lost += 1

    def wake_at(self, seconds_from_now: float | None) -> None:
        """Set the alarm, as `Transport.wake_at`."""
        if self._watch.alarm.set(seconds_from_now):
            self._wake()

    def forget(self, endpoint: str) -> None:
        """Break a link, as `Transport.forget`."""
        with self._lock:
            peer = self._peers.pop(endpoint, None)
        if peer is not None:
            _end(peer, 0)

    def counts(self) -> dict[str, int]:
        """Return counts, as `Transport.counts`.

        `lost` could not be sent, `garbage` were not packets, `refused` connections were
        not admitted.
        """
        return {
            "sent": self._sent,
            "received": self._received,
            "lost": self._lost,
            "garbage": self._garbage,
            "refused": self._watch.refused,
        }

    def close(self, linger: float = 1.0) -> None:
        """Close, as `Transport.close`."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._watch.end()
            peers = [*self._peers.values()]
            self._peers.clear()
            ends = threading.Thread(
                target=self._end, name=f"rpc ends {self._in_short()}", daemon=True
            )
            ends.start()
            self._ends = ends, monotonic() + linger + 1
        for peer in peers:
            _end(peer, linger)
        self._wake()
        self._receiving.end()
        here = threading.current_thread()
        if here not in self._threads and here.ident != self._receiving.turns.leader:
            # A callback may take any time, and is not waited for.
            ends.join(linger + 1)

    def in_child(self) -> None:
        """Close: the sockets belong to the parent."""
        _INHERITED.append((self.__dict__.copy(), vars(garbage.gc).copy()))
        self._closed = True
        self._watch.end()
        self._receiving.in_child()
        self._peers = {}
        self._wakers = ()
        self._own = []
        self._threads = ()
        self._ends = None

    def _end(self) -> None:
        """Close everything, once no thread uses it."""
        address = parse_address(self.endpoint)
        if address.scheme == "ipc":
            # Before the socket is closed, so that another one cannot have bound the
            # path.
            with suppress(OSError):
                os.unlink(address.path)
        for thread in self._threads:
            # A thread that is away is not waited for: it ends when it returns.
            while thread.is_alive() and thread.ident != self._receiving.turns.away:
                thread.join(_AWAY)
        self._receiving.turns.close()
        for wake in self._wakers:
            _end(wake, 0)
        self._watch.close()
        for socket in self._own:
            socket.close()
        self._context.term()

    def _in_short(self) -> str:
        return self.endpoint.partition("#")[0]

    # Sending.

    def _connected(self, endpoint: str) -> _Peer:
        """Return the peer at an endpoint; without a socket if none can be created."""
        with self._lock:
            peer = self._peers.get(endpoint)
            if peer is None:
                peer = _Peer(None if self._closed else self._connect(endpoint))
                # Without a socket, for too many open files, the next call tries again.
                if peer.socket is not None:
                    self._peers[endpoint] = peer
        return peer

    def _connect(self, endpoint: str) -> _Socket | None:
        try:
            socket, monitor = self._link(endpoint)
            self._watch.watch(endpoint, monitor)
        except (AddressUnusable, UnsafeKeys, zmq.ZMQError) as error:
            unsafe = isinstance(error, UnsafeKeys)
            state = LinkState.REFUSED if unsafe else LinkState.ABSENT
            self._watch.queue_link(Link(endpoint, state, detail=str(error)))
            return None
        finally:
            self._wake()
        return socket

    def _link(self, endpoint: str, *, is_pulse: bool = False) -> Monitored:
        """Return a socket that is connected to an endpoint, and its monitor.

        Raises:
            AddressUnusable, UnsafeKeys, ZMQError: there is none, and no files are open.
        """
        address = parse_address(endpoint)
        socket = self._context.socket(zmq.PUSH)
        try:
            self._secure(socket, address)
            socket.set(zmq.LINGER, 0)
            socket.set(zmq.SNDHWM, MOST_WAITING)
            socket.set(zmq.RECONNECT_IVL, _RETRY)
            socket.set(zmq.RECONNECT_IVL_MAX, _RETRY_MOST)
            socket.set(zmq.HANDSHAKE_IVL, _HANDSHAKE)
            if is_pulse:
                set_heartbeats(socket, self._pulse)
            monitor = self._monitored(socket, zmq.EVENT_ALL)
            try:
                socket.connect(str(address).partition("#")[0])
            except zmq.ZMQError:
                monitor.close()
                raise
        except BaseException:
            socket.close(linger=0)
            raise
        return Monitored(socket, monitor)

    def _open_pulse(self, endpoint: str) -> Monitored | None:
        try:
            return self._link(endpoint, is_pulse=True)
        except (AddressUnusable, UnsafeKeys, zmq.ZMQError):
            return None

    def _secure(self, socket: _Socket, address: Address) -> None:
        """Set a socket's keys, so that it connects to the endpoint's worker only.

        Raises:
            UnsafeKeys: other users could listen, or open the folder of the socket.
        """
        keys = self._keys
        if address.scheme == "ipc":
            private_folder(os.path.dirname(address.path))
        elif keys is None and not self._unprotected:
            raise UnsafeKeys(code="KeysNeeded", address=str(address))
        if keys is not None:
            server = address.key or keys.keeper
            socket.set(zmq.CURVE_SERVERKEY, bytes.fromhex(server))
            socket.set(zmq.CURVE_PUBLICKEY, bytes.fromhex(keys.public))
            socket.set(zmq.CURVE_SECRETKEY, bytes.fromhex(keys.secret))
        socket.set(zmq.IPV6, ":" in address.host)

    def _wake(self) -> None:
        """Wake the thread that watches."""
        for wake in self._wakers:
            with wake.lock:
                if wake.socket is not None:
                    # The queue is full of wake-ups already.
                    with suppress(zmq.Again):
                        wake.socket.send(b"", zmq.DONTWAIT)

    def _has_more(self) -> bool:
        return bool(int(self._server.getsockopt(zmq.EVENTS)) & zmq.POLLIN)

    def _packet(self) -> tuple[list[Buffer], str] | None:
        """Return the next packet and the key of its sender; None for garbage.

        Raises:
            Empty: there is no packet.
        """
        try:
            part = self._server.recv(zmq.DONTWAIT, copy=False)
        except zmq.Again:
            raise Empty from None
        first = part.bytes
        key = str(part.get("User-Id")) if self.key else ""
        others: list[Buffer] = []
        more = part.more
        while more:
            part = self._server.recv(copy=False)
            more = part.more
            if len(others) <= MOST_FRAMES:
                others.append(part.buffer if len(part) >= LARGE else part.bytes)
        frames = split_frames(first, others)
        if frames is None:
            self._garbage += 1
            return None
        self._received += 1
        return frames, key


def _end(peer: _Peer, linger: float) -> None:
    with peer.lock:
        socket, peer.socket = peer.socket, None
    if socket is not None:
        socket.close(linger=int(linger * 1000))


_OPEN: WeakSet[SocketTransport] = WeakSet()


def _close_all() -> None:
    """Close open transports: their sent buffers are about to be freed."""
    if BEFORE_CLOSING.answer is not None:
        BEFORE_CLOSING.answer()
    for each in [*_OPEN]:
        each.close(linger=0)
        if each._ends is not None:
            # A callback may have closed it, which does not wait.
            ends, until = each._ends
            ends.join(max(until - monotonic(), 0.0))


# The function registered last is called first: this one must run before ZeroMQ's, which
# frees buffers that are still sent.  So it is registered here, after the import of
# ZeroMQ.
atexit.register(_close_all)
