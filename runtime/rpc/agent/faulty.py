"""Faulty agents: a backend for tests, whose messages fail or come late by their names.

The names by which faults are asked for are those of `torch.distributed`:

    control messages   RREF_FORK_REQUEST, RREF_CHILD_ACCEPT, RREF_USER_DELETE: the first
                       packets with one are lost; it is sent again until it arrives
    calls              PYTHON_CALL, SCRIPT_CALL, PYTHON_REMOTE_CALL, SCRIPT_REMOTE_CALL,
                       PYTHON_RREF_FETCH_CALL, SCRIPT_RREF_FETCH_CALL: the first
                       attempts fail at the caller, and are not made again

A delay is one at the callee: a request of that name waits so long before it is looked
at.  SCRIPT stands for what is called by a name: operators and compiled functions; a
fetch does not say what made the value, and has both names.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Timer
from typing import Any

from runtime.errors.rpc import RpcMisuse, SentInVain
from runtime.futures import Future
from runtime.rpc.agent.agent import Agent
from runtime.rpc.agent.handles import NOT_CREATED, Handle
from runtime.rpc.agent.joining import join, meeting
from runtime.rpc.agent.options import RpcBackendOptions, register_backend
from runtime.rpc.agent.requests import Job, Request, serve
from runtime.rpc.agent.threads import Seat, seat
from runtime.rpc.identities import Fork, Node
from runtime.rpc.session.events import Called
from runtime.rpc.session.packets import message_name
from runtime.rpc.session.session import Session
from runtime.rpc.transport import FaultyTransport, Transport
from runtime.rpc.values.callables import PYTHON, call_of
from runtime.rpc.values.payload import RESTRICTED

FAULTY_BACKEND = "FAULTY_TENSORPIPE"

# The messages of a session; there are no contexts of autograd to clean up.
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
                    code="RpcMisuse",
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
                    code="RpcMisuse",
                    call="FaultyOptions",
                    found=f"a delay for the control message {name}",
                    wanted=f"delays of requests: {', '.join(sorted(_CALLS))}",
                )
            if seconds < 0:
                raise RpcMisuse(
                    code="RpcMisuse",
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
        sits: Seat,
    ) -> None:
        super().__init__(session, transport, options, sits)
        assert isinstance(options, FaultyOptions), "its backend makes them"
        self._faults = options
        self._failed: Counter[object] = Counter()

    def call(self, to: Node, request: Request, *, timeout: float | None) -> Future[Any]:
        """As `Agent.call`, unless the attempt is to fail."""
        error = self._fault("CALL", to, request)
        if error is None:
            return super().call(to, request, timeout=timeout)
        future: Future[Any] = Future()
        future.set_exception(error)
        return future

    def call_and_wait(
        self, to: Node, request: Request, *, timeout: float | None
    ) -> Any:
        """As `Agent.call_and_wait`, unless the attempt is to fail."""
        error = self._fault("CALL", to, request)
        if error is not None:
            raise error
        return super().call_and_wait(to, request, timeout=timeout)

    def remote(self, to: Node, request: Request, *, timeout: float | None) -> Handle:
        """As `Agent.remote`; a creation that is to fail gives a dead reference."""
        error = self._fault("REMOTE_CALL", to, request)
        if error is None:
            return super().remote(to, request, timeout=timeout)
        name = self.do(lambda _: self.session.new_id(), "remote")
        created: Future[None] = Future()
        created.set_exception(error)
        handle = Handle(self, Fork(name, name, to), created=created)
        handle.death = NOT_CREATED
        return handle

    def fetch(self, handle: Handle, *, timeout: float | None) -> Future[Any]:
        """As `Agent.fetch`, unless the attempt is to fail."""
        handle.check("to_here")
        for name in _FETCHES:
            if not handle.is_owner and self._is_to_fail(name, handle.fork):
                future: Future[Any] = Future()
                future.set_exception(SentInVain(message=name, call="to_here"))
                return future
        return super().fetch(handle, timeout=timeout)

    def fetch_and_wait(self, handle: Handle, *, timeout: float | None) -> Any:
        """As `Agent.fetch_and_wait`, unless the attempt is to fail."""
        return self.fetch(handle, timeout=timeout).wait()

    def loses(self, _endpoint: str, frames: Sequence[Any]) -> bool:
        """Whether a packet is lost: one with a control message that is to fail."""
        found = message_name(frames)
        return any(
            found and _CONTROL.get(name) == found and self._counted(name, frames[0])
            for name in self._faults.messages_to_fail
        )

    def _fault(self, what: str, to: Node, request: Request) -> SentInVain | None:
        kind = call_of(request.function, request.args, request.kwargs).kind
        name = f"{'PYTHON' if kind == PYTHON else 'SCRIPT'}_{what}"
        if self._is_to_fail(name, (to, repr(request))):
            return SentInVain(message=name, call=request.text())
        return None

    def _is_to_fail(self, name: str, what: object) -> bool:
        return name in self._faults.messages_to_fail and self._counted(name, what)

    def _counted(self, name: str, what: object) -> bool:
        """Whether this attempt is one of the first ones."""
        if isinstance(what, bytes | bytearray | memoryview):
            # What is behind the header: that tells who has heard what by now.
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
    where = meeting(rpc_backend_options.init_method, rank, world_size)
    wrapped: list[FaultyTransport] = []

    def wrap(transport: Transport) -> Transport:
        wrapped.append(FaultyTransport(transport))
        return wrapped[-1]

    def make(
        session: Session, transport: Transport, options: RpcBackendOptions, sits: Seat
    ) -> Agent:
        agent = FaultyAgent(session, transport, options, sits)
        wrapped[-1].fail = agent.loses
        return agent

    return join(name, where, rpc_backend_options, seat(), make=make, wrap=wrap)


register_backend(FAULTY_BACKEND, FaultyOptions, start)
