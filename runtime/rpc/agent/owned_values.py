"""References of a worker, and the values that it stores for other workers.

    ReferenceHandle     a reference of this worker, behind the object of the program
    MessageReferences   the references of one message that is sent or received
    Codec               requests and answers as payloads, with their references
    ReferenceHolder     a worker with handles and owned values

The session tracks the owners and users of values; this module maps its forks to handles
and its values to futures.

Rules of references:
- a reference has one handle, which is dropped with the reference; a handle releases one
  thing, once: its fork, or one hold of the owner on the value; `drop` does not lock and
  may be called by a finalizer;
- every reference of a received message is received, or dropped, also if the message
  cannot be read;
- a reference that dies before its handle exists is dead when the handle is created.

Rules of values: a value that stays here is stored, by `remote` or `RRef`, from the
moment that its id is known until the session reports that it is free; a request thread
drops it, outside of all locks.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from everyorder.runtime.base.hooks import Hook
from everyorder.runtime.errors.rpc import ReferenceDead, RpcMisuse
from everyorder.runtime.futures import Future
from everyorder.runtime.rpc.agent.driver import Components, Driver
from everyorder.runtime.rpc.codec import Packed, unpack
from everyorder.runtime.rpc.codec.callables import (
    Invocation,
    call_of,
    pack_call,
    pack_result,
    unpack_call,
)
from everyorder.runtime.rpc.codec.remote_errors import unpack_error
from everyorder.runtime.rpc.protocol.events import (
    Confirmed,
    Died,
    Freed,
    Payload,
    Reason,
)
from everyorder.runtime.rpc.protocol.identities import Fork, ForkId, RRefId, WorkerNode

T = TypeVar("T")

# Reasons why a reference is dead.
NOT_CREATED = (
    "RRef creation by `remote` did not end in time or was not sent, and the value may "
    "not exist on its owner"
)
LOST = "its owner cannot be reached: {reason}"
DELETED = "it has been deleted, as its worker was shut down"


class ReferenceHandle:
    """One reference of this worker.

    `fork` identifies it; `owner` has the value.  `value` is the future of the value on
    its owner, None elsewhere.  `created` completes when the call that creates the value
    is answered; it has the error of a failed call.
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
        agent: "ReferenceHolder",
        fork: Fork,
        *,
        own: bool = False,
        value: Future[Any] | None = None,
        created: Future[None] | None = None,
    ) -> None:
        self.agent = agent
        self.fork = fork
        # True for a hold of the owner, False for a fork.
        self._own = own
        self.value = value
        self.confirmed = created is None
        if created is None:
            created = Future()
            created.set_result(None)
        self.created = created
        # The call that creates the value, until that call ends.
        self.creation: Any = None
        # Reason why the reference is dead; "" while it is alive.
        self.death = ""
        self._dropped = False

    @property
    def owner(self) -> WorkerNode:
        """Return the worker that has the value."""
        return self.fork.owner

    @property
    def is_owner(self) -> bool:
        """Return True if this worker has the value."""
        return self.value is not None

    def check(self, call: str) -> None:
        """Refuse `call` if the reference is dead.

        Raises:
            ReferenceDead: the reference is dead.
        """
        if self.death:
            raise ReferenceDead(call=call, reference=self.text(), reason=self.death)

    def runs_nothing(self) -> bool:
        """Return True if dropping the handle does not run code of users."""
        created = self.created
        return self.value is None and created.done() and created.error() is None

    def text(self) -> str:
        """Return the reference as text, for messages."""
        if self.is_owner:
            return f"OwnerRRef({self.fork.rref})"
        return f"UserRRef(rref_id={self.fork.rref}, fork_id={self.fork.fork})"

    def drop(self) -> None:
        """Release the reference once; from any thread or finalizer."""
        if not self._dropped:
            self._dropped = True
            self.agent.dropped.append(self)

    def carried(self) -> Fork | RRefId:
        """Return the id by which a message carries this reference.

        Raises:
            ReferenceDead: the reference is dead.
        """
        self.check("the call that it is sent with")
        return self.fork.rref if self._own else self.fork

    def released(self) -> tuple[bool, ForkId]:
        """Return (True, value id) for a hold of the owner, else (False, fork id)."""
        return self._own, self.fork.rref if self._own else self.fork.fork


