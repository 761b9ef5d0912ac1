"""Calls: what this worker asks of others, and the threads that wait for answers.

    call, call_and_wait   another worker runs a function; its result comes here
    remote, fetch         its result stays there; a copy of it is fetched
    failure               which error stands for which reason of a session

Rules:
- a mistake in a call is raised at the caller, and nothing is sent;
- each call ends once: by its answer, or by an error that says why there is none;
- answers are read, and futures completed, by the thread that waits, or on request
  threads, others where these are busy; callbacks run there, too, and may wait;
- with too many calls in flight the caller waits; functions that run for others do not:
  what they call may be what the others wait for.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import get_ident, main_thread
from time import monotonic
from typing import Any

from runtime.errors.future import named
from runtime.errors.rpc import (
    NotInitialized,
    ReferenceDead,
    RpcError,
    RpcTimeout,
    Unsendable,
    WorkerLost,
)
from runtime.futures import Future
from runtime.futures.completion import Error, Outcome, Value
from runtime.rpc.agent.driver import Parts, deferred_interrupt, wait_shortly
from runtime.rpc.agent.references import NOT_CREATED, Handle, Holder
from runtime.rpc.agent.threads import WAITS
from runtime.rpc.identities import Fork, Node, RRefId
from runtime.rpc.session.events import Answered, Buffer, Failed, Payload, Reason
from runtime.rpc.transport.blocks import Lending
from runtime.rpc.values import Packed


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked: `function(*args, **kwargs)`; `name` is for texts."""

    function: Callable[..., Any]
    args: Sequence[Any] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    name: str = ""

    def text(self) -> str:
        """What is called, for texts."""
        function = self.function
        if isinstance(function, type):
            return self.name or function.__qualname__
        return self.name or named(function)


# Seconds after which Ctrl-C is heard in any case.
SLICE = 1.0


@dataclass(slots=True, eq=False)
class PendingCall:
    """A call of ours without an answer; `name()` is what is called, for texts.

    One of three gets the answer: `future`, the `handle` of a reference, or `waiter`, of
    a thread that waits and reads it.  `target` is whose value is fetched; `early` are
    of threads that wait for what `handle` stands for, `maker` is who makes it.  `until`
    is when it is too late, if that is not `seconds` from now; `raw` says that the
    answer is a payload, and no value.
    """

    to: Node
    name: Callable[[], str]
    seconds: float | None
    future: Future[Any] | None = None
    handle: Handle | None = None
    target: Handle | None = None
    waiter: "SimpleQueue[Answered | Failed] | None" = None
    early: "list[SimpleQueue[Answered | Failed]]" = field(default_factory=list)
    maker: int = 0
    until: float | None = None
    raw: bool = False


def wait_for(
    waiter: "SimpleQueue[Answered | Failed]", until: float | None = None
) -> Answered | Failed | None:
    """The end of a call, which always comes; None: not until then."""
    while True:
        left = SLICE if until is None else min(SLICE, until - monotonic())
        try:
            # In slices: a signal that comes just before it sleeps would not be heard.
            return waiter.get(timeout=max(left, 0.0))
        except Empty:
            if left < SLICE:
                return None


WAITS.add(wait_for.__code__)


def failure(pending: PendingCall, event: Failed) -> RpcError:
    """The error of a call that has no answer."""
    name, worker, detail = pending.name(), pending.to.name, event.detail
    if event.reason is Reason.DEADLINE:
        milliseconds = round((pending.seconds or 0.0) * 1000)
        return RpcTimeout(
            code="RpcTimeout", call=name, worker=worker, milliseconds=milliseconds
        )
    if event.reason is Reason.TOO_LARGE:
        return Unsendable(
            code="PayloadTooLarge", call=name, worker=worker, detail=detail
        )
    if event.reason is Reason.REFERENCE:
        reference = detail or "(one that was sent)"
        reason = event.reason.value
        target = pending.target
        if target is not None:
            reference = target.text()
            reason = target.death or ("it is gone" if target.confirmed else NOT_CREATED)
        return ReferenceDead(
            code="ReferenceDead", call=name, reference=reference, reason=reason
        )
    reason = event.reason.value + (f" ({detail})" if detail else "")
    return WorkerLost(call=name, worker=worker, reason=reason)


# Functions of which it is remembered whether what they make goes along.
_MAKERS = 4096


def _has_value(event: Answered) -> bool:
    """Whether the value that was made goes along with the answer."""
    return not event.failed and not event.carries and len(event.payload[0]) > 0


def _complete(told: tuple[Future[Any], Outcome]) -> None:
    future, outcome = told
    if isinstance(outcome, Value):
        future.set_result(outcome.value)
    else:
        future.set_error_if_needed(outcome.error)


