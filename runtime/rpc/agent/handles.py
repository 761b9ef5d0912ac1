"""Handles: what an agent knows of a reference; answers: what a call of ours waits for.

    Handle       a reference of this worker, for whoever shows it to programs
    References   those of one message, on their way out or in
    Pending      a call of ours without an answer
    failure      which error stands for which reason of a session

This is the border between references as programs have them and the session, which keeps
their owners and users.  The class of references installs itself by
`set_reference_class`, so that values can be searched for it.

Rules: a reference has one handle, which is dropped when the reference is; a handle
gives one thing back, once: the fork that it stands for, or one hold of the owner on its
own value; `drop` takes no lock and may be called by a finalizer.
"""

from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any

from runtime.errors.rpc import (
    PayloadTooLarge,
    ReferenceDead,
    RpcError,
    RpcMisuse,
    RpcTimeout,
    WorkerLost,
)
from runtime.futures import Future
from runtime.rpc.agent.threads import WAITS
from runtime.rpc.identities import Fork, ForkId, Node, RRefId
from runtime.rpc.session.events import Answered, Failed, Reason

if TYPE_CHECKING:
    from runtime.rpc.agent.agent import Agent


# Why references are dead, as far as no peer is to blame for it.
NOT_CREATED = (
    "RRef creation by `remote` did not end in time or was not sent, and the value may "
    "not exist on its owner"
)
LOST = "its owner cannot be reached: {reason}"
DELETED = "it has been deleted, as its worker was shut down"


class Handle:
    """One reference of this worker.

    `fork` names it; `owner` has the value.  `value` is the future of the value on its
    owner, None elsewhere.  `created` is complete when the call that creates the value
    was answered, with its error if it was not.
    """

    __slots__ = (
        "_dropped",
        "_own",
        "agent",
        "confirmed",
        "created",
        "creation",
        "death",
        "fork",
        "value",
    )

    def __init__(
        self,
        agent: "Agent",
        fork: Fork,
        *,
        own: bool = False,
        value: Future[Any] | None = None,
        created: Future[None] | None = None,
    ) -> None:
        self.agent = agent
        self.fork = fork
        # Whether it is a hold of the owner, and no fork.
        self._own = own
        self.value = value
        self.confirmed = created is None
        if created is None:
            created = Future()
            created.set_result(None)
        self.created = created
        # The call that creates it, until that has its end.
        self.creation: Pending | None = None
        # Why it is worth nothing; "" as long as it is.
        self.death = ""
        self._dropped = False

    @property
    def owner(self) -> Node:
        """The worker that has the value."""
        return self.fork.owner

    @property
    def is_owner(self) -> bool:
        """Whether this worker has the value."""
        return self.value is not None

    def check(self, call: str) -> None:
        """Refuse `call` if the reference is dead.

        Raises:
            ReferenceDead: it is.
        """
        if self.death:
            raise ReferenceDead(call=call, reference=self.text(), reason=self.death)

    def runs_nothing(self) -> bool:
        """Whether it may be dropped anywhere: nothing of anybody is dropped with it."""
        created = self.created
        return self.value is None and created.done() and created.error() is None

    def text(self) -> str:
        """The reference, for texts."""
        if self.is_owner:
            return f"OwnerRRef({self.fork.rref})"
        return f"UserRRef(rref_id={self.fork.rref}, fork_id={self.fork.fork})"

    def drop(self) -> None:
        """Give the reference back, from wherever this is called; once."""
        if not self._dropped:
            self._dropped = True
            self.agent.let_go.append(self)

    def carried(self) -> Fork | RRefId:
        """What a message carries that has this reference.

        Raises:
            ReferenceDead: it is dead.
        """
        self.check("the call that it is sent with")
        return self.fork.rref if self._own else self.fork

    def given_back(self) -> tuple[bool, ForkId]:
        """Whether it is a hold of the owner, and which value or fork is given back."""
        return self._own, self.fork.rref if self._own else self.fork.fork


Make = Callable[[Handle], Any]
Find = Callable[[Any], Handle | None]


def _itself(handle: Handle) -> Any:
    return handle


def _is_one(value: Any) -> Handle | None:
    return value if isinstance(value, Handle) else None


