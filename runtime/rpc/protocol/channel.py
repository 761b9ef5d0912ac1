"""Channels: between two lives of workers, everything once and in order, or an end.

Packets may be lost, doubled, late or out of order; messages are none of it, until the
channel is over.

A channel begins with a handshake of three: HELLO, WELCOME, and anything that names both
sessions.  Each side counts its sessions with this peer; a packet names both numbers, so
that what is left of an earlier session is known as such.  Messages wait until the
channel is open.  What is sent gets a sequence number and is kept until it is
acknowledged, by whatever the peer sends next, or by a PONG alone.  What is not
acknowledged in time is asked about by a PING; the PONG tells what came, and what was
sent before the PING and did not come is sent again: a large payload never goes twice
for being slow.

The end is a matter of the leases of both sides.  When this side's is over it fences
itself: `lost`.  When the other side's is over for certain: `expired`.  Once fenced, a
channel takes no packet of the session any more, so neither time moves.  Both moments
are one where the peer says that it has no such session (RESET, a HELLO of a newer one)
or leaves.

    CLOSED      nothing is sent, nothing is waited for
    OPENING     HELLO was sent
    ANSWERING   WELCOME was sent; the peer is not known to have it
    OPEN        the peer named both sessions
    FENCED      given up; the peer may still count on it
"""

from collections.abc import Callable, Hashable, Sequence
from math import inf
from typing import NamedTuple

from everyorder.runtime.rpc.protocol.events import Buffer, Reason, Settings
from everyorder.runtime.rpc.protocol.identities import WorkerNode
from everyorder.runtime.rpc.protocol.messages import Message, encode
from everyorder.runtime.rpc.protocol.packets import (
    LeaseTimes,
    Outbox,
    Packet,
    PacketWriter,
    Parts,
    Sent,
)
from everyorder.runtime.rpc.protocol.wire import (
    EARLY,
    NOTHING,
    Head,
    Heartbeat,
    Hello,
    Note,
    PacketError,
    PacketKind,
    size,
)

CLOSED, OPENING, ANSWERING, OPEN, FENCED = (
    "CLOSED",
    "OPENING",
    "ANSWERING",
    "OPEN",
    "FENCED",
)

# What is not here is not legal: whoever asks looks before.
TRANSITIONS: dict[tuple[str, str], str] = {
    (CLOSED, "begin"): OPENING,
    (CLOSED, "hello"): ANSWERING,
    (OPENING, "hello"): ANSWERING,
    (OPENING, "welcome"): OPEN,
    (OPENING, "silence"): CLOSED,
    (OPENING, "over"): CLOSED,
    (ANSWERING, "hello"): ANSWERING,
    (ANSWERING, "welcome"): OPEN,
    (ANSWERING, "named"): OPEN,
    (ANSWERING, "silence"): CLOSED,
    (ANSWERING, "over"): CLOSED,
    (OPEN, "hello"): ANSWERING,
    (OPEN, "silence"): FENCED,
    (OPEN, "over"): CLOSED,
    (FENCED, "hello"): ANSWERING,
    (FENCED, "expiry"): CLOSED,
    (FENCED, "over"): CLOSED,
}

# A question that stays without an answer is asked again after this times as long.
_SLOWER = 2.0


class End(NamedTuple):
    """A moment of the end of a channel; without a reason, that of expiry."""

    node: WorkerNode
    reason: Reason | None