class Caller(Holder):
    """A worker as it calls others, and waits."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        options = parts.options
        # In a process nothing has to be lent: nothing leaves it.
        near = self.transport.endpoint.startswith("local://")
        self.lending = Lending(
            self.node.incarnation,
            self.ask_raw,
            wanted=options.shared_memory and not near,
            largest=options.settings.largest,
        )
        # Calls without an answer, and threads that wait for there to be fewer.
        self._pending: dict[int, PendingCall] = {}
        self._most = options.max_calls_in_flight
        self._rooms: deque[SimpleQueue[None]] = deque()
        # Whether the value went along when a function made one last, by its number.
        self._along: dict[int, bool] = {}
        self._answers: deque[tuple[PendingCall, Answered | Failed]] = deque()
        self._settling = False
        self.handlers |= {Answered: self._answered, Failed: self._answered}

    def call(self, to: Node, request: Request, *, timeout: float | None) -> Future[Any]:
        """A future of what a function gives on another worker; `timeout` in seconds.

        None is for ever.  It is completed on a request thread, and so are callbacks.

        Raises:
            NotInitialized: this worker has stopped.
            RpcError, Exception: the request cannot be written.
        """
        pending = PendingCall(to, request.text, timeout)
        future: Future[Any] = Future()
        pending.future = future
        self._ask(pending, *self._packed(request))
        return future

    def call_and_wait(
        self, to: Node, request: Request, *, timeout: float | None
    ) -> Any:
        """What a function gives on another worker: as `call`, and then `wait`.

        The answer is read by this thread, so that no other one is woken for it.
        """
        return self._awaited(
            PendingCall(to, request.text, timeout), *self._packed(request)
        )

    def fetch_and_wait(self, handle: Handle, *, timeout: float | None) -> Any:
        """The value of a reference, a copy of now; as `fetch`, and then `wait`."""
        handle.check("to_here")
        if handle.value is not None:
            return handle.value.wait(timeout)
        until = None
        if handle.creation is not None:
            until = None if timeout is None else monotonic() + timeout
            event = self._early(handle, until)
            if event is not None:
                payload = self.whole(handle.owner, event.payload, ())
                return self.codec.unpack_answer(payload, (), failed=False)
        pending = PendingCall(handle.owner, lambda: "to_here", timeout)
        pending.target = handle
        pending.until = until
        return self._awaited(pending, (b"",), (), handle.fork.rref)

    def _awaited(
        self,
        pending: PendingCall,
        payload: Payload,
        carries: Sequence[Fork | RRefId],
        target: RRefId | None = None,
    ) -> Any:
        waiter: SimpleQueue[Answered | Failed] = SimpleQueue()
        pending.waiter = waiter
        self.refuse_to_wait("rpc_sync")
        call = -1
        event = None
        try:
            call = self._ask(pending, payload, carries, target=target)
            self._receive(waiter)
            event = wait_for(waiter)
        except BaseException:
            self._give_up(pending, call, waiter)
            raise
        assert event is not None, "it always comes"
        return self._read(pending, event)

    def remote(self, to: Node, request: Request, *, timeout: float | None) -> Handle:
        """A reference to what a function gives on another worker, which keeps it.

        Raises:
            NotInitialized, RpcError, Exception: as `call`.
        """
        pending = PendingCall(to, request.text, timeout)
        self.refuse_to_wait("remote")
        pending.maker = id(request.function)
        created: Future[None] = Future()
        packed = self._packed(request)
        try:
            self._ask(pending, *packed, created=created)
        except BaseException:
            # Interrupted when it was sent: nobody gets the reference.
            if pending.handle is not None:
                pending.handle.drop()
            raise
        assert pending.handle is not None, "it was made when the call was"
        return pending.handle

    def fetch(self, handle: Handle, *, timeout: float | None) -> Future[Any]:
        """A future of the value of a reference: itself on its owner, else a copy.

        Raises:
            ReferenceDead: the value was never made, or its owner is lost.
            NotInitialized: as `call`.
        """
        handle.check("to_here")
        if handle.value is not None:
            return handle.value
        pending = PendingCall(handle.owner, lambda: "to_here", timeout)
        pending.target = handle
        future: Future[Any] = Future()
        pending.future = future
        self._ask(pending, (b"",), (), target=handle.fork.rref)
        return future

    def _packed(self, request: Request) -> Packed:
        return self.codec.pack_request(request.function, request.args, request.kwargs)

    def _ask(
        self,
        pending: PendingCall,
        payload: Sequence[Buffer],
        carries: Sequence[Fork | RRefId],
        *,
        created: Future[None] | None = None,
        target: RRefId | None = None,
    ) -> int:
        """Send a call; its number, -1 if it is sent when what is told now is over."""
        to, seconds, session = pending.to, pending.seconds, self.session
        deadline = pending.until
        if deadline is None and seconds is not None:
            deadline = monotonic() + seconds
        if len(self._pending) >= self._most:
            self._make_room(deadline)
        payload = self.lending.outgoing(to, payload)

        def act(now: float) -> int:
            creates = None if created is None else session.new_id()
            call = session.call(
                to,
                payload,
                carries=carries,
                deadline=deadline,
                now=now,
                creates=creates,
                target=target,
            )
            if created is not None and creates is not None:
                pending.handle = self.create(call, creates, pending.to, created)
                pending.handle.creation = pending
            self._pending[call] = pending
            return call

        call = self.do(act, "call")
        return -1 if call is None else call

    def ask_raw(self, to: Node, said: bytes) -> Future[Payload]:
        """A future of the payload that answers a request of this worker itself."""
        pending = PendingCall(to, lambda: "a request about memory", None)
        pending.raw = True
        future: Future[Payload] = Future()
        pending.future = future
        try:
            self._ask(pending, (said,), ())
        except NotInitialized as error:
            future.set_error_if_needed(error)
        return future

    def _return(self, pending: PendingCall, event: Answered | Failed) -> None:
        """Give back what came with an answer that nobody reads."""
        if isinstance(event, Answered):
            self.discard(pending.to, event.payload, event.carries)

    def discard(self, peer: Node, payload: Payload, carries: Sequence[Fork]) -> None:
        """Give back what came with a message that nobody reads."""
        self.lending.drop(peer, payload)
        for fork in carries:
            self.handle(fork).drop()

    def whole(self, peer: Node, payload: Payload, carries: Sequence[Fork]) -> Payload:
        """The payload of a message, with all its buffers.

        Raises:
            BlockGone, Undecodable: it cannot be had; what came with it is given back.
        """
        try:
            return self.lending.incoming(peer, payload)
        except BaseException:
            self.discard(peer, (), carries)
            raise

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
                with deferred_interrupt(nudge) as calm:
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
        self, pending: PendingCall, call: int, waiter: "SimpleQueue[Answered | Failed]"
    ) -> None:
        """End a call that nobody waits for any more."""
        pending.waiter = None
        if not self._unread(pending, waiter) and call >= 0 and not self.ended:
            self.do(lambda now: self.session.cancel(call, now), "call")

    def _unread(
        self, pending: PendingCall, waiter: "SimpleQueue[Answered | Failed]"
    ) -> bool:
        """Give back what came for who has given up; whether it had come."""
        try:
            event = waiter.get_nowait()
        except Empty:
            return False
        self._return(pending, event)
        return True

    def _hand(
        self, waiter: "SimpleQueue[Answered | Failed]", event: Answered | Failed
    ) -> None:
        waiter.put(event)
        if not self.transport.leads():
            self.transport.nudge()

    def _made(
        self, pending: PendingCall, handle: Handle, event: Answered | Failed
    ) -> None:
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

    # Answers -------------------------------------------------------------------------

    def _answered(self, event: Answered | Failed) -> None:
        pending = self._pending.pop(event.call, None)
        if pending is None:
            # It ended when this worker did.
            return
        if self._rooms:
            self._rooms.popleft().put(None)
        if pending.handle is not None:
            self._made(pending, pending.handle, event)
        waiter = pending.waiter
        if waiter is not None:
            self._hand(waiter, event)
            if pending.waiter is None:
                # Given up meanwhile, by who may not have seen it any more.
                self._unread(pending, waiter)
        elif pending.future is None and pending.handle is None:
            self._return(pending, event)
        elif not (pending.handle and self._created(pending.handle, event)):
            self._answers.append((pending, event))
            if not self._settling:
                self._settling = True
                self.pool.put_own(Caller._settle, self)

    def _settle(self) -> None:
        """Read answers and complete futures, on a request thread."""
        while True:
            try:
                pending, event = self._answers.popleft()
            except IndexError:
                self._settling = False
                if not self._answers or self._settling:
                    return
                self._settling = True
                continue
            future: Future[Any]
            if pending.handle is not None:
                future = pending.handle.created
            else:
                assert pending.future is not None, "else a thread waits"
                future = pending.future
            outcome: Outcome
            try:
                outcome = Value(self._read(pending, event))
            except BaseException as error:
                outcome = Error(error, error.__traceback__)
            if not future._offer_quietly(outcome):
                # Callbacks may wait for what comes behind.
                self.pool.put_own(_complete, (future, outcome))
            del pending, event, future, outcome

    def _read(self, pending: PendingCall, event: Answered | Failed) -> Any:
        """What an answer says.

        Raises:
            RpcError, Exception: it is an error.
        """
        handle = pending.handle
        if isinstance(event, Failed):
            if handle is not None:
                handle.death = handle.death or NOT_CREATED
            raise failure(pending, event)
        if handle is not None:
            handle.confirmed = True
            if not event.failed:
                self._return(pending, event)
                return None
        payload = self.whole(pending.to, event.payload, event.carries)
        if pending.raw:
            return payload
        return self.codec.unpack_answer(payload, event.carries, event.failed)
