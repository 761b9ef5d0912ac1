"""Faults planted into the machine of references, each a mistake that one could make.

True only here: which mistakes.  Each is a subclass of `ReferenceMachine`, with the
bounds within which exploring finds it.
"""

from collections.abc import Sequence
from dataclasses import replace

from everyorder.runtime.rpc.protocol.events import Reason
from everyorder.runtime.rpc.protocol.identities import Fork, ForkId, WorkerNode
from everyorder.runtime.rpc.protocol.messages import (
    Accept,
    Message,
    ReferenceRegistered,
)
from everyorder.runtime.rpc.protocol.ownership import (
    CarrierStatus,
    Incoming,
    Key,
    Outgoing,
    Use,
    Used,
)
from everyorder.runtime.rpc.protocol.reference_machine import ReferenceMachine
from tests.rpc.exploring.world import Bounds


class AcceptsEarly(ReferenceMachine):
    """The receiver lets the sender go before the owner lists the reference."""

    def _receive(self, key: Key, incoming: Incoming, fork: Fork, now: float) -> bool:
        good = super()._receive(key, incoming, fork, now)
        if fork.fork in incoming.awaited:
            self.out.append((incoming.peer, Accept(fork.fork)))
        return good


class AcceptsWholeCarriers(ReferenceMachine):
    """With the first reference of a carrier, the sender lets go of all of them."""

    def receive(self, peer: WorkerNode, message: Message, now: float) -> None:
        used = (
            self.users.used.get(message.fork)
            if type(message) is ReferenceRegistered
            else None
        )
        super().receive(peer, message, now)
        if used is not None and used.use is Use.LISTED and used.sender != self.node:
            incoming = self.incoming.get(used.source)
            for fork in [] if incoming is None else incoming.awaited:
                self.out.append((used.sender, Accept(fork)))


class DeletesPinned(ReferenceMachine):
    """What the agent drops is unlisted at once, whatever it is pinned by."""

    def _unpinned(self, used: Used) -> None:
        if used.use is Use.RETIRED:
            used.pins.clear()
        super()._unpinned(used)


class KeepsChildren(ReferenceMachine):
    """Who does not accept any more, as it is lost, pins for ever."""

    def lost(self, peer: WorkerNode, reason: Reason, now: float) -> None:
        kept = dict(self.children)
        self.children.clear()
        super().lost(peer, reason, now)
        self.children.update(kept)


class ExpiresEarly(ReferenceMachine):
    """The owner releases what a user holds as soon as the user is lost."""

    def lost(self, peer: WorkerNode, reason: Reason, now: float) -> None:
        super().lost(peer, reason, now)
        self.owners.expire(peer)


class ExpiresAnew(ReferenceMachine):
    """What a user was given after it was lost is released with what it had before."""

    def expired(self, peer: WorkerNode, now: float) -> None:
        self.owners.fence(peer)
        super().expired(peer, now)


class ForgetsCreations(ReferenceMachine):
    """A creation that nobody waits for any more stays listed where it was created."""

    def uncreated(self, fork: ForkId, reason: Reason) -> None:
        super().uncreated(fork, reason)
        self.out = [step for step in self.out if getattr(step[1], "fork", 0) != fork]


class SendsUnconfirmed(ReferenceMachine):
    """A reference is sent on before it is confirmed."""

    def carry(self, key, peer, carries, target=None):  # type: ignore[no-untyped-def]  # as it is
        for item in carries:
            used = self.users.used.get(item.fork) if isinstance(item, Fork) else None
            if used is not None and used.use is Use.ASKED:
                used.use = Use.CONFIRMED
        return super().carry(key, peer, carries, target)


class HoldsNothing(ReferenceMachine):
    """What a call creates is kept by its user alone."""

    def _complete(self, key: Key, incoming: Incoming) -> None:
        super()._complete(key, incoming)
        self.done(key)


class OvertakesCreations(ReferenceMachine):
    """A value is fetched before the call that creates it is sent."""

    def _status_of(self, outgoing: Outgoing) -> CarrierStatus:
        return super()._status_of(replace(outgoing, via=None))


TWO = ((0, 2), (0, 2))
FAULTS: Sequence[tuple[type[ReferenceMachine], Bounds]] = (
    (AcceptsEarly, Bounds(3, ((0, 2),), 1)),
    (DeletesPinned, Bounds(3, ((0, 2),), 1)),
    (KeepsChildren, Bounds(3, ((0, 2),), 1, crashes=1)),
    (ExpiresEarly, Bounds(2, ((0, 1),), 0, cuts=1)),
    (ExpiresAnew, Bounds(2, ((1, 1),), 1, cuts=1)),
    (ForgetsCreations, Bounds(2, ((0, 1),), 0, timeouts=1)),
    (SendsUnconfirmed, Bounds(3, ((0, 2),), 1)),
    (AcceptsWholeCarriers, Bounds(3, TWO, 1, many=2)),
    (HoldsNothing, Bounds(2, ((0, 1),), 0, timeouts=1)),
    (OvertakesCreations, Bounds(2, ((0, 1), (0, 1)), 0, fetches=1, mixed=True)),
)
