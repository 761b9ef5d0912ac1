"""Two sides of a channel, and what is between them: packets are moved by hand."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from everyorder.runtime.rpc.protocol.channel import Channel, End
from everyorder.runtime.rpc.protocol.events import Buffer, Settings
from everyorder.runtime.rpc.protocol.identities import WorkerNode
from everyorder.runtime.rpc.protocol.messages import Cancel, Message, decode, encode
from everyorder.runtime.rpc.protocol.packets import Packet
from everyorder.runtime.rpc.protocol.wire import (
    HEADER,
    PacketError,
    PacketKind,
    note,
    parse,
)
from tests.rpc.protocol.times import TIMES

# Packets of a pair are numbered: the first that it sent is 0.
Frames = list[Buffer]


@dataclass
class Side:
    """A channel, and what it did."""

    channel: Channel
    packets: list[Packet]
    ends: list[End]
    came: list[Message] = field(default_factory=list)
    flaws: list[PacketError] = field(default_factory=list)


def body(frames: Sequence[Buffer]) -> Message:
    """The message of a DATA packet."""
    return decode(memoryview(frames[0])[HEADER.size :], frames[1:])


def kind(frames: Frames) -> PacketKind:
    """The kind of a packet."""
    head = parse(frames)
    assert not isinstance(head, PacketError)
    return PacketKind(head.kind)


class Pair:
    """Sides "a" and "b"; `sent` holds all packets, as (target, frames)."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = TIMES if settings is None else settings
        self.now = 10.0
        self.sent: list[tuple[str, Frames]] = []
        self.nodes = {"a": WorkerNode("a", 0, 1), "b": WorkerNode("b", 1, 2)}
        self.sides = {"a": self.side("a", "b"), "b": self.side("b", "a")}

    def side(self, me: str, peer: str, life: int = 0) -> Side:
        """A side that knows the other one; `life` makes it another incarnation."""
        packets: list[Packet] = []
        ends: list[End] = []
        channel = Channel(
            self.nodes[peer],
            peer,
            "",
            me=self.nodes[me].incarnation + life,
            group=1,
            settings=self.settings,
            packets=packets,
            ends=ends,
        )
        return Side(channel, packets, ends)

    def __getitem__(self, name: str) -> Channel:
        return self.sides[name].channel

    def say(self, name: str, *numbers: int, tail: bytes = b"") -> None:
        """A side sends messages, which are numbers."""
        for number in numbers:
            written, _ = encode(Cancel(number))
            self[name].send(written, (), len(written) + len(tail), self.now)
        self.collect()

    def heard(self, name: str) -> list[int]:
        """The numbers that came to a side."""
        return [each.call for each in self.sides[name].came if isinstance(each, Cancel)]

    def collect(self) -> list[int]:
        """Take what was sent: the numbers of the packets."""
        first = len(self.sent)
        for side in self.sides.values():
            self.sent += [(each.endpoint, each.frames) for each in side.packets]
            side.packets.clear()
        return list(range(first, len(self.sent)))

    def deliver(self, number: int) -> list[int]:
        """A packet arrives; what was sent because of it."""
        target, frames = self.sent[number]
        side = self.sides[target]
        head = parse(frames)
        assert not isinstance(head, PacketError)
        if head.kind == PacketKind.DATA:
            came = side.channel.data(head, frames, body, self.now)
            if isinstance(came, PacketError):
                side.flaws.append(came)
            else:
                side.came += came
        else:
            told = note(head.kind, memoryview(frames[0])[HEADER.size :])
            flaw = side.channel.note(head, told, self.now)
            if flaw is not None:
                side.flaws.append(flaw)
        return self.collect()

    def tick(self, seconds: float = 0.0) -> list[int]:
        """Time passes, and both sides are told; what they sent."""
        self.now += seconds
        for side in self.sides.values():
            side.channel.tick(self.now)
        return self.collect()

    def run(self, seconds: float, waiting: list[int] | None = None) -> None:
        """Time passes, and every packet arrives at once."""
        end = self.now + seconds
        waiting = [] if waiting is None else waiting
        waiting += self.collect()
        while True:
            while waiting:
                waiting += self.deliver(waiting.pop(0))
            due = min(self["a"].due(), self["b"].due())
            if due > end:
                break
            self.now = max(self.now, due)
            waiting += self.tick()
        self.now = end

    def open(self) -> None:
        """Both sides are open, and nothing is on its way."""
        self["a"].begin(self.now)
        self.run(0.01)
        assert (self["a"].state, self["b"].state) == ("OPEN", "OPEN")

    def kinds(self, numbers: list[int]) -> list[str]:
        """Who is sent what."""
        return [
            f"{kind(self.sent[each][1]).name} to {self.sent[each][0]}"
            for each in numbers
        ]


QUICK = replace(TIMES, window=4)
