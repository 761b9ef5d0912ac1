"""Owners: what becomes of a worker's own values that others refer to.

True only here: when nobody needs a value any more.

A value is kept while any of these is there:
    listed   forks: references of users, listed by name, never counted; this worker's
             own references that travelled are among them
    handles  of the owner: `own` and `disown`
    holds    of carriers: a call that creates or fetches it, until it is replied to; a
             call or an answer that is not sent yet

Rules: whoever makes a value known lists its first fork or hold in the same step, so a
value is never without a reason between two; listing and unlisting are idempotent; a
value that was freed is not known, and its name is never used again.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field

from runtime.rpc.identities import ForkId, Node, RRefId
from runtime.rpc.session.events import Freed


@dataclass(slots=True)
class Owned:
    """A value of this worker, as others may refer to it.

    `told` says that the agent knows of it; until then it is only being created.
    """

    told: bool = False
    handles: int = 0
    forks: dict[ForkId, Node] = field(default_factory=dict)
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
        self.fenced: dict[ForkId, Node] = {}
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

    def create(self, rref: RRefId, fork: ForkId, user: Node, hold: Hashable) -> bool:
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

    def list(self, rref: RRefId, fork: ForkId, user: Node) -> bool:
        """A user has a reference; False where the value is not known."""
        owned = self.values.get(rref)
        if owned is None or fork in self.listed:
            return False
        owned.forks[fork] = user
        self.listed[fork] = rref
        return True

    def unlist(self, fork: ForkId, user: Node | None = None) -> None:
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

    def fence(self, user: Node) -> None:
        """A user is lost: what it has is released when it expires, and not before."""
        for owned in self.values.values():
            for fork, node in owned.forks.items():
                if node == user:
                    self.fenced[fork] = user

    def expire(self, user: Node) -> None:
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
