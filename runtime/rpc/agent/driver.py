"""The driver of a session: the one lock of a worker, and the work done under it.

The session is called under the lock (a call, an answer, a packet, a timer), and its
packets are sent under the lock, so that they are sent in the order of their creation.
Its events are handled outside of the lock, in order, by one thread at a time: the
receiving thread or a request thread.

Rules:
- no lock is held while functions of users, their finalizers, or callbacks of futures
  run; none of these runs on a thread while it receives.  A thread that received may run
  a request afterwards, while another thread receives: then it is a request thread;
- sending does not switch threads: the calling thread sends, the answering thread sends;
- a finalizer only appends to `dropped`; the session receives all dropped handles
  together, soon after, or as soon as there are many;
- code that interrupts a thread while it holds the session (a finalizer, a signal
  handler) may make a call: the call is deferred until the thread is done;
- Ctrl-C is held back for that time.  Any other exception of a signal handler during
  that time ends the worker, as the session's state may be half changed: all pending
  calls fail, and the other workers see this worker leave.
"""

import _signal  # type: ignore[import-not-found]  # `signal` wraps it in enumerations
import os
from collections import deque
from collections.abc import Callable
from logging import getLogger
from math import inf
from queue import Empty, SimpleQueue
from threading import get_ident, local, main_thread
from time import monotonic
from types import FrameType
from typing import Any, NamedTuple
from weakref import WeakSet

from everyorder.runtime.base.locks import reentered
from everyorder.runtime.errors.rpc import NotInitialized, RpcError, RpcMisuse
from everyorder.runtime.rpc.agent.options import RpcBackendOptions
from everyorder.runtime.rpc.agent.request_pool import WAITS, RequestPool
from everyorder.runtime.rpc.protocol.events import Buffer, Event
from everyorder.runtime.rpc.protocol.session import Session
from everyorder.runtime.rpc.transport import Link, Transport
from everyorder.runtime.rpc.transport.receiver import ReceiveLeadership

LOG = getLogger("everyorder.runtime.rpc")

# Seconds between two checks of a condition.  Watchers are notified of changes, so the
# timeout rarely matters.
LOOK_SECONDS = 0.1
# Dropped handles are reported in batches: one by one costs three times as much. These
# are the largest batch, and the longest delay (in seconds) while calls and replies are
# sent first.
_MOST_DROPPED = 64
_DROPPED_SECONDS = 0.01
# Operations that are not delayed by reporting dropped handles.
_BUSY = ("call", "reply")
# In seconds: waking the receiving thread costs more than a timer this much late.
_EARLIER = 0.0005
_FORKED = "the process was forked"


def wait_for_wakeup(waiter: "SimpleQueue[None]", seconds: float = LOOK_SECONDS) -> None:
    """Wait until an item is put into `waiter`, or until the timeout."""
    try:
        waiter.get(timeout=seconds)
    except Empty:
        return


WAITS.register(wait_for_wakeup.__code__, "wait_for_wakeup")
WAITS.register(ReceiveLeadership.wait.__code__, "ReceiveLeadership.wait")