class ReferenceClass(NamedTuple):
    """The class of references in programs: `kind`, which `make` builds of a handle.

    `find` returns the handle of such a reference, None for any other object.
    """

    kind: type
    make: Callable[[Any, ReferenceHandle], Any]
    find: Callable[[Any], ReferenceHandle | None]


# Asked by agents, answered by the names of users.
REFERENCE_CLASS: Hook[ReferenceClass] = Hook("the class of references in programs")


class MessageReferences:
    """The references of one message, for the codec that writes or reads its values.

    Each of `carries`, the forks of a received message, is received, or dropped by
    `drop_rest`.
    """

    def __init__(self, agent: "ReferenceHolder", carries: Sequence[Fork] = ()) -> None:
        self._agent = agent
        self._left = {fork.fork: fork for fork in carries}
        of_programs = REFERENCE_CLASS.answer
        # The classes that the codec treats as references.
        self.kinds: tuple[type, ...] = (
            (ReferenceHandle,)
            if of_programs is None
            else (of_programs.kind, ReferenceHandle)
        )

    def carry(self, reference: Any) -> Fork | RRefId:
        """Return the id under which the session sends a reference.

        Raises:
            ReferenceDead: the reference is dead.
            RpcMisuse: it is a reference of another worker of this process.
        """
        handle: ReferenceHandle | None = reference
        if not isinstance(reference, ReferenceHandle):
            handle = REFERENCE_CLASS.get().find(reference)
        assert handle is not None, "the codec passes references only"
        if handle.agent is not self._agent:
            ended = ", which has stopped" if handle.agent.ended else ""
            raise RpcMisuse(
                call="pack",
                found=f"a reference of the worker `{handle.agent.name}`{ended}",
                wanted=f"references of `{self._agent.name}`, which sends them",
            )
        return handle.carried()

    def receive(self, carried: Any) -> Any:
        """Return the reference for a received fork."""
        del self._left[carried.fork]
        return REFERENCE_CLASS.get().make(self._agent, self._agent.handle(carried))

    def drop_rest(self) -> None:
        """Drop the forks that were not received."""
        for fork in self._left.values():
            self._agent.handle(fork).drop()
        self._left.clear()


_PICKLED = "The answer of a worker without `registered_only`"


class Codec:
    """The codec of one worker; with `registered_only` it does not decode pickles."""

    def __init__(self, agent: "ReferenceHolder", *, registered_only: bool) -> None:
        self._agent = agent
        self._references = MessageReferences(agent)
        self._registered_only = registered_only

    def pack_request(
        self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Packed:
        """Encode a call as a payload.

        Raises:
            RpcError, CallError: the call does not match the function, or cannot be
                sent.
        """
        call = call_of(function, args, kwargs)
        return pack_call(call, self._references, registered_only=self._registered_only)

    def unpack_request(self, payload: Payload, carries: Sequence[Fork]) -> Invocation:
        """Decode the call of a request.

        Raises:
            RpcError, Exception: the call cannot be read, or this worker lacks the
                function.
        """
        only = self._registered_only
        return self._read(unpack_call, payload, carries, registered_only=only)

    def pack_result(self, value: Any) -> Packed:
        """Encode a result as a payload.

        Raises:
            RpcError: the result cannot be sent.
        """
        return pack_result(
            value, self._references, registered_only=self._registered_only
        )

    def unpack_answer(
        self, payload: Payload, carries: Sequence[Fork], failed: bool
    ) -> Any:
        """Decode the result of an answer.

        Raises:
            Exception: the error that the function raised, or an error of decoding.
        """
        trusted = not self._registered_only
        if failed:
            raise unpack_error(payload, trusted=trusted)
        return self._read(unpack, payload, carries, trusted=trusted, refused=_PICKLED)

    def _read(
        self,
        read: Callable[..., T],
        payload: Payload,
        carries: Sequence[Fork],
        **trust: Any,
    ) -> T:
        if not carries:
            return read(payload, self._references, **trust)
        arriving = MessageReferences(self._agent, carries)
        try:
            return read(payload, arriving, carries, **trust)
        finally:
            arriving.drop_rest()


# Immutable classes: encoding or dropping their values does not run code of users.
_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None)})
# Bytes, characters, or bits of an integer: the cost is small next to an answer.
_SHORT = 1024


