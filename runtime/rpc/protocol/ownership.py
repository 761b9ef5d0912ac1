"""Ownership: the tables of references: who holds them, and when a value is freed.

    Owners      a worker's values to which other workers refer
    Users       its references to values of other workers, each in a state of `TABLE`
    Outgoing, Incoming    carriers: calls and answers that hold references

`runtime.rpc.protocol.reference_machine` is the machine that changes them.

An owned value is kept while it has any of these, and freed without them:

    listed   forks: references of users, listed by id, never counted; includes this
             worker's references to it that were sent
    handles  of the owner: `own` and `disown`
    holds    of carriers: a call that creates or fetches it, until it is replied to; a
             call or an answer that is not sent yet

The code that registers a value lists its first fork or hold in the same step, so a
value always has a reason to be kept; listing and unlisting are idempotent; a freed
value is unknown, and its id is never used again.

The life of one reference at its user:

    PLANNED     `remote` was called; the call is not sent yet
    ASKED       the call is sent, and not answered
    UNWANTED    PLANNED, and the agent has dropped it
    FORSAKEN    ASKED, and the agent has dropped it: the call has not ended yet
    UNKNOWN     it arrived with a call or an answer; its owner is not a member yet
    PENDING     it arrived; the owner was asked to list it
    LISTED      the owner lists it; its carrier still waits for others
    CONFIRMED   the agent has it
    RETIRED     the agent has dropped it; its carriers to other workers need it listed

A reference without a state is dead, or never existed: the two are equivalent.  It is
sent on only while it is CONFIRMED or RETIRED; each carrier pins it, until the receiver
has accepted it or is lost, and a pinned reference stays listed; a released reference is
unlisted by a message that follows, in order, the message that listed it.

A carrier is identified by a key that its machine chooses: ("call", peer, number) or
("answer", peer, number), once for each direction.  It is sent only when each of its
references can be sent, and reported to the agent only when each is listed by its owner;
one dead reference ends the carrier, which is then neither sent nor reported.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum

from everyorder.runtime.rpc.protocol.events import Freed
from everyorder.runtime.rpc.protocol.identities import Fork, ForkId, RRefId, WorkerNode

Key = Hashable


class CarrierStatus(Enum):
    """The state of a carrier after a step."""

    READY = "it can be sent, or reported"
    WAITS = "a verdict follows, unless it is withdrawn, forgotten, or its peer is lost"
    DEAD = "one of its references is dead"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result for a carrier that waited; `forks` are the references of an outgoing
    one.
    """

    key: Key
    incoming: bool
    status: CarrierStatus
    forks: tuple[Fork, ...] = ()


@dataclass(slots=True)
class Outgoing:
    """An outgoing carrier: `carries` as the agent passed them.

    `via` is the reference through which a call fetches a value of `peer`.  While the
    carrier waits, it pins the agent's references by fork, and its own values by id.
    """

    peer: WorkerNode
    carries: tuple[Fork | RRefId, ...]
    via: ForkId | None = None

    def references(self) -> list[ForkId]:
        """Return the needed references to values of other workers, each once."""
        forks = [item.fork for item in self.carries if isinstance(item, Fork)]
        if self.via is not None:
            forks.append(self.via)
        return list(dict.fromkeys(forks))

    def values(self) -> list[RRefId]:
        """Return the values that the carrier holds references to, each once."""
        rrefs = (i.rref if isinstance(i, Fork) else i for i in self.carries)
        return list(dict.fromkeys(rrefs))


@dataclass(slots=True)
class Incoming:
    """A received carrier: `awaited` are the forks that are not listed yet.

    `parked` means that the creation of `target` is not reported yet; `creates` is the
    value that the carrier creates.
    """

    peer: WorkerNode
    forks: list[Fork] = field(default_factory=list)
    awaited: dict[ForkId, None] = field(default_factory=dict)
    creates: RRefId | None = None
    target: RRefId | None = None
    parked: bool = False

    def state(self) -> Hashable:
        """Return the complete state, as a value."""
        return (
            self.peer,
            tuple(self.forks),
            tuple(sorted(self.awaited)),
            self.creates,
            self.target,
            self.parked,
        )


