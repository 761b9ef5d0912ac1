"""ProtocolCore: the machines of a session, its channels, and the flow between them.

A received packet is checked (mark, version, kind, size, group, life, key, session,
number), and the messages of a channel are passed, in order, to the machine of their
kind; messages that the machines send are passed to the channels; the ends of channels
are passed to all machines.

Rules:
- messages of calls are sent before messages about their references, and verdicts on
  references are passed to calls before either;
- a channel belongs to a member: it begins with the first message, and ends at the
  latest when the member leaves;
- a bad packet never raises: it is dropped and counted by its error; errors that a user
  can correct (another version, another group, a wrong key) are reported as `Warned`,
  once for each source;
- a call from a worker to itself is handled like any other: encoded, and decoded again;
- a machine has no clock and does not send: its methods receive messages and the time,
  and it appends outgoing messages to `out`, and events for the agent to `events`;
- the end of a channel has two moments.  `lost`: this worker has fenced itself; calls to
  the peer end, references that it holds through the peer die.  `expired`, then or
  later: the peer has also fenced itself by now, so its holds on this worker are
  released.  Each `lost` is followed by one `expired`, without messages of the peer in
  between;
- the `state` of a machine is complete: hashable, in a canonical order, and equal
  wherever the machine behaves in the same way.
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
from everyorder.runtime.rpc.protocol.packets import Packet, PacketWriter, split
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

# The machine that handles each kind of message.
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

# Errors that are also reported: a worker was started with wrong options.
_REPORTED = {PacketError.VERSION, PacketError.GROUP, PacketError.KEY}
# Limit for the sources that are warned about separately; all further sources count as
# one.
_SOURCES = 64
_BODY = HEADER.size
_DATA = int(PacketKind.DATA)


class _Oversized(NamedTuple):
    """A call or an answer whose payload is larger than this worker accepts."""

    message: Message


class ProtocolCore:
    """The machines and channels of one worker; `Session` is the public interface."""

    def __init__(
        self,
        name: str,
        *,
        incarnation: int,
        endpoint: str,
        key: str = "",
        settings: Settings = Settings(),  # noqa: B008  # Settings is frozen
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
        # Session numbers with workers that left, in case that they return in this life.
        self._numbers: dict[int, tuple[int, int]] = {}
        # Workers that were lost at some time, by incarnation: the key, and the packets
        # to them.  A member is not looked up here.
        self._former: dict[int, tuple[str, PacketWriter]] = {}
        # For former members: the time until which they may rely on their holds here.
        self._leases: dict[WorkerNode, float] = {}
        self._timers: list[tuple[float, int]] = []
        # The cached result of `next_time`; None after a change.
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
        # In this order: a message of a call precedes messages about its references.
        self._outs = (
            self._calls.out,
            self._references.out,
            self._members.out,
            self._termination.out,
        )

    # Packets and time.

    def receive(self, frames: Sequence[Buffer], key: str, now: float) -> None:
        """Handle a packet; `key` is the sender's public key, "" without keys."""
        if self._stopped:
            return
        now = self._now = max(now, self._now)
        header = parse(frames)
        if isinstance(header, PacketError):
            self._flaw(header, key)
            return
        if header.kind != _DATA:
            try:
                error = self._note(header, frames, key, now)
            except MalformedPacket:
                error = PacketError.BODY
            if error is not None:
                self._flaw(error, key)
            self._drain(now)
            return
        channel = self._channels.get(header.source)
        if channel is None or channel.key != key or header.group != self._members.group:
            self._flaw(self._unknown(header, channel, key), key)
            return
        if header.target != self.node.incarnation:
            self._flaw(PacketError.TARGET, key)
            return
        try:
            messages = channel.data(header, frames, self._decode, now)
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
            self._drain(now)
        if not messages:
            self._drain(now)
        self._arm(channel)

    def tick(self, now: float) -> None:
        """Do the work that is due."""
        now = self._now = max(now, self._now)
        timers = self._timers
        while timers and timers[0][0] <= now:
            time, incarnation = heappop(timers)
            channel = self._channels.get(incarnation)
            # Older entries of a channel are obsolete after an earlier timer was added.
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
        self._drain(now)

    def next_time(self) -> float | None:
        """Return the time at which `tick` may have work; None if there is none."""
        if self._stopped:
            return None
        due = self._due
        if due is None:
            due = self._next_due()
        return None if due == inf else due

    def _next_due(self) -> float:
        due = min(self._calls.due(), self._members.due())
        if self._timers:
            due = min(due, self._timers[0][0])
        if self._leases:
            due = min(due, *self._leases.values())
        unheard = self._references.next_time()
        if unheard is not None:
            due = min(due, unheard)
        self._due = due
        return due

    def take_packets(self) -> list[Packet]:
        """Return the packets to send, in order; each packet once."""
        packets = self._packets[:]
        self._packets.clear()
        return packets

    def take_events(self) -> list[Event]:
        """Return the events so far, in order; each event once."""
        events = self._events[:]
        self._events.clear()
        return events

    def counts(self) -> dict[str, int]:
        """Return counts of references, calls and messages, for debugging."""
        out, incoming = self._calls.busy()
        channels = self._channels.values()
        return {
            **self._references.counts(),
            "calls": out,
            "called": incoming,
            "queued": sum(each.queued() for each in channels),
            "resent": self._resent + sum(each.resent for each in channels),
            "garbage": self._garbage.total(),
        }

    def state(self) -> Hashable:
        """Return the complete state of this worker; times and numbers are relative."""
        now = self._now
        return (
            self._members.state(now),
            self._calls.state(now),
            self._references.state(),
            self._termination.state(),
            tuple(self._channels[each].picture(now) for each in sorted(self._channels)),
            tuple(sorted(self._numbers.items())),
            tuple(sorted(self._former)),
            tuple((node, round(t - now, 6)) for node, t in self._leases.items()),
            self._stopped,
            tuple((body, tuple(map(bytes, tail))) for body, tail in self._loop),
        )

    # The flow between the machines.

    def _advance_clock(self, now: float) -> None:
        """Advance the clock; work that is due by now precedes the caller's."""
        if now > self._now:
            self._now = now
        if self._stopped:
            return
        # The last answer of `next_time`, unless something has changed since.
        due = self._due
        if due is None:
            due = self._next_due()
        if due <= self._now:
            self.tick(now)

    def _drain(self, now: float) -> None:
        """Pass on messages, verdicts, changes and ends until all are handled.

        The order of the branches is part of the protocol.
        """
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
                or self._members.notes
                or self._members.node is not self.node
            ):
                self._change(now)
            elif self._members.out:
                # After the changes, so that a new member has a channel for its first
                # message.
                self._send(self._members.out, now)
            elif self._ends:
                self._end(now)
            elif self._loop:
                body, tail = self._loop.popleft()
                message = decode(memoryview(body), tuple(tail))
                self._deliver(self.node, message, now)
            elif self._termination.due(self.node):
                if not self._check_termination(now):
                    return
            else:
                return

    def _check_termination(self, now: float) -> bool:
        """Advance the termination protocol; return True if it made progress."""
        termination = self._termination
        status = termination.status
        waiting = any(each.unacknowledged() for each in self._channels.values())
        termination.advance(
            self.node, self._members.members(), *self._channel_totals(), waiting
        )
        moved = bool(termination.out) or termination.status != status
        self._send(termination.out, now)
        return moved

    def _channel_totals(self) -> tuple[tuple[int, int], bool]:
        """Return the messages sent and received; True if any are in flight."""
        channels = self._channels.values()
        sent = sum(each.sent for each in channels)
        received = sum(each.taken for each in channels)
        counts = self._references.counts()
        busy = (
            any(self._calls.busy())
            or any(each.queued() for each in channels)
            or any(counts[each] for each in ("pending", "children", "carriers"))
        )
        return (sent, received), busy

    def _send(self, out: list[tuple[WorkerNode, Message]], now: float) -> None:
        """Encode messages and pass them to the channels."""
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
        """Pass a message to its machine."""
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
            self._termination.receive(peer, message, *self._channel_totals())

    def _decode(self, frames: Sequence[Buffer]) -> Message:
        """Decode the message of a DATA packet; omit a payload that is too large.

        Raises:
            MalformedPacket: the packet does not hold a message.
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
            # The payload is not stored.
            message = replace(message, payload=())
            return _Oversized(message)  # type: ignore[return-value]  # see _deliver
        return message

    def _note(
        self, header: Head, frames: Sequence[Buffer], key: str, now: float
    ) -> PacketError | None:
        """Handle a control packet."""
        if len(frames) != 1:
            return PacketError.COUNT
        content = note(header.kind, memoryview(frames[0]).cast("B")[_BODY:])
        members = self._members
        if isinstance(content, Join):
            if content.key != key:
                return PacketError.KEY
            members.note(header.source, content, now)
            return None
        if header.target != self.node.incarnation:
            return PacketError.TARGET
        if header.kind in (PacketKind.ADMITTED, PacketKind.REJECTED):
            if not members.believes(content, key):
                return PacketError.KEY
            members.note(header.source, content, now)
            return None
        channel = self._channels.get(header.source)
        if channel is None or channel.key != key or header.group != members.group:
            return self._unknown(header, channel, key)
        if header.kind == PacketKind.BYE:
            members.left(channel.node)
            return None
        error = channel.note(header, content, now)
        self._arm(channel)
        return error

    def _unknown(self, header: Head, channel: Channel | None, key: str) -> PacketError:
        group = self._members.group
        if group and header.group != group:
            return PacketError.GROUP
        former = self._former.get(header.source)
        session = header.theirs, header.mine
        if (
            former is not None
            and former[0] == key
            and header.kind < PacketKind.RESET
            and session == self._numbers.get(header.source)
        ):
            # It was frozen or cut off, and relies on the session that has ended here.
            # A session that it begins now may be open before the reset arrives.
            former[1].reset(header.mine)
        return PacketError.STRANGER if channel is None else PacketError.KEY

    def _flaw(self, error: PacketError, key: str) -> None:
        """Drop a packet: count its error, and report it if a user can correct it."""
        self._garbage[error] += 1
        if error in _REPORTED:
            source = key if len(self._warned) < _SOURCES else ""
            if (error, source) not in self._warned:
                self._warned.add((error, source))
                self._events.append(Warned(error.value, source))

    def _arm(self, channel: Channel) -> None:
        """Add a timer for a channel's next work, if it is earlier than the last."""
        due = channel.due()
        if due < channel.armed:
            self._due = None
            channel.armed = due
            heappush(self._timers, (due, channel.node.incarnation))

    def _proven(self, node: WorkerNode) -> float:
        channel = self._channels.get(node.incarnation)
        return -inf if channel is None else channel.lease.proven

    def _change(self, now: float) -> None:
        """Apply changes of the members, open and close channels, and send notes."""
        members = self._members
        if self.node is not members.node:
            self.node = members.node
            self._references.admit(self.node)
        notes = members.notes[:]
        members.notes.clear()
        for outgoing in notes:
            start = head(
                outgoing.kind, members.group, self.node.incarnation, outgoing.target
            )
            frame = start + of_note(outgoing.note)
            self._packets.append(Packet(outgoing.endpoint, [frame]))
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
            # The keeper detects lost members, so it probes all of them.  A worker
            # probes the keeper: a keeper that is about to lose it may have told it that
            # it is a member.
            channel.begin(self._now)
            self._arm(channel)

    def _left(self, node: WorkerNode, reason: Reason, now: float) -> None:
        channel = self._channels.pop(node.incarnation, None)
        if channel is None:
            return
        self._numbers[node.incarnation] = channel.numbers()
        if reason is Reason.LOST:
            self._former[node.incarnation] = channel.key, channel.writer
        self._resent += channel.resent
        until = max(channel.counts(), self._leases.pop(node, now))
        if reason is Reason.LOST and until > now:
            # The worker may still run, and be cut off.
            self._ends.append(End(node, reason))
            self._leases[node] = until
        else:
            channel.over(reason)
            self._ends.append(End(node, reason))
            self._ends.append(End(node, None))
        self._end(now)
        self._references.left(node)

    def _end(self, now: float) -> None:
        """Report the ends of channels to the machines."""
        while self._ends:
            end = self._ends.pop(0)
            if end.reason is None:
                # A lease that began earlier releases the holds at its own end.
                if end.node not in self._leases:
                    self._references.expired(end.node, now)
            else:
                self._calls.lost(end.node, end.reason, now)
                self._references.lost(end.node, end.reason, now)
                self._termination.lost(end.node)
                self._members.lost(end.node, end.reason, now)
