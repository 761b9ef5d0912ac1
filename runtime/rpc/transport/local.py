"""Transports within one process, and one that fails on purpose.

Workers that are threads, and tests, use `LocalTransport`; it needs no socket, no folder
and no other library.

Rules:
- an endpoint is `local://NAME`, known in this process only; a name is taken once;
- what is sent is copied unless it cannot change (`bytes`): no two workers share memory;
- `FaultyTransport` wraps another one: packets that one function names are lost, packets
  that another one names come late, and those behind them do not wait.
"""

import heapq
from collections.abc import Callable, Sequence
from itertools import count
from queue import Empty, SimpleQueue
from threading import Condition, Thread, current_thread
from time import monotonic

from runtime.errors.rpc import AddressUnusable
from runtime.locks import renewed
from runtime.rpc.transport.interface import (
    LOG,
    Alarm,
    Buffer,
    Link,
    LinkState,
    OnLink,
    OnPacket,
    OnTime,
    Transport,
    closed_in_child,
)

_SCHEME = "local://"
# Endpoint -> who is there.
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
        """As `Transport.nudge`: nobody leads."""

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


Fails = Callable[[str, Sequence[Buffer]], bool]
Delays = Callable[[str, Sequence[Buffer]], float]


def _never(_endpoint: str, _frames: Sequence[Buffer]) -> bool:
    return False


def _at_once(_endpoint: str, _frames: Sequence[Buffer]) -> float:
    return 0.0


class FaultyTransport:
    """A transport that loses and delays what it is told to.

    `fail(endpoint, frames)` says whether a packet is lost; `delay(endpoint, frames)`
    how many seconds it waits before it leaves.  Both are called by whoever sends.
    """

    def __init__(
        self, inner: Transport, *, fail: Fails = _never, delay: Delays = _at_once
    ) -> None:
        self.fail = fail
        self.delay = delay
        self._inner = inner
        self._lost = 0
        self._late: list[tuple[float, int, str, list[Buffer]]] = []
        self._changed = Condition()
        self._numbers = count()
        self._thread: Thread | None = None
        self._closed = False

    @property
    def endpoint(self) -> str:
        """As `Transport.endpoint`."""
        return self._inner.endpoint

    @property
    def key(self) -> str:
        """As `Transport.key`."""
        return self._inner.key

    def start(
        self, on_packet: OnPacket, on_time: OnTime, on_link: OnLink | None = None
    ) -> None:
        """As `Transport.start`."""
        self._inner.start(on_packet, on_time, on_link)

    def send(self, endpoint: str, frames: Sequence[Buffer]) -> None:
        """As `Transport.send`, unless the packet is lost or late."""
        if self.fail(endpoint, frames):
            self._lost += 1
            return
        late = self.delay(endpoint, frames)
        if late <= 0:
            self._inner.send(endpoint, frames)
            return
        with self._changed:
            if self._closed:
                return
            if self._thread is None:
                self._thread = Thread(
                    target=self._later, name=f"late {self.endpoint}", daemon=True
                )
                self._thread.start()
            at = monotonic() + late
            heapq.heappush(self._late, (at, next(self._numbers), endpoint, [*frames]))
            self._changed.notify()

    def wake_at(self, seconds_from_now: float | None) -> None:
        """As `Transport.wake_at`."""
        self._inner.wake_at(seconds_from_now)

    def lead(self, over: Callable[[], bool], seconds: float) -> bool:
        """As `Transport.lead`."""
        return self._inner.lead(over, seconds)

    def leads(self) -> bool:
        """As `Transport.leads`."""
        return self._inner.leads()

    def nudge(self) -> None:
        """As `Transport.nudge`."""
        self._inner.nudge()

    def yields(self) -> bool:
        """As `Transport.yields`."""
        return self._inner.yields()

    def forget(self, endpoint: str) -> None:
        """As `Transport.forget`."""
        self._inner.forget(endpoint)

    def counts(self) -> dict[str, int]:
        """As `Transport.counts`, and how many were `failed` on purpose."""
        return {**self._inner.counts(), "failed": self._lost}

    def close(self, linger: float = 1.0) -> None:
        """As `Transport.close`; what is late is lost."""
        with self._changed:
            self._closed = True
            self._late.clear()
            self._changed.notify()
            thread = self._thread
        if thread is not None and thread is not current_thread():
            thread.join(linger + 1)
        self._inner.close(linger)

    def _later(self) -> None:
        """Send what is late, when its time has come."""
        while True:
            with self._changed:
                while not self._closed:
                    wait = self._late[0][0] - monotonic() if self._late else None
                    if wait is not None and wait <= 0:
                        break
                    self._changed.wait(wait)
                if self._closed:
                    return
                _, _, endpoint, frames = heapq.heappop(self._late)
            self._inner.send(endpoint, frames)