class Channel:
    """One side of a channel; `packets` and `ends` are emptied by whoever made it.

    `me` is the incarnation of this worker, `key` the public key of the peer, `largest`
    the size of a payload that the peer takes, as far as it has said so.
    """

    def __init__(
        self,
        node: WorkerNode,
        endpoint: str,
        key: str,
        *,
        me: int,
        group: int,
        settings: Settings,
        packets: list[Packet],
        ends: list[End],
        numbers: tuple[int, int] = (0, 0),
    ) -> None:
        self.node = node
        self.endpoint = endpoint
        self.key = key
        self.largest: int | None = None
        self.ends = ends
        self.state = CLOSED
        self.resent = 0
        self.sent = 0
        self.taken = 0
        # When this side was last put on the list of those that have something to do.
        self.armed = inf
        self._writer = PacketWriter(packets, endpoint, group, me, node.incarnation)
        self._settings = settings
        # One of the two asks for signs of life more often, and the other gets them.
        first = me < node.incarnation
        self._patience = settings.heartbeat * (1.0 if first else 2.2)
        # The session of each side; the numbers go on where the peer comes back.
        self._mine, self._theirs = numbers
        self._outbox = Outbox(settings)
        self.lease = LeaseTimes(settings)
        # Of the message that comes next.
        self.parts = Parts()
        self._clear()

    def _clear(self) -> None:
        """As before the first message of a session."""
        self._outbox.restart()
        self.lease.clear()
        self.parts.clear()
        self._received = 0
        self._early: dict[int, Message] = {}
        self._owed = 0
        self._waits = 0.0
        self.sent = 0
        self.taken = 0
        self._began = -inf
        self._acknowledge_at = inf
        self._probe_at = inf
        self._note_at = inf

    def _move(self, what: str) -> None:
        self.state = TRANSITIONS[self.state, what]

    # What is asked of it.

    def begin(self, now: float) -> None:
        """See to it that the channel opens."""
        if self.state == CLOSED:
            self._move("begin")
            self._mine += 1
            self._began = now
            self._again(now)

    def send(
        self,
        body: bytes,
        tail: Sequence[Buffer],
        size: int,
        now: float,
        counted: bool = True,
    ) -> None:
        """Send a message, now or when there is room.

        `size` is that of all its bytes; `counted` ones are seen in `sent`.
        """
        message = Sent(body, tail, size)
        self.sent += counted
        outbox = self._outbox
        if self.state == OPEN and not outbox.queue and outbox.room(size):
            self._transmit(message, now)
        else:
            outbox.queue.append(message)
            if self.state == CLOSED:
                self.begin(now)

    def over(self, reason: Reason) -> None:
        """The peer is gone: both moments of the end, and of what was to come."""
        if self.state == FENCED:
            self.ends.append(End(self.node, None))
        if self.state != CLOSED:
            self._move("over")
            self._end(reason, expired=True)

    def counts(self) -> float:
        """Until when the peer may count on the session that is open, or was."""
        return self.lease.expires() if self.state in (OPEN, FENCED) else -inf

    def goodbye(self) -> None:
        """Tell the peer that this worker leaves."""
        self._note(PacketKind.BYE, NOTHING)

    def due(self) -> float:
        """When `tick` has something to do."""
        state = self.state
        if state == OPEN:
            return min(
                self._acknowledge_at,
                self._probe_at,
                self._note_at,
                self.lease.ends(),
            )
        if state == CLOSED:
            return inf
        if state == FENCED:
            return self.lease.expires()
        return min(self._note_at, self._began + self._settings.connect)

    def tick(self, now: float) -> None:
        """Do what is due."""
        settings = self._settings
        if self.state == OPEN:
            if now >= self.lease.ends():
                self._silence(now)
                return
            if now >= self._probe_at or now >= self._note_at:
                self._ask(now)
            elif now >= self._acknowledge_at:
                self._note(PacketKind.PONG, self._beat(now, stamped=False))
        elif self.state == FENCED:
            if now >= self.lease.expires():
                self._expire(now)
        elif self.state != CLOSED:
            if now >= self._began + settings.connect:
                self._move("silence")
                self._end(Reason.LOST, expired=True)
            elif now >= self._note_at:
                self._again(now)

    # What comes.

    def data(
        self,
        found: Head,
        frames: Sequence[Buffer],
        decode: Callable[[Sequence[Buffer]], Message],
        now: float,
    ) -> Sequence[Message] | PacketError:
        """A packet with a message came: the messages whose turn it is.

        Raises:
            Malformed: `decode` did; nothing happened but what the header says.
        """
        flaw = self._ours(found, now)
        if flaw is not None:
            return flaw
        sequence = found.sequence
        if sequence == self._received + 1 and not self._early:
            message = decode(frames)
            self._received = sequence
            self._owe(frames, now)
            return (message,)
        if sequence > self._received + self._settings.window:
            return PacketError.SEQUENCE
        if sequence <= self._received or sequence in self._early:
            # It came before: the acknowledgement may have been lost.
            self._note(PacketKind.PONG, self._beat(now, stamped=False))
            return ()
        self._early[sequence] = decode(frames)
        turn = []
        while self._received + 1 in self._early:
            self._received += 1
            turn.append(self._early.pop(self._received))
        self._owe(frames, now)
        return turn

    def note(self, found: Head, note: Note, now: float) -> PacketError | None:
        """A packet without a message came."""
        match found.kind, note:
            case PacketKind.HELLO, Hello():
                return self._hello(found, note, now)
            case PacketKind.WELCOME, Hello():
                return self._welcome(found, note, now)
            case ((PacketKind.PING | PacketKind.PONG), Heartbeat()):
                return self._heartbeat(found, note, now)
            case PacketKind.RESET, _:
                if found.theirs != self._mine or self.state in (CLOSED, OPENING):
                    return PacketError.SESSION
                if self.state == FENCED:
                    self._expire(now)
                else:
                    self.over(Reason.LOST)
                return None
        return PacketError.KIND

    def _ours(self, found: Head, now: float) -> PacketError | None:
        """Whether a packet is of the session that is open; takes what it proves."""
        if found.theirs != self._mine or found.mine != self._theirs:
            return self._stale(found)
        if self.state == ANSWERING:
            since = max(self._began, self.lease.proven)
            if now >= since + self._settings.dead:
                return PacketError.SESSION
            self._open("named", now, since)
        elif self.state != OPEN:
            return self._stale(found)
        if found.acknowledged > self._outbox.acked:
            self._acknowledged(found.acknowledged, now)
        if now >= self.lease.ends():
            self._silence(now)
            return PacketError.SESSION
        self.lease.heard = now
        return None

    def _stale(self, found: Head) -> PacketError:
        """The peer counts on a session that is over: it is told so."""
        self._writer.note(PacketKind.RESET, NOTHING, self._mine, found.mine, 0, 0)
        return PacketError.SESSION

    def _hello(self, found: Head, hello: Hello, now: float) -> PacketError | None:
        if found.mine < self._theirs:
            return PacketError.SESSION
        if found.mine == self._theirs:
            if self.state != ANSWERING:
                return PacketError.SESSION
        else:
            if self.state in (ANSWERING, OPEN, FENCED):
                # The peer has given up the session before.
                self._end(None if self.state == FENCED else Reason.LOST, expired=True)
            if self.state != OPENING:
                self._mine += 1
            self._move("hello")
            self._theirs = found.mine
            self.lease.echo = 0
            self._began = now
            self._waits = 0.0
        self.largest = hello.largest
        self.lease.heard = now
        self.lease.echo = max(self.lease.echo, found.sequence)
        self._again(now)
        return None

    def _welcome(self, found: Head, hello: Hello, now: float) -> PacketError | None:
        if found.theirs != self._mine or self.state in (CLOSED, FENCED):
            return PacketError.SESSION
        if self.state == OPENING and found.mine > self._theirs:
            self._theirs = found.mine
        if found.mine != self._theirs:
            return PacketError.SESSION
        self.largest = hello.largest
        self.lease.heard = now
        self.lease.echo = max(self.lease.echo, found.sequence)
        if self.state != OPEN:
            self.lease.echoed(found.acknowledged)
            since = max(self._began, self.lease.proven)
            if now >= since + self._settings.dead:
                # It answers what was said long ago: it is asked again.
                self._again(now)
            else:
                self._open("welcome", now, since)
        else:
            self._note(PacketKind.PONG, self._beat(now))
        return None

    def _heartbeat(
        self, found: Head, beat: Heartbeat, now: float
    ) -> PacketError | None:
        if (
            self.state in (OPEN, ANSWERING)
            and found.theirs == self._mine
            and found.mine == self._theirs
        ):
            if beat.echo > self.lease.stamp:
                # Nothing of this number was sent.
                return PacketError.BODY
            self.lease.echoed(beat.echo)
        flaw = self._ours(found, now)
        if flaw is not None:
            return flaw
        self.lease.echo = max(self.lease.echo, beat.stamp)
        self._lost_ones(beat, now)
        if found.kind == PacketKind.PING:
            self._note(PacketKind.PONG, self._beat(now))
        self._note_at = max(self._note_at, self.lease.proven + self._patience)
        return None

    # What it does.

    def _open(self, what: str, now: float, since: float) -> None:
        self._move(what)
        self.lease.prove(since)
        self._note_at = self.lease.proven + self._patience
        if what == "welcome":
            self._note(PacketKind.PONG, self._beat(now))
        self._pump(now)

    def _silence(self, now: float) -> None:
        self._move("silence")
        heard = self.lease.heard
        self._end(Reason.LOST, expired=False)
        self.lease.heard = heard
        if now >= self.lease.expires():
            self._expire(now)

    def unreachable(self, now: float) -> None:
        """Nobody listens at the endpoint any more: give up, as after silence."""
        if self.state == OPEN:
            self._silence(now)
        elif self.state in (OPENING, ANSWERING):
            # Nothing was sent, and nothing came, that somebody could count on.
            self._move("silence")
            self._end(Reason.LOST, expired=True)

    def _expire(self, now: float) -> None:
        self._move("expiry")
        self._end(None, expired=True)
        if self._outbox.queue:
            self.begin(now)

    def _end(self, reason: Reason | None, *, expired: bool) -> None:
        if reason is not None:
            self.ends.append(End(self.node, reason))
        if expired:
            self.ends.append(End(self.node, None))
        sent = self.sent
        self._clear()
        if reason is None:
            # What waits came after the end of this session: it is of the next one.
            self.sent = sent
        else:
            self._outbox.queue.clear()

    def _pump(self, now: float) -> None:
        queue, room = self._outbox.queue, self._outbox.room
        while queue and room(queue[0].size):
            self._transmit(queue.popleft(), now)

    def _transmit(self, message: Sent, now: float) -> None:
        if not self._outbox.flight:
            self._waits = self._settings.probe
            self._probe_at = now + self._waits
        self._outbox.number(message, now)
        self._put(message)

    def _put(self, message: Sent) -> None:
        message.stamp = self.lease.stamp
        self._owed = 0
        self._acknowledge_at = inf
        self._writer.message(message, self._mine, self._theirs, self._received)

    def _acknowledged(self, sequence: int, now: float) -> None:
        time = self._outbox.acknowledge(sequence)
        if time is None:
            return
        self.lease.prove(time)
        self._waits = self._settings.probe
        self._probe_at = now + self._waits if self._outbox.flight else inf
        self._note_at = max(self._note_at, self.lease.proven + self._patience)
        if self._outbox.queue:
            self._pump(now)

    def _owe(self, frames: Sequence[Buffer], now: float) -> None:
        self._owed += 1
        if self._owed == 1:
            self._acknowledge_at = now + self._settings.acknowledge
        if self._owed >= self._settings.acknowledge_each or (
            len(frames) > 1 and size(frames) > self._settings.bulky
        ):
            self._note(PacketKind.PONG, self._beat(now, stamped=False))

    def _beat(self, now: float, *, stamped: bool = True) -> Heartbeat:
        if stamped:
            self.lease.note(now)
        early = tuple(sorted(self._early)[:EARLY])
        return Heartbeat(self.lease.stamp if stamped else 0, self.lease.echo, early)

    def _lost_ones(self, beat: Heartbeat, now: float) -> None:
        """Send again what was sent before the note that is answered, and is missing."""
        again = self._outbox.missing(beat.echo, beat.early)
        for each in again:
            self.resent += 1
            self._put(each)
        if again:
            self._probe_at = now + self._settings.probe

    def _ask(self, now: float) -> None:
        self._note(PacketKind.PING, self._beat(now))
        if self._outbox.flight:
            self._waits = min(self._waits * _SLOWER, self._settings.heartbeat)
            self._probe_at = now + self._waits
        self._note_at = now + self._settings.heartbeat / 2

    def _again(self, now: float) -> None:
        """Send HELLO or WELCOME, once more if need be."""
        stamp = self.lease.note(now)
        kind = PacketKind.HELLO if self.state == OPENING else PacketKind.WELCOME
        self._note(kind, Hello(self._settings.largest), stamp, self.lease.echo)
        settings = self._settings
        self._waits = min(max(self._waits, settings.probe / 2) * _SLOWER, 1.0)
        self._note_at = now + self._waits

    def _note(
        self,
        kind: PacketKind,
        note: Note,
        sequence: int = 0,
        acknowledged: int | None = None,
    ) -> None:
        if kind == PacketKind.PONG or kind == PacketKind.PING:
            self._owed = 0
            self._acknowledge_at = inf
        number = self._received if acknowledged is None else acknowledged
        theirs = 0 if kind == PacketKind.HELLO else self._theirs
        self._writer.note(kind, note, self._mine, theirs, sequence, number)

    # What it looks like.

    def queued(self) -> int:
        """Messages that wait for room, or for the channel to open."""
        return len(self._outbox.queue)

    def unacknowledged(self) -> int:
        """Messages that are not known to have come, those that wait among them."""
        return len(self._outbox.flight) + len(self._outbox.queue)

    def numbers(self) -> tuple[int, int]:
        """The session of each side."""
        return self._mine, self._theirs

    def positions(self) -> tuple[int, ...]:
        """What is left out below: acknowledged, received, own and last stamp."""
        return self._outbox.acked, self._received, self.lease.stamp, self.lease.echo

    def picture(self, now: float) -> Hashable:
        """Everything that this side knows; numbers and times are relative."""

        def after(time: float) -> float | None:
            return None if abs(time) == inf else round(time - now, 6)

        outbox, lease = self._outbox, self.lease
        began = self._began if self.state in (OPENING, ANSWERING) else inf
        return (
            self.node,
            self.state,
            self._mine,
            self._theirs,
            tuple((each.written(), lease.stamp - each.stamp) for each in outbox.flight),
            tuple(each.written() for each in outbox.queue),
            tuple(
                (number - self._received, Sent(*encode(message), 0).written())
                for number, message in sorted(self._early.items())
            ),
            lease.picture(now),
            self._owed,
            round(self._waits, 6),
            tuple(
                after(time)
                for time in (
                    began,
                    self._acknowledge_at,
                    self._probe_at,
                    self._note_at,
                )
            ),
        )
