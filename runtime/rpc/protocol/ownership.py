"""Ownership: the tables of references, which say who holds what, and when it is freed.

    Owners      a worker's own values that others refer to
    Users       its references to the values of others, each in a state of `TABLE`
    Outgoing, Incoming    carriers: calls and answers that hold references

`runtime.rpc.protocol.reference_machine` is the machine that changes them.

An own value is kept while any of these is there, and freed when none is:

    listed   forks: references of users, listed by name, never counted; this worker's
             own references that travelled are among them
    handles  of the owner: `own` and `disown`
    holds    of carriers: a call that creates or fetches it, until it is replied to; a
             call or an answer that is not sent yet

Whoever makes a value known lists its first fork or hold in the same step, so a value is
never without a reason between two; listing and unlisting are idempotent; a value that
was freed is not known, and its name is never used again.

The life of one reference at its user:

    PLANNED     `remote` was called; the call is not sent yet
    ASKED       it is sent, and not answered
    UNWANTED    PLANNED, and the agent has let go
    FORSAKEN    ASKED, and the agent has let go: the end of the call is awaited
    UNKNOWN     it arrived with a call or an answer; its owner is no member yet
    PENDING     it arrived; the owner is asked to list it
    LISTED      the owner lists it; what it arrived with still waits for others
    CONFIRMED   the agent has it
    RETIRED     the agent has let go; what carries it to others needs it listed

A reference that is in no state is dead, or was never there: the two are the same.  It
is sent on only while it is CONFIRMED or RETIRED; it is pinned by whatever carries it,
until the receiver has accepted it or is lost, and a pinned reference stays listed; what
is let go of is unlisted, by a message that follows in order whatever made the owner
list it.

A carrier is named by a key that its machine chooses: ("call", peer, number) or
("answer", peer, number), once for each direction.  It is sent only when every reference
that it holds can be sent, and told to the agent only when every reference is listed by
its owner; one dead reference ends the carrier, and nothing of it is sent, or told.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum

from everyorder.runtime.rpc.protocol.events import Freed
from everyorder.runtime.rpc.protocol.identities import Fork, ForkId, RRefId, WorkerNode

Key = Hashable


class CarrierStatus(Enum):
    """What became of a carrier."""

    READY = "it can be sent, or told"
    WAITS = "a verdict follows, unless it is withdrawn, forgotten, or its peer is lost"
    DEAD = "a reference of it is dead"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a carrier that waited; `forks` are what an outgoing one holds."""

    key: Key
    incoming: bool
    fate: CarrierStatus
    forks: tuple[Fork, ...] = ()


@dataclass(slots=True)
class Outgoing:
    """A carrier that is to be sent: `carries` as the agent gave them.

    `via` is the reference through which a call fetches a value of `peer`.  What it
    waits with is pinned: own references by their forks, own values by their names.
    """

    peer: WorkerNode
    carries: tuple[Fork | RRefId, ...]
    via: ForkId | None = None

    def references(self) -> list[ForkId]:
        """The references to values of others that it needs, each once."""
        forks = [item.fork for item in self.carries if isinstance(item, Fork)]
        if self.via is not None:
            forks.append(self.via)
        return list(dict.fromkeys(forks))

    def values(self) -> list[RRefId]:
        """The values that it holds references to, each once."""
        found = (i.rref if isinstance(i, Fork) else i for i in self.carries)
        return list(dict.fromkeys(found))


@dataclass(slots=True)
class Incoming:
    """A carrier that came: `awaited` are the forks that are not listed yet.

    `parked` is the value whose creation was not told yet; `creates` is the value that
    it creates itself.
    """

    peer: WorkerNode
    forks: list[Fork] = field(default_factory=list)
    awaited: dict[ForkId, None] = field(default_factory=dict)
    creates: RRefId | None = None
    target: RRefId | None = None
    parked: bool = False

    def state(self) -> Hashable:
        """Everything, as a value."""
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
    """A value of this worker, as others may refer to it.

    `told` says that the agent knows of it; until then it is only being created.
    """

    told: bool = False
    handles: int = 0
    forks: dict[ForkId, WorkerNode] = field(default_factory=dict)
    holds: dict[Hashable, None] = field(default_factory=dict)


