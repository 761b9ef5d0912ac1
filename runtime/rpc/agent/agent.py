"""Agents: one worker, as everybody above sees it: values go in and out.

Here is what becomes of calls, references and members; how the session is told and
listened to is `speaking`.

    call, call_and_wait   another worker runs a function; its result comes here
    remote, fetch         its result stays there; a copy of it is fetched
    own, handle           references that begin here, or came with a message (`holding`)
    reply                 what somebody asked of this worker is answered

Rules:
- a mistake in a call is raised at the caller, and nothing is sent;
- each call ends once: by its answer, or by an error that says why there is none;
- answers are read, and futures completed, by the thread that waits (`holding`), or on
  request threads, others where these are busy; callbacks run there, too, and may wait;
- with too many calls in flight the caller waits; functions that run for others do not:
  what they call may be what the others wait for.
"""

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from logging import getLogger
from queue import SimpleQueue
from time import monotonic
from typing import Any

from runtime.errors.rpc import NotInitialized, RpcMisuse, UnknownWorker
from runtime.futures import Future
from runtime.futures.settling import Error, Outcome, Value
from runtime.rpc.agent.handles import (
    DELETED,
    NOT_CREATED,
    Handle,
    Pending,
    References,
    failure,
    wait_for,
)
from runtime.rpc.agent.holding import Holding, is_plain, is_short
from runtime.rpc.agent.lending import Lending
from runtime.rpc.agent.options import RpcBackendOptions
from runtime.rpc.agent.requests import Codec, Job, Request, fetch, serve, waits_to_fetch
from runtime.rpc.agent.speaking import LOOK_SECONDS
from runtime.rpc.agent.threads import Seat
from runtime.rpc.identities import Fork, Node, RRefId, WorkerInfo
from runtime.rpc.session.events import (
    Admitted,
    Answered,
    Buffer,
    Called,
    Cancelled,
    Event,
    Failed,
    Finished,
    Joined,
    Lost,
    Payload,
    Reason,
    Rejected,
    Warned,
)
from runtime.rpc.session.session import Session
from runtime.rpc.transport import Link, LinkState, Transport
from runtime.rpc.values import Packed

LOG = getLogger("runtime.rpc")


def _complete(told: tuple[Future[Any], Outcome]) -> None:
    future, outcome = told
    if isinstance(outcome, Value):
        future.set_result(outcome.value)
    else:
        future.set_error_if_needed(outcome.error)


