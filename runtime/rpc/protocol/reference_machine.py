"""References: distributed references, listed by their owners, as one machine.

Here is who tells whom of a reference, and when.  The tables that this machine changes,
and by which a value is freed, are `runtime.rpc.protocol.ownership`.  The scheme is that
of network objects (Birrell and others, 1993): owners list their users by name, so
nothing is counted that could be lost.

How a reference travels, each time as a new fork whose parent is the sender:
- owner to user: the owner lists the fork as it sends it; nothing else is said;
- user to user: the receiver asks the owner to list it (`Register`,
  `ReferenceRegistered`), then
  lets the sender go (`Accept`); until then the sender's own reference stays listed;
- user to owner: the owner lists a reference of its own, and lets the sender go;
- owner to itself: as owner to user, and the owner is the user;
- `remote`: the call that creates a value lists the caller's reference; its answer
  confirms it; without an answer it is dead, and is unlisted behind the call.

Rules:
- messages of one peer come once and in order until the peer is lost, so a `Delete` can
  never overtake what made the owner list the fork;
- a name that is not of the life that gives it, the caller or sender, is dead;
- whoever is told of references holds each of them, also where it is the owner, until
  it says `drop`; what was dropped stays listed while others are pinned to it;
- a call that creates or fetches a value keeps it until `done`, which is said once for
  each call that was told, also when its caller is gone;
- when a peer is lost, everything that it carried, owned or would accept ends; when it
  has expired, everything that it holds of ours is released.
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

# How long a reference waits for the keeper to tell of its owner, which just joined.
INTRODUCTION = 5.0


class ReferenceMachine:
    """The references of one worker; see the module's rules.

    `out` are messages to send, `events` what the agent is told, `verdicts` what became
    of carriers that waited.  Whoever composes the machine empties them after each call,
    `verdicts` before `out`: what a carrier sets free when it is sent goes behind it.
    """

    __slots__ = (
        "children",
        "events",
        "holding",
        "incoming",
        "known",
        "next_local",
        "node",
        "out",
        "outgoing",
        "owners",
        "unheard",
        "users",
        "verdicts",
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
        # Calls that were told, and the value that each keeps until it is replied to.
        self.holding: dict[Key, RRefId] = {}
        self.known: set[WorkerNode] = {node}
        self.unheard: dict[ForkId, float] = {}
        self.next_local = 0

    # Names and members.

    def admit(self, node: WorkerNode) -> None:
        """This worker has its number now."""
        self.known.discard(self.node)
        self.node = node
        self.known.add(node)

    def new_id(self) -> GloballyUniqueId:
        """A name that nobody gives twice."""
        given = GloballyUniqueId(self.node.id, self.next_local, self.node.incarnation)
        self.next_local += 1
        return given

    def joined(self, node: WorkerNode) -> None:
        """A worker is a member: references to its values need not wait for that."""
        self.known.add(node)
        for used in self.users.of(node):
            if used.use is Use.UNKNOWN:
                del self.unheard[used.fork.fork]
                self._change(used, ReferenceChange.INTRODUCED)

    def left(self, node: WorkerNode) -> None:
        """A worker is no member any more."""
        self.known.discard(node)

    # The owner's handles.

    def own(self, rref: RRefId) -> None:
        """One more local handle on a value of this worker."""
        self.owners.own(rref)

    def disown(self, rref: RRefId) -> None:
        """One local handle less."""
        self.owners.disown(rref)
        self._tell_freed()

    # Creation, at the caller.

    def plan(self, call: Key, owner: WorkerNode, rref: RRefId) -> Fork:
        """A call will create a value: the reference of the caller, not confirmed."""
        fork = Fork(rref, self.new_id(), owner)
        self.users.add(fork, Use.PLANNED, call, self.node)
        return fork

    def asked(self, fork: ForkId) -> None:
        """The call that creates the value is on its way; fetches may follow it."""
        used = self.users.used.get(fork)
        if used is not None and used.use in UNSENT:
            self._change(used, ReferenceChange.SENT)
            self._retry(used)

    def created(self, fork: ForkId) -> None:
        """The call that creates the value is answered, and the agent is told so."""
        used = self.users.used.get(fork)
        if used is None or used.use not in UNANSWERED:
            return
        forsaken = used.use is Use.FORSAKEN
        self._change(used, ReferenceChange.ANSWERED)
        if used.fork.owner == self.node:
            # What waits with it finds the value here, as this record goes.
            self.users.used.pop(fork, None)
            self._retry(used)
            if forsaken:
                self.drop(fork)
        else:
            self._retry(used)
            self._unpinned(used)

    def uncreated(self, fork: ForkId, reason: Reason) -> None:
        """The call that creates the value ended without an answer."""
        used = self.users.used.get(fork)
        if used is not None and used.use in UNSENT | UNANSWERED:
            self._change(used, ReferenceChange.FAILED, reason)

    # The user's references.

    def drop(self, fork: ForkId) -> None:
        """The agent lets go of a reference; nothing where it has none of that name."""
        used = self.users.used.get(fork)
        if used is None:
            self.owners.unlist(fork, self.node)
            self._tell_freed()
        elif used.use in HELD:
            self._change(used, ReferenceChange.DROPPED)
            self._unpinned(used)

    # Carriers on their way out.

    def carry(
        self,
        key: Key,
        peer: WorkerNode,
        carries: Sequence[Fork | RRefId],
        target: RRefId | None = None,
    ) -> tuple[CarrierStatus, tuple[Fork, ...]]:
        """What becomes of a call or answer to `peer` that holds references.

        READY: it must be sent now, with these forks (or `unsend` says that it is not).
        WAITS: a verdict follows.  `target` is the value that the call fetches.
        """
        outgoing = Outgoing(peer, tuple(carries), self._via(peer, target))
        fate = self._fate(outgoing)
        if outgoing.via is None and target is not None and peer != self.node:
            fate = CarrierStatus.DEAD
        if fate is CarrierStatus.READY:
            return fate, self._forked(outgoing)
        if fate is CarrierStatus.WAITS:
            self.outgoing[key] = outgoing
            for fork in outgoing.references():
                if fork in self.users.used:
                    self.users.used[fork].pins[key] = None
            for rref in outgoing.values():
                self.owners.hold(rref, ("outgoing", key))
        return fate, ()

    def withdraw(self, key: Key) -> None:
        """A carrier that waits is not to be sent any more; nothing where none waits."""
        outgoing = self.outgoing.pop(key, None)
        if outgoing is not None:
            self._unhold(key, outgoing)

    def unsend(self, forks: Sequence[Fork]) -> None:
        """A carrier that was ready was not sent: nobody will ever see its forks."""
        for fork in forks:
            child = self.children.pop(fork.fork, None)
            if child is not None:
                self._unpin(child.parent, fork.fork)
            elif fork.owner == self.node:
                self.owners.unlist(fork.fork)
        self._tell_freed()

    def _via(self, peer: WorkerNode, target: RRefId | None) -> ForkId | None:
        """The reference through which a value can be fetched; confirmed if possible."""
        if target is None:
            return None
        found = [
            used
            for used in self.users.of(peer)
            if used.fork.rref == target and used.use in HELD
        ]
        found.sort(key=lambda used: (used.use not in SENDABLE, used.use in UNSENT))
        return found[0].fork.fork if found else None

    def _fate(self, outgoing: Outgoing) -> CarrierStatus:
        fate = CarrierStatus.READY
        for item in outgoing.carries:
            used = None
            if isinstance(item, Fork):
                used = self.users.used.get(item.fork)
            if used is None:
                if not self._owned(item):
                    return CarrierStatus.DEAD
            elif used.use in UNSENT | UNANSWERED:
                if used.fork.owner != self.node or not self._owned(used.fork.rref):
                    fate = CarrierStatus.WAITS
            elif used.use not in SENDABLE:
                return CarrierStatus.DEAD
        if outgoing.via is not None:
            used = self.users.used.get(outgoing.via)
            if used is None:
                return CarrierStatus.DEAD
            return CarrierStatus.WAITS if used.use in UNSENT else fate
        return fate

    def _owned(self, item: Fork | RRefId) -> bool:
        """Whether this worker has the value, and lists the reference if it is one."""
        rref = item.rref if isinstance(item, Fork) else item
        if isinstance(item, Fork) and self.owners.listed.get(item.fork) != rref:
            return False
        owned = self.owners.values.get(rref)
        return owned is not None and owned.told

    def _forked(self, outgoing: Outgoing) -> tuple[Fork, ...]:
        """A new fork for each reference, pinned or listed for the receiver."""
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
        """A reference can be sent, or is dead: so may be what waits with it."""
        for key in tuple(used.pins):
            outgoing = self.outgoing.get(key)
            fate = CarrierStatus.WAITS if outgoing is None else self._fate(outgoing)
            if outgoing is not None and fate is not CarrierStatus.WAITS:
                del self.outgoing[key]
                forks = self._forked(outgoing) if fate is CarrierStatus.READY else ()
                self.verdicts.append(Verdict(key, False, fate, forks))
                self._unhold(key, outgoing)

    def _unhold(self, key: Key, outgoing: Outgoing) -> None:
        for fork in outgoing.references():
            self._unpin(fork, key)
        for rref in outgoing.values():
            self.owners.release(rref, ("outgoing", key))
        self._tell_freed()

    # Carriers on their way in.

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
        """What becomes of a call or answer that came from `peer`.

        READY: the agent is told of it now.  WAITS: a verdict follows.  DEAD: the agent
        is not told, and the peer is told that it was for a reference.
        """
        incoming = Incoming(peer)
        dead = False
        if creates is not None and fork is not None:
            gave = creates.incarnation == fork.incarnation == peer.incarnation
            if gave and self.owners.create(creates, fork, peer, ("incoming", key)):
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
                incoming.parked = not owned.told
        self.incoming[key] = incoming
        if dead:
            self.forget(key)
            return CarrierStatus.DEAD
        if incoming.awaited or incoming.parked:
            return CarrierStatus.WAITS
        self._complete(key, incoming)
        return CarrierStatus.READY

    def _receive(self, key: Key, incoming: Incoming, fork: Fork, now: float) -> bool:
        """A reference came; False where it is dead already."""
        peer, name = incoming.peer, fork.fork
        if name.incarnation != peer.incarnation:
            return False
        if fork.owner == self.node:
            if peer == self.node:
                # Listed as it was sent.
                listed = name in self.owners.listed
            else:
                listed = self.owners.list(fork.rref, name, self.node)
                self.out.append((peer, Accept(name)))
            if listed:
                incoming.forks.append(fork)
            return listed
        if name in self.users.used:
            # Names are given once: the peer does not keep to the rules.
            return False
        incoming.forks.append(fork)
        if fork.owner == peer:
            self.users.add(fork, Use.LISTED, key, peer)
            return True
        incoming.awaited[name] = None
        self.users.add(fork, Use.UNKNOWN, key, peer)
        if fork.owner in self.known:
            self._change(self.users.used[name], ReferenceChange.INTRODUCED)
        else:
            self.unheard[name] = now + INTRODUCTION
        return True

    def forget(self, key: Key) -> None:
        """The agent will not be told of a carrier that came; nothing where none waits.

        The references that it holds are let go of; a value that it was to create is
        forgotten, with whatever waited to fetch it.
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
        self._tell_freed()

    def done(self, key: Key) -> None:
        """A call that was told is replied to: it keeps no value any longer."""
        rref = self.holding.pop(key, None)
        if rref is not None:
            self.owners.release(rref, ("incoming", key))
            self._tell_freed()

    def _complete(self, key: Key, incoming: Incoming) -> None:
        """The agent is told of a carrier: it holds the references from now on."""
        del self.incoming[key]
        for fork in incoming.forks:
            used = self.users.used.get(fork.fork)
            if used is not None:
                self._change(used, ReferenceChange.TOLD)
        if incoming.target is not None:
            self.holding[key] = incoming.target
        if incoming.creates is not None:
            self.holding[key] = incoming.creates
            self.owners.tell(incoming.creates)
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

    # The world.

    def receive(self, peer: WorkerNode, message: Message, now: float) -> None:
        """A message of another worker, or of this one to itself."""
        match message:
            case Register(rref, fork, parent):
                given = fork.incarnation == parent.incarnation != self.node.incarnation
                listed = given and self.owners.list(rref, fork, peer)
                self.out.append(
                    (
                        peer,
                        ReferenceRegistered(fork) if listed else ReferenceRefused(fork),
                    )
                )
            case ReferenceRegistered(fork) | ReferenceRefused(fork):
                used = self.users.used.get(fork)
                if (
                    used is not None
                    and used.use is Use.PENDING
                    and used.fork.owner == peer
                ):
                    registered = isinstance(message, ReferenceRegistered)
                    self._change(
                        used,
                        ReferenceChange.REGISTERED
                        if registered
                        else ReferenceChange.REFUSED,
                    )
            case Accept(fork):
                child = self.children.get(fork)
                if child is not None and child.peer == peer:
                    del self.children[fork]
                    self._unpin(child.parent, fork)
            case Delete(fork=fork):
                self.owners.unlist(fork, peer)
                self._tell_freed()
            case _:
                raise AssertionError("the session gives each machine its own kinds")

    def tick(self, now: float) -> None:
        """Owners that nobody introduced in time are dead."""
        for fork, until in tuple(self.unheard.items()):
            if until <= now and fork in self.unheard:
                del self.unheard[fork]
                self._change(self.users.used[fork], ReferenceChange.UNHEARD)

    def next_time(self) -> float | None:
        """When `tick` has something to do."""
        return min(self.unheard.values()) if self.unheard else None

    def lost(self, peer: WorkerNode, reason: Reason, now: float) -> None:
        """A peer is out of reach: what it carried, owns or would accept has ended."""
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
            # One that is lost may end others, with what they came with.
            if used.fork.fork in self.users.used and used.use is not Use.UNKNOWN:
                self._change(used, ReferenceChange.LOST, reason)
        self.out[:] = [step for step in self.out if step[0] != peer]

    def expired(self, peer: WorkerNode, now: float) -> None:
        """A peer that was lost holds nothing any more."""
        self.owners.expire(peer)
        self._tell_freed()

    # One step of a reference.

    def _change(
        self, used: Used, change: ReferenceChange, reason: Reason = Reason.REFERENCE
    ) -> None:
        acts = self.users.change(used, change)
        fork = used.fork
        for act in acts:
            match act:
                case CarrierEvent.REGISTER:
                    told = Register(fork.rref, fork.fork, used.sender)
                    self.out.append((fork.owner, told))
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
            # Nothing that it carried can pin it, and what waits with it is dead.
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

    def _tell_freed(self) -> None:
        self.events.extend(self.owners.freed)
        self.owners.freed.clear()

    # What is seen.

    def counts(self) -> dict[str, int]:
        """How much there is of everything."""
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
        """Everything, as a value."""
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
            tuple(sorted(self.known)),
            tuple(sorted(self.unheard)),
            self.next_local,
        )
