"""One channel, explored: its packets lost, doubled, late and out of order, its ends.

True only here: that a real channel is what `world` assumes of one.  Two sides say some
messages at any time; packets are delivered in any order, lost or doubled; some are
late: they are kept back and come at any time after, also when their session is over.  A
direction may be cut for as long as one likes, a side may crash.  Time goes on, to what
is due first, when nothing is on its way but what is kept back.

What is shown in every state, and is all that `world` takes for granted:
- a message comes once, in the order of what its sender said, without a gap: whatever
  one session delivers is a beginning of what was said in it;
- what was said before an end of the sender, and after it, never come to the receiver
  without an end of the receiver in between;
- an end is `lost` once, then `expired` once, and nothing comes in between;
- it has expired only when the other end does not count on the session any more;
- from every state all can come to rest; then either both are open, and all came that
  was said since the sender's last end, or both are closed.

So a lost packet is time, or an end; and time is in `world` already, as messages are
delivered there at any time, in order.  What a channel loses with its end are the last
messages of both directions: in `world` one side loses the other at any time, hears
nothing any more, and the other goes on hearing what was said before, until it loses
the first one as well.
"""

from collections import deque
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from hashlib import blake2b
from math import inf
from typing import Any

from everyorder.runtime.rpc.protocol.channel import CLOSED, OPEN, Channel, End
from everyorder.runtime.rpc.protocol.identities import WorkerNode
from everyorder.runtime.rpc.protocol.messages import Cancel, encode
from everyorder.runtime.rpc.protocol.packets import Packet
from everyorder.runtime.rpc.protocol.wire import (
    HEADER,
    PacketError,
    PacketKind,
    note,
    parse,
)
from tests.rpc.exploring.world import Broken
from tests.rpc.protocol.pair import body
from tests.rpc.protocol.times import TIMES

Step = tuple[Any, ...]
# Who it is for, and its only frame.
Way = tuple[int, bytes]
# Longer than any end of a channel takes.
_FOREVER = 20.0
NODES = WorkerNode("a", 0, 1), WorkerNode("b", 1, 2)


@dataclass(frozen=True, slots=True)
class Limits:
    """How many messages each side says, and how often each thing happens."""

    says: tuple[int, int] = (2, 1)
    lost: int = 0
    doubled: int = 0
    late: int = 0
    cuts: int = 0
    crashes: int = 0


@dataclass(slots=True)
class Side:
    """A channel, and what it did.

    `said` are the numbers of ends of this side before each of its messages; `came`
    holds for each message that came its number, and that of ends of this side.
    """

    channel: Channel
    said: tuple[int, ...] = ()
    came: tuple[tuple[int, int], ...] = ()
    ends: int = 0
    fenced: bool = False
    # The last one that was open.
    session: tuple[int, int] = (0, 0)


def begun(me: int) -> Side:
    """A side of a channel that is closed."""
    return Side(
        Channel(
            NODES[1 - me],
            str(1 - me),
            "",
            me=NODES[me].incarnation,
            group=1,
            settings=TIMES,
            packets=[],
            ends=[],
        )
    )


def copied(side: Side) -> Side:
    """The same, apart; no message here has parts."""
    made, old = copy(side), side.channel
    new = made.channel = copy(old)
    new.ends = []
    new.writer = copy(old.writer)
    new.writer._packets = []
    new._outbox = copy(old._outbox)
    new._outbox.queue = deque(map(copy, old._outbox.queue))
    new._outbox.flight = deque(map(copy, old._outbox.flight))
    new.lease = copy(old.lease)
    new.lease._notes = copy(old.lease._notes)
    new._early = dict(old._early)
    return made


