"""Users: what becomes of the references that a worker holds to values of others.

True only here: the life of one reference at its user, as a table.

    PLANNED     `remote` was called; the call is not sent yet
    ASKED       it is sent, and not answered
    UNWANTED    PLANNED, and the agent has let go
    FORSAKEN    ASKED, and the agent has let go: the end of the call is awaited
    UNKNOWN     it arrived with a call or an answer; its owner is no member yet
    PENDING     it arrived; the owner is asked to list it
    LISTED      the owner lists it; what it arrived with still waits for others
    CONFIRMED   the agent has it
    RETIRED     the agent has let go; what carries it to others needs it listed

A reference that is in no state is dead, or was never there: the two are the same.

Rules: a reference is sent on only while it is CONFIRMED or RETIRED; it is pinned by
whatever carries it, until the receiver has accepted it or is lost, and a pinned
reference stays listed; what is let go of is unlisted, by a message that follows in
order whatever made the owner list it.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum

from runtime.rpc.identities import Fork, ForkId, Node


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


class Change(Enum):
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


class Act(Enum):
    """What is done about it."""

    REGISTER = "ask the owner to list it"
    ACCEPT = "let the sender go"
    DELETE = "ask the owner to unlist it"
    BREAK = "end what it arrived with"
    DIE = "tell the agent that it is dead"
    CONFIRM = "tell the agent that it is confirmed"


# What follows, None where nothing is left, and what is done.  An absent pair cannot
# happen: whatever a peer says is checked before.
TABLE: dict[tuple[Use, Change], tuple[Use | None, tuple[Act, ...]]] = {
    (Use.PLANNED, Change.SENT): (Use.ASKED, ()),
    (Use.PLANNED, Change.FAILED): (None, (Act.DIE,)),
    (Use.PLANNED, Change.DROPPED): (Use.UNWANTED, ()),
    (Use.PLANNED, Change.LOST): (None, (Act.DIE,)),
    (Use.UNWANTED, Change.SENT): (Use.FORSAKEN, ()),
    (Use.UNWANTED, Change.FAILED): (None, ()),
    (Use.UNWANTED, Change.LOST): (None, ()),
    (Use.ASKED, Change.ANSWERED): (Use.CONFIRMED, (Act.CONFIRM,)),
    (Use.ASKED, Change.FAILED): (None, (Act.DELETE, Act.DIE)),
    (Use.ASKED, Change.DROPPED): (Use.FORSAKEN, ()),
    (Use.ASKED, Change.LOST): (None, (Act.DIE,)),
    (Use.FORSAKEN, Change.ANSWERED): (Use.RETIRED, ()),
    (Use.FORSAKEN, Change.FAILED): (None, (Act.DELETE,)),
    (Use.FORSAKEN, Change.LOST): (None, ()),
    (Use.UNKNOWN, Change.INTRODUCED): (Use.PENDING, (Act.REGISTER,)),
    (Use.UNKNOWN, Change.UNHEARD): (None, (Act.ACCEPT, Act.BREAK)),
    (Use.UNKNOWN, Change.FORGOTTEN): (None, (Act.ACCEPT,)),
    (Use.PENDING, Change.REGISTERED): (Use.LISTED, (Act.ACCEPT,)),
    (Use.PENDING, Change.REFUSED): (None, (Act.ACCEPT, Act.BREAK)),
    (Use.PENDING, Change.LOST): (None, (Act.ACCEPT, Act.BREAK)),
    (Use.PENDING, Change.FORGOTTEN): (None, (Act.ACCEPT, Act.DELETE)),
    (Use.LISTED, Change.TOLD): (Use.CONFIRMED, ()),
    (Use.LISTED, Change.FORGOTTEN): (None, (Act.DELETE,)),
    (Use.LISTED, Change.LOST): (None, (Act.BREAK,)),
    (Use.CONFIRMED, Change.DROPPED): (Use.RETIRED, ()),
    (Use.CONFIRMED, Change.LOST): (None, (Act.DIE,)),
    (Use.RETIRED, Change.UNPINNED): (None, (Act.DELETE,)),
    (Use.RETIRED, Change.LOST): (None, ()),
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
    sender: Node
    pins: dict[Hashable, None] = field(default_factory=dict)


class Users:
    """The table of a worker's references, with an index by value."""

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used: dict[ForkId, Used] = {}

    def add(self, fork: Fork, use: Use, source: Hashable, sender: Node) -> None:
        """A reference begins."""
        self.used[fork.fork] = Used(fork, use, source, sender)

    def change(self, used: Used, change: Change) -> tuple[Act, ...]:
        """Take one step of the table; what is to be done comes back."""
        after, acts = TABLE[used.use, change]
        if after is None:
            del self.used[used.fork.fork]
        else:
            used.use = after
        return acts

    def of(self, owner: Node) -> list[Used]:
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
