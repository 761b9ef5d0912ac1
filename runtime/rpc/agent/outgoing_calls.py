"""Calls of this worker to other workers, and the threads that wait for answers.

    call, call_and_wait   run a function on another worker and return its result
    remote, fetch         leave the result there, as a reference; fetch a copy

Rules:
- a mistake in a call is raised at the caller, and nothing is sent;
- each call ends once: by its answer, or by an error that says why there is no answer;
- answers are read, and futures completed, by the waiting thread, or on request threads,
  with additional threads where these are busy; callbacks run there too, and may wait;
- the error of a call whose future is dropped before the error was read is logged;
- with too many calls in flight the caller waits; request threads do not, as other
  threads may wait for the calls of a request thread.

A thread that waits for an answer receives packets itself unless another thread
receives, so no thread has to be woken.  The thread waits for

    an answer    of a call that it made
    a value      that `remote` is creating: a short immutable one is piggybacked on the
                 answer to its creation, so that it need not be fetched
    room         for one more call

Rules of waiting: a waiting thread may be interrupted, and the worker continues; a
piggybacked value is used by threads that began to wait before it arrived, and not by
later ones; the last result of the same function predicts a piggybacked value, and a
wrong prediction costs one fetch.
"""

from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import get_ident, main_thread
from time import monotonic
from typing import Any

from everyorder.runtime.base.exceptions import traceback_of
from everyorder.runtime.errors.rpc import (
    NotInitialized,
)
from everyorder.runtime.futures import Future
from everyorder.runtime.futures.completion import Error, Outcome, ValueOutcome
from everyorder.runtime.rpc.agent.driver import (
    LOG,
    Components,
    deferred_interrupt,
    wait_for_wakeup,
)
from everyorder.runtime.rpc.agent.owned_values import (
    NOT_CREATED,
    ReferenceHandle,
    ReferenceHolder,
)
from everyorder.runtime.rpc.agent.pending_calls import (
    CallRequest,
    PendingCall,
    failure,
)
from everyorder.runtime.rpc.agent.request_pool import WAITS
from everyorder.runtime.rpc.codec import Packed
from everyorder.runtime.rpc.codec.remote_errors import free_frames, text_of
from everyorder.runtime.rpc.protocol.events import (
    Answered,
    Buffer,
    Failed,
    Payload,
    Reason,
)
from everyorder.runtime.rpc.protocol.identities import Fork, RRefId, WorkerNode
from everyorder.runtime.rpc.transport.shared_memory import BufferSharing

# In seconds: a wait is cut into slices, so that Ctrl-C is handled after each.
SLICE = 1.0


def wait_answer(
    waiter: "SimpleQueue[Answered | Failed]", until: float | None = None
) -> Answered | Failed | None:
    """Return the end of a call, which always arrives; None if not before `until`."""
    while True:
        left = SLICE if until is None else min(SLICE, until - monotonic())
        try:
            # In slices: a signal just before the sleep would otherwise wait for its
            # end.
            return waiter.get(timeout=max(left, 0.0))
        except Empty:
            if left < SLICE:
                return None


WAITS.register(wait_answer.__code__, "wait_answer")


# Ends of calls that this worker causes itself.
_OWN_ENDS = frozenset({Reason.STOPPED, Reason.CANCELLED})
# Number of functions whose last result is stored to predict piggybacked values.
_MAKERS = 4096


def _is_piggybacked(event: Answered) -> bool:
    """Return True if the created value is piggybacked on the answer."""
    return not event.failed and not event.carries and len(event.payload[0]) > 0


def _complete(completed: tuple[Future[Any], Outcome]) -> None:
    future, outcome = completed
    if isinstance(outcome, ValueOutcome):
        future.set_result(outcome.value)
    else:
        future._offer(outcome)


