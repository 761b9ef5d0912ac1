"""Transports: carry packets between workers, and may lose them.

    Transport         the interface that agents use
    LocalTransport    to other workers of this process; without sockets
    Alarm             the time at which a sleeping thread wakes by itself
    LinkChanges       the events of a link that are reported
    join_frames, split_frames    the frames of a packet in the parts of one message

Rules of transports:
- a packet is a list of buffers; it arrives whole or not at all.  Packets to one
  endpoint arrive in the order of sending, as long as the link is up; packets in flight
  when it breaks are lost without notice: sessions detect the loss;
- `send` is for any thread.  It never waits for the other side and never raises because
  of it: a packet that cannot be sent is lost, and counted;
- sent buffers must not change until they are answered: large ones are not copied before
  transmission;
- packets are delivered one at a time, in order; so are timers and links, possibly at
  the same time as packets.  Callbacks run on threads of the transport, or on a leading
  thread.  An exception of a callback is logged, and the thread continues;
- a thread that waits for an answer may lead: it receives during its wait, and no other
  thread is woken;
- `on_packet` may return a function that the delivering thread runs after the packet,
  while another thread receives; only if `yields` allowed it;
- received buffers belong to the receiver; the large ones are writable;
- a transport that is not closed is closed at the end of the process, after all handlers
  that were registered later: its threads must not outlive the interpreter;
- in a forked child a transport is closed: the child creates a new one, and the parent's
  continues undisturbed.

Rules of alarms: an alarm is set without a lock, once or twice in every call.  Setting
writes the time, then reads until when the thread sleeps; the thread first announces
that it is about to sleep, then reads the alarm, then writes for how long.  So one of
the two sees the other.  An alarm rings once, possibly early, and is never missed.

Rules of link changes: a link that cannot be established is retried several times a
second, so its state is reported when it changes; after a refusal only success is a
change.  A connection that the other side closes in the handshake proves nothing: that
side may be about to end, may be no worker, or may not know this side's key, which ends
in the same way.  It is a refusal, with these causes, when it has happened `MOST_CLOSED`
times without any other result.  Strangers are reported one by one, each key once, up to
`MOST_STRANGERS`, because strangers can create any number of keys.

Rules of parts: each part of a message costs both sides a call and a switch of threads,
which is more than copying a few thousand bytes; large frames are not copied.  The first
part is a table of 32-bit words, little-endian, followed by the small frames: the number
of frames, then the length of each, or `_APART` for a frame that is a separate part.
Parts that do not match the table exactly are not a packet.

Rules of local transports: an endpoint is `local://NAME`, visible in this process only;
a name is unique; a sent buffer is copied unless it is immutable (`bytes`), as workers
do not share memory.
"""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import count
from math import inf
from queue import Empty, SimpleQueue
from struct import Struct
from threading import Thread, current_thread
from time import monotonic
from typing import Protocol, TypeAlias
from weakref import WeakSet

from everyorder.runtime.base.hooks import Hook
from everyorder.runtime.base.locks import renewed
from everyorder.runtime.errors.rpc import AddressUnusable

Buffer: TypeAlias = bytes | bytearray | memoryview

LOG = logging.getLogger("everyorder.runtime.rpc")


class LinkState(Enum):
    """The state of a link; the values are for messages."""

    UP = "the connection is up"
    DOWN = "the connection broke"
    ABSENT = "there is no listener"
    REFUSED = "the keys or the protocols of the two sides do not match"
    STRANGER = "a worker with a key that is not allowed tried to connect"


@dataclass(frozen=True, slots=True)
class Link:
    """A changed link.

    `endpoint` is the one passed to `send`; for a stranger it is "", and `key` is the
    public key of the stranger.  `detail` is for messages.
    """

    endpoint: str
    state: LinkState
    key: str = ""
    detail: str = ""


OnPacket: TypeAlias = Callable[[list[Buffer], str], Callable[[], object] | None]
OnTime: TypeAlias = Callable[[], None]
OnLink: TypeAlias = Callable[[Link], None]