class Owners:
    """The table of this worker's values; `freed` are those that nobody needs now.

    `listed` finds the value of a fork; `fenced` are forks of users that are lost and
    not expired: they stay listed, and what the same user gets anew is not among them.
    """

    __slots__ = ("fenced", "freed", "listed", "values")

    def __init__(self) -> None:
        self.values: dict[RRefId, Owned] = {}
        self.listed: dict[ForkId, RRefId] = {}
        self.fenced: dict[ForkId, WorkerNode] = {}
        self.freed: list[Freed] = []

    def own(self, rref: RRefId) -> None:
        """One more handle of the agent; the first makes the value known."""
        owned = self.values.setdefault(rref, Owned())
        owned.told = True
        owned.handles += 1

    def disown(self, rref: RRefId) -> None:
        """One handle less; nothing where there is none."""
        owned = self.values.get(rref)
        if owned is not None and owned.handles:
            owned.handles -= 1
            self._settle(rref, owned)

    def create(
        self, rref: RRefId, fork: ForkId, user: WorkerNode, hold: Hashable
    ) -> bool:
        """Make a value known that a user has asked for; False where it is already."""
        if rref in self.values or fork in self.listed:
            return False
        self.values[rref] = Owned(forks={fork: user}, holds={hold: None})
        self.listed[fork] = rref
        return True

    def tell(self, rref: RRefId) -> None:
        """The agent is told to create the value."""
        self.values[rref].told = True

    def abandon(self, rref: RRefId) -> None:
        """The agent will never be told to create the value: it is forgotten."""
        for fork in self.values.pop(rref).forks:
            self._unlisted(fork)

    def list(self, rref: RRefId, fork: ForkId, user: WorkerNode) -> bool:
        """A user has a reference; False where the value is not known."""
        owned = self.values.get(rref)
        if owned is None or fork in self.listed:
            return False
        owned.forks[fork] = user
        self.listed[fork] = rref
        return True

    def unlist(self, fork: ForkId, user: WorkerNode | None = None) -> None:
        """A user has let go of a reference; nothing where it has none of that name."""
        rref = self.listed.get(fork)
        if rref is None:
            return
        owned = self.values[rref]
        if user is None or owned.forks[fork] == user:
            del owned.forks[fork]
            self._unlisted(fork)
            self._settle(rref, owned)

    def hold(self, rref: RRefId, hold: Hashable) -> bool:
        """Keep a value until `release`; False where it is not known."""
        owned = self.values.get(rref)
        if owned is None:
            return False
        owned.holds[hold] = None
        return True

    def release(self, rref: RRefId, hold: Hashable) -> None:
        """End a hold; nothing where there is none."""
        owned = self.values.get(rref)
        if owned is not None and hold in owned.holds:
            del owned.holds[hold]
            self._settle(rref, owned)

    def fence(self, user: WorkerNode) -> None:
        """A user is lost: what it has is released when it expires, and not before."""
        for owned in self.values.values():
            for fork, node in owned.forks.items():
                if node == user:
                    self.fenced[fork] = user

    def expire(self, user: WorkerNode) -> None:
        """A user that was lost holds nothing any more."""
        for fork, node in tuple(self.fenced.items()):
            if node == user:
                self.unlist(fork)

    def _unlisted(self, fork: ForkId) -> None:
        del self.listed[fork]
        self.fenced.pop(fork, None)

    def _settle(self, rref: RRefId, owned: Owned) -> None:
        if not (owned.handles or owned.forks or owned.holds):
            del self.values[rref]
            if owned.told:
                self.freed.append(Freed(rref))

    def state(self) -> Hashable:
        """Everything, as a value."""
        return tuple(
            (
                rref,
                owned.told,
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
    """Where a reference stands at its user."""

    # As any object: that of `Enum` is a function of Python, and asked for each step.
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
    """What happens to a reference."""

    __hash__ = object.__hash__

    SENT = "the call that creates it is sent"
    ANSWERED = "the call that creates it is answered"
    FAILED = "the call that creates it ended without an answer"
    INTRODUCED = "its owner became a member"
    UNHEARD = "its owner did not become a member in time"
    REGISTERED = "its owner lists it"
    REFUSED = "its owner does not know the value"
    TOLD = "the agent is told of what it arrived with"
    FORGOTTEN = "the agent will not be told"
    DROPPED = "the agent lets go of it"
    UNPINNED = "nothing carries it any more"
    LOST = "its owner is lost"


class CarrierEvent(Enum):
    """What is done about it."""

    REGISTER = "ask the owner to list it"
    ACCEPT = "let the sender go"
    DELETE = "ask the owner to unlist it"
    BREAK = "end what it arrived with"
    DIE = "tell the agent that it is dead"
    CONFIRM = "tell the agent that it is confirmed"


# What follows, None where nothing is left, and what is done.  An absent pair cannot
# happen: whatever a peer says is checked before.
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

# The agent holds it.
HELD = frozenset({Use.PLANNED, Use.ASKED, Use.CONFIRMED})
# The owner lists it, and goes on listing it.
SENDABLE = frozenset({Use.CONFIRMED, Use.RETIRED})
# The call that creates it is not sent, or not answered.
UNSENT = frozenset({Use.PLANNED, Use.UNWANTED})
UNANSWERED = frozenset({Use.ASKED, Use.FORSAKEN})


@dataclass(slots=True)
class Used:
    """One reference at its user.

    `source` names the call that creates it, or the carrier that it arrived with, as
    long as that matters; `sender` is where it came from.  `pins` are the carriers that
    wait with it, and its children: forks that were sent and not accepted.
    """

    fork: Fork
    use: Use
    source: Hashable
    sender: WorkerNode
    pins: dict[Hashable, None] = field(default_factory=dict)


class Users:
    """The table of a worker's references, with an index by value."""

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used: dict[ForkId, Used] = {}

    def add(self, fork: Fork, use: Use, source: Hashable, sender: WorkerNode) -> None:
        """A reference begins."""
        self.used[fork.fork] = Used(fork, use, source, sender)

    def change(self, used: Used, change: ReferenceChange) -> tuple[CarrierEvent, ...]:
        """Take one step of the table; what is to be done comes back."""
        after, acts = TABLE[used.use, change]
        if after is None:
            del self.used[used.fork.fork]
        else:
            used.use = after
        return acts

    def of(self, owner: WorkerNode) -> list[Used]:
        """The references to values of one owner, in order."""
        return [used for used in self.used.values() if used.fork.owner == owner]

    def state(self) -> Hashable:
        """Everything, as a value."""
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