class _Class:
    """How references are made of handles, and handles found in references."""

    make: Make = staticmethod(_itself)
    find: Find = staticmethod(_is_one)


def set_reference_class(make: Make, find: Find, kind: type) -> None:
    """Have references, which are of `kind`, made by `make`; `find` gives the handle."""
    _Class.make = staticmethod(make)
    _Class.find = staticmethod(find)
    References.kinds = (kind, Handle)


class References:
    """The references of one worker, for who packs values and unpacks them."""

    # The classes of references.
    kinds: tuple[type, ...] = (Handle,)

    def __init__(self, agent: "Agent") -> None:
        self._agent = agent

    def carry(self, reference: Any) -> Fork | RRefId:
        """What a session is told of a reference that leaves.

        Raises:
            ReferenceDead: it is dead.
            RpcMisuse: it is one of another worker of this process.
        """
        handle = _is_one(reference) or _Class.find(reference)
        assert handle is not None, "it is of a class of references"
        if handle.agent is not self._agent:
            ended = ", which has stopped" if handle.agent.ended else ""
            raise RpcMisuse(
                code="RpcMisuse",
                call="pack",
                found=f"a reference of the worker `{handle.agent.info.name}`{ended}",
                wanted=f"references of `{self._agent.info.name}`, which sends them",
            )
        return handle.carried()

    def receive(self, carried: Any) -> Any:
        """The reference that a session told of; it is given back when it is dropped."""
        return _Class.make(self._agent.handle(carried))

    def arriving(self, carries: Sequence[Fork]) -> "Arriving":
        """The references of one message."""
        return Arriving(self._agent, carries)


class Arriving(References):
    """The references of one message, each of which is received or given back."""

    def __init__(self, agent: "Agent", carries: Sequence[Fork]) -> None:
        super().__init__(agent)
        self._left = {fork.fork: fork for fork in carries}

    def receive(self, carried: Any) -> Any:
        """As `References.receive`; each once."""
        del self._left[carried.fork]
        return super().receive(carried)

    def give_back(self) -> None:
        """Give back what was not received."""
        for fork in self._left.values():
            self._agent.handle(fork).drop()
        self._left.clear()


# Seconds after which Ctrl-C is heard in any case.
SLICE = 1.0


class Pending:
    """A call of ours without an answer; `name()` is what is called, for texts.

    One of three gets the answer: `future`, the `handle` of a reference, or `waiter`, of
    a thread that waits and reads it.  `target` is whose value is fetched; `early` are
    of threads that wait for what `handle` stands for, `maker` is who makes it.
    """

    __slots__ = (
        "early",
        "future",
        "handle",
        "maker",
        "name",
        "raw",
        "seconds",
        "target",
        "to",
        "until",
        "waiter",
    )

    def __init__(
        self, to: Node, name: Callable[[], str], seconds: float | None
    ) -> None:
        self.to = to
        self.name = name
        self.seconds = seconds
        self.future: Future[Any] | None = None
        self.handle: Handle | None = None
        self.target: Handle | None = None
        self.waiter: SimpleQueue[Answered | Failed] | None = None
        self.early: list[SimpleQueue[Answered | Failed]] = []
        self.maker = 0
        # When it is too late, if that is not so many seconds from now.
        self.until: float | None = None
        # Whether the answer is a payload, and no value.
        self.raw = False


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


def failure(pending: Pending, event: Failed) -> RpcError:
    """The error of a call that has no answer."""
    name, worker, detail = pending.name(), pending.to.name, event.detail
    if event.reason is Reason.DEADLINE:
        milliseconds = round((pending.seconds or 0.0) * 1000)
        return RpcTimeout(
            code="RpcTimeout", call=name, worker=worker, milliseconds=milliseconds
        )
    if event.reason is Reason.TOO_LARGE:
        return PayloadTooLarge(call=name, worker=worker, detail=detail)
    if event.reason is Reason.REFERENCE:
        reference = detail or "(one that was sent)"
        reason = event.reason.value
        target = pending.target
        if target is not None:
            reference = target.text()
            reason = target.death or ("it is gone" if target.confirmed else NOT_CREATED)
        return ReferenceDead(call=name, reference=reference, reason=reason)
    reason = event.reason.value + (f" ({detail})" if detail else "")
    return WorkerLost(call=name, worker=worker, reason=reason)