class Agent(Holding):
    """A worker: calls others, and does what others ask of it.

    `node` is its life as a member, as soon as it is one; `seat` is where its request
    threads sit.
    """

    def __init__(
        self,
        session: Session,
        transport: Transport,
        options: RpcBackendOptions,
        seat: Seat,
    ) -> None:
        super().__init__(
            session,
            transport,
            options.num_worker_threads,
            seat,
            most=options.max_calls_in_flight,
        )
        self.options = options
        # Of calls that name none, in seconds.
        self.rpc_timeout = options.rpc_timeout
        self.codec = Codec(References(self), registered_only=options.registered_only)
        self.lending = Lending(
            self, wanted=options.shared_memory, largest=options.settings.largest
        )
        # Who does not trust this worker, and what was wrong with packets that came.
        self.refused: set[str] = set()
        self.complaints: list[str] = []
        self.admitted: Admitted | None = None
        self.rejected: Rejected | None = None
        self.finished = False
        self._jobs: dict[tuple[Node, int], Job] = {}
        self._answers: deque[tuple[Pending, Answered | Failed]] = deque()
        self._settling = False
        self._nodes: dict[str | int, Node] = {}
        self._endpoints: dict[Node, str] = {}
        self.handlers |= {
            Called: self._called,
            Answered: self._answered,
            Failed: self._answered,
            Cancelled: self._cancelled,
            Joined: self._joined,
            Lost: self._lost,
            Admitted: self._admitted,
            Rejected: self._rejected,
            Finished: self._finished,
            Warned: self._warned,
        }

    # Who is there --------------------------------------------------------------------

    @property
    def info(self) -> WorkerInfo:
        """This worker, as programs know it."""
        return self.session.node.info

    def nodes(self) -> list[Node]:
        """The members, in the order of their ids."""
        named = (node for key, node in [*self._nodes.items()] if isinstance(key, str))
        return sorted(named, key=lambda node: node.id)

    def find(self, to: str | int | WorkerInfo) -> Node:
        """The member of a name, of an id, or of both.

        Raises:
            UnknownWorker: there is none.
            RpcMisuse: it is neither.
        """
        if isinstance(to, WorkerInfo):
            node = self._nodes.get(to.name)
            if node is not None and node.id == to.id:
                return node
            found = f"{to.name}, id {to.id}"
        elif isinstance(to, str | int) and not isinstance(to, bool):
            node = self._nodes.get(to)
            if node is not None:
                return node
            found = f"name {to}" if isinstance(to, str) else f"id {to}"
        else:
            raise RpcMisuse(
                code="RpcMisuse",
                call="to",
                found=f"the worker {to!r}: Cannot get WorkerInfo from name {to!r}",
                wanted="a name, an id, or a WorkerInfo",
            )
        names = [node.name for node in self.nodes()]
        near = get_close_matches(str(to), names) if isinstance(to, str) else names
        raise UnknownWorker(worker=self.name, found=found, near=tuple(near[:8]))

    # Calls ---------------------------------------------------------------------------

    def call(self, to: Node, request: Request, *, timeout: float | None) -> Future[Any]:
        """A future of what a function gives on another worker; `timeout` in seconds.

        None is for ever.  It is completed on a request thread, and so are callbacks.

        Raises:
            NotInitialized: this worker has stopped.
            RpcError, Exception: the request cannot be written.
        """
        pending = Pending(to, request.text, timeout)
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
        return self._awaited(Pending(to, request.text, timeout), *self._packed(request))

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
        pending = Pending(handle.owner, lambda: "to_here", timeout)
        pending.target = handle
        pending.until = until
        return self._awaited(pending, (b"",), (), handle.fork.rref)

    def _awaited(
        self,
        pending: Pending,
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
        pending = Pending(to, request.text, timeout)
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
        pending = Pending(handle.owner, lambda: "to_here", timeout)
        pending.target = handle
        future: Future[Any] = Future()
        pending.future = future
        self._ask(pending, (b"",), (), target=handle.fork.rref)
        return future

    def _packed(self, request: Request) -> Packed:
        return self.codec.pack_request(request.function, request.args, request.kwargs)

    def _ask(
        self,
        pending: Pending,
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
        pending = Pending(to, lambda: "a request about memory", None)
        pending.raw = True
        future: Future[Payload] = Future()
        pending.future = future
        try:
            self._ask(pending, (said,), ())
        except NotInitialized as error:
            future.set_error_if_needed(error)
        return future

    def _return(self, pending: Pending, event: Answered | Failed) -> None:
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

    # Answers to others ---------------------------------------------------------------

    def reply(
        self,
        job: Job,
        payload: Sequence[Buffer],
        carries: Sequence[Fork | RRefId],
        failed: bool,
    ) -> None:
        """Send the answer to a request; the first one counts."""
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

    # What the session tells ----------------------------------------------------------

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
            # No other thread is woken for what is there, or will come.
            if is_plain(value) and is_short(value.value()):
                fetch(job)
                return
            if waits_to_fetch(job):
                return
        if not self.stays_behind(serve, job):
            self.pool.put(serve, job)

    def _cancelled(self, event: Cancelled) -> None:
        job = self._jobs.get((event.peer, event.call))
        if job is not None:
            job.cancelled = True

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
                self.pool.put_own(Agent._settle, self)

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

    def _read(self, pending: Pending, event: Answered | Failed) -> Any:
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

    def _joined(self, event: Joined) -> None:
        endpoint = self.session.endpoint_of(event.node)
        if endpoint:
            self._endpoints[event.node] = endpoint
        self._nodes[event.node.name] = self._nodes[event.node.id] = event.node
        self.look()

    def _lost(self, event: Lost) -> None:
        self.lending.lost(event.node)
        endpoint = self._endpoints.pop(event.node, "")
        if endpoint and endpoint not in self._endpoints.values():
            # Nobody is to be tried to be reached there for ever.
            self.transport.forget(endpoint)
        for key in (event.node.name, event.node.id):
            if self._nodes.get(key) == event.node:
                del self._nodes[key]
        self.look()

    def _admitted(self, event: Admitted) -> None:
        node = event.node
        self._nodes[node.name] = self._nodes[node.id] = node
        self.admitted = event
        self.look()

    def _rejected(self, event: Rejected) -> None:
        self.rejected = event
        self.look()

    def _finished(self, _: Finished) -> None:
        self.finished = True
        self.look()

    def _warned(self, event: Warned) -> None:
        self.complaints.append(event.what)
        source = f" (from {event.source})" if event.source else ""
        LOG.info("%s dropped a packet: %s%s", self.name, event.what, source)

    def on_link(self, link: Link) -> None:
        """A link changed: who ended is given up; who joins is told why in vain."""
        if link.state is LinkState.ABSENT:
            if link.detail:
                # It may be this worker's own fault: of open files, there are too many.
                LOG.warning("%s loses %s: %s", self.name, link.endpoint, link.detail)
            with suppress(NotInitialized):
                self.do(
                    lambda now: self.session.unreachable(link.endpoint, now), "link"
                )
            if self.admitted and link.endpoint not in [*self._endpoints.values()]:
                # Who asked to join, and is no member, is not tried for ever.
                self.transport.forget(link.endpoint)
        elif link.state is LinkState.REFUSED:
            self.refused.add(link.endpoint)
            self.look()
            LOG.warning("%s and %s: %s", self.name, link.endpoint, link.state.value)
        elif link.state is LinkState.STRANGER:
            LOG.warning("%s: %s (key %s)", self.name, link.state.value, link.key)

    def ticked(self) -> None:
        """Have memory given back that nobody looks at any more."""
        if self.lending.has_returns():
            self.pool.put_own(Lending.give_back, self.lending)

    def last_events(self, why: str) -> list[Event]:
        """Every call that has no answer ends."""
        return [Failed(call, Reason.STOPPED, why) for call in [*self._pending]]

    # The end ------------------------------------------------------------------------

    @property
    def is_static(self) -> bool:
        """Whether the group has a size, and ends as one."""
        return self.admitted is not None and self.admitted.world_size is not None

    def finish(self) -> None:
        """Tell the others that this worker is done."""
        self.do(self.session.finish, "shutdown")

    def is_idle(self) -> bool:
        """Whether no call of this worker's, and none to it, is in flight."""
        return not self._pending and not self._jobs

    def missing(self) -> tuple[str, ...]:
        """Who is not done yet, as far as it is known here."""
        if not self.is_static:
            return ()
        return tuple(self.do(lambda _: self.session.unfinished(), "shutdown"))

    def close(self) -> None:
        """Leave, and end every thread; what waits fails.  Closed twice is closed."""
        with suppress(NotInitialized):
            self.do(self.session.leave, "shutdown")
        self.end("it was shut down")
        # Futures are completed before their threads end.
        self.wait_until(self._all_told, LOOK_SECONDS * 10)
        for handle in [*self.handles.values()]:
            handle.death = handle.death or DELETED
        self.transport.close()
        self.pool.close()
        self.lending.close()

    def _all_told(self) -> bool:
        return not (self._events or self._answers or self._settling)

    def debug_info(self) -> dict[str, int]:
        """Counts of what there is, for people."""
        threads, idle, waiting = self.pool.counts()
        counts = {} if self.ended else self.do(lambda _: self.session.counts(), "debug")
        apart = len(self._jobs) - (threads - idle) - waiting
        return {
            **counts,
            # As programs for torch call them.
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
