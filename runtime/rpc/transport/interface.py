"""Transports: carry packets from one worker to another, and may lose them.

    Transport         what an agent relies on, by whatever means packets travel
    LocalTransport    to others of this process; it needs no socket
    Alarm             when a sleeping thread wakes by itself
    LinkChanges       which of the many events of a link are reported
    join_frames, split_frames    the frames of a packet in the parts of one message

Rules of transports:
- a packet is a list of buffers; it arrives whole or not at all.  Packets to one
  endpoint arrive in the order in which they were sent, as long as the link holds;
  packets in flight when it breaks are lost without notice: sessions find out;
- `send` is for any thread.  It never waits for the other side and never raises because
  of it: a packet that cannot be sent is lost, and counted;
- sent buffers must not change until they are answered: large ones are not copied before
  they travel;
- packets are delivered one at a time, in order; so are times and links, perhaps at the
  same time as packets.  Callbacks run on threads of the transport, or on a thread that
  leads.  An exception of a callback is logged, and the thread goes on;
- a thread that waits for an answer may lead: it receives meanwhile, and no other thread
  is woken;
- `on_packet` may return a function for the delivering thread to run after the packet,
  while another thread receives; only if `yields` allowed it;
- received buffers belong to the receiver; the large ones are writable;
- a transport that is not closed is closed at the end of the process, after all handlers
  that were registered later: its threads must not outlive the interpreter;
- in a forked child a transport is closed: the child makes its own, and the parent's
  goes on undisturbed.

Rules of alarms: an alarm is set without a lock, once or twice in every call.  Setting
writes the time, then reads until when the thread sleeps; the thread first announces
that it is about to sleep, then reads the alarm, then writes for how long.  So one of
the two sees the other.  An alarm rings once, perhaps early, never not at all.

Rules of link changes: a link that cannot be made is tried again several times a second,
so its state is reported when it changes; after a refusal only success is a change.
Strangers are reported one by one, each key once, up to `MOST_STRANGERS`: their number
is theirs to choose.

Rules of parts: each part of a message costs both sides a call and a switch of threads,
copying a few thousand bytes does not; large frames are not copied.  The first part is a
table of 32-bit words, little-endian, and the small frames: how many frames there are,
then the length of each, or `_APART` for one that follows as a part of its own.  Parts
that do not fit exactly are no packet.

Rules of local transports: an endpoint is `local://NAME`, known in this process only; a
name is taken once; a sent buffer is copied unless it is immutable (`bytes`), as no two
workers share memory.
"""

import logging
import os
from collections.abc import Callable, Sequence
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

    UP = "the other side is there"
    DOWN = "the connection broke"
    ABSENT = "nobody listens there"
    REFUSED = "the two sides do not trust each other, or do not speak the same"
    STRANGER = "somebody whose key is not allowed asked to come in"


@dataclass(frozen=True, slots=True)
class Link:
    """A link changed.

    `endpoint` is as it was given to `send`; of a stranger it is "", and `key` is the
    public key that it showed.  `detail` is for messages.
    """

    endpoint: str
    state: LinkState
    key: str = ""
    detail: str = ""


OnPacket: TypeAlias = Callable[[list[Buffer], str], Callable[[], object] | None]
OnTime: TypeAlias = Callable[[], None]
OnLink: TypeAlias = Callable[[Link], None]


class Transport(Protocol):
    """One worker's way to the others.

    `endpoint` is where others reach it; `key` is its public key, "" where there are
    none.
    """

    @property
    def endpoint(self) -> str:
        """Where others reach this worker, as they give it to `send`."""

    @property
    def key(self) -> str:
        """Its public key; "" without."""

    def start(
        self, on_packet: OnPacket, on_time: OnTime, on_link: OnLink | None = None
    ) -> None:
        """Begin to receive: once.

        `on_packet` gets the buffers and the public key of the sender, which it has
        proven to own; "" without keys.
        """

    def send(self, endpoint: str, frames: Sequence[Buffer]) -> None:
        """Send a packet, or lose it."""

    def wake_at(self, seconds_from_now: float | None) -> None:
        """Have `on_time` called once, then, in place of the last alarm; None: never.

        It may be called early.
        """

    def lead(self, over: Callable[[], bool], seconds: float) -> bool:
        """Receive by this thread until `over()`, or for so long.

        False: nothing was done, as another thread receives.  A thread that makes
        `over()` true calls `nudge` afterwards.
        """

    def leads(self) -> bool:
        """Whether this thread is delivering packets now."""

    def nudge(self) -> None:
        """Have the leader, if there is one, evaluate `over` again."""

    def yields(self) -> bool:
        """Whether this thread, in `on_packet`, may run something long afterwards.

        If so, `on_packet` returns it; until it is done no other thread may.
        """

    def forget(self, endpoint: str) -> None:
        """Break the link to an endpoint; packets that wait for it are lost."""

    def counts(self) -> dict[str, int]:
        """Counts of packets sent, received and lost, for debugging."""

    def close(self, linger: float = 1.0) -> None:
        """Stop; sent packets have `linger` seconds to leave.  Idempotent.

        No callback runs after it returned; on a delivering thread, none after the
        current one.  A function that runs after a packet is not waited for.
        """


class Forkable(Protocol):
    """An object that a forked child must not use any more."""

    def in_child(self) -> None:
        """Be closed, without a lock and without touching what the parent uses."""


_FORKABLE: WeakSet[Forkable] = WeakSet()


def closed_in_child(transport: Forkable) -> None:
    """Have `in_child` called wherever this process is forked."""
    _FORKABLE.add(transport)