class Client(ReferenceHolder):
    """A worker that calls other workers and waits for answers."""

    def __init__(self, parts: Components) -> None:
        super().__init__(parts)
        options = parts.options
        # Workers of one process share memory anyway.
        near = self.transport.endpoint.startswith("local://")
        self.lending = BufferSharing(
            self.node.incarnation,
            self.ask_raw,
            enabled=options.shared_memory and not near,
            largest=options.settings.largest,
        )
        # Calls without an answer, and the queues of threads that wait for fewer.
        self._pending: dict[int, PendingCall] = {}
        self._max_calls = options.max_calls_in_flight
        self._room_waiters: deque[SimpleQueue[None]] = deque()
        # By function id: True if its last created value was piggybacked.
        self._piggybacks: dict[int, bool] = {}
        self._answers: deque[tuple[PendingCall, Answered | Failed]] = deque()
        self._reading = False
        # Call, worker, and error that was not read; appended by finalizers.
        self._unread: deque[tuple[str, str, BaseException]] = deque()
        self.handlers |= {Answered: self._answered, Failed: self._answered}

    def call(
        self, to: WorkerNode, request: CallRequest, *, timeout: float | None
    ) -> Future[Any]:
        """Return a future of a function's result on another worker.

        `timeout` is in seconds; None is for ever.  The future is completed, and its
        callbacks run, on a request thread.

        Raises:
            NotInitialized: this worker has stopped.
            RpcError, Exception: the request cannot be encoded.
        """
        pending = PendingCall(to, request.text, timeout)
        return self._ask_later(pending, *self._pack(request))

    def call_and_wait(
        self, to: WorkerNode, request: CallRequest, *, timeout: float | None
    ) -> Any:
        """Return the result of a function on another worker: `call`, then `wait`.

        This thread reads the answer, so that no other thread is woken for it.
        """
        return self._ask_and_wait(
            PendingCall(to, request.text, timeout), *self._pack(request)
        )

    def fetch_and_wait(self, handle: ReferenceHandle, *, timeout: float | None) -> Any:
        """Return the value of a reference, or a current copy: `fetch`, then `wait`."""
        handle.check("to_here")
        if handle.value is not None:
            return handle.value.wait(timeout)
        until = None
        if handle.creation is not None:
            until = None if timeout is None else monotonic() + timeout
            event = self._piggybacked(handle, until)
            if event is not None:
                payload = self.receive_payload(handle.owner, event.payload, ())
                return self.codec.unpack_answer(payload, (), failed=False)
        pending = PendingCall(handle.owner, lambda: "to_here", timeout)
        pending.target = handle
        pending.until = until
        return self._ask_and_wait(pending, (b"",), (), handle.fork.rref)

    def _ask_and_wait(
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
            event = wait_answer(waiter)
        except BaseException:
            self._abandon(pending, call, waiter)
            raise
        assert event is not None, "a call without a deadline here always ends"
        return self._read(pending, event)

    def remote(
        self, to: WorkerNode, request: CallRequest, *, timeout: float | None
    ) -> ReferenceHandle:
        """Return a reference to a function's result, which stays on another worker.

        Raises:
            NotInitialized, RpcError, Exception: as `call`.
        """
        pending = PendingCall(to, request.text, timeout)
        self.refuse_to_wait("remote")
        pending.maker = id(request.function)
        created: Future[None] = Future()
        packed = self._pack(request)
        try:
            self._ask(pending, *packed, created=created)
        except BaseException:
            # Interrupted after sending: no caller receives the reference.
            if pending.handle is not None:
                pending.handle.drop()
            raise
        assert pending.handle is not None, "the call creates the handle"
        return pending.handle

    def fetch(self, handle: ReferenceHandle, *, timeout: float | None) -> Future[Any]:
        """Return a future of a reference's value: the value on its owner, else a copy.

        Raises:
            ReferenceDead: the value was never created, or its owner is lost.
            NotInitialized: as `call`.
        """
        handle.check("to_here")
        if handle.value is not None:
            return handle.value
        pending = PendingCall(handle.owner, lambda: "to_here", timeout)
        pending.target = handle
        return self._ask_later(pending, (b"",), (), handle.fork.rref)

    def _pack(self, request: CallRequest) -> Packed:
        return self.codec.pack_request(request.function, request.args, request.kwargs)

    def _ask_later(
        self,
        pending: PendingCall,
        payload: Sequence[Buffer],
        carries: Sequence[Fork | RRefId],
        target: RRefId | None = None,
    ) -> Future[Any]:
        """Send a call and return the future of its answer."""
        future = pending.future = Future()
        self._ask(pending, payload, carries, target=target)
        return future

    def _ask(
        self,
        pending: PendingCall,
        payload: Sequence[Buffer],
        carries: Sequence[Fork | RRefId],
        *,
        created: Future[None] | None = None,
        target: RRefId | None = None,
    ) -> int:
        """Send a call and return its number; -1 if deferred (see `Driver.do`)."""
        to, seconds, session = pending.to, pending.seconds, self.session
        deadline = pending.until
        if deadline is None and seconds is not None:
            deadline = monotonic() + seconds
        if len(self._pending) >= self._max_calls:
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

    def ask_raw(self, to: WorkerNode, request: bytes) -> Future[Payload]:
        """Return a future of the payload that answers a request about memory."""
        pending = PendingCall(to, lambda: "a request about memory", None, raw=True)
        try:
            return self._ask_later(pending, (request,), ())
        except NotInitialized as error:
            failed: Future[Payload] = Future()
            failed.set_exception(error)
            return failed

    def _discard_answer(self, pending: PendingCall, event: Answered | Failed) -> None:
        """Release the memory and references of an answer that is not read."""
        if isinstance(event, Answered):
            self.discard(pending.to, event.payload, event.carries)

    def discard(
        self, peer: WorkerNode, payload: Payload, carries: Sequence[Fork]
    ) -> None:
        """Release the memory and references of a message that is not read."""
        self.lending.drop(peer, payload)
        for fork in carries:
            self.handle(fork).drop()

    def receive_payload(
        self, peer: WorkerNode, payload: Payload, carries: Sequence[Fork]
    ) -> Payload:
        """Return the payload of a message, with its lent buffers mapped.

        Raises:
            BlockGone, Undecodable: the payload is not available; its references are
                released.
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
        """Receive on this thread until the answer arrives, unless another one does."""
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

    def _piggybacked(
        self, handle: ReferenceHandle, until: float | None
    ) -> Answered | None:
        """Return the answer to the creation of a value, with the value piggybacked.

        Return None if no piggybacked value is expected, or if none arrived by `until`:
        the caller then fetches the value.
        """
        pending = handle.creation
        if pending is None or not self._piggybacks.get(pending.maker):
            return None
        self.refuse_to_wait("to_here")
        waiter: SimpleQueue[Answered | Failed] = SimpleQueue()
        with self._lock:
            if handle.creation is None:
                return None
            pending.piggyback_waiters.append(waiter)
        self._receive(waiter, until)
        event = wait_answer(waiter, until)
        return event if isinstance(event, Answered) and _is_piggybacked(event) else None

    def _make_room(self, deadline: float | None) -> None:
        """Wait until fewer calls are in flight, unless this is a request thread.

        Other threads may wait for the calls of a request thread.
        """
        if self.is_request_thread() or self.holds_session():
            return
        while len(self._pending) >= self._max_calls:
            if self.ended or (deadline is not None and monotonic() >= deadline):
                return
            waiter: SimpleQueue[None] = SimpleQueue()
            self._room_waiters.append(waiter)
            wait_for_wakeup(waiter)

    def _abandon(
        self, pending: PendingCall, call: int, waiter: "SimpleQueue[Answered | Failed]"
    ) -> None:
        """Cancel a call whose thread does not wait any more."""
        pending.waiter = None
        if not self._discard_late(pending, waiter) and call >= 0 and not self.ended:
            self.do(lambda now: self.session.cancel(call, now), "call")

    def _discard_late(
        self, pending: PendingCall, waiter: "SimpleQueue[Answered | Failed]"
    ) -> bool:
        """Release an answer that arrived after its thread gave up; True if there was
        one.
        """
        try:
            event = waiter.get_nowait()
        except Empty:
            return False
        self._discard_answer(pending, event)
        return True

    def _hand_over(
        self, waiter: "SimpleQueue[Answered | Failed]", event: Answered | Failed
    ) -> None:
        waiter.put(event)
        if not self.transport.leads():
            self.transport.nudge()

    def _creation_ended(
        self, pending: PendingCall, handle: ReferenceHandle, event: Answered | Failed
    ) -> None:
        """Pass the end of a creation to the threads that wait for its value."""
        with self._lock:
            handle.creation = None
        if isinstance(event, Answered):
            if len(self._piggybacks) > _MAKERS:
                self._piggybacks.clear()
            self._piggybacks[pending.maker] = _is_piggybacked(event)
        for waiter in pending.piggyback_waiters:
            self._hand_over(waiter, event)

    def _complete_creation(
        self, handle: ReferenceHandle, event: Answered | Failed
    ) -> bool:
        """Complete the future of a creation; False if callbacks need a thread."""
        if isinstance(event, Failed) or event.failed or event.carries:
            return False
        handle.confirmed = True
        return handle.created._offer_without_callbacks(ValueOutcome(None))

    # Answers -------------------------------------------------------------------------

    def _answered(self, event: Answered | Failed) -> None:
        pending = self._pending.pop(event.call, None)
        if pending is None:
            # The call failed when this worker ended.
            return
        if self._room_waiters:
            self._room_waiters.popleft().put(None)
        if pending.handle is not None:
            self._creation_ended(pending, pending.handle, event)
        waiter = pending.waiter
        if waiter is not None:
            self._hand_over(waiter, event)
            if pending.waiter is None:
                # The waiting thread gave up, perhaps without seeing the answer.
                self._discard_late(pending, waiter)
        elif pending.future is None and pending.handle is None:
            self._discard_answer(pending, event)
        elif not (pending.handle and self._complete_creation(pending.handle, event)):
            self._answers.append((pending, event))
            if not self._reading:
                self._reading = True
                self.pool.put_own(Client._read_answers, self)

    def _read_answers(self) -> None:
        """Read answers and complete futures, on a request thread."""
        while True:
            try:
                pending, event = self._answers.popleft()
            except IndexError:
                self._reading = False
                if not self._answers or self._reading:
                    return
                self._reading = True
                continue
            future: Future[Any]
            if pending.handle is not None:
                future = pending.handle.created
            else:
                assert pending.future is not None, "without a future a thread waits"
                future = pending.future
            outcome: Outcome
            try:
                outcome = ValueOutcome(self._read(pending, event))
            except BaseException as error:
                # A frame there holds the future: a cycle, which would live on.
                free_frames(error)
                outcome = Error(
                    error, traceback_of(error), self._unread_of(pending, event)
                )
            if not future._offer_without_callbacks(outcome):
                # Callbacks may wait for later answers.
                self.pool.put_own(_complete, (future, outcome))
            del pending, event, future, outcome

    def _unread_of(
        self, pending: PendingCall, event: Answered | Failed
    ) -> Callable[[BaseException], object] | None:
        """Return what notes the error of a call whose future is dropped unread."""
        if pending.future is None or pending.raw:
            return None
        if isinstance(event, Failed) and event.reason in _OWN_ENDS:
            return None
        # The name only: the request holds the arguments.
        unread, name, worker = self._unread, pending.name(), pending.to.name
        return lambda error: unread.append((name, worker, error))

    def log_unread(self) -> None:
        """Log the errors of calls whose futures were dropped unread."""
        while self._unread:
            name, worker, error = self._unread.popleft()
            LOG.error(
                "%s: the call %s on %s failed, and its future was dropped before its "
                "error was read: %s",
                self.name,
                name,
                worker,
                text_of(error),
            )

    def _read(self, pending: PendingCall, event: Answered | Failed) -> Any:
        """Return the value of an answer.

        Raises:
            RpcError, Exception: the answer is an error, or there is no answer.
        """
        handle = pending.handle
        if isinstance(event, Failed):
            if handle is not None:
                handle.death = handle.death or NOT_CREATED
            raise failure(pending, event)
        if handle is not None:
            handle.confirmed = True
            if not event.failed:
                self._discard_answer(pending, event)
                return None
        payload = self.receive_payload(pending.to, event.payload, event.carries)
        if pending.raw:
            return payload
        return self.codec.unpack_answer(payload, event.carries, event.failed)
