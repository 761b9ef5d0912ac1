"""The driver of a session: the one lock of a worker, and what happens under it.

Whatever it is told (a call, an answer, a packet, the time) is told under the lock, and
what it says in turn is sent under it, so that packets leave in the order in which they
were made. What it tells of is handled outside of the lock, in order, by one thread at a
time: the one that receives, or a request thread.

Rules:
- no lock is held while functions of users, their finalizers, or callbacks of futures
  run; none of these runs on a thread while it receives.  One that received may run a
  request behind that, while another one receives: then it is a request thread;
- sending changes no thread: who calls sends, and who answers sends;
- a finalizer only appends to `let_go`; a little later, or where there are many, the
  session is told of all of them together;
- code that comes in between while this very thread tells the session something (a
  finalizer, a handler of a signal) may call: it is told when that is over;
- Ctrl-C is held back for so long.  Any other exception that comes in between then, of
  a handler of another signal, ends the worker: what the session knew may be half of it.
  All that waits is told, and the others see the worker leave.
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

from runtime.errors.rpc import NotInitialized, RpcError, RpcMisuse
from runtime.locks import reentered
from runtime.rpc.agent.options import RpcBackendOptions
from runtime.rpc.agent.threads import WAITS, Pool
from runtime.rpc.session.events import Buffer, Event
from runtime.rpc.session.session import Session
from runtime.rpc.transport import Link, Transport
from runtime.rpc.transport.receiving import Turns

LOG = getLogger("runtime.rpc")

# What a wait for a change looks again after; changes are told, so it is rarely needed.
LOOK_SECONDS = 0.1
# Handles that were dropped are told of together: to tell of each by itself costs three
# times as much.  So many wait at most, for so long, if anything else is told meanwhile.
_LET_GO = 64
_LET_GO_SECONDS = 0.01
# What is told by who has no time.
_BUSY = ("call", "reply")
# Waking the receiving thread costs more than being a little late.
_EARLIER = 0.0005
_FORKED = "the process was forked"


def wait_shortly(waiter: "SimpleQueue[None]", seconds: float = LOOK_SECONDS) -> None:
    """Wait for a sign, or until the time is over."""
    try:
        waiter.get(timeout=seconds)
    except Empty:
        return


WAITS.add(wait_shortly.__code__)
WAITS.add(Turns.wait.__code__)


class deferred_interrupt:  # noqa: N801  # as a function it would take three times as long
    """A block of the main thread that Ctrl-C does not interrupt, but its end.

    `wake` is called when it comes, and `came` has it from then on.
    """

    __slots__ = ("_before", "_wake", "came")

    def __init__(self, wake: Callable[[], object] | None = None) -> None:
        self._wake = wake
        self.came: tuple[int, FrameType | None] | None = None

    def __enter__(self) -> "deferred_interrupt":
        before = _signal.getsignal(_signal.SIGINT)
        # Anything else does not raise, or is not Python's.
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


# Of this process, those who have ended among them.
DRIVERS: "WeakSet[Driver]" = WeakSet()


class Parts(NamedTuple):
    """What an agent is made of; `sit` has a thread speak for it from then on."""

    session: Session
    transport: Transport
    options: RpcBackendOptions
    sit: Callable[[], object]


class Driver:
    """A session with its transport and its threads, for `Agent`, which handles events.

    `handlers` has the handler of each class of events.
    """

    def __init__(self, parts: Parts) -> None:
        self.session, self.transport, self.options, self._sit = parts
        self.name = self.session.node.name
        # Handles that are dropped; appended to by finalizers.
        self.let_go: deque[Any] = deque()
        # Why it takes nothing any more; "" as long as it does.
        self.ended = ""
        self.handlers: dict[type, Callable[[Any], object]] = {}
        self.pool = Pool(self.name, self.options.num_worker_threads, self._enter)
        self._lock = reentered()
        # The thread that tells the session something.
        self._holder = 0
        self._later: deque[Callable[[float], object]] = deque()
        self._events: deque[Event] = deque()
        # The thread that handles events.
        self._telling = reentered()
        self._teller = 0
        self._wake = inf
        # What may run code of users when it is dropped: outside of the lock.
        self._trash: list[object] = []
        self._watchers: list[SimpleQueue[None]] = []
        # The thread that handles the events of a packet, and what it is to do behind.
        self._receiver = 0
        self._behind: Callable[[], object] | None = None
        self._own = local()
        DRIVERS.add(self)

    def start(self) -> None:
        """Begin to receive."""
        self.transport.start(self._on_packet, self._on_time, self.on_link)

    def on_link(self, link: Link) -> None:
        """A link changed; on the receiving thread."""

    def is_request_thread(self) -> bool:
        """Whether this thread runs requests of this worker."""
        return getattr(self._own, "here", False)

    def speaks(self) -> bool:
        """Whether this very thread tells the session something just now."""
        return self._holder == get_ident()

    def refuse_to_wait(self, call: str) -> None:
        """Refuse what has to wait for the session while this thread tells it something.

        Raises:
            RpcMisuse: a finalizer or a handler of a signal came in between.
        """
        if self.speaks() or self.transport.leads():
            raise RpcMisuse(
                code="RpcMisuse",
                call=call,
                found="a finalizer or a signal handler that interrupts this worker",
                wanted="any other code: there, `rpc_async` is sent a little later",
            )

    # The one lock --------------------------------------------------------------------

    def do(self, act: Callable[[float], Any], call: str) -> Any:
        """What `act` gives, which tells the session something; None if that is later.

        Raises:
            NotInitialized: this worker has stopped.
        """
        me = get_ident()
        if self._holder == me:
            self._later.append(act)
            return None
        try:
            if me == main_thread().ident:
                with deferred_interrupt():
                    result = self._told(act, call, me)
            else:
                result = self._told(act, call, me)
        finally:
            # Also where Ctrl-C was held back, and comes out now.
            if self._events or self._trash:
                self._heed()
        return result

    def let_go_now(self) -> None:
        """Tell the session which handles were dropped; for who has time."""
        if self.let_go:
            self.do(lambda _: None, "drop")

    def _told(self, act: Callable[[float], Any], call: str, me: int) -> Any:
        with self._lock:
            if self.ended:
                parent = self.name if self.ended == _FORKED else ""
                raise NotInitialized(call=call, parent=parent)
            self._holder = me
            try:
                now = monotonic()
                result = act(now)
                self._flush(now, idle=call not in _BUSY)
            except RpcError:
                raise
            except BaseException as error:
                self._break(error)
                raise
            finally:
                self._holder = 0
        return result

    def _flush(self, now: float, *, idle: bool = True) -> None:
        """Send what the session says, and keep what it tells of."""
        session = self.session
        while self.let_go and (idle or len(self.let_go) > _LET_GO):
            self.give_back(self.let_go.popleft(), now)
        while self._later:
            self._later.popleft()(now)
        for packet in session.take_packets():
            self.transport.send(packet.endpoint, packet.frames)
        events = session.take_events()
        if events:
            self._events.extend(events)
        due = session.next_time()
        if self.let_go:
            due = min(now + _LET_GO_SECONDS, inf if due is None else due)
        if due is not None and due < self._wake - _EARLIER:
            self._wake = due
            self.transport.wake_at(max(0.0, due - now))

    def give_back(self, dropped: Any, now: float) -> None:
        """Tell the session what a finalizer has let go of; under the lock."""

    def _on_packet(self, frames: list[Buffer], key: str) -> Callable[[], object] | None:
        me = get_ident()
        with self._lock:
            if self.ended:
                return None
            self._holder = me
            try:
                now = monotonic()
                self.session.receive(frames, key, now)
                self._flush(now, idle=False)
            except BaseException as error:
                if me == main_thread().ident:
                    # A handler of a signal may have raised it.
                    self._break(error)
                raise
            finally:
                self._holder = 0
        if self._events or self._trash:
            self._receiver = me
            try:
                self._drain()
            finally:
                self._receiver = 0
        behind, self._behind = self._behind, None
        return behind

    def _on_time(self) -> None:
        with self._lock:
            if self.ended:
                return
            self._holder = get_ident()
            try:
                self._wake = inf
                now = monotonic()
                self.session.tick(now)
                self._flush(now)
            finally:
                self._holder = 0
        self._drain()
        self.ticked()

    def ticked(self) -> None:
        """Do what is to be done now and then, at once."""

    def _break(self, error: BaseException) -> None:
        """Stop: something came between while the session was told something."""
        self.end(f"it was interrupted by {type(error).__name__} while it spoke")

    def end(self, why: str) -> None:
        """Take nothing any more; every call that waits fails."""
        with self._lock:
            if self.ended:
                return
            self.ended = why
            self._events.extend(self.last_events(why))
        self._heed()

    def last_events(self, why: str) -> list[Event]:
        """What is told when nothing comes any more."""
        return []

    def stays_behind(self, act: Callable[[Any], object], argument: Any) -> bool:
        """Whether this thread, which receives, will call `act(argument)` itself.

        Another one receives meanwhile, so that none has to be woken for it.
        """
        if (
            self._receiver != get_ident()
            or self._behind is not None
            or not self.pool.has_room()
            or not self.transport.yields()
        ):
            return False

        def behind() -> None:
            if not self.is_request_thread():
                self._enter()
            act(argument)

        self._behind = behind
        return True

    def _enter(self) -> None:
        """Make a request thread one of this worker's."""
        self._sit()
        self._own.here = True

    def _heed(self) -> None:
        """Have events handled: here, where no signal comes in between, or elsewhere."""
        if self._teller == get_ident():
            # Behind the one that is handled now: one inside of the other would be as
            # deep as there are events.
            return
        if getattr(self._own, "here", False):
            self._drain()
        else:
            self.pool.put_own(Driver._drain, self)

    def _drain(self) -> None:
        """Handle events in order, unless another thread is at it."""
        while self._events or self._trash:
            if not self._telling.acquire(blocking=False):
                return
            before, self._teller = self._teller, get_ident()
            whole = False
            try:
                while self._events:
                    event = self._events.popleft()
                    try:
                        self.handlers[type(event)](event)
                    except BaseException as error:
                        if self._receiver == get_ident() == main_thread().ident:
                            # A handler of a signal may have raised it.
                            self._break(error)
                            raise
                        if not isinstance(error, Exception):
                            raise
                        LOG.exception("%s: what it was told is lost", self.name)
                if self._trash:
                    trash, self._trash = self._trash, []
                    self.pool.put(list.clear, trash)
                    del trash
                whole = True
            finally:
                self._teller = before
                self._telling.release()
                if not whole:
                    # Those behind what was interrupted are for another thread.
                    self.pool.put_own(Driver._drain, self)

    # Waiting for what is told --------------------------------------------------------

    def look(self) -> None:
        """Have those who wait for something see whether it is so by now."""
        for watcher in [*self._watchers]:
            watcher.put(None)

    def wait_until(self, holds: Callable[[], bool], seconds: float | None) -> bool:
        """Whether something holds before `seconds` are over; asked on each change."""
        end = None if seconds is None else monotonic() + seconds
        watcher: SimpleQueue[None] = SimpleQueue()
        self._watchers.append(watcher)
        try:
            while not holds():
                left = LOOK_SECONDS if end is None else end - monotonic()
                if left <= 0:
                    return holds()
                wait_shortly(watcher, min(left, LOOK_SECONDS))
            return True
        finally:
            self._watchers.remove(watcher)


def _in_child() -> None:
    for each in [*DRIVERS]:
        # Its threads are the parent's: nobody would ever answer.
        each.ended = each.ended or _FORKED


# Some systems have no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