def _in_child() -> None:
    for each in [*_FORKABLE]:
        each.in_child()


# Asked at the end of a program, before transports are closed; answered by workers.
BEFORE_CLOSING: Hook[Callable[[], None]] = Hook("the end of all workers")

# Some systems have no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


# Busy: the thread reads the alarm before it sleeps.  About to: any alarm wakes it.
_BUSY, _ABOUT = -inf, inf


class Alarm:
    """The alarm of one thread, in seconds of the monotonic clock."""

    __slots__ = ("_asleep", "_at")

    def __init__(self) -> None:
        self._at: float | None = None
        # Before the thread is started there is nothing to wake.
        self._asleep = _BUSY

    def set(self, seconds_from_now: float | None) -> bool:
        """Set the alarm; whether the thread sleeps for longer, and must be woken."""
        if seconds_from_now is None:
            self._at = None
            return False
        at = self._at = monotonic() + seconds_from_now
        return at < self._asleep

    def sleep(self) -> float | None:
        """The seconds that the thread may sleep now; None: until it is woken."""
        self._asleep = _ABOUT
        at = self._at
        if at is None:
            return None
        self._asleep = at
        return max(0.0, at - monotonic())

    def awake(self) -> None:
        """The thread is awake."""
        self._asleep = _BUSY

    def rings(self) -> bool:
        """Whether the alarm is due; if so, it is reset."""
        at = self._at
        if at is None or at > monotonic():
            return False
        self._at = None
        return True


MOST_STRANGERS = 100

# By ZeroMQ's names of its events.
_STATES = {
    "HANDSHAKE_SUCCEEDED": LinkState.UP,
    "DISCONNECTED": LinkState.DOWN,
    "CLOSED": LinkState.ABSENT,
    "HANDSHAKE_FAILED_AUTH": LinkState.REFUSED,
    "HANDSHAKE_FAILED_NO_DETAIL": LinkState.REFUSED,
    "HANDSHAKE_FAILED_PROTOCOL": LinkState.REFUSED,
}


class LinkChanges:
    """The last reported states of links, by which an event is a change or not."""

    def __init__(self) -> None:
        self._states: dict[str, LinkState] = {}
        self._strangers: set[str] = set()

    def link_change(self, endpoint: str, event: str) -> Link | None:
        """The change of a link after an event; None if there is none."""
        state = _STATES.get(event)
        last = self._states.get(endpoint)
        refused = last is LinkState.REFUSED and state is not LinkState.UP
        if state is None or state is last or refused:
            return None
        self._states[endpoint] = state
        return Link(endpoint, state)

    def forget(self, endpoint: str) -> None:
        """Forget the state of a link that is given up."""
        self._states.pop(endpoint, None)

    def stranger_change(self, key: str, why: str) -> Link | None:
        """A stranger was refused; None if its key, or enough keys, were reported."""
        if key in self._strangers or len(self._strangers) >= MOST_STRANGERS:
            return None
        self._strangers.add(key)
        return Link("", LinkState.STRANGER, key, why)


# A larger frame is a part of its own: copying it would cost as much.
LARGE = 16 * 1024
# More frames than a packet of ours has; a table of them is 256 KiB.
MOST_FRAMES = 1 << 16

# In the table, a frame that is a part of its own.
_APART = 0xFFFFFFFF
_WORD = Struct("<I")
# Of packets with few frames, which nearly all are.
_TABLES = tuple(Struct(f"<{1 + n}I") for n in range(9))


def _table(frames: int) -> Struct:
    return _TABLES[frames] if frames < len(_TABLES) else Struct(f"<{1 + frames}I")


def flat(buffer: Buffer) -> Buffer:
    """A buffer whose length is that of its bytes; only a scattered one is copied."""
    if isinstance(buffer, bytes | bytearray):
        return buffer
    view = memoryview(buffer)
    return view.cast("B") if view.c_contiguous else view.tobytes()


def join_frames(frames: Sequence[Buffer]) -> list[Buffer]:
    """The parts by which a packet travels.

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
    """The frames of a packet; None if the parts are none."""
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
    """A transport to others of this process; `name` is drawn where none is given.

    Raises:
        AddressUnusable: another one has that name.
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
        """As `Transport.start`."""
        self._thread = Thread(
            target=self._run,
            args=(on_packet, on_time, on_link),
            name=f"rpc {self.endpoint}",
            daemon=True,
        )
        self._thread.start()

    def send(self, endpoint: str, frames: Sequence[Buffer]) -> None:
        """As `Transport.send`."""
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
        """As `Transport.wake_at`."""
        if self._alarm.set(seconds_from_now) and current_thread() is not self._thread:
            self._queue.put(None)

    def lead(self, over: Callable[[], bool], seconds: float) -> bool:
        """As `Transport.lead`: never, as packets come by a queue of one thread."""
        return False

    def leads(self) -> bool:
        """As `Transport.leads`."""
        return False

    def nudge(self) -> None:
        """As `Transport.nudge`: there is no leader."""

    def yields(self) -> bool:
        """As `Transport.yields`: no other thread would receive."""
        return False

    def forget(self, endpoint: str) -> None:
        """As `Transport.forget`: there is nothing to break."""
        self._absent.discard(endpoint)

    def counts(self) -> dict[str, int]:
        """As `Transport.counts`."""
        return {"sent": self._sent, "received": self._received, "lost": self._lost}

    def in_child(self) -> None:
        """Be closed: the process was forked, and has none of the threads."""
        self._closed = True
        self._thread = None
        _HERE.pop(self.endpoint, None)

    def close(self, linger: float = 1.0) -> None:
        """As `Transport.close`."""
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
