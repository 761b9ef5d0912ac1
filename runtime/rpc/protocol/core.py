"""Composition: the machines of a session, and what goes from one to the other.

Packets that come are looked at (mark, version, kind, size, group, life, key, session,
number), and the messages of a channel go, in order, to the machine of their kind; what
the machines want to be sent goes to the channels; the ends of channels go to all
machines.

Rules:
- what is sent of calls goes before what is said of their references, and verdicts on
  references go to calls before either;
- a channel belongs to a member: it begins when there is something to send, and ends at
  the latest when the member leaves;
- what is wrong with a packet never raises: it is dropped and counted by its flaw; what
  somebody can do something about (another version, another group, a wrong key) is told
  as `Warned`, once for each source;
- a call from a worker to itself travels like any other: written, and read back;
- a machine has no clock and sends nothing: it is told what came and what time it is,
  and appends what is to be sent to `out`, what is to be told to the agent to `events`;
- the end of a channel has two moments.  `lost`: this worker has fenced itself; calls to
  the peer end, references that it holds through the peer die.  `expired`, then or
  later: the peer has fenced itself by now, too, so what it held here is released.  Each
  `lost` is followed by one `expired`, and nothing comes from the peer in between;
- the `state` of a machine is everything that it knows: hashable, in an order of its
  own, and equal wherever the machine behaves in the same way.
"""

from collections import Counter, deque
from collections.abc import Hashable, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple

from everyorder.runtime.rpc.protocol.call_machine import Calls
from everyorder.runtime.rpc.protocol.channel import Channel, End
from everyorder.runtime.rpc.protocol.events import (
    Buffer,
    Event,
    Reason,
    Settings,
    Warned,
)
from everyorder.runtime.rpc.protocol.identities import WorkerNode
from everyorder.runtime.rpc.protocol.membership import MembershipMachine
from everyorder.runtime.rpc.protocol.messages import (
    Accept,
    Answer,
    Call,
    Cancel,
    Decline,
    Delete,
    Finish,
    FramePart,
    Idle,
    MemberJoined,
    MemberLeft,
    Message,
    ReferenceRefused,
    ReferenceRegistered,
    Register,
    Survey,
    Waiting,
    decode,
    encode,
)
from everyorder.runtime.rpc.protocol.packets import Packet, split
from everyorder.runtime.rpc.protocol.reference_machine import ReferenceMachine
from everyorder.runtime.rpc.protocol.termination import Termination
from everyorder.runtime.rpc.protocol.wire import (
    HEADER,
    Head,
    Join,
    MalformedPacket,
    Member,
    PacketError,
    PacketKind,
    head,
    note,
    of_note,
    parse,
    size,
)

# Which machine takes a kind of message.
CALLS, REFERENCES, MEMBERS, TERMINATION = range(4)
TAKES: dict[type[Message], int] = {
    Call: CALLS,
    Answer: CALLS,
    Decline: CALLS,
    Cancel: CALLS,
    Register: REFERENCES,
    ReferenceRegistered: REFERENCES,
    ReferenceRefused: REFERENCES,
    Accept: REFERENCES,
    Delete: REFERENCES,
    MemberJoined: MEMBERS,
    MemberLeft: MEMBERS,
    Idle: TERMINATION,
    Survey: TERMINATION,
    Waiting: TERMINATION,
    Finish: TERMINATION,
}

# What is told besides being counted: somebody has started something in the wrong way.
_TOLD = {PacketError.VERSION, PacketError.GROUP, PacketError.KEY}
# So many sources are remembered as told; those of all others are told as one.
_SOURCES = 64
_BODY = HEADER.size
_DATA = int(PacketKind.DATA)


class _Oversized(NamedTuple):
    """A call or an answer whose payload is larger than is taken here."""

    message: Message