@dataclass(frozen=True, slots=True)
class SentFork:
    """A fork that was sent to `peer`, which has not accepted it; it pins `parent`."""

    peer: WorkerNode
    parent: ForkId


@dataclass(slots=True)
class Owned:
    """A value of this worker, to which other workers may refer.

    `reported` means that the agent knows the value; before, it is only being created.
    """

    reported: bool = False
    handles: int = 0
    forks: dict[ForkId, WorkerNode] = field(default_factory=dict)
    holds: dict[Hashable, None] = field(default_factory=dict)


class Owners:
    """The table of this worker's values; `freed` are those without any holder.

    `listed` maps a fork to its value; `fenced` are forks of users that are lost and not
    expired: they stay listed, and forks that such a user receives later are not among
    them.
    """

    __slots__ = ("fenced", "freed", "listed", "values")

    def __init__(self) -> None:
        self.values: dict[RRefId, Owned] = {}
        self.listed: dict[ForkId, RRefId] = {}
        self.fenced: dict[ForkId, WorkerNode] = {}
        self.freed: list[Freed] = []

    def own(self, rref: RRefId) -> None:
        """Add a handle of the agent; the first one registers the value."""
        owned = self.values.setdefault(rref, Owned())
        owned.reported = True
        owned.handles += 1

    def disown(self, rref: RRefId) -> None:
        """Remove a handle; without effect if there is none."""
        owned = self.values.get(rref)
        if owned is not None and owned.handles:
            owned.handles -= 1
            self._settle(rref, owned)

    def create(
        self, rref: RRefId, fork: ForkId, user: WorkerNode, hold: Hashable
    ) -> bool:
        """Register a value at the request of a user; return False if it exists."""
        if rref in self.values or fork in self.listed:
            return False
        self.values[rref] = Owned(forks={fork: user}, holds={hold: None})
        self.listed[fork] = rref
        return True

    def report(self, rref: RRefId) -> None:
        """Mark a value whose creation is reported to the agent."""
        self.values[rref].reported = True

    def abandon(self, rref: RRefId) -> None:
        """Remove a value whose creation will never be reported to the agent."""
        for fork in self.values.pop(rref).forks:
            self._unlisted(fork)

    def list(self, rref: RRefId, fork: ForkId, user: WorkerNode) -> bool:
        """List a reference of a user; return False if the value is unknown."""
        owned = self.values.get(rref)
        if owned is None or fork in self.listed:
            return False
        owned.forks[fork] = user
        self.listed[fork] = rref
        return True

    def unlist(self, fork: ForkId, user: WorkerNode | None = None) -> None:
        """Unlist a reference of a user; without effect if it is not listed."""
        rref = self.listed.get(fork)
        if rref is None:
            return
        owned = self.values[rref]
        if user is None or owned.forks[fork] == user:
            del owned.forks[fork]
            self._unlisted(fork)
            self._settle(rref, owned)

    def hold(self, rref: RRefId, hold: Hashable) -> bool:
        """Keep a value until `release`; return False if it is unknown."""
        owned = self.values.get(rref)
        if owned is None:
            return False
        owned.holds[hold] = None
        return True

    def release(self, rref: RRefId, hold: Hashable) -> None:
        """End a hold; without effect if there is none."""
        owned = self.values.get(rref)
        if owned is not None and hold in owned.holds:
            del owned.holds[hold]
            self._settle(rref, owned)

    def fence(self, user: WorkerNode) -> None:
        """Mark the forks of a lost user: they are released when the user expires."""
        for owned in self.values.values():
            for fork, node in owned.forks.items():
                if node == user:
                    self.fenced[fork] = user

    def expire(self, user: WorkerNode) -> None:
        """Release the fenced forks of a lost user."""
        for fork, node in tuple(self.fenced.items()):
            if node == user:
                self.unlist(fork)

    def _unlisted(self, fork: ForkId) -> None:
        del self.listed[fork]
        self.fenced.pop(fork, None)

    def _settle(self, rref: RRefId, owned: Owned) -> None:
        if not (owned.handles or owned.forks or owned.holds):
            del self.values[rref]
            if owned.reported:
                self.freed.append(Freed(rref))

    def state(self) -> Hashable:
        """Return the complete state, as a value."""
        return tuple(
            (
                rref,
                owned.reported,
                owned.handles,
                tuple(
                    (fork, node, fork in self.fenced)
                    for fork, node in sorted(owned.forks.items())
                ),
                tuple(sorted(owned.holds, key=repr)),
            )
            for rref, owned in sorted(self.values.items())
        )


