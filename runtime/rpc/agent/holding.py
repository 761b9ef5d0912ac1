"""Holding: the values that a worker keeps, its references, and the threads that wait.

A value that stays here is kept, from `remote` or `RRef` until nobody refers to it.

Rules of values: a value is kept from the moment that its name is known until the
session says that it is free; it is dropped by a request thread, outside of all locks; a
reference that dies before anybody has its handle is dead when it gets one.

Nobody else is woken for the answer of a thread that waits for it: as long as no other
thread does, it receives what comes to this worker.  It waits for

    an answer    of a call of its own
    a value      that `remote` is making: one that never changes goes along with the
                 answer to its creation, so that it need not be fetched
    room         for one call more

Rules of waiting: who waits may be interrupted, and the worker goes on; what goes along
is used by who began to wait before it came, and by nobody later; whether something will
go along is guessed by what the same function made last, and a wrong guess costs one
fetch.
"""

from collections import deque
from queue import Empty, SimpleQueue
from threading import get_ident, main_thread
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from runtime.futures import Future
from runtime.futures.settling import Value
from runtime.rpc.agent.handles import (
    DELETED,
    LOST,
    NOT_CREATED,
    SLICE,
    Handle,
    Pending,
    wait_for,
)
from runtime.rpc.agent.speaking import Speaker, undisturbed, wait_shortly
from runtime.rpc.agent.threads import Seat
from runtime.rpc.identities import Fork, ForkId, Node, RRefId
from runtime.rpc.session.events import Answered, Confirmed, Died, Failed, Freed, Reason
from runtime.rpc.session.session import Session
from runtime.rpc.transport import Transport

if TYPE_CHECKING:
    from runtime.rpc.agent.agent import Agent


# Values of these classes run no code of anybody, wherever they are written or dropped.
_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None)})
# Bytes, characters, or bits of an integer: that cost nothing beside an answer.
_SHORT = 1024


def is_plain(future: Future[Any]) -> bool:
    """Whether the value of a future is there, and runs no code of anybody."""
    if not future.done() or future.error() is not None:
        return False
    return type(future.value()) in _PLAIN and not future._callbacks


def is_short(value: Any) -> bool:
    """Whether a plain value costs nothing to write: by who receives, or unasked for."""
    if isinstance(value, int):
        return value.bit_length() <= _SHORT
    return not isinstance(value, str | bytes) or len(value) <= _SHORT


# Functions of which it is remembered whether what they make goes along.
_MAKERS = 4096


def _has_value(event: Answered) -> bool:
    """Whether the value that was made goes along with the answer."""
    return not event.failed and not event.carries and len(event.payload[0]) > 0


class Holding(Speaker):
    """A worker as it holds values and references, and lets threads wait.

    At most `most` calls are in flight.
    """

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
        self._owned: dict[RRefId, Future[Any]] = {}
        # References that died before anybody had a handle.
        self._stillborn: dict[ForkId, Reason] = {}
        self.handlers = {
            Confirmed: self._confirmed,
            Died: self._died,
            Freed: self._freed,
        }

    @property
    def node(self) -> Node:
        """This worker's life, as others know it; its id is -1 until it is a member."""
        return self.session.node

    def _agent(self) -> "Agent":
        return cast("Agent", self)

    def own(self, value: Future[Any], type: str = "") -> Handle:  # noqa: A002
        """A reference of this worker to a value of its own.

        Raises:
            NotInitialized: this worker has stopped.
        """
        self.refuse_to_wait("RRef")
        session = self.session
        made: list[Handle] = []

        def act(_: float) -> None:
            rref = session.new_id()
            fork = Fork(rref, rref, self.node, type)
            made.append(Handle(self._agent(), fork, own=True, value=value))
            session.own(rref)
            self._owned[rref] = value

        try:
            self.do(act, "RRef")
        except BaseException:
            # Interrupted when it was done: nobody gets the reference.
            for each in made:
                each.drop()
            raise
        return made[0]

    def handle(self, fork: Fork) -> Handle:
        """The handle of a reference that came with a call or an answer."""
        value = None
        if fork.owner == self.node:
            value = self._owned.get(fork.rref)
            assert value is not None, "it is listed, so it is kept"
        made = Handle(self._agent(), fork, value=value)
        self.handles[fork.fork] = made
        reason = self._stillborn.pop(fork.fork, None)
        if reason is not None:
            made.death = LOST.format(reason=reason.value)
        return made

    def create(
        self, call: int, rref: RRefId, to: Node, created: Future[None]
    ) -> Handle:
        """The handle of a value that a call creates; under the lock."""
        try:
            fork = self.session.fork_of(call)
        except KeyError:
            # It has ended already, and so it is told in a moment.
            fork = Fork(rref, rref, to)
        value: Future[Any] | None = None
        if fork.owner == self.node:
            value = self._owned.setdefault(fork.rref, Future())
        made = Handle(self._agent(), fork, value=value, created=created)
        self.handles[fork.fork] = made
        return made

    def _confirmed(self, event: Confirmed) -> None:
        handle = self.handles.get(event.fork.fork)
        if handle is not None:
            handle.confirmed = True

    def _died(self, event: Died) -> None:
        handle = self.handles.get(event.fork.fork)
        if handle is None:
            self._stillborn[event.fork.fork] = event.reason
        elif not handle.death:
            created = handle.confirmed
            lost = LOST.format(reason=event.reason.value)
            handle.death = lost if created else NOT_CREATED

    def _freed(self, event: Freed) -> None:
        future = self._owned.pop(event.rref, None)
        if future is not None and not is_plain(future):
            box = [future]
            del future
            self.pool.put(list.clear, box)

    def give_up_references(self) -> None:
        """Give back every reference; those that programs have are dead from now on."""
        for handle in [*self.handles.values()]:
            handle.death = DELETED
            handle.drop()
        self.let_go_now()

    def leaks(self) -> tuple[str, ...]:
        """A line for each reference of others to a value of this worker."""
        if self.ended:
            return ()
        forks = self.do(lambda _: self.session.listed(), "shutdown")
        return tuple(f"Leaking RRef {rref} with fork Id {fork}" for rref, fork in forks)

    # Threads that wait ---------------------------------------------------------------

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
