"""Members: the workers of a group, and their numbers.

One member, the keeper, has the list.  A worker that wants to join asks it by a note,
until it is answered; the answer holds the number of the new member and all others.
Later changes travel on the channels of the keeper: each member hears of them once, and
in order.

Rules:
- a name and a number belong to one member.  A worker that joins with those of another
  one takes them over if it listens at the same endpoint with the same key, as its next
  life; else it is rejected when the other is known to live after the request, and
  admitted when the other is lost;
- a group of `world_size` has so many members at most;
- a member that the keeper loses is a member no more, and is not told: it notices that
  its own keeper is lost, and asks to be admitted again, in the same life;
- a worker whose shared settings are not the keeper's is rejected;
- a worker keeps its number for its life, as others know it and its values by that;
- without a keeper nobody joins; the others stay members for each other until they lose
  each other, or the one of the lowest number has lost them, which asks for the end;
- a note of another group, or about another life of this worker, changes nothing; nor
  does an answer with another key than that of who was asked.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import inf

from everyorder.runtime.rpc.protocol.events import (
    NOT_UNIQUE,
    Admitted,
    Event,
    Joined,
    Lost,
    Reason,
    Rejected,
)
from everyorder.runtime.rpc.protocol.identities import (
    LARGEST_ID,
    WORKER_NAME,
    WorkerNode,
)
from everyorder.runtime.rpc.protocol.messages import MemberJoined, MemberLeft, Message
from everyorder.runtime.rpc.protocol.wire import (
    Admission,
    Join,
    Member,
    Note,
    PacketKind,
    Rejection,
)

ALONE, JOINING, MEMBER, KEEPER, REJECTED = (
    "ALONE",
    "JOINING",
    "MEMBER",
    "KEEPER",
    "REJECTED",
)

# What is not here is not legal: whoever asks looks before.
TRANSITIONS: dict[tuple[str, str], str] = {
    (ALONE, "keep"): KEEPER,
    (ALONE, "join"): JOINING,
    (JOINING, "admitted"): MEMBER,
    (JOINING, "rejected"): REJECTED,
    (MEMBER, "keeper lost"): MEMBER,
    (MEMBER, "admitted"): MEMBER,
    (MEMBER, "rejected"): REJECTED,
    (REJECTED, "join"): JOINING,
}

# Seconds between two requests to be admitted; those of who was a member are rarer.
_AGAIN = 0.2
_AGAIN_LATER = 1.0
# The name of a figure: how many workers a static group has.
_SIZE = "world_size"


@dataclass(frozen=True, slots=True)
class OutgoingNote:
    """A note to an endpoint; `target` is the incarnation there, 0 if not known."""

    endpoint: str
    kind: PacketKind
    note: Note
    target: int


class MembershipMachine:
    """The machine of members.

    `proven` tells since when a member is known to be there.  Besides `out` and `events`
    there are `letters`, notes to be sent, and `changes`: members with whom a channel
    may begin, and those who left, with the reason.
    """

    def __init__(
        self,
        node: WorkerNode,
        endpoint: str,
        key: str,
        proven: Callable[[WorkerNode], float],
        shared: tuple[tuple[str, float], ...] = (),
    ) -> None:
        self.out: list[tuple[WorkerNode, Message]] = []
        self.events: list[Event] = []
        self.letters: list[OutgoingNote] = []
        self.changes: list[Member | tuple[WorkerNode, Reason]] = []
        self.node = node
        self.status = ALONE
        self.keeper: WorkerNode | None = None
        self.group = 0
        self.world_size: int | None = None
        self._endpoint = endpoint
        self._key = key
        self._proven = proven
        self._shared = shared
        self._members: dict[int, Member] = {}
        # Whom to ask, for which number, and when.
        self._meeting = ""
        self._wanted: int | None = None
        self._ask_at = inf
        # Since when a name or a number is asked for that belongs to another member.
        self._disputed: dict[int, float] = {}

    def _move(self, what: str) -> None:
        self.status = TRANSITIONS[self.status, what]

    # What is asked of it.

    def keep(self, world_size: int | None, number: int) -> None:
        """Become the keeper of a group; this worker is its first member."""
        self._move("keep")
        self.world_size = world_size
        self.group = self.node.incarnation
        self.node = self.keeper = self.node._replace(id=number)
        self._put(Member(self.node, self._endpoint, self._key))
        self.events.append(Admitted(self.node, world_size))

    def join(
        self,
        meeting: str,
        wanted: int | None,
        now: float,
        world_size: int | None = None,
    ) -> None:
        """Ask the keeper at an endpoint to be admitted, to a group of such a size."""
        self._move("join")
        if world_size is not None:
            self._shared += ((_SIZE, float(world_size)),)
        self._meeting = meeting
        self._wanted = wanted if self.node.id < 0 else self.node.id
        self._ask(now)

    def members(self) -> tuple[WorkerNode, ...]:
        """All members, this worker among them, by number."""
        return tuple(
            sorted(
                (each.node for each in self._members.values()),
                key=lambda node: node.id,
            )
        )

    def member(self, incarnation: int) -> Member | None:
        """The member of an incarnation."""
        return self._members.get(incarnation)

    def _ask(self, now: float) -> None:
        name = self.node.name
        join = Join(name, self._endpoint, self._key, self._wanted, self._shared)
        self.letters.append(OutgoingNote(self._meeting, PacketKind.JOIN, join, 0))
        self._ask_at = now + (_AGAIN if self.status == JOINING else _AGAIN_LATER)

    def due(self) -> float:
        """When `tick` has something to do."""
        return self._ask_at

    def tick(self, now: float) -> None:
        """Ask again to be admitted."""
        if now >= self._ask_at:
            self._ask(now)

    # Notes.

    def note(self, source: int, note: Note, now: float) -> None:
        """A note came from an incarnation."""
        if isinstance(note, Join):
            if self.status == KEEPER:
                self._join(source, note, now)
        elif isinstance(note, Admission):
            self._admitted(source, note)
        elif isinstance(note, Rejection) and self._ask_at < inf:
            if self.keeper is None and self.status == MEMBER and self.group != source:
                # Another group has begun where this one's was: it is not asked again.
                self._ask_at = inf
                return
            self._ask_at = inf
            self._move("rejected")
            self.events.append(Rejected(note.why))

    def believes(self, note: Note, key: str) -> bool:
        """Whether an answer with this key is of who was asked, as far as it is known.

        Who is admitted knows the key that the meeting's endpoint names; a keeper has
        the key that it says.
        """
        wanted = self._meeting.partition("#")[2]
        if wanted and key != wanted:
            return False
        if isinstance(note, Admission) and note.members:
            return note.members[0].key == key
        return True

    def _join(self, source: int, join: Join, now: float) -> None:
        found = self._members.get(source)
        if found is not None:
            if found.endpoint == join.endpoint and found.node.name == join.name:
                self._admit(found)
            return
        why = self._differs(join)
        if why:
            self._reject(source, join, why)
            return
        others = [
            each
            for each in self._members.values()
            if each.node.name == join.name or each.node.id == join.id
        ]
        for other in others:
            same = (other.endpoint, other.key) == (join.endpoint, join.key)
            if same and other.node != self.node:
                # Two cannot listen at one endpoint, so the other one is gone.
                self._remove(other.node, Reason.RESTARTED)
                continue
            since = self._disputed.setdefault(source, now)
            if other.node != self.node and self._proven(other.node) <= since:
                # Perhaps it is gone: who asks will ask again.
                return
            del self._disputed[source]
            self._reject(source, join, _taken(join, other.node))
            return
        self._disputed.pop(source, None)
        size = self.world_size
        if not WORKER_NAME.fullmatch(join.name):
            self._reject(source, join, f"a worker cannot be called `{join.name}`")
            return
        if join.id is not None and join.id > LARGEST_ID:
            self._reject(source, join, f"worker id {join.id} is above {LARGEST_ID}")
            return
        if size is not None and len(self._members) >= size:
            self._reject(source, join, f"all {size} workers of the group are there")
            return
        if size is not None and join.id is not None and join.id >= size:
            why = f"worker id {join.id} is not below the group's size, {size}"
            self._reject(source, join, why)
            return
        taken = {each.node.id for each in self._members.values()}
        free = next(n for n in range(len(taken) + 1) if n not in taken)
        number = free if join.id is None else join.id
        node = WorkerNode(join.name, number, source)
        self._announce(Member(node, join.endpoint, join.key))

    def _differs(self, join: Join) -> str:
        """Which figures of who asks are not those of the group; "" if none is."""
        own: dict[str, float | None] = {**dict(self._shared), _SIZE: self.world_size}
        return "; ".join(
            f"it has {name} = {figure:g}, and the group has {_said(own[name])}"
            for name, figure in join.shared
            if name in own and own[name] != figure
        )

    def _announce(self, member: Member) -> None:
        others = [each for each in self._members.values() if each.node != self.node]
        self._tell(MemberJoined(member))
        self._put(member)
        self._admit(member)
        # It may have the answer to an earlier request, and look at no other one.
        for each in others:
            self.out.append((member.node, MemberJoined(each)))

    def _tell(self, message: Message) -> None:
        """Tell all other members something."""
        for each in self._members.values():
            if each.node != self.node:
                self.out.append((each.node, message))

    def _admit(self, member: Member) -> None:
        mine = self._members[self.node.incarnation]
        rest = [each for each in self._members.values() if each is not mine]
        note = Admission(member.node, (mine, *rest), self.world_size)
        target = member.node.incarnation
        self.letters.append(
            OutgoingNote(member.endpoint, PacketKind.ADMITTED, note, target)
        )

    def _reject(self, source: int, join: Join, why: str) -> None:
        self.letters.append(
            OutgoingNote(join.endpoint, PacketKind.REJECTED, Rejection(why), source)
        )

    def _admitted(self, source: int, note: Admission) -> None:
        keeper = note.members[0].node if note.members else None
        if (
            self._ask_at == inf
            or keeper is None
            or keeper.incarnation != source
            or note.node.incarnation != self.node.incarnation
            or note.node.name != self.node.name
        ):
            return
        if self.status == MEMBER and self.group != source:
            # Another group has begun where this one's was: this one goes on.
            self._ask_at = inf
            return
        self._move("admitted")
        self._ask_at = inf
        self.group = source
        self.keeper = keeper
        self.node = note.node
        self.world_size = note.world_size
        self.events.append(Admitted(note.node, note.world_size))
        there = {each.node.incarnation for each in note.members}
        for each in list(self._members.values()):
            if each.node.incarnation not in there:
                # Of the keeper's members no more, and there perhaps all the same.
                self._remove(each.node, Reason.LOST)
        for each in note.members:
            self._put(each)

    # The list.

    def _put(self, member: Member) -> None:
        incarnation = member.node.incarnation
        if self._members.get(incarnation) == member:
            return
        self._members[incarnation] = member
        if incarnation != self.node.incarnation:
            self.changes.append(member)
            self.events.append(Joined(member.node))

    def _remove(self, node: WorkerNode, reason: Reason) -> None:
        if self._members.pop(node.incarnation, None) is None:
            return
        self.changes.append((node, reason))
        self.events.append(Lost(node, reason))
        if self.status == KEEPER:
            self._tell(MemberLeft(node, reason))
        elif node == self.keeper:
            self.keeper = None

    def left(self, node: WorkerNode) -> None:
        """A member said goodbye."""
        self._remove(node, Reason.LEFT)

    # The machine.

    def receive(self, peer: WorkerNode, message: Message, now: float) -> None:
        """A message came; those of the keeper count."""
        if peer != self.keeper:
            return
        if isinstance(message, MemberJoined):
            self._put(message.member)
        elif isinstance(message, MemberLeft) and message.node != self.node:
            self._remove(message.node, message.reason)

    def lost(self, peer: WorkerNode, reason: Reason, now: float) -> None:
        """The channel to a peer ended."""
        if self.status == KEEPER:
            self._remove(peer, reason)
        elif peer == self.keeper:
            self._remove(peer, reason)
            self._move("keeper lost")
            self._wanted = self.node.id
            self._ask_at = now + _AGAIN_LATER
        elif self.keeper is None and self.status in (MEMBER, REJECTED):
            self._remove(peer, reason)

    def counted(self, peer: WorkerNode, members: tuple[int, ...]) -> None:
        """A peer told which members it counts; without a keeper the lowest is right."""
        if self.keeper is None and self.members()[:1] == (peer,):
            for each in self.members():
                if each != self.node and each.incarnation not in members:
                    self._remove(each, Reason.LOST)

    def expired(self, peer: WorkerNode, now: float) -> None:
        """Nothing: who is lost is a member no more."""

    def state(self, now: float) -> Hashable:
        """Everything that it knows; times are relative."""
        return (
            self.node,
            self.status,
            self.keeper,
            self.group,
            self.world_size,
            tuple(self._members[each] for each in sorted(self._members)),
            self._meeting,
            self._wanted,
            None if self._ask_at == inf else round(self._ask_at - now, 6),
            tuple(
                (who, round(t - now, 6)) for who, t in sorted(self._disputed.items())
            ),
        )


def _taken(join: Join, other: WorkerNode) -> str:
    """Why somebody is rejected whose name or number another member has."""
    if other.name == join.name:
        return f"RPC worker name {join.name} {NOT_UNIQUE}: worker {other.id} has it"
    return f"RPC worker id {join.id} {NOT_UNIQUE}: worker {other.name} has it"


def _said(figure: float | None) -> str:
    return "none" if figure is None else f"{figure:g}"