class Transport(Protocol):
    """Interface of one worker's transport to the others.

    `endpoint` is the address by which others reach it; `key` is its public key, ""
    without keys.
    """

    @property
    def endpoint(self) -> str:
        """Return the endpoint of this worker, which others pass to `send`."""

    @property
    def key(self) -> str:
        """Return its public key; "" without keys."""

    def start(
        self, on_packet: OnPacket, on_time: OnTime, on_link: OnLink | None = None
    ) -> None:
        """Start to receive; called once.

        `on_packet` receives the buffers and the public key of the sender, which has
        proven to own it; "" without keys.
        """

    def send(self, endpoint: str, frames: Sequence[Buffer]) -> None:
        """Send a packet, or lose it."""

    def wake_at(self, seconds_from_now: float | None) -> None:
        """Schedule one call of `on_time`, in place of the last alarm; None cancels.

        The call may be early.
        """

    def lead(self, over: Callable[[], bool], seconds: float) -> bool:
        """Receive on this thread until `over()` is true, or until the timeout.

        Return False, without any effect, if another thread receives.  A thread that
        makes `over()` true calls `nudge` afterwards.
        """

    def leads(self) -> bool:
        """Return True if this thread is delivering packets."""

    def nudge(self) -> None:
        """Make the leader, if there is one, evaluate `over` again."""

    def yields(self) -> bool:
        """Return True if this thread, in `on_packet`, may run a long function
        afterwards.

        `on_packet` then returns the function; until it ends, no other thread may do so.
        """

    def forget(self, endpoint: str) -> None:
        """Break the link to an endpoint; packets that wait for it are lost."""

    def alive(self) -> Mapping[str, float]:
        """Return the linked endpoints whose processes run for certain.

        Each was running so many seconds ago, or later, although its interpreter may
        have been busy.  An endpoint that is not in the result may run as well.
        """

    def counts(self) -> dict[str, int]:
        """Return counts of packets sent, received and lost, for debugging."""

    def close(self, linger: float = 1.0) -> None:
        """Stop; sent packets have `linger` seconds to leave.  Idempotent.

        Callbacks do not run after the return; on a delivering thread, not after the
        current callback.  A function that runs after a packet is not waited for.
        """


class Forkable(Protocol):
    """An object that a forked child must not use any more."""

    def in_child(self) -> None:
        """Close without a lock and without touching resources of the parent."""


_FORKABLE: WeakSet[Forkable] = WeakSet()


def closed_in_child(transport: Forkable) -> None:
    """Register an object whose `in_child` is called in every forked child."""
    _FORKABLE.add(transport)


def _in_child() -> None:
    for each in [*_FORKABLE]:
        each.in_child()


# Asked at the end of a program, before transports are closed; answered by workers.
BEFORE_CLOSING: Hook[Callable[[], None]] = Hook("the end of all workers")

# Some systems do not have fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


# _BUSY: the thread reads the alarm before it sleeps.  _ABOUT: it is about to sleep, so
# any alarm must wake it.
_BUSY, _ABOUT = -inf, inf


class Alarm:
    """The alarm of one thread, in seconds of the monotonic clock."""

    __slots__ = ("_asleep", "_at")

    def __init__(self) -> None:
        self._at: float | None = None
        # Before the thread is started there is no thread to wake.
        self._asleep = _BUSY

    def set(self, seconds_from_now: float | None) -> bool:
        """Set the alarm; return True if the thread would sleep longer, and must be
        woken.
        """
        if seconds_from_now is None:
            self._at = None
            return False
        at = self._at = monotonic() + seconds_from_now
        return at < self._asleep

    def sleep(self) -> float | None:
        """Return the seconds that the thread may sleep now; None: until it is woken."""
        self._asleep = _ABOUT
        at = self._at
        if at is None:
            return None
        self._asleep = at
        return max(0.0, at - monotonic())

    def awake(self) -> None:
        """Mark the thread as awake."""
        self._asleep = _BUSY

    def rings(self) -> bool:
        """Return True if the alarm is due, and reset it."""
        at = self._at
        if at is None or at > monotonic():
            return False
        self._at = None
        return True


MOST_STRANGERS = 100
# Within about a second: a process that ends has closed its listener by then.
MOST_CLOSED = 5

_CLOSED_EARLY = (
    "it closes each connection in the handshake: the two do not trust each other's "
    "keys, or it is about to end, or it is not a worker"
)

