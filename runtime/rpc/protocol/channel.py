"""Channels: reliable, ordered messages between two lives of workers, or an end.

Packets may be lost, duplicated, late or out of order; messages arrive once and in
order, until the channel ends.

A channel begins with a handshake of three: HELLO, WELCOME, and any packet that names
both sessions.  Each side numbers its sessions with this peer; a packet contains both
numbers, so that late packets of an earlier session are recognised.  Messages wait until
the channel is open.  A sent message has a sequence number and is stored until the peer
acknowledges it, in its next message or in a PONG.  A PING asks about messages that are
not acknowledged in time; the PONG lists the received messages, and messages that were
sent before the PING and did not arrive are sent again: a large payload is never sent
twice only because it is slow.

The leases of both sides decide about the end.  When this side's lease is over, it
fences itself: `lost`.  When the other side's lease is over for certain: `expired`.  A
fenced channel does not accept packets of the session any more, so both times are fixed.
Both moments coincide if the peer reports that it has no such session (RESET, a HELLO of
a newer one) or leaves.

    CLOSED      nothing is sent or expected
    OPENING     HELLO was sent
    ANSWERING   WELCOME was sent, and not confirmed by the peer yet
    OPEN        the peer named both sessions
    FENCED      given up; the peer may still rely on the session
"""

from collections.abc import Callable, Container, Hashable, Sequence
from math import inf
from typing import NamedTuple

