"""Whole sessions, explored: packets are delivered in any order, lost or doubled.

True only here: what is assumed of time.  It goes on only when no packet is on its way
and not everything is at rest, and then to what is due first: so a packet is late only
for other packets, and timers run only when a packet was lost or a worker crashed.  With
that the worlds are finitely many, joining, the handshake and retransmission among them.

Worlds are told apart by all that sessions know (`Session.state`), the packets on their
way and what may still happen.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from everyorder.runtime.rpc.protocol.events import (
    Admitted,
    Answered,
    Called,
    Confirmed,
    Died,
    Failed,
    Freed,
    Joined,
    Lost,
)
from everyorder.runtime.rpc.protocol.identities import ForkId, RRefId, WorkerNode
from everyorder.runtime.rpc.protocol.session import Session
from tests.rpc.exploring.world import Broken
from tests.rpc.protocol.times import TIMES

Step = tuple[Any, ...]
QUIET = (
    "owners",
    "forks",
    "users",
    "pending",
    "children",
    "carriers",
    "calls",
    "called",
    "queued",
)


@dataclass
class Limits:
    """How often packets may be lost and doubled, and workers crash."""

    lost: int = 0
    doubled: int = 0
    crashes: int = 0


@dataclass
class Side:
    """A worker, and what its agent has."""

    session: Session
    held: dict[ForkId, bool]
    members: list[WorkerNode]
    values: list[RRefId]
    asked: list[int]


class World:
    """Two workers: one joins the other, which creates a value there, and drops it."""

    def __init__(self, limits: Limits) -> None:
        self.now = 0.0
        self.left = limits
        self.sides: dict[str, Side] = {}
        self.packets: list[tuple[str, tuple[bytes, ...]]] = []
        # Of joining, creating and dropping: what was done.
        self.done = 0
        self.add("w0").keep(world_size=None)
        self.settle("w0")

    def add(self, name: str) -> Session:
        """A worker starts."""
        session = Session(
            name, incarnation=len(self.sides) + 1, endpoint=name, settings=TIMES
        )
        self.sides[name] = Side(session, {}, [], [], [])
        return session

    def after(self, step: Step) -> "World":
        """The world after a step.

        Raises:
            Broken: it breaks a law.
        """
        world = deepcopy(self)
        getattr(world, "_" + step[0])(*step[1:])
        return world

    def steps(self) -> Iterator[Step]:
        """Every step that may come next."""
        keeper = self.sides["w0"]
        if self.done == 0:
            yield ("join",)
        elif self.done == 1 and keeper.members:
            yield ("create",)
        elif self.done == 2 and keeper.held:
            yield ("drop",)
        for packet in dict.fromkeys(self.packets):
            place = self.packets.index(packet)
            yield "deliver", place
            if self.left.lost:
                yield "lose", place
            if self.left.doubled:
                yield "double", place
        if self.left.crashes and "w1" in self.sides:
            yield ("crash",)
        acts = (True, bool(keeper.members), bool(keeper.held), False)[self.done]
        # Whoever waits for so long waits for ever.
        if not self.packets and not acts and not self.rests() and self.now < 30.0:
            yield ("wait",)

    def rests(self) -> bool:
        """Whether everything was done, and everybody knows who is there."""
        if self.packets:
            return False
        there = {side.session.node for side in self.sides.values()}
        for side in self.sides.values():
            counts = side.session.counts()
            if any(counts[each] for each in QUIET) or side.held:
                return False
            if {side.session.node, *side.members} != there:
                return False
        return self.done == 3 or (self.done > 0 and len(there) == 1)

    def _join(self) -> None:
        self.done = 1
        self.add("w1").join("w0", id=None, now=self.now)
        self.settle("w1")

    def _create(self) -> None:
        self.done = 2
        side = self.sides["w0"]
        rref = side.session.new_id()
        call = side.session.call(
            side.members[0], [b"create"], creates=rref, deadline=None, now=self.now
        )
        side.asked.append(call)
        side.held[side.session.fork_of(call).fork] = False
        self.settle("w0")

    def _drop(self) -> None:
        self.done = 3
        side = self.sides["w0"]
        (fork,) = side.held
        side.held.clear()
        side.session.drop(fork, self.now)
        self.settle("w0")

    def _deliver(self, place: int) -> None:
        target, frames = self.packets.pop(place)
        if target in self.sides:
            self.sides[target].session.receive(frames, "", self.now)
            self.settle(target)

    def _lose(self, place: int) -> None:
        self.left.lost -= 1
        del self.packets[place]

    def _double(self, place: int) -> None:
        self.left.doubled -= 1
        self.packets.append(self.packets[place])

    def _crash(self) -> None:
        self.left.crashes -= 1
        del self.sides["w1"]
        if self.done == 1 and not self.sides["w0"].members:
            # Nobody is there for what was to come.
            self.done = 3

    def _wait(self) -> None:
        before = self.form()
        # What is due may turn out to be nothing, which no state tells.
        while self.form() == before and self.now < 30.0:
            self._wait_once()

    def _wait_once(self) -> None:
        times = {name: s.session.next_time() for name, s in self.sides.items()}
        due = min(((time, name) for name, time in times.items() if time), default=None)
        if due is None:
            raise Broken("what is not at rest waits for something")
        self.now = max(self.now, due[0])
        self.sides[due[1]].session.tick(self.now)
        self.settle(due[1])

    def settle(self, name: str) -> None:
        """Take what a session says, and hear what it tells.

        Raises:
            Broken: it should not have been told.
        """
        side = self.sides[name]
        while True:
            for packet in side.session.take_packets():
                frames = tuple(bytes(frame) for frame in packet.frames)
                self.packets.append((packet.endpoint, frames))
            events = side.session.take_events()
            if not events:
                break
            for event in events:
                self.hear(side, event)
        self.check()

    def hear(self, side: Side, event: object) -> None:
        """An agent that answers at once."""
        match event:
            case Called():
                if event.creates in side.values or event.creates is None:
                    raise Broken("nothing runs twice")
                side.values.append(event.creates)
                side.session.reply(event.peer, event.call, [b"made"], now=self.now)
            case Answered(call) | Failed(call):
                if call not in side.asked:
                    raise Broken("each call has one end")
                side.asked.remove(call)
            case Confirmed(fork):
                if fork.fork in side.held:
                    side.held[fork.fork] = True
            case Died(fork):
                side.held.pop(fork.fork, None)
                self.done = 3
            case Freed(rref):
                side.values.remove(rref)
            case Joined(node):
                side.members.append(node)
            case Lost(node):
                side.members.remove(node)
                if self.done == 1 and "w1" not in self.sides:
                    self.done = 3
            case Admitted():
                pass
            case _:
                raise Broken(f"nobody is told {event}")

    def check(self) -> None:
        """A confirmed reference is listed by its owner, if that lives.

        Raises:
            Broken: it is not.
        """
        owner = self.sides.get("w1")
        for fork, confirmed in self.sides["w0"].held.items():
            if not confirmed or owner is None:
                continue
            if fork not in owner.session._references.owners.listed:
                raise Broken(f"w1 does not list {fork}")

    def form(self) -> bytes:
        """Everything, as 16 bytes."""
        whole = (
            [
                (name, s.session.state(), list(s.held.items()), s.values, s.asked)
                for name, s in self.sides.items()
            ],
            sorted(self.packets),
            self.done,
            self.left,
        )
        return blake2b(repr(whole).encode(), digest_size=16).digest()
