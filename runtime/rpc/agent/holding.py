"""Holding: the values that a worker keeps for others, and its own references.

True only here: what becomes of a value that stays, from `remote` or `RRef` until nobody
refers to it, and of handles while their owners live and when they die.

Rules: a value is kept from the moment that its name is known until the session says
that it is free; it is dropped by a request thread, outside of all locks; a reference
that dies before anybody has its handle is dead when it gets one.
"""

from typing import TYPE_CHECKING, Any, cast

from runtime.futures import Future
from runtime.rpc.agent.current import Seat
from runtime.rpc.agent.handles import DELETED, LOST, NOT_CREATED, Handle
from runtime.rpc.agent.speaking import Speaker
from runtime.rpc.identities import Fork, ForkId, Node, RRefId
from runtime.rpc.session.events import Confirmed, Died, Freed, Reason
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


class Holder(Speaker):
    """A worker as the owner of values, and as a user of those of others."""

    def __init__(
        self, session: Session, transport: Transport, threads: int, seat: Seat
    ) -> None:
        super().__init__(session, transport, threads, seat)
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