class deferred_interrupt:  # noqa: N801  # as a function it would take three times as long
    """A block of the main thread that Ctrl-C interrupts only at its end.

    `wake` is called when the signal arrives; `came` holds the handler's arguments from
    then on, and is None before.
    """

    __slots__ = ("_before", "_wake", "came")

    def __init__(self, wake: Callable[[], object] | None = None) -> None:
        self._wake = wake
        self.came: tuple[int, FrameType | None] | None = None

    def __enter__(self) -> "deferred_interrupt":
        before = _signal.getsignal(_signal.SIGINT)
        # Other handlers (SIG_IGN, SIG_DFL, handlers of C code) do not raise in Python.
        self._before = before if callable(before) else None
        if self._before is not None:
            _signal.signal(_signal.SIGINT, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = number, frame
        if self._wake is not None:
            self._wake()

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            _signal.signal(_signal.SIGINT, self._before)
            if self.came is not None:
                self._before(*self.came)


# All drivers of this process, also those that have ended.
DRIVERS: "WeakSet[Driver]" = WeakSet()


class Components(NamedTuple):
    """The parts of an agent; `activate` makes the current thread speak for it."""

    session: Session
    transport: Transport
    options: RpcBackendOptions
    activate: Callable[[], object]


class Driver:
    """A session with its transport and threads; `handlers` maps event classes."""

    def __init__(self, parts: Components) -> None:
        self.session, self.transport, self.options, self._activate = parts
        self.name = self.session.node.name
        # Dropped handles, appended by finalizers.
        self.dropped: deque[Any] = deque()
        # Reason why this worker has ended; "" while it runs.
        self.ended = ""
        self.handlers: dict[type, Callable[[Any], object]] = {}
        self.pool = RequestPool(self.name, self.options.num_worker_threads, self._enter)
        self._lock = reentered()
        # The thread that holds `_lock`, 0 for none.
        self._lock_owner = 0
        self._deferred: deque[Callable[[float], object]] = deque()
        self._events: deque[Event] = deque()
        # The thread that handles events.
        self._event_lock = reentered()
        self._event_thread = 0
        self._wake = inf
        # The time from which on the transport is asked again which processes run.
        self._reach_at = -inf
        self._reach_each = self.options.settings.dead / 10
        # Objects whose finalizers may run code of users: dropped outside of the lock.
        self._trash: list[object] = []
        self._watchers: list[SimpleQueue[None]] = []
        # The thread that handles the events of a packet, and the work it does
        # afterwards.
        self._receiver = 0
        self._follow_up: Callable[[], object] | None = None
        self._own = local()
        DRIVERS.add(self)

    def start(self) -> None:
        """Start to receive packets."""
        self.transport.start(self._on_packet, self._on_time, self.on_link)

    def on_link(self, link: Link) -> None:
        """Handle a changed link, on the receiving thread."""

    def is_request_thread(self) -> bool:
        """Return True if this thread runs requests of this worker."""
        return getattr(self._own, "here", False)

    def holds_session(self) -> bool:
        """Return True if this thread is inside of a call of the session."""
        return self._lock_owner == get_ident()

    def refuse_to_wait(self, call: str) -> None:
        """Refuse an operation that would wait for the session inside of its lock.

        Raises:
            RpcMisuse: the caller is a finalizer or signal handler that interrupted the
                session.
        """
        if self.holds_session() or self.transport.leads():
            raise RpcMisuse(
                call=call,
                found="a finalizer or a signal handler that interrupts this worker",
                wanted="other code; here use `rpc_async`, which is sent a little later",
            )

    # The one lock --------------------------------------------------------------------

    def do(self, act: Callable[[float], Any], call: str) -> Any:
        """Return the result of `act(now)`, which calls the session; None if deferred.

        Raises:
            NotInitialized: this worker has stopped.
        """
        me = get_ident()
        if self._lock_owner == me:
            self._deferred.append(act)
            return None
        try:
            if me == main_thread().ident:
                with deferred_interrupt():
                    result = self._call_session(act, call, me)
            else:
                result = self._call_session(act, call, me)
        finally:
            # Also if a Ctrl-C that was held back is raised here.
            if self._events or self._trash:
                self._handle_events()
        return result

    def report_dropped(self) -> None:
        """Report dropped handles to the session now; may take time."""
        if self.dropped:
            self.do(lambda _: None, "drop")

    def _call_session(self, act: Callable[[float], Any], call: str, me: int) -> Any:
        with self._lock:
            if self.ended:
                parent = self.name if self.ended == _FORKED else ""
                raise NotInitialized(call=call, parent=parent)
            self._lock_owner = me
            try:
                now = monotonic()
                if now >= self._reach_at:
                    self._reach(now)
                result = act(now)
                self._flush(now, idle=call not in _BUSY)
            except RpcError:
                raise
            except BaseException as error:
                self._fail(error)
                raise
            finally:
                self._lock_owner = 0
        return result

    def _flush(self, now: float, *, idle: bool = True) -> None:
        """Send the session's packets, queue its events, and set its next timer."""
        session = self.session
        while self.dropped and (idle or len(self.dropped) > _MOST_DROPPED):
            self.release(self.dropped.popleft(), now)
        while self._deferred:
            self._deferred.popleft()(now)
        for packet in session.take_packets():
            self.transport.send(packet.endpoint, packet.frames)
        events = session.take_events()
        if events:
            self._events.extend(events)
        due = session.next_time()
        if self.dropped:
            due = min(now + _DROPPED_SECONDS, inf if due is None else due)
        if due is not None and due < self._wake - _EARLIER:
            self._wake = due
            self.transport.wake_at(max(0.0, due - now))

    def _reach(self, now: float) -> None:
        """Report to the session which processes run, before it judges their silence.

        This process may have been busy itself for a long time.
        """
        self._reach_at = now + self._reach_each
        alive = self.transport.alive()
        self.session.reached({each: now - ago for each, ago in alive.items()})

    def release(self, dropped: Any, now: float) -> None:
        """Report one dropped handle to the session; under the lock."""

    def _on_packet(self, frames: list[Buffer], key: str) -> Callable[[], object] | None:
        me = get_ident()
        with self._lock:
            if self.ended:
                return None
            self._lock_owner = me
            try:
                now = monotonic()
                if now >= self._reach_at:
                    self._reach(now)
                self.session.receive(frames, key, now)
                self._flush(now, idle=False)
            except BaseException as error:
                if me == main_thread().ident:
                    # A signal handler may have raised the exception.
                    self._fail(error)
                raise
            finally:
                self._lock_owner = 0
        if self._events or self._trash:
            self._receiver = me
            try:
                self._drain()
            finally:
                self._receiver = 0
        follow_up, self._follow_up = self._follow_up, None
        return follow_up

    def _on_time(self) -> None:
        with self._lock:
            if self.ended:
                return
            self._lock_owner = get_ident()
            try:
                self._wake = inf
                now = monotonic()
                self._reach(now)
                self.session.tick(now)
                self._flush(now)
            finally:
                self._lock_owner = 0
        self._drain()
        self.ticked()

    def ticked(self) -> None:
        """Run periodic work; overridden by subclasses, and must be short."""

    def _fail(self, error: BaseException) -> None:
        """End the worker after an exception that left the session half changed."""
        self.end(f"it was interrupted by {type(error).__name__} while it spoke")

    def end(self, why: str) -> None:
        """Stop for ever; every pending call fails."""
        with self._lock:
            if self.ended:
                return
            self.ended = why
            self._events.extend(self.final_events(why))
        self._handle_events()

    def final_events(self, why: str) -> list[Event]:
        """Return the events that end pending operations."""
        return []

    def run_on_receiver(self, act: Callable[[Any], object], argument: Any) -> bool:
        """Make this receiving thread call `act(argument)` after its packet.

        Another thread receives in the meantime, so no thread is woken for the request.
        Return False, without any effect, if this is not possible.
        """
        if (
            self._receiver != get_ident()
            or self._follow_up is not None
            or not self.pool.has_room()
            or not self.transport.yields()
        ):
            return False

        def follow_up() -> None:
            if not self.is_request_thread():
                self._enter()
            act(argument)

        self._follow_up = follow_up
        return True

    def _enter(self) -> None:
        """Mark this thread as a request thread of this worker."""
        self._activate()
        self._own.here = True

    def _handle_events(self) -> None:
        """Handle events here on a request thread, else on a request thread of the pool.

        Signals are not handled on request threads.
        """
        if self._event_thread == get_ident():
            # Handled after the current event: nested handling would recurse once per
            # event.
            return
        if getattr(self._own, "here", False):
            self._drain()
        else:
            self.pool.put_own(Driver._drain, self)

    def _drain(self) -> None:
        """Handle events in order, unless another thread handles them."""
        while self._events or self._trash:
            if not self._event_lock.acquire(blocking=False):
                return
            before, self._event_thread = self._event_thread, get_ident()
            whole = False
            try:
                while self._events:
                    event = self._events.popleft()
                    try:
                        self.handlers[type(event)](event)
                    except BaseException as error:
                        if self._receiver == get_ident() == main_thread().ident:
                            # A signal handler may have raised the exception.
                            self._fail(error)
                            raise
                        if not isinstance(error, Exception):
                            raise
                        LOG.exception("%s: an event is lost", self.name)
                if self._trash:
                    trash, self._trash = self._trash, []
                    self.pool.put(list.clear, trash)
                    del trash
                whole = True
            finally:
                self._event_thread = before
                self._event_lock.release()
                if not whole:
                    # Another thread handles the events after an interrupted one.
                    self.pool.put_own(Driver._drain, self)

    # Waiting for changes --------------------------------------------------------------

    def notify_watchers(self) -> None:
        """Make each `wait_until` evaluate its condition again."""
        for watcher in [*self._watchers]:
            watcher.put(None)

    def wait_until(self, holds: Callable[[], bool], seconds: float | None) -> bool:
        """Return True if `holds()` becomes true within `seconds` (None: for ever).

        The condition is evaluated after each change.
        """
        end = None if seconds is None else monotonic() + seconds
        watcher: SimpleQueue[None] = SimpleQueue()
        self._watchers.append(watcher)
        try:
            while not holds():
                left = LOOK_SECONDS if end is None else end - monotonic()
                if left <= 0:
                    return holds()
                wait_for_wakeup(watcher, min(left, LOOK_SECONDS))
            return True
        finally:
            self._watchers.remove(watcher)


def _in_child() -> None:
    for each in [*DRIVERS]:
        # Only the parent has this driver's threads: no request would be answered.
        each.ended = each.ended or _FORKED


# Some systems do not have fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