class Use(Enum):
    """The state of a reference at its user."""

    # The hash of a plain object: that of `Enum` is a Python function, called at each
    # step.
    __hash__ = object.__hash__

    PLANNED = "planned"
    ASKED = "asked"
    UNWANTED = "unwanted"
    FORSAKEN = "forsaken"
    UNKNOWN = "unknown"
    PENDING = "pending"
    LISTED = "listed"
    CONFIRMED = "confirmed"
    RETIRED = "retired"


class ReferenceChange(Enum):
    """A change of a reference."""

    __hash__ = object.__hash__

    SENT = "the call that creates it is sent"
    ANSWERED = "the call that creates it is answered"
    FAILED = "the call that creates it ended without an answer"
    INTRODUCED = "its owner became a member"
    UNHEARD = "its owner did not become a member in time"
    REGISTERED = "its owner lists it"
    REFUSED = "its owner does not have the value"
    TOLD = "its carrier is reported to the agent"
    FORGOTTEN = "its carrier will not be reported"
    DROPPED = "the agent drops it"
    UNPINNED = "it has no carriers any more"
    LOST = "its owner is lost"


class CarrierEvent(Enum):
    """An action that follows from a change."""

    REGISTER = "ask the owner to list it"
    ACCEPT = "let the sender release its own"
    DELETE = "ask the owner to unlist it"
    BREAK = "end its carrier"
    DIE = "report to the agent that it is dead"
    CONFIRM = "report to the agent that it is confirmed"