# By ZeroMQ's names of its events.
_STATES = {
    "HANDSHAKE_SUCCEEDED": LinkState.UP,
    "DISCONNECTED": LinkState.DOWN,
    "CLOSED": LinkState.ABSENT,
    "HANDSHAKE_FAILED_AUTH": LinkState.REFUSED,
    "HANDSHAKE_FAILED_PROTOCOL": LinkState.REFUSED,
}


class LinkChanges:
    """The last reported states of links, which decide if an event is a change."""

    def __init__(self) -> None:
        self._states: dict[str, LinkState] = {}
        # By endpoint: how often the other side has closed the connection in the
        # handshake since the last other result.
        self._closed: dict[str, int] = {}
        self._strangers: set[str] = set()

    def link_change(self, endpoint: str, event: str) -> Link | None:
        """Return the change of a link after an event; None if there is none."""
        state = _STATES.get(event)
        detail = ""
        if event == "HANDSHAKE_FAILED_NO_DETAIL":
            closed = self._closed[endpoint] = self._closed.get(endpoint, 0) + 1
            if closed >= MOST_CLOSED:
                state, detail = LinkState.REFUSED, _CLOSED_EARLY
        elif state is LinkState.DOWN and endpoint in self._closed:
            # The connection that was not established.
            return None
        elif state is not None:
            self._closed.pop(endpoint, None)
        last = self._states.get(endpoint)
        refused = last is LinkState.REFUSED and state is not LinkState.UP
        if state is None or state is last or refused:
            return None
        self._states[endpoint] = state
        return Link(endpoint, state, detail=detail)

    def forget(self, endpoint: str) -> None:
        """Forget the state of a link that is given up."""
        self._states.pop(endpoint, None)
        self._closed.pop(endpoint, None)

    def stranger_change(self, key: str, why: str) -> Link | None:
        """Return the change for a refused stranger; None if it was reported, or too
        many.
        """
        if key in self._strangers or len(self._strangers) >= MOST_STRANGERS:
            return None
        self._strangers.add(key)
        return Link("", LinkState.STRANGER, key, why)


# In bytes: larger frames are separate parts, as copying them would cost as much.
LARGE = 16 * 1024
# Limit of frames, more than a session's packet has; their table takes 256 KiB.
MOST_FRAMES = 1 << 16

# In the table, marks a frame that is a separate part.
_APART = 0xFFFFFFFF
_WORD = Struct("<I")
# For packets with few frames, which nearly all packets are.
_TABLES = tuple(Struct(f"<{1 + n}I") for n in range(9))


def _table(frames: int) -> Struct:
    return _TABLES[frames] if frames < len(_TABLES) else Struct(f"<{1 + frames}I")


def flat(buffer: Buffer) -> Buffer:
    """Return a buffer whose length is its size in bytes; copy if not contiguous."""
    if isinstance(buffer, bytes | bytearray):
        return buffer
    view = memoryview(buffer)
    return view.cast("B") if view.c_contiguous else view.tobytes()


def join_frames(frames: Sequence[Buffer]) -> list[Buffer]:
    """Return the parts of the message that transmits a packet.

    >>> join_frames([b"ab", b"c"])
    [b'\\x02\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x01\\x00\\x00\\x00abc']
    """
    if len(frames) == 1 and type(each := frames[0]) is bytes and len(each) < LARGE:
        # The most frequent case.
        return [_TABLES[1].pack(1, len(each)) + each]
    lengths = [len(frames)]
    small: list[Buffer] = [b""]
    parts: list[Buffer] = [b""]
    for each in frames:
        frame = flat(each)
        if len(frame) < LARGE:
            lengths.append(len(frame))
            small.append(frame)
        else:
            lengths.append(_APART)
            parts.append(frame)
    small[0] = _table(len(frames)).pack(*lengths)
    parts[0] = b"".join(small)
    return parts


def split_frames(first: bytes, others: Sequence[Buffer]) -> list[Buffer] | None:
    """Return the frames of a packet; None if the parts are malformed."""
    if len(first) < _WORD.size:
        return None
    (many,) = _WORD.unpack_from(first)
    table = _table(many) if many <= MOST_FRAMES else None
    if table is None or len(first) < table.size:
        return None
    frames: list[Buffer] = []
    at = table.size
    apart = 0
    for length in table.unpack_from(first)[1:]:
        if length == _APART:
            if apart == len(others):
                return None
            frames.append(others[apart])
            apart += 1
        else:
            frames.append(first[at : at + length])
            at += length
    return frames if at == len(first) and apart == len(others) else None


