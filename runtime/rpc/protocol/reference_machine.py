"""The machine of distributed references, which their owners list.

This module defines which messages about references are sent, and when.  The tables that
the machine changes, and by which a value is freed, are in
`runtime.rpc.protocol.ownership`.  The algorithm is that of network objects (Birrell and
others, 1993): owners list their users by id, so a count can never become wrong.

A sent reference is a new fork at the receiver, and the sender is its parent:
- owner to user: the owner lists the fork when it sends it; no other message is needed;
- user to user: the receiver asks the owner to list it (`Register`,
  `ReferenceRegistered`), then lets the sender release its own (`Accept`); until then
  the sender's reference stays listed;
- user to owner: the owner lists the new fork, and lets the sender release its own;
- owner to itself: as owner to user, with the owner as the user;
- `remote`: the call that creates a value lists the caller's reference; its answer
  confirms it; without an answer it is dead, and is unlisted after the call.

Rules:
- messages of one peer arrive once and in order until the peer is lost, so a `Delete`
  cannot overtake the message that listed the fork;
- an id that does not belong to the life of its caller or sender is dead;
- an agent that receives references holds each of them, also on the owner, until it
  calls `drop`; a dropped reference stays listed while carriers pin it;
- a call that creates or fetches a value keeps it until `done`, which is called once for
  each reported call, also if its caller is lost;
- when a peer is lost, everything that it carried, owned or would accept ends; when it
  has expired, all of its holds on values of this worker are released.
"""

from collections.abc import Hashable, Sequence

from everyorder.runtime.rpc.protocol.events import Confirmed, Died, Event, Reason
from everyorder.runtime.rpc.protocol.identities import (
    Fork,
    ForkId,
    GloballyUniqueId,
    RRefId,
    WorkerNode,
)
from everyorder.runtime.rpc.protocol.messages import (
    Accept,
    Delete,
    Message,
    ReferenceRefused,
    ReferenceRegistered,
    Register,
)
from everyorder.runtime.rpc.protocol.ownership import (
    HELD,
    SENDABLE,
    UNANSWERED,
    UNSENT,
    CarrierEvent,
    CarrierStatus,
    Incoming,
    Key,
    Outgoing,
    Owners,
    ReferenceChange,
    SentFork,
    Use,
    Used,
    Users,
    Verdict,
)

# Seconds that a reference waits until the keeper announces its new owner.
INTRODUCTION = 5.0


