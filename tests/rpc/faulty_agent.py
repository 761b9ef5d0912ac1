"""Faulty agents: a backend for tests, whose messages fail or are late by their names.

The names of messages are those of `torch.distributed`:

    control messages   RREF_FORK_REQUEST, RREF_CHILD_ACCEPT, RREF_USER_DELETE: the first
                       packets with one are lost; it is sent again until it arrives
    calls              PYTHON_CALL, SCRIPT_CALL, PYTHON_REMOTE_CALL, SCRIPT_REMOTE_CALL,
                       PYTHON_RREF_FETCH_CALL, SCRIPT_RREF_FETCH_CALL: the first
                       attempts fail at the caller, and are not repeated

A delay is one at the callee: a request of that name waits so long before it is handled.
SCRIPT stands for calls by name, of operators and compiled functions; a fetch does not
say what made the value, and has both names.

`FaultyTransport` wraps another transport: packets that `fail` selects are lost, packets
that `delay` selects are late, and later packets overtake them.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from threading import Condition, Thread, Timer, current_thread
from time import monotonic
from typing import Any

from everyorder.runtime.errors.rpc import RpcMisuse, Unsendable
from everyorder.runtime.futures import Future
from everyorder.runtime.rpc.agent.agent import (
    Agent,
    Job,
    WorkerSlot,
    serve,
    worker_slot,
)
from everyorder.runtime.rpc.agent.options import RpcBackendOptions, register_backend
from everyorder.runtime.rpc.agent.owned_values import NOT_CREATED, ReferenceHandle
from everyorder.runtime.rpc.agent.pending_calls import CallRequest
from everyorder.runtime.rpc.agent.rendezvous import join, parse_init_method
from everyorder.runtime.rpc.codec.callables import PYTHON, call_of
from everyorder.runtime.rpc.codec.payload import RESTRICTED
from everyorder.runtime.rpc.protocol.events import Called
from everyorder.runtime.rpc.protocol.identities import Fork, WorkerNode
from everyorder.runtime.rpc.protocol.packets import message_name
from everyorder.runtime.rpc.protocol.session import Session
from everyorder.runtime.rpc.transport import Transport
from everyorder.runtime.rpc.transport.interface import Buffer

Fails = Callable[[str, Sequence[Buffer]], bool]
Delays = Callable[[str, Sequence[Buffer]], float]


def _never(_endpoint: str, _frames: Sequence[Buffer]) -> bool:
    return False


def _at_once(_endpoint: str, _frames: Sequence[Buffer]) -> float:
    return 0.0


class FaultyTransport:
    """A transport that loses and delays selected packets.

    `fail(endpoint, frames)` says whether a packet is lost; `delay(endpoint, frames)`
    how many seconds it waits before it leaves.  Both are called by whoever sends.
    """

    def __init__(
        self, inner: Transport, *, fail: Fails = _never, delay: Delays = _at_once
    ) -> None:
        self.endpoint, self.key, self.start = inner.endpoint, inner.key, inner.start
        self.wake_at, self.forget = inner.wake_at, inner.forget
        self.lead, self.leads = inner.lead, inner.leads
        self.nudge, self.yields = inner.nudge, inner.yields
        self.fail = fail
        self.delay = delay
        self._inner = inner
        self._lost = 0
        self._late: list[tuple[float, int, str, list[Buffer]]] = []
        self._changed = Condition()
        self._numbers = count()
        self._thread: Thread | None = None
        self._closed = False

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

    def alive(self) -> dict[str, float]:
        """Nothing: packets alone tell who lives."""
        return {}

    def counts(self) -> dict[str, int]:
        """As `Transport.counts`, and how many were `failed` on purpose."""
        return {**self._inner.counts(), "failed": self._lost}

    def close(self, linger: float = 1.0) -> None:
        """As `Transport.close`; delayed packets are lost."""
        with self._changed:
            self._closed = True
            self._late.clear()
            self._changed.notify()
            thread = self._thread
        if thread is not None and thread is not current_thread():
            thread.join(linger + 1)
        self._inner.close(linger)

    def _later(self) -> None:
        """Send delayed packets when they are due."""
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


FAULTY_BACKEND = "FAULTY_TENSORPIPE"

# The session's names of these messages; there are no contexts of autograd to clean up.
_CONTROL = {
    "RREF_FORK_REQUEST": "Register",
    "RREF_CHILD_ACCEPT": "Accept",
    "RREF_USER_DELETE": "Delete",
    "CLEANUP_AUTOGRAD_CONTEXT_REQ": "",
}
_CALLS = frozenset(
    f"{how}_{what}"
    for how in ("PYTHON", "SCRIPT")
    for what in ("CALL", "REMOTE_CALL", "RREF_FETCH_CALL")
)

# A fetch does not say what made the value.
_FETCHES = ("PYTHON_RREF_FETCH_CALL", "SCRIPT_RREF_FETCH_CALL")


@dataclass(slots=True)
class FaultyOptions(RpcBackendOptions):
    """Options of a worker whose messages fail or come late.

    The first `num_fail_sends` attempts to send a message of `messages_to_fail` fail;
    requests of `messages_to_delay` are looked at so many seconds later.

    Raises:
        RpcMisuse: a name that no message has, or a delay that is negative, or one of
            a control message.
    """

    messages_to_fail: Sequence[str] = ()
    messages_to_delay: Mapping[str, float] = field(default_factory=dict)
    num_fail_sends: int = 0

    def __post_init__(self) -> None:
        # With slots the class is made anew, and `super()` is of the old one.
        RpcBackendOptions.__post_init__(self)
        for name in (*self.messages_to_fail, *self.messages_to_delay):
            if name not in _CONTROL and name not in _CALLS:
                raise RpcMisuse(
                    call="FaultyOptions",
                    found=f"{name!r}",
                    wanted=(
                        f"names of messages: No mapping to rpc::MessageType exists "
                        f"for {name}; there are {', '.join(sorted(_CALLS))}, "
                        f"{', '.join(_CONTROL)}"
                    ),
                )
        for name, seconds in self.messages_to_delay.items():
            if name in _CONTROL:
                raise RpcMisuse(
                    call="FaultyOptions",
                    found=f"a delay for the control message {name}",
                    wanted=f"delays of requests: {', '.join(sorted(_CALLS))}",
                )
            if seconds < 0:
                raise RpcMisuse(
                    call="FaultyOptions",
                    found=f"a delay of {seconds} for {name}",
                    wanted="seconds: Delays passed to it must be non-negative",
                )


class FaultyAgent(Agent):
    """A worker whose messages fail or come late, as its options say."""

    def __init__(
        self,
        session: Session,
        transport: Transport,
        options: RpcBackendOptions,
        slot: WorkerSlot,
    ) -> None:
        super().__init__(session, transport, options, slot)
        assert isinstance(options, FaultyOptions), "its backend makes them"
        self._faults = options
        self._failed: Counter[object] = Counter()

    def call(
        self, to: WorkerNode, request: CallRequest, *, timeout: float | None
    ) -> Future[Any]:
        """As `Agent.call`, unless the attempt is to fail."""
        error = self._fault("CALL", to, request)
        if error is None:
            return super().call(to, request, timeout=timeout)
        future: Future[Any] = Future()
        future.set_exception(error)
        return future

    def call_and_wait(
        self, to: WorkerNode, request: CallRequest, *, timeout: float | None
    ) -> Any:
        """As `Agent.call_and_wait`, unless the attempt is to fail."""
        error = self._fault("CALL", to, request)
        if error is not None:
            raise error
        return super().call_and_wait(to, request, timeout=timeout)

    def remote(
        self, to: WorkerNode, request: CallRequest, *, timeout: float | None
    ) -> ReferenceHandle:
        """As `Agent.remote`; a creation that is to fail gives a dead reference."""
        error = self._fault("REMOTE_CALL", to, request)
        if error is None:
            return super().remote(to, request, timeout=timeout)
        name = self.do(lambda _: self.session.new_id(), "remote")
        created: Future[None] = Future()
        created.set_exception(error)
        handle = ReferenceHandle(self, Fork(name, name, to), created=created)
        handle.death = NOT_CREATED
        return handle

    def fetch(self, handle: ReferenceHandle, *, timeout: float | None) -> Future[Any]:
        """As `Agent.fetch`, unless the attempt is to fail."""
        handle.check("to_here")
        for name in _FETCHES:
            if not handle.is_owner and self._is_to_fail(name, handle.fork):
                future: Future[Any] = Future()
                future.set_exception(
                    Unsendable(code="SentInVain", message=name, call="to_here")
                )
                return future
        return super().fetch(handle, timeout=timeout)

    def fetch_and_wait(self, handle: ReferenceHandle, *, timeout: float | None) -> Any:
        """As `Agent.fetch_and_wait`, unless the attempt is to fail."""
        return self.fetch(handle, timeout=timeout).wait()

    def loses(self, _endpoint: str, frames: Sequence[Any]) -> bool:
        """Whether a packet is lost: one with a control message that is to fail."""
        found = message_name(frames)
        return any(
            found and _CONTROL.get(name) == found and self._counted(name, frames[0])
            for name in self._faults.messages_to_fail
        )

    def _fault(
        self, what: str, to: WorkerNode, request: CallRequest
    ) -> Unsendable | None:
        kind = call_of(request.function, request.args, request.kwargs).kind
        name = f"{'PYTHON' if kind == PYTHON else 'SCRIPT'}_{what}"
        if self._is_to_fail(name, (to, repr(request))):
            return Unsendable(code="SentInVain", message=name, call=request.text())
        return None

    def _is_to_fail(self, name: str, what: object) -> bool:
        return name in self._faults.messages_to_fail and self._counted(name, what)

    def _counted(self, name: str, what: object) -> bool:
        """Whether this attempt is one of the first ones."""
        if isinstance(what, bytes | bytearray | memoryview):
            # The body: headers differ by sequences and acknowledgements.
            what = bytes(what)[-16:]
        self._failed[name, what] += 1
        return self._failed[name, what] <= self._faults.num_fail_sends

    def _begin(self, job: Job) -> None:
        delays = self._faults.messages_to_delay
        seconds = max(delays.get(name, 0.0) for name in _names(job.called))
        if not seconds:
            super()._begin(job)
            return
        timer = Timer(seconds, self.pool.put, (serve, job))
        timer.daemon = True
        timer.start()


def _names(called: Called) -> tuple[str, ...]:
    """How a request may be called that came in; one for a value has both names."""
    if called.target is not None:
        return _FETCHES
    named = called.payload and memoryview(called.payload[0])[-1] == RESTRICTED
    what = "CALL" if called.creates is None else "REMOTE_CALL"
    return (f"{'SCRIPT' if named else 'PYTHON'}_{what}",)


def start(
    name: str,
    rank: int,
    world_size: int | None,
    rpc_backend_options: FaultyOptions,
) -> Agent:
    """A worker of this backend."""
    where = parse_init_method(rpc_backend_options.init_method, rank, world_size)
    wrapped: list[FaultyTransport] = []

    def wrap(transport: Transport) -> Transport:
        wrapped.append(FaultyTransport(transport))
        return wrapped[-1]

    def make(
        session: Session,
        transport: Transport,
        options: RpcBackendOptions,
        slot: WorkerSlot,
    ) -> Agent:
        agent = FaultyAgent(session, transport, options, slot)
        wrapped[-1].fail = agent.loses
        return agent

    return join(name, where, rpc_backend_options, worker_slot(), make=make, wrap=wrap)


register_backend(FAULTY_BACKEND, FaultyOptions, start)
