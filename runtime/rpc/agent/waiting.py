"""Waiting: threads of programs that wait for answers, and receive them meanwhile.

True only here: how a thread waits.  Nobody else is woken for the answer of who waits
for it: as long as no other thread does, it receives what comes to this worker.

    an answer    of a call of its own
    a value      that `remote` is making: one that never changes goes along with the
                 answer to its creation, so that it need not be fetched
    room         for one call more

Rules: who waits may be interrupted, and the worker goes on; what goes along is used by
who began to wait before it came, and by nobody later; whether something will go along
is guessed by what the same function made last, and a wrong guess costs one fetch.
"""

from collections import deque
from queue import Empty, SimpleQueue
from threading import get_ident, main_thread
from time import monotonic

from runtime.futures.outcome import Value
from runtime.rpc.agent.answers import SLICE, Pending, wait_for
from runtime.rpc.agent.current import Seat
from runtime.rpc.agent.handles import Handle
from runtime.rpc.agent.holding import Holder
from runtime.rpc.agent.speaking import undisturbed, wait_shortly
from runtime.rpc.session.events import Answered, Failed
from runtime.rpc.session.session import Session
from runtime.rpc.transport import Transport

# Functions of which it is remembered whether what they make goes along.
_MAKERS = 4096


def _has_value(event: Answered) -> bool:
    """Whether the value that was made goes along with the answer."""
    return not event.failed and not event.carries and len(event.payload[0]) > 0


class Waiting(Holder):
    """A worker as those see it who wait; at most `most` calls are in flight."""

    def __init__(
        self,
        session: Session,
        transport: Transport,
        threads: int,
        seat: Seat,
        *,
        most: int,
    ) -> None:
        super().__init__(session, transport, threads, seat)
        self._most = most
        # Calls without an answer, and threads that wait for there to be fewer.
        self._pending: dict[int, Pending] = {}
        self._rooms: deque[SimpleQueue[None]] = deque()
        # Whether the value went along when a function made one last, by its number.
        self._along: dict[int, bool] = {}

    def _receive(
        self, waiter: "SimpleQueue[Answered | Failed]", until: float | None = None
    ) -> None:
        """Receive by this thread until its answer is there, unless another one does."""
        main = get_ident() == main_thread().ident
        nudge, lead = self.transport.nudge, self.transport.lead
        while waiter.empty():
            left = SLICE if until is None else min(SLICE, until - monotonic())
            if main:
                with undisturbed(nudge) as calm:
                    led = lead(lambda: bool(calm.came) or not waiter.empty(), left)
            else:
                led = lead(lambda: not waiter.empty(), left)
            if not led or left < SLICE:
                return

    def _early(self, handle: Handle, until: float | None) -> Answered | None:
        """The answer to the creation of a value that goes along with it.

        None where it does not, as far as is known, or is not waited for any longer: it
        is fetched then.
        """
        pending = handle.creation
        if pending is None or not self._along.get(pending.maker):
            return None
        self.refuse_to_wait("to_here")
        waiter: SimpleQueue[Answered | Failed] = SimpleQueue()
        with self._lock:
            if handle.creation is None:
                return None
            pending.early.append(waiter)
        self._receive(waiter, until)
        event = wait_for(waiter, until)
        return event if isinstance(event, Answered) and _has_value(event) else None

    def _make_room(self, deadline: float | None) -> None:
        """Wait until fewer calls are in flight; request threads need not.

        What they call may be what the others wait for.
        """
        if self.is_request_thread() or self.speaks():
            return
        while len(self._pending) >= self._most:
            if self.ended or (deadline is not None and monotonic() >= deadline):
                return
            waiter: SimpleQueue[None] = SimpleQueue()
            self._rooms.append(waiter)
            wait_shortly(waiter)

    def _give_up(
        self, pending: Pending, call: int, waiter: "SimpleQueue[Answered | Failed]"
    ) -> None:
        """End a call that nobody waits for any more."""
        pending.waiter = None
        if not self._unread(pending, waiter) and call >= 0 and not self.ended:
            self.do(lambda now: self.session.cancel(call, now), "call")

    def _unread(
        self, pending: Pending, waiter: "SimpleQueue[Answered | Failed]"
    ) -> bool:
        """Give back what came for who has given up; whether it had come."""
        try:
            event = waiter.get_nowait()
        except Empty:
            return False
        self._return(pending, event)
        return True

    def _return(self, pending: Pending, event: Answered | Failed) -> None:
        """Give back what came with an answer that nobody reads."""

    def _hand(
        self, waiter: "SimpleQueue[Answered | Failed]", event: Answered | Failed
    ) -> None:
        waiter.put(event)
        if not self.transport.leads():
            self.transport.nudge()

    def _made(self, pending: Pending, handle: Handle, event: Answered | Failed) -> None:
        """Tell who waits for a value that its creation has its end."""
        with self._lock:
            handle.creation = None
        if isinstance(event, Answered):
            if len(self._along) > _MAKERS:
                self._along.clear()
            self._along[pending.maker] = _has_value(event)
        for waiter in pending.early:
            self._hand(waiter, event)

    def _created(self, handle: Handle, event: Answered | Failed) -> bool:
        """Complete the future of a creation, unless that takes another thread."""
        if isinstance(event, Failed) or event.failed or event.carries:
            return False
        handle.confirmed = True
        return handle.created._offer_quietly(Value(None))