# The next state, None for the end, and the actions.  An absent pair cannot occur: the
# machine checks every message of a peer before.
TABLE: dict[
    tuple[Use, ReferenceChange], tuple[Use | None, tuple[CarrierEvent, ...]]
] = {
    (Use.PLANNED, ReferenceChange.SENT): (Use.ASKED, ()),
    (Use.PLANNED, ReferenceChange.FAILED): (None, (CarrierEvent.DIE,)),
    (Use.PLANNED, ReferenceChange.DROPPED): (Use.UNWANTED, ()),
    (Use.PLANNED, ReferenceChange.LOST): (None, (CarrierEvent.DIE,)),
    (Use.UNWANTED, ReferenceChange.SENT): (Use.FORSAKEN, ()),
    (Use.UNWANTED, ReferenceChange.FAILED): (None, ()),
    (Use.UNWANTED, ReferenceChange.LOST): (None, ()),
    (Use.ASKED, ReferenceChange.ANSWERED): (Use.CONFIRMED, (CarrierEvent.CONFIRM,)),
    (Use.ASKED, ReferenceChange.FAILED): (
        None,
        (CarrierEvent.DELETE, CarrierEvent.DIE),
    ),
    (Use.ASKED, ReferenceChange.DROPPED): (Use.FORSAKEN, ()),
    (Use.ASKED, ReferenceChange.LOST): (None, (CarrierEvent.DIE,)),
    (Use.FORSAKEN, ReferenceChange.ANSWERED): (Use.RETIRED, ()),
    (Use.FORSAKEN, ReferenceChange.FAILED): (None, (CarrierEvent.DELETE,)),
    (Use.FORSAKEN, ReferenceChange.LOST): (None, ()),
    (Use.UNKNOWN, ReferenceChange.INTRODUCED): (Use.PENDING, (CarrierEvent.REGISTER,)),
    (Use.UNKNOWN, ReferenceChange.UNHEARD): (
        None,
        (CarrierEvent.ACCEPT, CarrierEvent.BREAK),
    ),
    (Use.UNKNOWN, ReferenceChange.FORGOTTEN): (None, (CarrierEvent.ACCEPT,)),
    (Use.PENDING, ReferenceChange.REGISTERED): (Use.LISTED, (CarrierEvent.ACCEPT,)),
    (Use.PENDING, ReferenceChange.REFUSED): (
        None,
        (CarrierEvent.ACCEPT, CarrierEvent.BREAK),
    ),
    (Use.PENDING, ReferenceChange.LOST): (
        None,
        (CarrierEvent.ACCEPT, CarrierEvent.BREAK),
    ),
    (Use.PENDING, ReferenceChange.FORGOTTEN): (
        None,
        (CarrierEvent.ACCEPT, CarrierEvent.DELETE),
    ),
    (Use.LISTED, ReferenceChange.TOLD): (Use.CONFIRMED, ()),
    (Use.LISTED, ReferenceChange.FORGOTTEN): (None, (CarrierEvent.DELETE,)),
    (Use.LISTED, ReferenceChange.LOST): (None, (CarrierEvent.BREAK,)),
    (Use.CONFIRMED, ReferenceChange.DROPPED): (Use.RETIRED, ()),
    (Use.CONFIRMED, ReferenceChange.LOST): (None, (CarrierEvent.DIE,)),
    (Use.RETIRED, ReferenceChange.UNPINNED): (None, (CarrierEvent.DELETE,)),
    (Use.RETIRED, ReferenceChange.LOST): (None, ()),
}

# The agent holds the reference.
HELD = frozenset({Use.PLANNED, Use.ASKED, Use.CONFIRMED})
# The owner lists the reference, and continues to list it.
SENDABLE = frozenset({Use.CONFIRMED, Use.RETIRED})
# The call that creates it is not sent, or not answered.
UNSENT = frozenset({Use.PLANNED, Use.UNWANTED})
UNANSWERED = frozenset({Use.ASKED, Use.FORSAKEN})


@dataclass(slots=True)
class Used:
    """One reference at its user.

    `source` is the call that creates it, or the carrier that it arrived with, as long
    as that matters; `sender` is the worker that sent it.  `pins` are the carriers that
    wait for it, and its children: forks that were sent and not accepted.
    """

    fork: Fork
    use: Use
    source: Hashable
    sender: WorkerNode
    pins: dict[Hashable, None] = field(default_factory=dict)


class Users:
    """The table of a worker's references."""

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used: dict[ForkId, Used] = {}

    def add(self, fork: Fork, use: Use, source: Hashable, sender: WorkerNode) -> None:
        """Add a reference."""
        self.used[fork.fork] = Used(fork, use, source, sender)

    def change(self, used: Used, change: ReferenceChange) -> tuple[CarrierEvent, ...]:
        """Take one step of the table; return the actions."""
        after, acts = TABLE[used.use, change]
        if after is None:
            del self.used[used.fork.fork]
        else:
            used.use = after
        return acts

    def of(self, owner: WorkerNode) -> list[Used]:
        """Return the references to values of one owner, in order."""
        return [used for used in self.used.values() if used.fork.owner == owner]

    def state(self) -> Hashable:
        """Return the complete state, as a value."""
        return tuple(
            (
                fork,
                used.use.value,
                used.fork,
                repr(used.source) if used.use is not Use.CONFIRMED else "",
                used.sender,
                tuple(sorted(used.pins, key=repr)),
            )
            for fork, used in sorted(self.used.items())
        )
