"""A network of the simulator: packets on links, and what weather does to them.

True only here: the fate of a packet.  Each link has random numbers of its own, so that
what happens on one does not change another: a schedule that is cut down keeps most of
its fates.  Uniform weather misses what is deep, so links have priorities that change at
times, as in PCT: each has a delay of its own order of magnitude, and one kind of
message may be held back, on all links or on one: late, as far as a lease allows, or
lost each time, while signs of life get through and the lease goes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from typing import NamedTuple

from everyorder.runtime.rpc.protocol.events import Buffer
from everyorder.runtime.rpc.protocol.wire import HEADER, PacketKind

# What a link takes, in seconds: from within a host to a link that is all but down.
DELAYS = (0.0002, 0.003, 0.03, 0.2, 0.6)
# How long a message of the kind that is held back is late.
HELD_BACK = 0.9


class Link(NamedTuple):
    """From one endpoint to another."""

    source: str
    target: str


@dataclass(slots=True)
class Weather:
    """What happens to the packets of a link."""

    delay: float = DELAYS[0]
    lost: float = 0.0
    doubled: float = 0.0
    # Part of the delay by which packets overtake each other.
    jitter: float = 0.0
    # The number of the kind of message that is held back, and whether it is lost.
    held_back: int = 0
    starved: bool = False


@dataclass(slots=True)
class Network:
    """All links; `packets` are on their way, the first to arrive first."""

    seed: int
    weather: dict[Link, Weather] = field(default_factory=dict)
    cut: set[Link] = field(default_factory=set)
    packets: list[tuple[float, int, Link, list[bytes]]] = field(default_factory=list)
    sent: int = 0
    randoms: dict[Link, Random] = field(default_factory=dict)

    def send(self, link: Link, frames: Sequence[Buffer], now: float) -> None:
        """A packet is sent; what it is now is what arrives."""
        if link in self.cut:
            return
        weather = self.weather.get(link)
        if weather is None:
            self._put(now + DELAYS[0], link, frames)
            return
        random = self.randoms.get(link)
        if random is None:
            random = self.randoms[link] = Random(f"{self.seed}/{link}")
        held_back = weather.held_back and kind(frames) == weather.held_back
        if random.random() < weather.lost or (held_back and weather.starved):
            return
        twice = random.random() < weather.doubled
        for _ in range(1 + twice):
            delay = weather.delay * (1 + weather.jitter * random.random())
            if held_back:
                delay += HELD_BACK
            self._put(now + delay, link, frames)

    def _put(self, time: float, link: Link, frames: Sequence[Buffer]) -> None:
        self.sent += 1
        heappush(
            self.packets, (time, self.sent, link, [bytes(frame) for frame in frames])
        )

    def due(self) -> float | None:
        """When the next packet arrives."""
        return self.packets[0][0] if self.packets else None

    def take(self) -> tuple[Link, list[bytes]]:
        """The next packet that arrives."""
        _, _, link, frames = heappop(self.packets)
        return link, frames

    def calm(self) -> None:
        """Nothing happens to packets any more."""
        self.weather.clear()
        self.cut.clear()


def kind(frames: Sequence[Buffer]) -> int:
    """The number of the kind of message in a packet, 0 where there is none."""
    first = frames[0]
    if HEADER.unpack_from(first)[2] != PacketKind.DATA or len(first) <= HEADER.size:
        return 0
    return memoryview(first).cast("B")[HEADER.size]