class ReferenceMachine:
    """The references of one worker; see the module's rules.

    `out` are messages to send, `events` are for the agent, `verdicts` are the results
    for carriers that waited.  The core empties them after each call, `verdicts` before
    `out`: messages that follow from sending a carrier are sent after the carrier.
    """

    __slots__ = (
        *("children", "events", "holding", "incoming", "members", "next_local"),
        *("node", "out", "outgoing", "owners", "unheard", "users", "verdicts"),
    )

    def __init__(self, node: WorkerNode) -> None:
        self.node = node
        self.out: list[tuple[WorkerNode, Message]] = []
        self.events: list[Event] = []
        self.verdicts: list[Verdict] = []
        self.owners = Owners()
        self.users = Users()
        self.outgoing: dict[Key, Outgoing] = {}
        self.incoming: dict[Key, Incoming] = {}
        self.children: dict[ForkId, SentFork] = {}
        # Reported calls, and the value that each keeps until it is replied to.
        self.holding: dict[Key, RRefId] = {}
        self.members: set[WorkerNode] = {node}
        self.unheard: dict[ForkId, float] = {}
        self.next_local = 0

    # Ids and members.

    def admit(self, node: WorkerNode) -> None:
        """Set the number of this worker."""
        self.members.discard(self.node)
        self.node = node
        self.members.add(node)

    def new_id(self) -> GloballyUniqueId:
        """Return an id that is unique among all workers."""
        unique = GloballyUniqueId(self.node.id, self.next_local, self.node.incarnation)
        self.next_local += 1
        return unique

    def joined(self, node: WorkerNode) -> None:
        """Continue the references that waited until their owner became a member."""
        self.members.add(node)
        for used in self.users.of(node):
            if used.use is Use.UNKNOWN:
                del self.unheard[used.fork.fork]
                self._change(used, ReferenceChange.INTRODUCED)

    def left(self, node: WorkerNode) -> None:
        """Remove a worker that is not a member any more."""
        self.members.discard(node)

    # Handles of the owner.

    def own(self, rref: RRefId) -> None:
        """Add a local handle on a value of this worker."""
        self.owners.own(rref)

    def disown(self, rref: RRefId) -> None:
        """Remove a local handle."""
        self.owners.disown(rref)
        self._report_freed()

    # Creation, at the caller.

    def plan(self, call: Key, owner: WorkerNode, rref: RRefId) -> Fork:
        """Return the unconfirmed reference for a call that will create a value."""
        fork = Fork(rref, self.new_id(), owner)
        self.users.add(fork, Use.PLANNED, call, self.node)
        return fork

    def asked(self, fork: ForkId) -> None:
        """Handle that the call that creates the value was sent; fetches may follow."""
        used = self.users.used.get(fork)
        if used is not None and used.use in UNSENT:
            self._change(used, ReferenceChange.SENT)
            self._retry(used)

    def created(self, fork: ForkId) -> None:
        """Handle the answer to the call that creates the value."""
        used = self.users.used.get(fork)
        if used is None or used.use not in UNANSWERED:
            return
        forsaken = used.use is Use.FORSAKEN
        self._change(used, ReferenceChange.ANSWERED)
        if used.fork.owner == self.node:
            # Waiting carriers now use the owned value, as this record is removed.
            self.users.used.pop(fork, None)
            self._retry(used)
            if forsaken:
                self.drop(fork)
        else:
            self._retry(used)
            self._unpinned(used)

    def uncreated(self, fork: ForkId, reason: Reason) -> None:
        """Handle the end without an answer of the call that creates the value."""
        used = self.users.used.get(fork)
        if used is not None and used.use in UNSENT | UNANSWERED:
            self._change(used, ReferenceChange.FAILED, reason)

    # References of the user.

    def drop(self, fork: ForkId) -> None:
        """Drop a reference of the agent; without effect if there is none of that id."""
        used = self.users.used.get(fork)
        if used is None:
            self.owners.unlist(fork, self.node)
            self._report_freed()
        elif used.use in HELD:
            self._change(used, ReferenceChange.DROPPED)
            self._unpinned(used)

    # Outgoing carriers.

    def carry(
        self,
        key: Key,
        peer: WorkerNode,
        carries: Sequence[Fork | RRefId],
        target: RRefId | None = None,
    ) -> tuple[CarrierStatus, tuple[Fork, ...]]:
        """Return the status of a call or answer to `peer`, and its forks.

        READY: it must be sent now, with these forks (or `unsend` must be called).
        WAITS: a verdict follows.  DEAD: it cannot be sent.  `target` is the value that
        the call fetches.
        """
        outgoing = Outgoing(peer, tuple(carries), self._via(peer, target))
        status = self._status_of(outgoing)
        if outgoing.via is None and target is not None and peer != self.node:
            status = CarrierStatus.DEAD
        if status is CarrierStatus.READY:
            return status, self._forked(outgoing)
        if status is CarrierStatus.WAITS:
            self.outgoing[key] = outgoing
            for fork in outgoing.references():
                if fork in self.users.used:
                    self.users.used[fork].pins[key] = None
            for rref in outgoing.values():
                self.owners.hold(rref, ("outgoing", key))
        return status, ()

    def withdraw(self, key: Key) -> None:
        """Withdraw a waiting carrier; without effect if none waits."""
        outgoing = self.outgoing.pop(key, None)
        if outgoing is not None:
            self._unhold(key, outgoing)

    def unsend(self, forks: Sequence[Fork]) -> None:
        """Release the forks of a carrier that was ready but was not sent."""
        for fork in forks:
            child = self.children.pop(fork.fork, None)
            if child is not None:
                self._unpin(child.parent, fork.fork)
            elif fork.owner == self.node:
                self.owners.unlist(fork.fork)
        self._report_freed()

    def _via(self, peer: WorkerNode, target: RRefId | None) -> ForkId | None:
        """Return the reference through which a value can be fetched; confirmed if
        possible.
        """
        if target is None:
            return None
        candidates = [
            used
            for used in self.users.of(peer)
            if used.fork.rref == target and used.use in HELD
        ]
        candidates.sort(key=lambda used: (used.use not in SENDABLE, used.use in UNSENT))
        return candidates[0].fork.fork if candidates else None

    def _status_of(self, outgoing: Outgoing) -> CarrierStatus:
        status = CarrierStatus.READY
        for item in outgoing.carries:
            used = None
            if isinstance(item, Fork):
                used = self.users.used.get(item.fork)
            if used is None:
                if not self._owned(item):
                    return CarrierStatus.DEAD
            elif used.use in UNSENT | UNANSWERED:
                if used.fork.owner != self.node or not self._owned(used.fork.rref):
                    status = CarrierStatus.WAITS
            elif used.use not in SENDABLE:
                return CarrierStatus.DEAD
        if outgoing.via is not None:
            used = self.users.used.get(outgoing.via)
            if used is None:
                return CarrierStatus.DEAD
            return CarrierStatus.WAITS if used.use in UNSENT else status
        return status

    def _owned(self, item: Fork | RRefId) -> bool:
        """Return True if this worker has the value, and lists the reference if it is
        one.
        """
        rref = item.rref if isinstance(item, Fork) else item
        if isinstance(item, Fork) and self.owners.listed.get(item.fork) != rref:
            return False
        owned = self.owners.values.get(rref)
        return owned is not None and owned.reported

    def _forked(self, outgoing: Outgoing) -> tuple[Fork, ...]:
        """Return a new fork for each reference, pinned or listed for the receiver."""
        forks = []
        for item in outgoing.carries:
            name, fork = self.new_id(), item if isinstance(item, Fork) else None
            used = None if fork is None else self.users.used.get(fork.fork)
            if used is not None and used.fork.owner != self.node:
                self.children[name] = SentFork(outgoing.peer, used.fork.fork)
                used.pins[name] = None
                forks.append(used.fork._replace(fork=name))
                continue
            rref = item.rref if isinstance(item, Fork) else item
            self.owners.list(rref, name, outgoing.peer)
            forks.append(Fork(rref, name, self.node, fork.type if fork else ""))
        return tuple(forks)

    def _retry(self, used: Used) -> None:
        """Continue or end the carriers that wait for a reference."""
        for key in tuple(used.pins):
            outgoing = self.outgoing.get(key)
            status = (
                CarrierStatus.WAITS if outgoing is None else self._status_of(outgoing)
            )
            if outgoing is not None and status is not CarrierStatus.WAITS:
                del self.outgoing[key]
                forks = self._forked(outgoing) if status is CarrierStatus.READY else ()
                self.verdicts.append(Verdict(key, False, status, forks))
                self._unhold(key, outgoing)

    def _unhold(self, key: Key, outgoing: Outgoing) -> None:
        for fork in outgoing.references():
            self._unpin(fork, key)
        for rref in outgoing.values():
            self.owners.release(rref, ("outgoing", key))
        self._report_freed()

    # Incoming carriers.

    def arrive(
        self,
        key: Key,
        peer: WorkerNode,
        forks: Sequence[Fork],
        now: float,
        *,
        creates: RRefId | None = None,
        fork: ForkId | None = None,
        target: RRefId | None = None,
    ) -> CarrierStatus:
        """Return the status of a call or answer that arrived from `peer`.

        READY: it is reported to the agent now.  WAITS: a verdict follows.  DEAD: it is
        not reported, and the peer learns that a reference was the cause.
        """
        incoming = Incoming(peer)
        dead = False
        if creates is not None and fork is not None:
            is_own = creates.incarnation == fork.incarnation == peer.incarnation
            if is_own and self.owners.create(creates, fork, peer, ("incoming", key)):
                incoming.creates = creates
            else:
                dead = True
        for item in forks:
            dead |= not self._receive(key, incoming, item, now)
        if target is not None:
            owned = self.owners.values.get(target)
            if owned is None:
                dead = True
            else:
                self.owners.hold(target, ("incoming", key))
                incoming.target = target
                incoming.parked = not owned.reported
        self.incoming[key] = incoming
        if dead:
            self.forget(key)
            return CarrierStatus.DEAD
        if incoming.awaited or incoming.parked:
            return CarrierStatus.WAITS
        self._complete(key, incoming)
        return CarrierStatus.READY

    def _receive(self, key: Key, incoming: Incoming, fork: Fork, now: float) -> bool:
        """Add a received reference; return False if it is dead already."""
        peer, name = incoming.peer, fork.fork
        if name.incarnation != peer.incarnation:
            return False
        if fork.owner == self.node:
            if peer == self.node:
                # The fork was listed when it was sent.
                listed = name in self.owners.listed
            else:
                listed = self.owners.list(fork.rref, name, self.node)
                self.out.append((peer, Accept(name)))
            if listed:
                incoming.forks.append(fork)
            return listed
        if name in self.users.used:
            # Ids are unique: the peer violates the protocol.
            return False
        incoming.forks.append(fork)
        if fork.owner == peer:
            self.users.add(fork, Use.LISTED, key, peer)
            return True
        incoming.awaited[name] = None
        self.users.add(fork, Use.UNKNOWN, key, peer)
        if fork.owner in self.members:
            self._change(self.users.used[name], ReferenceChange.INTRODUCED)
        else:
            self.unheard[name] = now + INTRODUCTION
        return True

    def forget(self, key: Key) -> None:
        """Forget a received carrier that will not be reported; without effect if none
        waits.

        Its references are dropped; a value that it was to create is removed, together
        with the carriers that waited to fetch it.
        """
        incoming = self.incoming.pop(key, None)
        if incoming is None:
            return
        for fork in incoming.forks:
            used = self.users.used.get(fork.fork)
            if used is not None:
                self.unheard.pop(fork.fork, None)
                self._change(used, ReferenceChange.FORGOTTEN)
            elif fork.owner == self.node:
                self.owners.unlist(fork.fork, self.node)
        if incoming.target is not None:
            self.owners.release(incoming.target, ("incoming", key))
        if incoming.creates is not None:
            self.owners.abandon(incoming.creates)
            for other, parked in tuple(self.incoming.items()):
                if parked.target == incoming.creates:
                    self._break(other)
        self._report_freed()

    def done(self, key: Key) -> None:
        """Release the value of a reported call that is replied to."""
        rref = self.holding.pop(key, None)
        if rref is not None:
            self.owners.release(rref, ("incoming", key))
            self._report_freed()

    def _complete(self, key: Key, incoming: Incoming) -> None:
        """Mark a carrier as reported: the agent holds its references from now on."""
        del self.incoming[key]
        for fork in incoming.forks:
            used = self.users.used.get(fork.fork)
            if used is not None:
                self._change(used, ReferenceChange.TOLD)
        if incoming.target is not None:
            self.holding[key] = incoming.target
        if incoming.creates is not None:
            self.holding[key] = incoming.creates
            self.owners.report(incoming.creates)
            if incoming.peer == self.node:
                for used in tuple(self.users.of(self.node)):
                    self._retry(used)
            for other, parked in tuple(self.incoming.items()):
                if parked.parked and parked.target == incoming.creates:
                    parked.parked = False
                    self._advance(other)

    def _advance(self, key: Key) -> None:
        incoming = self.incoming[key]
        if not (incoming.awaited or incoming.parked):
            self.verdicts.append(Verdict(key, True, CarrierStatus.READY))
            self._complete(key, incoming)

    def _break(self, key: Key) -> None:
        self.forget(key)
        self.verdicts.append(Verdict(key, True, CarrierStatus.DEAD))

    # Messages and time.

    def receive(self, peer: WorkerNode, message: Message, now: float) -> None:
        """Handle a message of another worker, or of this one to itself."""
        match message:
            case Register(rref, fork, parent):
                valid = fork.incarnation == parent.incarnation != self.node.incarnation
                answer: Message = ReferenceRefused(fork)
                if valid and self.owners.list(rref, fork, peer):
                    answer = ReferenceRegistered(fork)
                self.out.append((peer, answer))
            case ReferenceRegistered(fork) | ReferenceRefused(fork):
                change = ReferenceChange.REFUSED
                if isinstance(message, ReferenceRegistered):
                    change = ReferenceChange.REGISTERED
                used = self.users.used.get(fork)
                if used and used.use is Use.PENDING and used.fork.owner == peer:
                    self._change(used, change)
            case Accept(fork):
                child = self.children.get(fork)
                if child is not None and child.peer == peer:
                    del self.children[fork]
                    self._unpin(child.parent, fork)
            case Delete(fork=fork):
                self.owners.unlist(fork, peer)
                self._report_freed()
            case _:
                raise AssertionError("the core passes each machine its own kinds")

    def tick(self, now: float) -> None:
        """End the references whose owners were not announced in time."""
        for fork, until in tuple(self.unheard.items()):
            if until <= now and fork in self.unheard:
                del self.unheard[fork]
                self._change(self.users.used[fork], ReferenceChange.UNHEARD)

    def next_time(self) -> float | None:
        """Return the time at which `tick` has work."""
        return min(self.unheard.values()) if self.unheard else None

    def lost(self, peer: WorkerNode, reason: Reason, now: float) -> None:
        """Handle the loss of a peer: end what it carried, owns or would accept."""
        self.owners.fence(peer)
        for key, outgoing in tuple(self.outgoing.items()):
            if outgoing.peer == peer:
                self.withdraw(key)
        for key, incoming in tuple(self.incoming.items()):
            if incoming.peer == peer:
                self.forget(key)
        for fork, child in tuple(self.children.items()):
            if child.peer == peer:
                del self.children[fork]
                self._unpin(child.parent, fork)
        for used in self.users.of(peer):
            # The end of one reference may end others, which had the same carrier.
            if used.fork.fork in self.users.used and used.use is not Use.UNKNOWN:
                self._change(used, ReferenceChange.LOST, reason)
        self.out[:] = [step for step in self.out if step[0] != peer]

    def expired(self, peer: WorkerNode, now: float) -> None:
        """Release all holds of a lost peer."""
        self.owners.expire(peer)
        self._report_freed()

    # One step of a reference.

    def _change(
        self, used: Used, change: ReferenceChange, reason: Reason = Reason.REFERENCE
    ) -> None:
        acts = self.users.change(used, change)
        fork = used.fork
        for act in acts:
            match act:
                case CarrierEvent.REGISTER:
                    message = Register(fork.rref, fork.fork, used.sender)
                    self.out.append((fork.owner, message))
                case CarrierEvent.ACCEPT:
                    self.out.append((used.sender, Accept(fork.fork)))
                case CarrierEvent.DELETE:
                    self.out.append((fork.owner, Delete(fork.rref, fork.fork)))
                case CarrierEvent.CONFIRM:
                    self.events.append(Confirmed(fork))
                case CarrierEvent.DIE:
                    self.events.append(Died(fork, reason))
                case CarrierEvent.BREAK:
                    self._break(used.source)
        if change is ReferenceChange.REGISTERED:
            incoming = self.incoming[used.source]
            del incoming.awaited[fork.fork]
            self._advance(used.source)
        if fork.fork not in self.users.used:
            # It cannot be pinned any more, and the carriers that wait for it are dead.
            for pin in used.pins:
                if isinstance(pin, GloballyUniqueId):
                    self.children.pop(pin, None)
            self._retry(used)

    def _unpin(self, parent: ForkId, pin: Hashable) -> None:
        used = self.users.used.get(parent)
        if used is not None:
            used.pins.pop(pin, None)
            self._unpinned(used)

    def _unpinned(self, used: Used) -> None:
        current = self.users.used.get(used.fork.fork)
        if current is used and used.use is Use.RETIRED and not used.pins:
            self._change(used, ReferenceChange.UNPINNED)

    def _report_freed(self) -> None:
        self.events.extend(self.owners.freed)
        self.owners.freed.clear()

    # Inspection.

    def counts(self) -> dict[str, int]:
        """Return counts of values, references and carriers."""
        values = self.owners.values.values()
        uses = [used.use for used in self.users.used.values()]
        return {
            "owners": len(values),
            "forks": sum(len(owned.forks) for owned in values),
            "users": len(uses),
            "pending": sum(use not in SENDABLE for use in uses),
            "children": len(self.children),
            "carriers": len(self.outgoing) + len(self.incoming),
        }

    def state(self) -> Hashable:
        """Return the complete state, as a value."""
        return (
            self.owners.state(),
            self.users.state(),
            tuple(
                (repr(key), waiting.peer, waiting.carries, waiting.via)
                for key, waiting in sorted(self.outgoing.items(), key=repr)
            ),
            tuple(
                (repr(key), incoming.state())
                for key, incoming in sorted(self.incoming.items(), key=repr)
            ),
            tuple(
                (fork, child.peer, child.parent)
                for fork, child in sorted(self.children.items())
            ),
            tuple(sorted((repr(key), rref) for key, rref in self.holding.items())),
            tuple(sorted(self.members)),
            tuple(sorted(self.unheard)),
            self.next_local,
        )