class ProtocolCore:
    """Machines and channels of one worker; `Session` is its face."""

    def __init__(
        self,
        name: str,
        *,
        incarnation: int,
        endpoint: str,
        key: str = "",
        settings: Settings = Settings(),  # noqa: B008  # it is frozen
        now: float = 0.0,
    ) -> None:
        self.settings = settings
        self.node = WorkerNode(name, -1, incarnation)
        self._now = now
        self._packets: list[Packet] = []
        self._events: list[Event] = []
        self._ends: list[End] = []
        # Messages of this worker to itself.
        self._loop: deque[tuple[bytes, Sequence[Buffer]]] = deque()
        self._channels: dict[int, Channel] = {}
        # The numbers of sessions with those who left, if they come back in this life.
        self._numbers: dict[int, tuple[int, int]] = {}
        # Until when those who are members no more may count on what they hold here.
        self._leases: dict[WorkerNode, float] = {}
        self._timers: list[tuple[float, int]] = []
        # What `next_time` found; None where something happened since.
        self._due: float | None = None
        self._garbage: Counter[PacketError] = Counter()
        self._warned: set[tuple[PacketError, str]] = set()
        self._resent = 0
        self._stopped = False
        self._references = ReferenceMachine(self.node)
        self._calls = Calls(self._references, settings)
        self._members = MembershipMachine(
            self.node, endpoint, key, self._proven, settings.shared()
        )
        self._termination = Termination()
        self._references.events = self._events
        self._calls.events = self._events
        self._members.events = self._events
        self._termination.events = self._events
        # What is sent of a call comes before what is said of its references.
        self._outs = (
            self._calls.out,
            self._references.out,
            self._members.out,
            self._termination.out,
        )

    # The world.

    def receive(self, frames: Sequence[Buffer], key: str, now: float) -> None:
        """A packet came from who has a public key, "" where there are no keys."""
        if self._stopped:
            return
        now = self._now = max(now, self._now)
        found = parse(frames)
        if isinstance(found, PacketError):
            self._flaw(found, key)
            return
        if found.kind != _DATA:
            try:
                flaw = self._note(found, frames, key, now)
            except MalformedPacket:
                flaw = PacketError.BODY
            if flaw is not None:
                self._flaw(flaw, key)
            self._settle(now)
            return
        channel = self._channels.get(found.source)
        if channel is None or channel.key != key or found.group != self._members.group:
            self._flaw(self._unknown(found, channel, key), key)
            return
        if found.target != self.node.incarnation:
            self._flaw(PacketError.TARGET, key)
            return
        try:
            messages = channel.data(found, frames, self._decode, now)
        except MalformedPacket:
            self._flaw(PacketError.BODY, key)
            messages = ()
        if isinstance(messages, PacketError):
            self._flaw(messages, key)
            messages = ()
        for message in messages:
            if type(message) is FramePart:
                channel.parts.take(message, self.settings.largest)
                continue
            channel.taken += TAKES.get(type(message), CALLS) <= REFERENCES
            whole: Message | _Oversized = message
            if channel.parts:
                whole = channel.parts.complete(message) or _Oversized(message)
            self._deliver(channel.node, whole, now)
            self._settle(now)
        if not messages:
            self._settle(now)
        self._arm(channel)

    def tick(self, now: float) -> None:
        """Do what is due by now."""
        now = self._now = max(now, self._now)
        timers = self._timers
        while timers and timers[0][0] <= now:
            time, incarnation = heappop(timers)
            channel = self._channels.get(incarnation)
            # Others were put on the list before there was something earlier.
            if channel is not None and channel.armed == time:
                channel.armed = inf
                if channel.due() <= now:
                    channel.tick(now)
                self._arm(channel)
        for node, until in tuple(self._leases.items()):
            if until <= now:
                del self._leases[node]
                self._references.expired(node, now)
        self._calls.tick(now)
        self._references.tick(now)
        self._members.tick(now)
        self._settle(now)

    def next_time(self) -> float | None:
        """When `tick` has something to do; it may turn out to be nothing."""
        if self._stopped:
            return None
        due = self._due
        if due is None:
            due = min(self._calls.due(), self._members.due())
            if self._timers:
                due = min(due, self._timers[0][0])
            if self._leases:
                due = min(due, *self._leases.values())
            unheard = self._references.next_time()
            if unheard is not None:
                due = min(due, unheard)
            self._due = due
        return None if due == inf else due

    def take_packets(self) -> list[Packet]:
        """What is to be sent, in order; each packet once."""
        packets = self._packets[:]
        self._packets.clear()
        return packets

    def take_events(self) -> list[Event]:
        """What happened, in order; each event once."""
        events = self._events[:]
        self._events.clear()
        return events

    def counts(self) -> dict[str, int]:
        """How much there is of everything, for debugging."""
        out, come = self._calls.busy()
        channels = self._channels.values()
        return {
            **self._references.counts(),
            "calls": out,
            "called": come,
            "queued": sum(each.queued() for each in channels),
            "resent": self._resent + sum(each.resent for each in channels),
            "garbage": self._garbage.total(),
        }

    def garbage(self) -> dict[str, int]:
        """How many packets were dropped, by what was wrong with them."""
        return {
            flaw.name: self._garbage[flaw]
            for flaw in PacketError
            if self._garbage[flaw]
        }

    def positions(self) -> dict[WorkerNode, tuple[int, ...]]:
        """For each channel, the absolute numbers that `state` leaves out."""
        return {each.node: each.positions() for each in self._channels.values()}

    def state(self) -> Hashable:
        """Everything that this worker knows; times and numbers are relative."""
        now = self._now
        return (
            self._members.state(now),
            self._calls.state(now),
            self._references.state(),
            self._termination.state(),
            tuple(self._channels[each].picture(now) for each in sorted(self._channels)),
            tuple(sorted(self._numbers.items())),
            tuple((node, round(t - now, 6)) for node, t in self._leases.items()),
            self._stopped,
            tuple((body, tuple(map(bytes, tail))) for body, tail in self._loop),
        )

    # How it is put together.

    def _come(self, now: float) -> None:
        """Time went on: what is due by now happens before anything else."""
        if now > self._now:
            self._now = now
        due = self.next_time()
        if due is not None and due <= self._now:
            self.tick(now)

    def _settle(self, now: float) -> None:
        """Do all that follows from what happened."""
        self._due = None
        references = self._references
        calls = self._calls
        while True:
            if references.verdicts:
                verdicts = references.verdicts[:]
                references.verdicts.clear()
                for verdict in verdicts:
                    calls.judge(verdict, now)
            elif calls.out or references.out:
                self._send(calls.out, now)
                self._send(references.out, now)
            elif (
                self._members.changes
                or self._members.letters
                or self._members.node is not self.node
            ):
                self._change(now)
            elif self._members.out:
                # Behind the changes: what is said to a new member has a channel.
                self._send(self._members.out, now)
            elif self._ends:
                self._end(now)
            elif self._loop:
                body, tail = self._loop.popleft()
                written = decode(memoryview(body), tuple(tail))
                self._deliver(self.node, written, now)
            elif self._termination.due(self.node):
                if not self._look(now):
                    return
            else:
                return

    def _look(self, now: float) -> bool:
        """Whether anything followed from who is done."""
        termination = self._termination
        status = termination.status
        waiting = any(each.unacknowledged() for each in self._channels.values())
        termination.advance(
            self.node, self._members.members(), *self._standing(), waiting
        )
        moved = bool(termination.out) or termination.status != status
        self._send(termination.out, now)
        return moved

    def _standing(self) -> tuple[tuple[int, int], bool]:
        """Messages sent and received on channels; whether anything is in flight."""
        channels = self._channels.values()
        sent = sum(each.sent for each in channels)
        taken = sum(each.taken for each in channels)
        counts = self._references.counts()
        busy = (
            any(self._calls.busy())
            or any(each.queued() for each in channels)
            or any(counts[each] for each in ("pending", "children", "carriers"))
        )
        return (sent, taken), busy

    def _send(self, out: list[tuple[WorkerNode, Message]], now: float) -> None:
        """Give messages to the channels."""
        if not out:
            return
        messages = out[:]
        out.clear()
        settings = self.settings
        for peer, message in messages:
            body, tail = encode(message)
            channel = self._channels.get(peer.incarnation)
            if channel is not None:
                whole = len(body) + size(tail) if tail else len(body)
                counted = TAKES[type(message)] <= REFERENCES
                if whole > settings.packet or len(tail) >= settings.frames:
                    *parts, (body, tail) = split(body, tail, settings.packet)
                    for part, frames in parts:
                        channel.send(part, frames, size(frames), now, False)
                    whole = len(body)
                channel.send(body, tail, whole, now, counted)
                self._arm(channel)
            elif peer == self.node:
                self._loop.append((body, [bytes(each) for each in tail]))

    def _deliver(
        self, peer: WorkerNode, message: Message | _Oversized, now: float
    ) -> None:
        """Give a message to its machine."""
        if isinstance(message, _Oversized):
            self._calls.refuse(peer, message.message, now)
            return
        takes = TAKES[type(message)]
        if takes == CALLS:
            self._calls.receive(peer, message, now)
        elif takes == REFERENCES:
            self._references.receive(peer, message, now)
        elif takes == MEMBERS:
            self._members.receive(peer, message, now)
        else:
            if isinstance(message, Waiting):
                self._members.counted(peer, message.members)
            self._termination.receive(peer, message, *self._standing())

    def _decode(self, frames: Sequence[Buffer]) -> Message:
        """The message of a DATA packet; its payload is empty if it is too large.

        Raises:
            Malformed: it is none.
        """
        settings = self.settings
        if len(frames) > settings.frames:
            raise MalformedPacket
        body = memoryview(frames[0])[_BODY:]
        message = decode(body, frames[1:], settings.references)
        if (
            size(frames) > settings.largest
            and isinstance(message, Call | Answer)
            and size(message.payload) > settings.largest
        ):
            # Its payload is not kept.
            message = replace(message, payload=())
            return _Oversized(message)  # type: ignore[return-value]  # see _deliver
        return message

    def _note(
        self, found: Head, frames: Sequence[Buffer], key: str, now: float
    ) -> PacketError | None:
        """A packet came that is no message."""
        if len(frames) != 1:
            return PacketError.COUNT
        told = note(found.kind, memoryview(frames[0]).cast("B")[_BODY:])
        members = self._members
        if isinstance(told, Join):
            if told.key != key:
                return PacketError.KEY
            members.note(found.source, told, now)
            return None
        if found.target != self.node.incarnation:
            return PacketError.TARGET
        if found.kind in (PacketKind.ADMITTED, PacketKind.REJECTED):
            if not members.believes(told, key):
                return PacketError.KEY
            members.note(found.source, told, now)
            return None
        channel = self._channels.get(found.source)
        if channel is None or channel.key != key or found.group != members.group:
            return self._unknown(found, channel, key)
        if found.kind == PacketKind.BYE:
            members.left(channel.node)
            return None
        flaw = channel.note(found, told, now)
        self._arm(channel)
        return flaw

    def _unknown(self, found: Head, channel: Channel | None, key: str) -> PacketError:
        group = self._members.group
        if group and found.group != group:
            return PacketError.GROUP
        return PacketError.STRANGER if channel is None else PacketError.KEY

    def _flaw(self, flaw: PacketError, key: str) -> None:
        """A packet is dropped."""
        self._garbage[flaw] += 1
        if flaw in _TOLD:
            source = key if len(self._warned) < _SOURCES else ""
            if (flaw, source) not in self._warned:
                self._warned.add((flaw, source))
                self._events.append(Warned(flaw.value, source))

    def _arm(self, channel: Channel) -> None:
        """See to it that `tick` comes to a channel in time."""
        due = channel.due()
        if due < channel.armed:
            self._due = None
            channel.armed = due
            heappush(self._timers, (due, channel.node.incarnation))

    def _proven(self, node: WorkerNode) -> float:
        channel = self._channels.get(node.incarnation)
        return -inf if channel is None else channel.lease.proven

    def _change(self, now: float) -> None:
        """Members came, or left: their channels with them; notes are sent."""
        members = self._members
        if self.node is not members.node:
            self.node = members.node
            self._references.admit(self.node)
        letters = members.letters[:]
        members.letters.clear()
        for letter in letters:
            start = head(
                letter.kind, members.group, self.node.incarnation, letter.target
            )
            frame = start + of_note(letter.note)
            self._packets.append(Packet(letter.endpoint, [frame]))
        self._termination.stirred = True
        changes = members.changes[:]
        members.changes.clear()
        for change in changes:
            if isinstance(change, Member):
                self._joined(change)
            else:
                self._left(*change, now)

    def _joined(self, member: Member) -> None:
        incarnation = member.node.incarnation
        old = self._channels.get(incarnation)
        if old is not None and old.node == member.node:
            return
        if old is not None:
            self._left(old.node, Reason.RESTARTED, self._now)
        channel = Channel(
            member.node,
            member.endpoint,
            member.key,
            me=self.node.incarnation,
            group=self._members.group,
            settings=self.settings,
            packets=self._packets,
            ends=self._ends,
            numbers=self._numbers.pop(incarnation, (0, 0)),
        )
        self._channels[incarnation] = channel
        self._references.joined(member.node)
        members = self._members
        if members.status == "KEEPER" or member.node == members.keeper:
            # Who is lost is found out by the keeper, so it asks everybody; and by who
            # was told that it is a member by a keeper that is about to lose it.
            channel.begin(self._now)
            self._arm(channel)

    def _left(self, node: WorkerNode, reason: Reason, now: float) -> None:
        channel = self._channels.pop(node.incarnation, None)
        if channel is None:
            return
        self._numbers[node.incarnation] = channel.numbers()
        self._resent += channel.resent
        until = max(channel.counts(), self._leases.pop(node, now))
        if reason is Reason.LOST and until > now:
            # It may be there all the same, and cut off.
            self._ends.append(End(node, reason))
            self._leases[node] = until
        else:
            channel.over(reason)
            self._ends.append(End(node, reason))
            self._ends.append(End(node, None))
        self._end(now)
        self._references.left(node)

    def _end(self, now: float) -> None:
        """Tell the machines of the ends of channels."""
        while self._ends:
            end = self._ends.pop(0)
            if end.reason is None:
                # What a lease of before is for is released with that.
                if end.node not in self._leases:
                    self._references.expired(end.node, now)
            else:
                self._calls.lost(end.node, end.reason, now)
                self._references.lost(end.node, end.reason, now)
                self._termination.lost(end.node)
                self._members.lost(end.node, end.reason, now)
