"""Agents: one worker, as everybody above sees it, and which one a thread speaks for.

    Seat, current_agent    where `init_rpc` puts a worker, and where everybody finds it
    Agent                  a worker: who else is there, and its end

What an agent does besides is in the chapters that its class is built of, each on the
one before it:

    driver        the session is told, and listened to
    references    handles, and values that stay here
    calls         what it asks of others
    requests      what others ask of it

Rules of seats: a seat holds one worker at a time.  A process has a seat; a thread may
have one of its own, and then is, with all that it calls, a worker beside others in the
same process.  Request threads sit where their worker sits; threads that a program
starts itself have the seat of the process, unless it passes its own on; a forked child
has no worker.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from difflib import get_close_matches
from logging import getLogger

from runtime.errors.rpc import NotInitialized, RpcMisuse
from runtime.rpc.agent.driver import LOOK_SECONDS, Parts
from runtime.rpc.agent.options import RpcBackendOptions
from runtime.rpc.agent.references import DELETED
from runtime.rpc.agent.requests import Server
from runtime.rpc.identities import Node, WorkerInfo
from runtime.rpc.session.events import (
    Admitted,
    Event,
    Failed,
    Finished,
    Joined,
    Lost,
    Reason,
    Rejected,
    Warned,
)
from runtime.rpc.session.session import Session
from runtime.rpc.transport import Link, LinkState, Transport
from runtime.rpc.transport.blocks import Lending

LOG = getLogger("runtime.rpc")


class Seat:
    """The place of one worker; `agent` is None where there is none."""

    __slots__ = ("__weakref__", "agent", "parent")

    def __init__(self) -> None:
        self.agent: Agent | None = None
        # The worker that sat here when this process was forked.
        self.parent = ""

    def sit(self) -> None:
        """Have this thread speak for whoever sits here, from now on."""
        _OWN.set(self)


_PROCESS = Seat()
_OWN: ContextVar[Seat | None] = ContextVar("runtime.rpc.seat", default=None)


def seat() -> Seat:
    """The seat of this thread."""
    return _OWN.get() or _PROCESS


def current_agent(call: str) -> "Agent":
    """The worker that this thread speaks for; `call` is what needs it.

    Raises:
        NotInitialized: there is none, or none any more.
    """
    own = _OWN.get() or _PROCESS
    agent = own.agent
    if agent is None:
        raise NotInitialized(call=call, parent=own.parent)
    return agent


def is_initialized() -> bool:
    """Whether this thread speaks for a worker."""
    return seat().agent is not None


@contextmanager
def seated(own: Seat | None = None) -> Iterator[Seat]:
    """Have this thread speak for a seat of its own while a block runs."""
    own = own or Seat()
    before = _OWN.set(own)
    try:
        yield own
    finally:
        _OWN.reset(before)


def _in_child() -> None:
    for own in (seat(), _PROCESS):
        if own.agent is not None:
            own.parent = own.agent.name
            own.agent = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


class Agent(Server):
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
        super().__init__(Parts(session, transport, options, seat.sit))
        self.seat = seat
        # Of calls that name none, in seconds.
        self.rpc_timeout = options.rpc_timeout
        # Who does not trust this worker, and what was wrong with packets that came.
        self.refused: set[str] = set()
        self.complaints: list[str] = []
        self.admitted: Admitted | None = None
        self.rejected: Rejected | None = None
        self.finished = False
        self._nodes: dict[str | int, Node] = {}
        self._endpoints: dict[Node, str] = {}
        self.handlers |= {
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
            RpcMisuse: there is none.
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
        raise RpcMisuse(
            code="UnknownWorker", worker=self.name, found=found, near=tuple(near[:8])
        )

    # What the session tells ----------------------------------------------------------

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