class Wire:
    """Two sides, what is on its way, and what may still happen."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.now = 0.0
        self.sides: list[Side | None] = [begun(0), begun(1)]
        self.packets: tuple[Way, ...] = ()
        self.late: tuple[Way, ...] = ()
        self.cut: frozenset[int] = frozenset()
        # What was said by a side that has crashed.
        self.epitaph: tuple[int, ...] = ()
        # Lost, doubled, late, cuts, crashes.
        self.left = [
            limits.lost,
            limits.doubled,
            limits.late,
            limits.cuts,
            limits.crashes,
        ]

    def after(self, step: Step) -> "Wire":
        """What follows from a step.

        Raises:
            Broken: it breaks a law.
        """
        wire = copy(self)
        wire.sides, wire.left = list(self.sides), list(self.left)
        getattr(wire, "_" + step[0])(*step[1:])
        return wire

    # What may happen.

    def steps(self) -> Iterator[Step]:
        """Every step that may come next."""
        lost, doubled, late, cuts, crashes = self.left
        for me, side in enumerate(self.sides):
            if side is None:
                continue
            if len(side.said) < self.limits.says[me]:
                yield "say", me
            if crashes:
                yield "crash", me
        for way in dict.fromkeys(self.packets):
            place = self.packets.index(way)
            yield "deliver", place
            if lost:
                yield "lose", place
            if doubled:
                yield "double", place
            if late:
                yield "delay", place
        for way in dict.fromkeys(self.late):
            yield "come", self.late.index(way)
        for target in range(2):
            if target in self.cut:
                yield "heal", target
            elif cuts:
                yield "cut", target
        # Whoever waits for so long waits for ever.
        waits = self.cut or not self.calm()
        if waits and not self.packets and self.due()[0] < inf and self.now < _FOREVER:
            yield ("wait",)

    def rests(self) -> bool:
        """Whether all has been said, and nothing is on its way.

        Raises:
            Broken: something of it was lost without an end.
        """
        if self.packets or self.late or self.cut or not self.calm():
            return False
        there = [(me, side) for me, side in enumerate(self.sides) if side is not None]
        if any(len(side.said) < self.limits.says[me] for me, side in there):
            return False
        for me, side in there:
            other = self.sides[1 - me]
            came = [] if other is None else [number for number, _ in other.came]
            for number, ends in enumerate(side.said):
                if number not in came and ends == side.ends:
                    raise Broken(f"message {number} is lost without an end")
        return True

    def calm(self) -> bool:
        """Whether nothing would happen any more but signs of life."""
        channels = [side.channel for side in self.sides if side is not None]
        states = {channel.state for channel in channels}
        if any(channel.unacknowledged() for channel in channels):
            return False
        if states == {OPEN} and len(channels) == 2:
            mine, theirs = channels[0].numbers()
            return channels[1].numbers() == (theirs, mine)
        return states <= {CLOSED}

    def due(self) -> tuple[float, int]:
        """When a side has something to do first, and which."""
        return min(
            (side.channel.due(), me)
            for me, side in enumerate(self.sides)
            if side is not None
        )

    # What happens.

    def _at(self, me: int) -> Side:
        """A side that is about to change."""
        side = self.sides[me]
        assert side is not None, "it is there"
        made = self.sides[me] = copied(side)
        return made

    def _say(self, me: int) -> None:
        side = self._at(me)
        written, _ = encode(Cancel(len(side.said)))
        side.said += (side.ends,)
        side.channel.send(written, (), len(written), self.now)
        self._settle(me, side)

    def _crash(self, me: int) -> None:
        self.left[4] -= 1
        self.epitaph, self.sides[me] = self.said(me), None
        self.packets = tuple(way for way in self.packets if way[0] != me)
        self.late = tuple(way for way in self.late if way[0] != me)
        self.cut -= {me}

    def _deliver(self, place: int) -> None:
        way = self.packets[place]
        self.packets = self.packets[:place] + self.packets[place + 1 :]
        self._came(*way)

    def _come(self, place: int) -> None:
        way = self.late[place]
        self.late = self.late[:place] + self.late[place + 1 :]
        self._came(*way)

    def _lose(self, place: int) -> None:
        self.left[0] -= 1
        self.packets = self.packets[:place] + self.packets[place + 1 :]

    def _double(self, place: int) -> None:
        self.left[1] -= 1
        self.packets += (self.packets[place],)

    def _delay(self, place: int) -> None:
        self.left[2] -= 1
        self.late += (self.packets[place],)
        self.packets = self.packets[:place] + self.packets[place + 1 :]

    def _cut(self, target: int) -> None:
        self.left[3] -= 1
        self.cut |= {target}
        self.packets = tuple(way for way in self.packets if way[0] != target)

    def _heal(self, target: int) -> None:
        self.cut -= {target}

    def _wait(self) -> None:
        due, me = self.due()
        self.now = max(self.now, due)
        side = self._at(me)
        side.channel.tick(self.now)
        self._settle(me, side)

    def _came(self, target: int, frame: bytes) -> None:
        side = self._at(target)
        head = parse([frame])
        assert not isinstance(head, PacketError), "it was written here"
        if head.kind == PacketKind.DATA:
            messages = side.channel.data(head, [frame], body, self.now)
            # An end that is found out now was before what comes now.
            self._ended(target, side)
            for message in () if isinstance(messages, PacketError) else messages:
                assert isinstance(message, Cancel), "nothing else is said"
                self._take(target, side, message.call)
        else:
            told = note(head.kind, memoryview(frame)[HEADER.size :])
            side.channel.note(head, told, self.now)
        self._settle(target, side)

    def _take(self, me: int, side: Side, number: int) -> None:
        """A message comes to a side.

        Raises:
            Broken: it is not its turn.
        """
        if side.fenced:
            raise Broken("nothing comes between an end and its expiry")
        said, sender = self.said(1 - me), self.sides[1 - me]
        if sender is not None and sender.ends - sender.fenced > said[number]:
            raise Broken(f"message {number} comes when its session has expired")
        if side.came:
            last, ends = side.came[-1]
            if number <= last:
                raise Broken(f"message {number} comes after {last}")
            if said[number] != said[last] and side.ends == ends:
                raise Broken("an end of the sender is one of the receiver")
            if said[number] == said[last] and side.ends != ends:
                raise Broken("what one session says is not heard in two")
        before = [each for each, ends in enumerate(said) if ends == said[number]]
        came = [each for each, _ in side.came]
        if [each for each in before if each < number and each not in came]:
            raise Broken(f"message {number} comes before others of its session")
        side.came += ((number, side.ends),)

    def said(self, me: int) -> tuple[int, ...]:
        """What a side said, also when it has crashed."""
        side = self.sides[me]
        return self.epitaph if side is None else side.said

    def _settle(self, me: int, side: Side) -> None:
        """Take what a channel says, and hear of its ends."""
        self._ended(me, side)
        packets: list[Packet] = side.channel.writer._packets
        for packet in packets:
            (frame,) = packet.frames
            target = 1 - me
            if target not in self.cut and self.sides[target] is not None:
                self.packets += ((target, bytes(frame)),)
        packets.clear()

    def _ended(self, me: int, side: Side) -> None:
        ends: list[End] = side.channel.ends
        for end in ends:
            if end.reason is not None:
                if side.fenced:
                    raise Broken("an end is lost once")
                side.ends += 1
                side.fenced = True
                continue
            if not side.fenced:
                raise Broken("what expires was lost before")
            side.fenced = False
            other = self.sides[1 - me]
            if other is not None and other.channel.state == OPEN:
                mine, theirs = other.channel.numbers()
                if (theirs, mine) == side.session:
                    raise Broken("what has expired is counted on")
        ends.clear()
        if side.channel.state == OPEN:
            side.session = side.channel.numbers()

    def form(self) -> bytes:
        """Everything, as 16 bytes."""
        whole = (
            [
                side
                and (
                    side.channel.picture(self.now),
                    side.channel.positions(),
                    side.said,
                    side.came,
                    side.ends,
                    side.fenced,
                    side.session,
                )
                for side in self.sides
            ],
            sorted(self.packets),
            sorted(self.late),
            sorted(self.cut),
            self.epitaph,
            self.left,
        )
        return blake2b(repr(whole).encode(), digest_size=16).digest()
