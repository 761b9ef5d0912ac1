"""Agent: one worker as programs see it, and the requests that it serves.

    WorkerSlot, current_agent  the worker that a thread speaks for
    Job, serve                 a request of another worker, until it is answered
    Agent                      a worker: its members, its requests, its end

The class is built in chapters, each derived from the one before: `driver` (the session
and its lock), `owned_values` (handles, and values that stay on this worker),
`outgoing_calls` (calls to other workers), and this module.

Rules of slots: a slot holds one worker at a time.  A process has a slot.  A thread may
have a separate slot; the thread and the code that it calls then act as one more worker
in the same process.  Request threads use the slot of their worker.  Threads that a
program starts use the slot of the process, unless the program passes its slot on.  A
forked child has no worker.

Rules of requests:
- a request is answered once, in every case: with a value, or with an error that can be
  raised at the caller;
- a request runs on a request thread, with this worker as the current one, or on the
  thread that received it; the thread that completes the result sends the answer;
- no thread waits for a future: an incomplete value, and the future of a function marked
  by `async_execution`, send the answer on completion;
- a value that `remote` creates stays on this worker, and so does an error of its
  creation, which is raised where the value is fetched.  A short immutable value is also
  piggybacked on the answer to its creation, for a fetch that is already waiting;
- a request that the caller has cancelled is not started; a request that has started is
  finished.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from logging import getLogger
from typing import Any

from everyorder.runtime.base.exceptions import set_traceback, traceback_of
from everyorder.runtime.errors.future import describe_type
from everyorder.runtime.errors.rpc import (
    NotInitialized,
    ReferenceDead,
    RpcError,
    RpcMisuse,
)
from everyorder.runtime.futures import Future
from everyorder.runtime.rpc.agent.driver import LOOK_SECONDS, Components
from everyorder.runtime.rpc.agent.member_table import MemberTable
from everyorder.runtime.rpc.agent.options import RpcBackendOptions
from everyorder.runtime.rpc.agent.outgoing_calls import Client
from everyorder.runtime.rpc.agent.owned_values import DELETED, is_plain, is_short
from everyorder.runtime.rpc.codec import Packed
from everyorder.runtime.rpc.codec.named_functions import MARK
from everyorder.runtime.rpc.codec.remote_errors import free_frames, pack_error
from everyorder.runtime.rpc.protocol.events import (
    Admitted,
    Buffer,
    Called,
    Cancelled,
    Completed,
    Event,
    Failed,
    Finished,
    Joined,
    Lost,
    Reason,
    Rejected,
    Warned,
)
from everyorder.runtime.rpc.protocol.identities import (
    Fork,
    RRefId,
    WorkerInfo,
    WorkerNode,
)
from everyorder.runtime.rpc.protocol.session import Session
from everyorder.runtime.rpc.transport import Link, LinkState, Transport
from everyorder.runtime.rpc.transport.shared_memory import BufferSharing

LOG = getLogger("everyorder.runtime.rpc")

# In seconds: a member that is alive acknowledges a message within a few round trips.
_ANNOUNCE_SECONDS = 2.0


class WorkerSlot:
    """The slot of one worker; `agent` is None if the slot is empty."""

    __slots__ = ("__weakref__", "agent", "parent")

    def __init__(self) -> None:
        self.agent: Agent | None = None
        # Name of the worker that held this slot when the process was forked.
        self.parent = ""

    def activate(self) -> None:
        """Make this thread speak for the worker of this slot from now on."""
        _OWN.set(self)


_PROCESS = WorkerSlot()
_OWN: ContextVar[WorkerSlot | None] = ContextVar(
    "everyorder.runtime.rpc.slot", default=None
)


def worker_slot() -> WorkerSlot:
    """Return the slot of this thread."""
    return _OWN.get() or _PROCESS


def current_agent(call: str) -> "Agent":
    """Return the worker that this thread speaks for; `call` is for the error.

    Raises:
        NotInitialized: no worker is initialized, or the worker was shut down.
    """
    own = _OWN.get() or _PROCESS
    agent = own.agent
    if agent is None:
        raise NotInitialized(call=call, parent=own.parent)
    return agent


def is_initialized() -> bool:
    """Return True if this thread speaks for a worker."""
    return worker_slot().agent is not None


@contextmanager
def in_worker_slot(own: WorkerSlot | None = None) -> Iterator[WorkerSlot]:
    """Make this thread speak for another slot, by default a new one, in a block."""
    own = own or WorkerSlot()
    before = _OWN.set(own)
    try:
        yield own
    finally:
        _OWN.reset(before)


def _in_child() -> None:
    for own in (worker_slot(), _PROCESS):
        if own.agent is not None:
            own.parent = own.agent.name
            own.agent = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


# The answer to a creation whose value is not piggybacked.
NO_PIGGYBACK = Packed([b""], [])


class Job:
    """A received request that is not answered yet."""

    __slots__ = ("agent", "called", "cancelled", "value")

    def __init__(
        self, agent: "Agent", called: Called, value: Future[Any] | None
    ) -> None:
        self.agent = agent
        self.called = called
        # The future of the value that the request creates or fetches; None for a plain
        # call.
        self.value = value
        self.cancelled = False


def serve(job: Job) -> None:
    """Run a request, and answer it now or when its result is complete."""
    called = job.called
    if job.agent.ended:
        return
    if called.target is not None:
        fetch(job)
    elif job.agent.lending.is_request(called.payload):
        answer = job.agent.lending.answer(called.peer, called.payload)
        job.agent.reply(job, (answer,), (), failed=False)
    elif job.cancelled and called.creates is None:
        # The session drops this answer.  Sending it releases the session's call record.
        job.agent.discard(called.peer, called.payload, called.carries)
        job.agent.reply(job, (b"",), (), failed=True)
    else:
        _run(job)
    job.agent.lending.give_back()


def fetch(job: Job) -> None:
    """Answer with a value of this worker, as soon as the value is complete."""
    rref = job.called.target
    assert rref is not None, "only fetches have a target"
    if job.value is None:
        dead = ReferenceDead(
            call="to_here", reference=str(rref), reason="its owner has no such value"
        )
        _answer_error(job, dead)
    else:
        _answer_later(job, job.value)


def _run(job: Job) -> None:
    agent, called = job.agent, job.called
    request = None
    try:
        payload = agent.receive_payload(called.peer, called.payload, called.carries)
        request = agent.codec.unpack_request(payload, called.carries)
        del payload
        result = request.run()
        if getattr(request.function, MARK, None) is not None:
            if not isinstance(result, Future):
                raise RpcMisuse(
                    code="NotAFuture",
                    function=request.name,
                    found=describe_type(result),
                )
            # The future must not keep the request's arguments alive.
            request = None
            if job.value is not None:
                result._forward_to(job.value)
            _answer_later(job, result)
            error = result.error()
            if error is not None:
                # The frames that set the error have ended.
                free_frames(error)
            return
        request = None
    except BaseException as error:
        # The traceback keeps this frame alive, so the frame must not hold the
        # arguments.
        request = None
        # SystemExit is also reported as an error: a caller must not end this process.
        _settle_error(job, _without_this_frame(error))
    else:
        _settle_value(job, result)


def _without_this_frame(error: BaseException) -> BaseException:
    trace = traceback_of(error)
    if trace is not None and trace.tb_next is not None:
        set_traceback(error, trace.tb_next)
    return error


def _answer_with(job: Job, future: Future[Any]) -> None:
    """Answer a request with the outcome of a complete future."""
    error = future.error()
    if job.called.creates is not None:
        _answer_created(job, future)
    elif error is None:
        _answer(job, future.value())
    else:
        _answer_error(job, error)


def _answer_later(job: Job, future: Future[Any]) -> None:
    future.add_done_callback(partial(_answer_with, job))


def _answer_when_made(job: Job) -> bool:
    """Register the answer of a fetch as a callback; return False if none is possible.

    False means that the value is complete already, or unknown.
    """
    return job.value is not None and job.value._register_unless_complete(
        partial(_answer_with, job)
    )


def _settle_value(job: Job, result: object) -> None:
    if job.value is not None:
        if isinstance(result, Future):
            # A future cannot be sent: only marked functions may return one.
            try:
                result.__reduce_ex__(5)
            except Exception as error:
                _settle_error(job, error)
                return
        job.value.set_result(result)
        _answer_created(job, job.value)
    else:
        _answer(job, result)


def _settle_error(job: Job, error: BaseException) -> None:
    if job.value is not None:
        free_frames(error)
        job.value.set_error_if_needed(error)
        _answer_created(job, job.value)
    else:
        _answer_error(job, error)


def _answer_created(job: Job, value: Future[Any]) -> None:
    """Answer a call that created a value; the value, or its error, stays here.

    A short immutable value is piggybacked, for a fetch that is already waiting.
    """
    packed = NO_PIGGYBACK
    if is_plain(value) and is_short(value.value()):
        # The restricted codec cannot encode some values.
        with suppress(RpcError):
            packed = job.agent.codec.pack_result(value.value())
    job.agent.reply(job, *packed, failed=False)


def _answer(job: Job, result: object) -> None:
    agent = job.agent
    try:
        payload, carries = agent.codec.pack_result(result)
    except BaseException as error:
        _answer_error(job, error)
        return
    agent.reply(job, payload, carries, failed=False)


def _answer_error(job: Job, error: BaseException) -> None:
    agent = job.agent
    payload, carries = pack_error(error, agent.node.info)
    free_frames(error)
    agent.reply(job, payload, carries, failed=True)


class Agent(Client):
    """A worker: it calls other workers and runs their requests.

    `node` identifies this life of the worker once it is a member; `slot` is that of
    its request threads.
    """

    def __init__(
        self,
        session: Session,
        transport: Transport,
        options: RpcBackendOptions,
        slot: WorkerSlot,
    ) -> None:
        super().__init__(Components(session, transport, options, slot.activate))
        self.slot = slot
        # In seconds, for calls without a timeout.
        self.rpc_timeout = options.rpc_timeout
        # Endpoints that refused this worker, with the reason, and reasons of dropped
        # packets.
        self.refused: dict[str, str] = {}
        self.complaints: list[str] = []
        self.admitted: Admitted | None = None
        self.completed = False
        self.rejected: Rejected | None = None
        self.finished = False
        self._members = MemberTable(self.name)
        self._endpoints: dict[WorkerNode, str] = {}
        # Requests that are not answered yet, by caller and call number.
        self._jobs: dict[tuple[WorkerNode, int], Job] = {}
        self.handlers |= {
            Joined: self._joined,
            Lost: self._lost,
            Admitted: self._admitted,
            Completed: self._completed,
            Rejected: self._rejected,
            Finished: self._finished,
            Warned: self._warned,
            Called: self._called,
            Cancelled: self._cancelled,
        }

    # Members -------------------------------------------------------------------------

    @property
    def info(self) -> WorkerInfo:
        """Return the name and id of this worker."""
        return self.session.node.info

    def nodes(self) -> list[WorkerNode]:
        """Return the members, in the order of their ids."""
        return self._members.nodes()

    def find(self, to: str | int | WorkerInfo, *, departed: bool = False) -> WorkerNode:
        """Return the member with a name, an id, or both; with `departed`, also one that
        has left: calls to it fail.

        Raises:
            RpcMisuse: no member matches, or `to` is of another type.
        """
        return self._members.find(to, departed=departed)

    # Events of the session -----------------------------------------------------------

    def _joined(self, event: Joined) -> None:
        endpoint = self.session.endpoint_of(event.node)
        if endpoint:
            self._endpoints[event.node] = endpoint
        self._members.put(event.node)
        self.notify_watchers()

    def _lost(self, event: Lost) -> None:
        self.lending.lost(event.node)
        endpoint = self._endpoints.pop(event.node, "")
        if endpoint and endpoint not in self._endpoints.values():
            # Otherwise the transport would retry the connection for ever.
            self.transport.forget(endpoint)
        self._members.remove(event.node)
        self.notify_watchers()

    def _admitted(self, event: Admitted) -> None:
        self._members.put(event.node)
        self.admitted = event
        self.notify_watchers()

    def _completed(self, _: Completed) -> None:
        self.completed = True
        self.notify_watchers()

    def _rejected(self, event: Rejected) -> None:
        self.rejected = event
        self.notify_watchers()

    def _finished(self, _: Finished) -> None:
        self.finished = True
        self.notify_watchers()

    def _warned(self, event: Warned) -> None:
        self.complaints.append(event.what)
        source = f" (from {event.source})" if event.source else ""
        LOG.info("%s dropped a packet: %s%s", self.name, event.what, source)

    def on_link(self, link: Link) -> None:
        """Handle a changed link: give up an absent peer, report a refused key."""
        if link.state is LinkState.ABSENT:
            if link.detail:
                # The cause may be local, such as too many open files.
                LOG.warning("%s loses %s: %s", self.name, link.endpoint, link.detail)
            with suppress(NotInitialized):
                self.do(
                    lambda now: self.session.unreachable(link.endpoint, now), "link"
                )
            if self.admitted and link.endpoint not in [*self._endpoints.values()]:
                # The peer asked to join and is not a member: do not retry for ever.
                self.transport.forget(link.endpoint)
        elif link.state is LinkState.REFUSED:
            why = link.detail or link.state.value
            self.refused[link.endpoint] = link.detail
            self.notify_watchers()
            LOG.warning("%s and %s: %s", self.name, link.endpoint, why)
        elif link.state is LinkState.STRANGER:
            LOG.warning("%s: %s (key %s)", self.name, link.state.value, link.key)

    def ticked(self) -> None:
        """Schedule the return of borrowed memory that has no views any more, and the
        log of unread errors.
        """
        if self.lending.has_returns():
            self.pool.put_own(BufferSharing.give_back, self.lending)
        if self._unread:
            self.pool.put_own(Client.log_unread, self)

    def final_events(self, why: str) -> list[Event]:
        """Return a `Failed` event for each call without an answer."""
        return [Failed(call, Reason.STOPPED, why) for call in [*self._pending]]

    # Requests of others ---------------------------------------------------------------

    def _called(self, event: Called) -> None:
        value: Future[Any] | None = None
        if event.creates is not None:
            value = self._owned.setdefault(event.creates, Future())
        elif event.target is not None:
            value = self._owned.get(event.target)
        job = Job(self, event, value)
        self._jobs[event.peer, event.call] = job
        self._begin(job)

    def _begin(self, job: Job) -> None:
        value = job.value
        if job.called.target is not None and value is not None:
            # Answer on this thread: waking another thread costs more.
            if is_plain(value) and is_short(value.value()):
                fetch(job)
                return
            if _answer_when_made(job):
                return
        if not self.run_on_receiver(serve, job):
            self.pool.put(serve, job)

    def _cancelled(self, event: Cancelled) -> None:
        job = self._jobs.get((event.peer, event.call))
        if job is not None:
            job.cancelled = True

    def reply(
        self,
        job: Job,
        payload: Sequence[Buffer],
        carries: Sequence[Fork | RRefId],
        failed: bool,
    ) -> None:
        """Send the answer to a request; only the first answer is sent."""
        called = job.called
        if self._jobs.pop((called.peer, called.call), None) is None or self.ended:
            return
        payload = self.lending.outgoing(called.peer, payload)

        def act(now: float) -> None:
            self.session.reply(
                called.peer,
                called.call,
                payload,
                carries=carries,
                failed=failed,
                now=now,
            )

        self.do(act, "reply")

    # The end ------------------------------------------------------------------------

    @property
    def is_static(self) -> bool:
        """Return True if the group has a fixed size, and is shut down together."""
        return self.admitted is not None and self.admitted.world_size is not None

    def finish(self) -> None:
        """Announce to the other members that this worker has finished."""
        self.do(self.session.finish, "shutdown")

    def is_idle(self) -> bool:
        """Return True if no call of this worker and no request to it is in flight."""
        return not self._pending and not self._jobs

    def missing(self) -> tuple[str, ...]:
        """Return the names of members that have not announced their end.

        A group without a fixed size does not wait, so the result is empty.
        """
        if not self.is_static:
            return ()
        return tuple(self.do(lambda _: self.session.unfinished(), "shutdown"))

    def close(self) -> None:
        """Leave the group and end every thread; pending calls fail.  Idempotent.

        The keeper of a group first waits, for a short time, until all members know that
        the group is complete: without the keeper they would wait for each other.
        """
        try:
            if self.completed:
                self.wait_until(self._has_announced, _ANNOUNCE_SECONDS)
        finally:
            self._close()

    def _close(self) -> None:
        with suppress(NotInitialized):
            self.do(self.session.leave, "shutdown")
        self.end("it was shut down")
        # Complete the futures before their threads end.
        self.wait_until(self._is_drained, LOOK_SECONDS * 10)
        self.log_unread()
        for handle in [*self.handles.values()]:
            handle.death = handle.death or DELETED
        self.transport.close()
        self.pool.close()
        self.lending.close()

    def _has_announced(self) -> bool:
        try:
            return not self.do(lambda _: self.session.is_announcing(), "shutdown")
        except NotInitialized:
            return True

    def _is_drained(self) -> bool:
        return not (self._events or self._answers or self._reading)

    def debug_info(self) -> dict[str, int]:
        """Return counts of calls, references and threads, for debugging."""
        threads, idle, waiting = self.pool.counts()
        counts = {} if self.ended else self.do(lambda _: self.session.counts(), "debug")
        apart = len(self._jobs) - (threads - idle) - waiting
        return {
            **counts,
            # The names that `torch.distributed.rpc` uses.
            "num_forks": counts.get("forks", 0),
            "num_pending_users": counts.get("pending", 0),
            "num_owner_rrefs": len(self._owned),
            "num_pending_futures": sum(
                not value.done() for value in [*self._owned.values()]
            ),
            "agent.client_active_calls": len(self._pending),
            "agent.server_active_calls": len(self._jobs),
            "agent.server_active_async_calls": max(apart, 0),
            "agent.thread_pool_size": threads,
            "agent.num_idle_threads": idle,
            "agent.waiting_requests": waiting,
        }
