"""Carriers: calls and answers that hold references, on their way out and in.

True only here: which references a carrier waits for, and what it became.

A carrier is named by a key that its machine chooses: ("call", peer, number) or
("answer", peer, number), once for each direction.

Rules: a carrier is sent only when every reference that it holds can be sent, and told
to the agent only when every reference is listed by its owner; one dead reference ends
the carrier, and nothing of it is sent, or told.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum

from runtime.rpc.identities import Fork, ForkId, Node, RRefId

Key = Hashable


class Fate(Enum):
    """What became of a carrier."""

    READY = "it can be sent, or told"
    WAITS = "a verdict follows, unless it is withdrawn, forgotten, or its peer is lost"
    DEAD = "a reference of it is dead"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a carrier that waited; `forks` are what an outgoing one holds."""

    key: Key
    incoming: bool
    fate: Fate
    forks: tuple[Fork, ...] = ()


@dataclass(slots=True)
class Outgoing:
    """A carrier that is to be sent: `carries` as the agent gave them.

    `via` is the reference through which a call fetches a value of `peer`.  What it
    waits with is pinned: own references by their forks, own values by their names.
    """

    peer: Node
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

    peer: Node
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
class Child:
    """A fork that was sent to `peer`, which has not accepted it; it pins `parent`."""

    peer: Node
    parent: ForkId