_SCHEME = "local://"
# Endpoint -> the transport there.
_HERE: dict[str, "LocalTransport"] = {}
_LOCK = renewed()
_NUMBERS = count()


def _copied(frame: Buffer) -> Buffer:
    return frame if type(frame) is bytes else bytearray(frame)


class LocalTransport:
    """A transport to other workers of this process; the default name is a new number.

    Raises:
        AddressUnusable: another transport has that name.
    """

    key = ""

    def __init__(self, name: str = "") -> None:
        self.endpoint = _SCHEME + (name or str(next(_NUMBERS)))
        self._queue: SimpleQueue[tuple[Buffer, ...] | Link | None] = SimpleQueue()
        self._alarm = Alarm()
        self._closed = False
        self._thread: Thread | None = None
        self._sent = self._received = self._lost = 0
        self._absent: set[str] = set()
        with _LOCK:
            if self.endpoint in _HERE:
                raise AddressUnusable(
                    address=self.endpoint, why="another worker has this name"
                )
            _HERE[self.endpoint] = self
        closed_in_child(self)

    def start(
        self, on_packet: OnPacket, on_time: OnTime, on_link: OnLink | None = None
    ) -> None:
        """Start to receive, as `Transport.start`."""
        self._thread = Thread(
            target=self._run,
            args=(on_packet, on_time, on_link),
            name=f"rpc {self.endpoint}",
            daemon=True,
        )
        self._thread.start()

    def send(self, endpoint: str, frames: Sequence[Buffer]) -> None:
        """Send a packet, as `Transport.send`."""
        other = None if self._closed else _HERE.get(endpoint)
        if other is None:
            self._lost += 1
            if not self._closed and endpoint not in self._absent:
                self._absent.add(endpoint)
                self._queue.put(Link(endpoint, LinkState.ABSENT))
            return
        self._absent.discard(endpoint)
        self._sent += 1
        other._queue.put(tuple(_copied(each) for each in frames))

    def wake_at(self, seconds_from_now: float | None) -> None:
        """Set the alarm, as `Transport.wake_at`."""
        if self._alarm.set(seconds_from_now) and current_thread() is not self._thread:
            self._queue.put(None)

    def lead(self, over: Callable[[], bool], seconds: float) -> bool:
        """Return False: packets arrive in a queue of one thread."""
        return False

    def leads(self) -> bool:
        """Return False: there is no leader."""
        return False

    def nudge(self) -> None:
        """Do nothing: there is no leader."""

    def yields(self) -> bool:
        """Return False: no other thread could receive."""
        return False

    def forget(self, endpoint: str) -> None:
        """Forget the state of an endpoint; there is no link to break."""
        self._absent.discard(endpoint)

    def alive(self) -> dict[str, float]:
        """Return the endpoints of this process: their interpreter is this one."""
        return dict.fromkeys([*_HERE], 0.0)

    def counts(self) -> dict[str, int]:
        """Return counts, as `Transport.counts`."""
        return {"sent": self._sent, "received": self._received, "lost": self._lost}

    def in_child(self) -> None:
        """Close: a forked child has none of the threads."""
        self._closed = True
        self._thread = None
        _HERE.pop(self.endpoint, None)

    def close(self, linger: float = 1.0) -> None:
        """Close, as `Transport.close`."""
        if self._closed:
            return
        self._closed = True
        with _LOCK:
            if _HERE.get(self.endpoint) is self:
                del _HERE[self.endpoint]
        self._queue.put(None)
        thread = self._thread
        if thread is not None and thread is not current_thread():
            thread.join(linger + 1)

    def _run(
        self, on_packet: OnPacket, on_time: OnTime, on_link: OnLink | None
    ) -> None:
        while True:
            try:
                try:
                    item = self._queue.get(timeout=self._alarm.sleep())
                except Empty:
                    item = None
                self._alarm.awake()
                if self._closed:
                    return
                if isinstance(item, tuple):
                    self._received += 1
                    on_packet([*item], "")
                elif item is not None and on_link is not None:
                    on_link(item)
                if self._alarm.rings():
                    on_time()
            except Exception:
                LOG.exception("a callback of %s failed", self.endpoint)
