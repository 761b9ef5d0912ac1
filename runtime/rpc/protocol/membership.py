"""Membership: the workers of a group, and their numbers.

One member, the keeper, maintains the list.  A worker that wants to join repeats a
request to the keeper until it is answered; the answer holds the number of the new
member and all other members.  Later changes are sent on the channels of the keeper:
each member receives them once, and in order.

Rules:
- a name and a number belong to one member.  A worker that joins with those of another
  member takes them over if it listens at the same endpoint with the same key, as its
  next life; otherwise it is rejected if the other member proves to be alive after the
  request, and admitted if the other member is lost;
- a static group in which two workers want one name or number cannot become complete:
  while it is not, all members are told, as each of them waits for the others, and so is
  each worker that asks later. The keeper knows how many of them have not asked yet;
- a group of `world_size` has at most so many members.  It is `complete` from the moment
  at which the list had all of them, also if some leave afterwards: a worker that waits
  for the others need not see them all at one time.  The keeper sends each change on
  channels, so every member's list passes through that moment; a worker that is admitted
  after that moment learns it from the answer;
- a worker that the keeper loses is not a member any more, and is not notified: it
  detects that it has lost the keeper, and asks to be admitted again, in the same life;
- a worker whose shared settings differ from the keeper's is rejected;
- a worker keeps its number for its life, because other workers identify it and its
  values by the number;
- without a keeper, workers cannot join; the others stay members for each other until
  they lose each other, or until the member of the lowest number, which then coordinates
  the end, has lost them;
- a note of another group, or about another life of this worker, is ignored; so is an
  answer with another key than that of the keeper.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import inf

from everyorder.runtime.rpc.protocol.events import (
    NOT_UNIQUE,
    Admitted,
    Completed,
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

# A missing transition is illegal; callers must check.
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

# Seconds between two requests to join; a former member repeats them less often.
_AGAIN = 0.2
_AGAIN_LATER = 1.0
# The name under which the size of a static group is compared, as a setting.
_SIZE = "world_size"


@dataclass(frozen=True, slots=True)
class OutgoingNote:
    """A note to an endpoint; `target` is the incarnation there, 0 if unknown."""

    endpoint: str
    kind: PacketKind
    note: Note
    target: int


class MembershipMachine:
    """The machine of members.

    `proven` returns the time at which a member was last proven alive.  In addition to
    `out` and `events`, it fills `notes`, the notes to send, and `changes`: members to
    whom a channel may begin, and members that left, with the reason.
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
        self.notes: list[OutgoingNote] = []
        self.changes: list[Member | tuple[WorkerNode, Reason]] = []
        self.node = node
        self.status = ALONE
        self.keeper: WorkerNode | None = None
        self.group = 0
        self.world_size: int | None = None
        self.complete = False
        self._endpoint = endpoint
        self._key = key
        self._proven = proven
        self._shared = shared
        self._members: dict[int, Member] = {}
        # The endpoint to ask, the requested number, and the time of the next request.
        self._meeting = ""
        self._requested: int | None = None
        self._ask_at = inf
        # By incarnation: the time of the first request for a name or number in use.
        self._disputed: dict[int, float] = {}
        # Why the group cannot become complete, and the incarnations that know it.
        self._given_up = ""
        self._informed: set[int] = set()

    def _move(self, what: str) -> None:
        self.status = TRANSITIONS[self.status, what]

    # Requests of the session.

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
        number: int | None,
        now: float,
        world_size: int | None = None,
    ) -> None:
        """Ask the keeper at an endpoint to join; `world_size` is the expected size."""
        self._move("join")
        if world_size is not None:
            self._shared += ((_SIZE, float(world_size)),)
        self._meeting = meeting
        self._requested = number if self.node.id < 0 else self.node.id
        self._ask(now)

    def members(self) -> tuple[WorkerNode, ...]:
        """Return all members, including this worker, by number."""
        return tuple(
            sorted(
                (each.node for each in self._members.values()),
                key=lambda node: node.id,
            )
        )

    def member(self, incarnation: int) -> Member | None:
        """Return the member of an incarnation, None if there is none."""
        return self._members.get(incarnation)

    def _ask(self, now: float) -> None:
        name = self.node.name
        join = Join(name, self._endpoint, self._key, self._requested, self._shared)
        self.notes.append(OutgoingNote(self._meeting, PacketKind.JOIN, join, 0))
        self._ask_at = now + (_AGAIN if self.status == JOINING else _AGAIN_LATER)

    def due(self) -> float:
        """Return the time at which `tick` has work."""
        return self._ask_at

    def tick(self, now: float) -> None:
        """Repeat the request to join, when it is due."""
        if now >= self._ask_at:
            self._ask(now)

    # Notes.

    def note(self, source: int, note: Note, now: float) -> None:
        """Handle a note of an incarnation."""
        if isinstance(note, Join):
            if self.status == KEEPER:
                self._asked(source, note, now)
        elif isinstance(note, Admission):
            self._admitted(source, note)
        elif isinstance(note, Rejection) and self.status == REJECTED:
            pass  # the answer to a repeated request, or a copy of the first one
        elif isinstance(note, Rejection) and self._is_forming(source):
            self._ask_at = inf
            self._move("rejected")
            self.events.append(Rejected(note.why))
        elif isinstance(note, Rejection) and self._ask_at < inf:
            if self.keeper is None and self.status == MEMBER and self.group != source:
                # Another group now uses this group's endpoint: do not ask again.
                self._ask_at = inf
                return
            self._ask_at = inf
            self._move("rejected")
            self.events.append(Rejected(note.why))

    def believes(self, note: Note, key: str) -> bool:
        """Return True if an answer with this key comes from the keeper.

        A joining worker knows the key that the endpoint names; a keeper must have the
        key that it announces.
        """
        expected = self._meeting.partition("#")[2]
        if expected and key != expected:
            return False
        if isinstance(note, Admission) and note.members:
            return note.members[0].key == key
        return True

    def _asked(self, source: int, join: Join, now: float) -> None:
        """Answer a request to join."""
        if self._given_up:
            self._informed.add(source)
            self._reject(source, join, self._given_up)
        else:
            self._join(source, join, now)

    def _join(self, source: int, join: Join, now: float) -> None:
        member = self._members.get(source)
        if member is not None:
            if member.endpoint == join.endpoint and member.node.name == join.name:
                self._admit(member)
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
                # Two workers cannot listen at one endpoint, so the other one has ended.
                self._remove(other.node, Reason.RESTARTED)
                continue
            since = self._disputed.setdefault(source, now)
            if other.node != self.node and self._proven(other.node) <= since:
                # The other member may have ended: decide at the next request.
                return
            del self._disputed[source]
            why = _conflict(join, other.node)
            self._reject(source, join, why)
            if self.world_size is not None and not self.complete:
                self._give_up(why, source)
            return
        self._disputed.pop(source, None)
        # After the loop, in which a restarted worker made room for itself.
        size = self.world_size
        if not WORKER_NAME.fullmatch(join.name):
            self._reject(source, join, f"invalid worker name `{join.name}`")
            return
        if join.id is not None and join.id > LARGEST_ID:
            self._reject(source, join, f"worker id {join.id} is above {LARGEST_ID}")
            return
        if size is not None and len(self._members) >= size:
            self._reject(source, join, f"the group has all of its {size} workers")
            return
        if size is not None and join.id is not None and join.id >= size:
            why = f"worker id {join.id} is not below the group's size, {size}"
            self._reject(source, join, why)
            return
        numbers = {each.node.id for each in self._members.values()}
        free = next(n for n in range(len(numbers) + 1) if n not in numbers)
        number = free if join.id is None else join.id
        node = WorkerNode(join.name, number, source)
        self._announce(Member(node, join.endpoint, join.key))

    def _differs(self, join: Join) -> str:
        """Return the settings of a request that differ from the group's, as text."""
        own: dict[str, float | None] = {**dict(self._shared), _SIZE: self.world_size}
        return "; ".join(
            f"it has {name} = {figure:g}, and the group has {_figure_text(own[name])}"
            for name, figure in join.shared
            if name in own and own[name] != figure
        )

    def _announce(self, member: Member) -> None:
        others = [each for each in self._members.values() if each.node != self.node]
        self._broadcast(MemberJoined(member))
        self._put(member)
        self._admit(member)
        # The member may have the answer to an earlier request, and ignore this one.
        for each in others:
            self.out.append((member.node, MemberJoined(each)))

    def _broadcast(self, message: Message) -> None:
        """Send a message to all other members."""
        for each in self._members.values():
            if each.node != self.node:
                self.out.append((each.node, message))

    def _admit(self, member: Member) -> None:
        mine = self._members[self.node.incarnation]
        rest = [each for each in self._members.values() if each is not mine]
        note = Admission(member.node, (mine, *rest), self.world_size, self.complete)
        target = member.node.incarnation
        self.notes.append(
            OutgoingNote(member.endpoint, PacketKind.ADMITTED, note, target)
        )

    def _reject(self, source: int, join: Join, why: str) -> None:
        self.notes.append(
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
            # Another group now uses this group's endpoint: stay in this one.
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
                # Not a member for the keeper any more, but possibly alive.
                self._remove(each.node, Reason.LOST)
        for each in note.members:
            self._put(each)
        if note.complete:
            self._completed()

    def uninformed(self) -> int:
        """Return how many workers do not know that the group cannot become complete.

        They have not asked to join yet.
        """
        size = self.world_size if self._given_up else None
        return 0 if size is None else max(size - len(self._informed), 0)

    def _give_up(self, why: str, source: int) -> None:
        """Tell all members, this worker included, that the group cannot be complete.

        `source` was rejected because of that.
        """
        self._given_up = why
        self._informed = {source, *self._members}
        self.events.append(Rejected(why))
        for each in self._members.values():
            if each.node != self.node:
                kind, target = PacketKind.REJECTED, each.node.incarnation
                note = OutgoingNote(each.endpoint, kind, Rejection(why), target)
                self.notes.append(note)

    def _is_forming(self, source: int) -> bool:
        """Return True if `source` keeps this member's group, which is not complete."""
        forming = self.world_size is not None and not self.complete
        return self.status == MEMBER and self.group == source and forming

    # The list of members.

    def _put(self, member: Member) -> None:
        incarnation = member.node.incarnation
        if self._members.get(incarnation) == member:
            return
        self._members[incarnation] = member
        if incarnation != self.node.incarnation:
            self.changes.append(member)
            self.events.append(Joined(member.node))
        if len(self._members) == self.world_size:
            self._completed()

    def _completed(self) -> None:
        if not self.complete:
            self.complete = True
            self.events.append(Completed())

    def _remove(self, node: WorkerNode, reason: Reason) -> None:
        if self._members.pop(node.incarnation, None) is None:
            return
        self.changes.append((node, reason))
        self.events.append(Lost(node, reason))
        if self.status == KEEPER:
            self._broadcast(MemberLeft(node, reason))
        elif node == self.keeper:
            self.keeper = None

    def left(self, node: WorkerNode) -> None:
        """Remove a member that has said goodbye."""
        self._remove(node, Reason.LEFT)

    # Messages and losses.

    def receive(self, peer: WorkerNode, message: Message, now: float) -> None:
        """Handle a message; only those of the keeper have effects."""
        if peer != self.keeper:
            return
        if isinstance(message, MemberJoined):
            self._put(message.member)
        elif isinstance(message, MemberLeft) and message.node != self.node:
            self._remove(message.node, message.reason)

    def lost(self, peer: WorkerNode, reason: Reason, now: float) -> None:
        """Handle the end of the channel to a peer."""
        if self.status == KEEPER:
            self._remove(peer, reason)
        elif peer == self.keeper:
            self._remove(peer, reason)
            if self.status == REJECTED:
                return
            self._move("keeper lost")
            self._requested = self.node.id
            self._ask_at = now + _AGAIN_LATER
        elif self.keeper is None and self.status in (MEMBER, REJECTED):
            self._remove(peer, reason)

    def counted(self, peer: WorkerNode, members: tuple[int, ...]) -> None:
        """Remove the members that the coordinator does not count.

        Without a keeper, the member of the lowest number decides.
        """
        if self.keeper is None and self.members()[:1] == (peer,):
            for each in self.members():
                if each != self.node and each.incarnation not in members:
                    self._remove(each, Reason.LOST)

    def expired(self, peer: WorkerNode, now: float) -> None:
        """Do nothing: a lost worker is not a member any more."""

    def state(self, now: float) -> Hashable:
        """Return the complete state; times are relative."""
        return (
            self.node,
            self.status,
            self.keeper,
            self.group,
            self.world_size,
            self.complete,
            tuple(self._members[each] for each in sorted(self._members)),
            self._meeting,
            self._requested,
            None if self._ask_at == inf else round(self._ask_at - now, 6),
            self._given_up,
            tuple(sorted(self._informed)),
            tuple(
                (who, round(t - now, 6)) for who, t in sorted(self._disputed.items())
            ),
        )


def _conflict(join: Join, other: WorkerNode) -> str:
    """Return why a worker is rejected whose name or number another member has."""
    if other.name == join.name:
        return f"RPC worker name {join.name} {NOT_UNIQUE}: worker {other.id} has it"
    return f"RPC worker id {join.id} {NOT_UNIQUE}: worker {other.name} has it"


def _figure_text(figure: float | None) -> str:
    return "none" if figure is None else f"{figure:g}"