def is_plain(future: Future[Any]) -> bool:
    """Return True for a complete future of a `_PLAIN` value without callbacks."""
    if not future.done() or future.error() is not None:
        return False
    return type(future.value()) in _PLAIN and not future._callbacks


def is_short(value: Any) -> bool:
    """Return True if the receiving thread may encode a plain value of this size."""
    if isinstance(value, int):
        return value.bit_length() <= _SHORT
    return not isinstance(value, str | bytes) or len(value) <= _SHORT


class ReferenceHolder(Driver):
    """A worker with references, and with values that other workers refer to."""

    def __init__(self, parts: Components) -> None:
        super().__init__(parts)
        self.codec = Codec(self, registered_only=parts.options.registered_only)
        self.handles: dict[ForkId, ReferenceHandle] = {}
        self._owned: dict[RRefId, Future[Any]] = {}
        # Forks that died before their handle was created.
        self._stillborn: dict[ForkId, Reason] = {}
        self.handlers |= {
            Confirmed: self._confirmed,
            Died: self._died,
            Freed: self._freed,
        }

    @property
    def node(self) -> WorkerNode:
        """Return the identity of this worker's life; its id is -1 before it joins."""
        return self.session.node

    def own(self, value: Future[Any], type: str = "") -> ReferenceHandle:  # noqa: A002
        """Return a new reference of this worker to `value`, which it owns.

        Raises:
            NotInitialized: this worker has stopped.
        """
        self.refuse_to_wait("RRef")
        session = self.session
        handles: list[ReferenceHandle] = []

        def act(_: float) -> None:
            rref = session.new_id()
            fork = Fork(rref, rref, self.node, type)
            handles.append(ReferenceHandle(self, fork, own=True, value=value))
            session.own(rref)
            self._owned[rref] = value

        try:
            self.do(act, "RRef")
        except BaseException:
            # Interrupted after the call of the session: no caller receives the
            # reference.
            for each in handles:
                each.drop()
            raise
        return handles[0]

    def handle(self, fork: Fork) -> ReferenceHandle:
        """Return the handle of a reference in a received call or answer."""
        value = None
        if fork.owner == self.node:
            value = self._owned.get(fork.rref)
            assert value is not None, "a listed fork keeps its value alive"
        handle = ReferenceHandle(self, fork, value=value)
        self.handles[fork.fork] = handle
        reason = self._stillborn.pop(fork.fork, None)
        if reason is not None:
            handle.death = LOST.format(reason=reason.value)
        return handle

    def create(
        self, call: int, rref: RRefId, to: WorkerNode, created: Future[None]
    ) -> ReferenceHandle:
        """Return the handle of a value that a call creates; under the lock."""
        try:
            fork = self.session.fork_of(call)
        except KeyError:
            # The call has ended already; its `Failed` event follows.
            fork = Fork(rref, rref, to)
        value: Future[Any] | None = None
        if fork.owner == self.node:
            value = self._owned.setdefault(fork.rref, Future())
        handle = ReferenceHandle(self, fork, value=value, created=created)
        self.handles[fork.fork] = handle
        return handle

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
        """Drop every reference; references that programs hold are dead from now on."""
        for handle in [*self.handles.values()]:
            handle.death = DELETED
            handle.drop()
        self.report_dropped()

    def leaks(self) -> tuple[str, ...]:
        """Return a line for each remote reference to a value of this worker."""
        if self.ended:
            return ()
        forks = self.do(lambda _: self.session.listed(), "shutdown")
        return tuple(f"Leaking RRef {rref} with fork Id {fork}" for rref, fork in forks)

    def release(self, dropped: ReferenceHandle, now: float) -> None:
        """Report a dropped handle to the session; under the lock."""
        own, name = dropped.released()
        self.handles.pop(name, None)
        if not dropped.runs_nothing():
            self._trash.append(dropped)
        if own:
            self.session.disown(name, now)
        else:
            self.session.drop(name, now)