from everyorder.runtime.rpc.protocol.events import Buffer, Reason, Settings
from everyorder.runtime.rpc.protocol.identities import WorkerNode
from everyorder.runtime.rpc.protocol.liveness import LeaseTimes
from everyorder.runtime.rpc.protocol.messages import Message, encode
from everyorder.runtime.rpc.protocol.packets import (
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

# A missing transition is illegal; callers must check.
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

# An unanswered probe is repeated after a wait that is longer by this factor.
_SLOWER = 2.0


class End(NamedTuple):
    """A moment of the end of a channel: loss with a reason, expiry without one."""

    node: WorkerNode
    reason: Reason | None


class Channel:
    """One side of a channel; its creator empties `packets` and `ends`.

    `me` is the incarnation of this worker, `key` the public key of the peer, `largest`
    the size in bytes of a payload that the peer accepts, None until the peer has
    announced it.
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
        # The time under which the core has put this channel on its list of timers.
        self.armed = inf
        self.writer = PacketWriter(packets, endpoint, group, me, node.incarnation)
        self._settings = settings
        # One of the two sides probes more often, and so serves both.
        first = me < node.incarnation
        self._patience = settings.heartbeat * (1.0 if first else 2.2)
        # The session number of each side; the counts continue if the peer returns.
        self._mine, self._theirs = numbers
        self._outbox = Outbox(settings)
        self.lease = LeaseTimes(settings)
        # Parts of the next message.
        self.parts = Parts()
        self._clear()

    def _clear(self) -> None:
        """Reset to the state before the first message of a session."""
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

    # Requests of the core.

    def begin(self, now: float) -> None:
        """Start the handshake if the channel is closed."""
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

        `size` is the number of all its bytes; `counted` messages are counted in `sent`.
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
        """End the channel at once: the peer has ended, so loss and expiry coincide."""
        if self.state == FENCED:
            self.ends.append(End(self.node, None))
        if self.state != CLOSED:
            self._move("over")
            self._end(reason, expired=True)

    def counts(self) -> float:
        """Return the time until which the peer may rely on the last session."""
        return self.lease.expires() if self.state in (OPEN, FENCED) else -inf

    def goodbye(self) -> None:
        """Notify the peer that this worker leaves."""
        self._note(PacketKind.BYE, NOTHING)

    def due(self) -> float:
        """Return the time at which `tick` has work."""
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
        return min(self._note_at, self._unanswered())

    def _unanswered(self) -> float:
        """Return the time at which an unanswered handshake is given up."""
        return max(self._began, self.lease.reached) + self._settings.connect

    def tick(self, now: float) -> None:
        """Do the work that is due."""
        if self.state == OPEN:
            if self.lease.is_dead(now):
                self._silence(now)
                return
            if now >= self._probe_at or now >= self._note_at:
                self._ask(now)
            elif now >= self._acknowledge_at:
                self._note(PacketKind.PONG, self._beat(now, stamped=False))
        elif self.state == FENCED:
            if self.lease.is_expired(now):
                self._expire(now)
        elif self.state != CLOSED:
            if now >= self._unanswered():
                self._move("silence")
                self._end(Reason.LOST, expired=True)
            elif now >= self._note_at:
                self._again(now)

    # Received packets.

    def data(
        self,
        header: Head,
        frames: Sequence[Buffer],
        decode: Callable[[Sequence[Buffer]], Message],
        now: float,
    ) -> Sequence[Message] | PacketError:
        """Handle a packet with a message; return the messages that are next in order.

        Return a `PacketError` for a packet that is dropped.

        Raises:
            MalformedPacket: `decode` raised it; only the header has had effects.
        """
        error = self._ours(header, now)
        if error is not None:
            return error
        sequence = header.sequence
        if sequence == self._received + 1 and not self._early:
            message = decode(frames)
            self._received = sequence
            self._owe(frames, now)
            return (message,)
        if sequence > self._received + self._settings.window:
            return PacketError.SEQUENCE
        if sequence <= self._received or sequence in self._early:
            # A duplicate: the acknowledgement may have been lost.
            self._note(PacketKind.PONG, self._beat(now, stamped=False))
            return ()
        self._early[sequence] = decode(frames)
        turn = []
        while self._received + 1 in self._early:
            self._received += 1
            turn.append(self._early.pop(self._received))
        self._owe(frames, now)
        return turn

    def note(self, header: Head, note: Note, now: float) -> PacketError | None:
        """Handle a packet without a message."""
        match header.kind, note:
            case PacketKind.HELLO, Hello():
                return self._hello(header, note, now)
            case PacketKind.WELCOME, Hello():
                return self._welcome(header, note, now)
            case ((PacketKind.PING | PacketKind.PONG), Heartbeat()):
                return self._heartbeat(header, note, now)
            case PacketKind.RESET, _:
                if header.theirs != self._mine or self.state in (CLOSED, OPENING):
                    return PacketError.SESSION
                if self.state == FENCED:
                    self._expire(now)
                else:
                    self.over(Reason.LOST)
                return None
        return PacketError.KIND

    def _ours(self, header: Head, now: float) -> PacketError | None:
        """Check that a packet is of the open session, and update the lease."""
        if header.theirs != self._mine or header.mine != self._theirs:
            return self._stale(header)
        if self.state == ANSWERING:
            since = max(self._began, self.lease.proven)
            if now >= since + self._settings.dead:
                return PacketError.SESSION
            self._open("named", now, since)
        elif self.state != OPEN:
            return self._stale(header)
        if header.acknowledged > self._outbox.acked:
            self._acknowledged(header.acknowledged, now)
        if self.lease.is_dead(now):
            self._silence(now)
            return PacketError.SESSION
        self.lease.heard = now
        return None

    def _stale(self, header: Head) -> PacketError:
        """Reset the peer, which relies on a session that is over."""
        self.writer.reset(header.mine, self._mine)
        return PacketError.SESSION

    def _hello(self, header: Head, hello: Hello, now: float) -> PacketError | None:
        if header.mine < self._theirs:
            return PacketError.SESSION
        if header.mine == self._theirs:
            if self.state != ANSWERING:
                return PacketError.SESSION
        else:
            if self.state in (ANSWERING, OPEN, FENCED):
                # The peer has given up the previous session.
                self._end(None if self.state == FENCED else Reason.LOST, expired=True)
            if self.state != OPENING:
                self._mine += 1
            self._move("hello")
            self._theirs = header.mine
            self.lease.echo = 0
            self._began = now
            self._waits = 0.0
        self.largest = hello.largest
        self.lease.heard = now
        self.lease.echo = max(self.lease.echo, header.sequence)
        self._again(now)
        return None

    def _welcome(self, header: Head, hello: Hello, now: float) -> PacketError | None:
        if header.theirs != self._mine or self.state in (CLOSED, FENCED):
            return PacketError.SESSION
        if self.state == OPENING and header.mine > self._theirs:
            self._theirs = header.mine
        if header.mine != self._theirs:
            return PacketError.SESSION
        self.largest = hello.largest
        self.lease.heard = now
        self.lease.echo = max(self.lease.echo, header.sequence)
        if self.state != OPEN:
            self.lease.echoed(header.acknowledged)
            since = max(self._began, self.lease.proven)
            if now < since + self._settings.dead:
                self._open("welcome", now, since)
            elif now >= self._note_at - self._waits + self._settings.probe / 2:
                # The peer answers an old packet: ask again.  If it was busy, it answers
                # many old ones, and one question for each would never end.
                self._again(now)
        else:
            self._note(PacketKind.PONG, self._beat(now))
        return None

    def _heartbeat(
        self, header: Head, beat: Heartbeat, now: float
    ) -> PacketError | None:
        if (
            self.state in (OPEN, ANSWERING)
            and header.theirs == self._mine
            and header.mine == self._theirs
        ):
            if beat.echo > self.lease.stamp:
                # This side has not sent a packet with that stamp.
                return PacketError.BODY
            self.lease.echoed(beat.echo)
        error = self._ours(header, now)
        if error is not None:
            return error
        self.lease.echo = max(self.lease.echo, beat.stamp)
        self._resend_missing(beat, now)
        if header.kind == PacketKind.PING:
            self._note(PacketKind.PONG, self._beat(now))
        self._note_at = max(self._note_at, self.lease.proven + self._patience)
        return None

    # Transitions and packets.

    def _open(self, what: str, now: float, since: float) -> None:
        self._move(what)
        self.lease.prove(since)
        self._note_at = self.lease.proven + self._patience
        if what == "welcome":
            self._note(PacketKind.PONG, self._beat(now))
        self._pump(now)

    def _silence(self, now: float) -> None:
        self._move("silence")
        seen = self.lease.seen()
        self._end(Reason.LOST, expired=False)
        self.lease.heard = seen
        if self.lease.is_expired(now):
            self._expire(now)

    def unreachable(self, now: float) -> None:
        """Give up, as after silence: the endpoint has no listener any more."""
        if self.state == OPEN:
            self._silence(now)
        elif self.state in (OPENING, ANSWERING):
            # Neither side has sent anything that the other could rely on.
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
            # Queued messages came after the end of this session: they belong to the
            # next one.
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
        self.writer.message(message, self._mine, self._theirs, self._received)

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

    def _resend_missing(self, beat: Heartbeat, now: float) -> None:
        """Send again the messages that the answered note proves missing.

        These were sent before the note, and are not listed in its answer.
        """
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
        """Send HELLO or WELCOME, possibly again."""
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
        self.writer.note(kind, note, self._mine, theirs, sequence, number)

    # Inspection.

    def queued(self) -> int:
        """Return the number of messages that wait for room or an open channel."""
        return len(self._outbox.queue)

    def unacknowledged(self) -> int:
        """Return the number of unacknowledged messages, including queued ones."""
        return len(self._outbox.flight) + len(self._outbox.queue)

    def has_unacknowledged(self, kinds: Container[int]) -> bool:
        """Return True if a message of one of these kinds is not acknowledged."""
        outbox = self._outbox
        return any(each.body[0] in kinds for each in (*outbox.flight, *outbox.queue))

    def numbers(self) -> tuple[int, int]:
        """Return the session number of each side."""
        return self._mine, self._theirs

    def positions(self) -> tuple[int, ...]:
        """Return the absolute numbers that `picture` omits.

        These are the acknowledged and received sequence numbers, this side's last
        stamp, and the peer's.
        """
        return self._outbox.acked, self._received, self.lease.stamp, self.lease.echo

    def picture(self, now: float) -> Hashable:
        """Return the complete state of this side; numbers and times are relative."""

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
