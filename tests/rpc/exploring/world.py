"""A world of a few workers whose references are explored: no wire, no clock.

True only here: what is assumed of channels.  Each pair of workers has a channel in each
direction that delivers once and in order, at any time: what is lost, repeated, late or
out of order on the wire is only time here.  What a channel cannot hide is its end: one
side loses the other at any time, and hears nothing of it any more; the other goes on
hearing what was said before, until it loses the first one as well.  What either says
behind its end waits for the channel that begins anew when both have lost.  Who was lost
expires at any time after the other end was lost, which is what leases are for; also
when a new channel has begun, as the lease of a member that the keeper has lost goes on.
A worker that crashed is lost by all others at any time.

Why that is all: each step of a channel is one of these.  A message that comes is the
next one of its session; an end comes alone at one side, and expires after the other; so
the steps of three workers on real channels, packets left out, are steps of this world,
channel by channel, as channels know nothing of each other.  What it takes of a channel
is checked in every state of a real one (`channels`), and whole sessions keep the laws
of references where packets are lost (`sessions`).  An end that has said and heard
nothing since it began is lost in this world and need not be on the wire, where nothing
follows from it.

Above the references is the least that calls are: a call is told, a call that creates a
value is replied to, or given up.  An agent does anything that it may, in any order.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from everyorder.runtime.rpc.protocol.events import Died, Reason
from everyorder.runtime.rpc.protocol.identities import (
    Fork,
    ForkId,
    GloballyUniqueId,
    RRefId,
    WorkerNode,
)
from everyorder.runtime.rpc.protocol.messages import Message, ReferenceRefused
from everyorder.runtime.rpc.protocol.ownership import (
    CarrierStatus,
    Incoming,
    Key,
    Owned,
    Used,
)
from everyorder.runtime.rpc.protocol.reference_machine import ReferenceMachine


class Carrier(NamedTuple):
    """A call on its way."""

    key: Key
    forks: tuple[Fork, ...] = ()
    creates: RRefId | None = None
    fork: ForkId | None = None
    target: RRefId | None = None


class Answered(NamedTuple):
    """The answer to a call that creates a value; `dead` where it was not told."""

    key: Key
    dead: bool = False


class Cancelled(NamedTuple):
    """The caller has given up."""

    key: Key


Said = Message | Carrier | Answered | Cancelled
Step = tuple[Any, ...]


@dataclass(frozen=True)
class Bounds:
    """How much may happen.

    `creations` are pairs of caller and owner, one for each value; a caller that is the
    owner makes it by itself.  `many` is how many references a carrier may hold; where
    they are `mixed`, a call that creates may hold one, too.  `strangers` do not know
    each other at first, but for the first worker.
    """

    workers: int
    creations: tuple[tuple[int, int], ...]
    carriers: int
    many: int = 1
    crashes: int = 0
    cuts: int = 0
    timeouts: int = 0
    fetches: int = 0
    mixed: bool = False
    strangers: bool = False


@dataclass(slots=True)
class Worker:
    """A worker: its references, and what its agent has.

    `held` are references that it was told of; `asking` its calls that create, with the
    reference; `came` the carriers that wait here; `running` the calls to reply to.
    """

    refs: ReferenceMachine
    held: dict[ForkId, Fork] = field(default_factory=dict)
    handles: list[RRefId] = field(default_factory=list)
    asking: dict[Key, Fork] = field(default_factory=dict)
    came: dict[Key, Carrier] = field(default_factory=dict)
    waiting: dict[Key, tuple[int, Carrier]] = field(default_factory=dict)
    running: dict[Key, RRefId] = field(default_factory=dict)

    def copy(self) -> "Worker":
        """The same, apart."""
        return Worker(
            copied(self.refs),
            dict(self.held),
            list(self.handles),
            dict(self.asking),
            dict(self.came),
            dict(self.waiting),
            dict(self.running),
        )


def copied(refs: ReferenceMachine) -> ReferenceMachine:
    """The machine as it is, apart from the one that it is copied from."""
    made = type(refs)(refs.node)
    owners, users = made.owners, made.users
    for rref, owned in refs.owners.values.items():
        owners.values[rref] = Owned(
            owned.reported, owned.handles, dict(owned.forks), dict(owned.holds)
        )
    owners.listed = dict(refs.owners.listed)
    owners.fenced = dict(refs.owners.fenced)
    for fork, used in refs.users.used.items():
        users.used[fork] = Used(
            used.fork, used.use, used.source, used.sender, dict(used.pins)
        )
    made.outgoing = dict(refs.outgoing)
    for key, incoming in refs.incoming.items():
        made.incoming[key] = Incoming(
            incoming.peer,
            list(incoming.forks),
            dict(incoming.awaited),
            incoming.creates,
            incoming.target,
            incoming.parked,
        )
    made.children = dict(refs.children)
    made.holding = dict(refs.holding)
    made.members = set(refs.members)
    made.unheard = dict(refs.unheard)
    made.next_local = refs.next_local
    return made


class Broken(Exception):
    """A law does not hold."""


# Where an end of a channel is; CUT is one whose other end is gone.
OPEN, CUT, LOST = range(3)


class World:
    """Workers, what is said between them, and what may still happen."""

    __slots__ = (
        "bounds",
        "channels",
        "crashed",
        "ends",
        "expiring",
        "late",
        "left",
        "made",
        "nodes",
        "sent",
        "waits",
        "workers",
    )

    def __init__(
        self, bounds: Bounds, machine: type[ReferenceMachine] = ReferenceMachine
    ) -> None:
        names = range(bounds.workers)
        self.bounds = bounds
        self.nodes = tuple(
            WorkerNode(f"w{number}", number, number + 1) for number in names
        )
        self.workers = [Worker(machine(node)) for node in self.nodes]
        for one in self.workers:
            for node in self.nodes:
                if not bounds.strangers or one.refs.node.id == 0 or node.id == 0:
                    one.refs.joined(node)
        self.crashed: frozenset[int] = frozenset()
        # Who was lost, and has not expired.
        self.expiring: frozenset[tuple[int, int]] = frozenset()
        pairs = [(one, other) for one in names for other in names]
        self.channels: dict[tuple[int, int], tuple[Said, ...]] = dict.fromkeys(
            pairs, ()
        )
        # What is said behind the end of a channel waits for the next one.
        self.waits = dict(self.channels)
        self.ends: dict[tuple[int, int], int] = dict.fromkeys(pairs, OPEN)
        # Crashes, cuts, timeouts, fetches.
        self.left = (bounds.crashes, bounds.cuts, bounds.timeouts, bounds.fetches)
        self.sent = 0
        self.late = False
        self.made: tuple[bool, ...] = (False,) * len(bounds.creations)

    def after(self, step: Step) -> "World":
        """The world after a step; raises `Broken` where the step breaks a law."""
        world = World.__new__(World)
        world.bounds, world.nodes = self.bounds, self.nodes
        world.workers = list(self.workers)
        world.crashed, world.expiring = self.crashed, self.expiring
        world.channels, world.waits = dict(self.channels), self.waits
        world.ends = dict(self.ends)
        world.left, world.sent, world.made = self.left, self.sent, self.made
        world.late = self.late
        getattr(world, "_" + step[0])(*step[1:])
        return world

    # What may happen.

    def steps(self) -> Iterator[Step]:
        """Every step that may come next."""
        bounds = self.bounds
        crashes, cuts, timeouts, fetches = self.left
        alive = [i for i in range(bounds.workers) if i not in self.crashed]
        for (one, other), queue in self.channels.items():
            if queue and other in alive and self.ends[other, one] != LOST:
                yield "deliver", one, other
        for value, (caller, owner) in enumerate(bounds.creations):
            if not self.made[value] and caller in alive:
                yield "create", value, caller, owner, ()
                if bounds.mixed and caller != owner:
                    for item in self.workers[caller].held.values():
                        yield "create", value, caller, owner, (item,)
        for one in alive:
            worker = self.workers[one]
            for key in worker.running:
                yield "reply", one, key
            for fork in worker.held:
                yield "drop", one, fork
            for rref in worker.handles:
                yield "disown", one, rref
            if self.sent < bounds.carriers:
                for items in self._items(worker):
                    for other in range(bounds.workers):
                        yield "send", one, other, items
            if timeouts:
                for key in worker.asking:
                    yield "give_up", one, key
            if fetches:
                for held in worker.held.values():
                    if held.owner.id != one:
                        yield "fetch", one, held
            if crashes:
                yield "crash", one
            if bounds.strangers:
                for node in self.nodes:
                    if node not in worker.refs.members:
                        yield "introduce", one, node.id
                if worker.refs.unheard:
                    yield "tick", one
            for other in range(bounds.workers):
                end, far = self.ends[one, other], self.ends[other, one]
                gone = other in self.crashed
                if end == CUT or (end == OPEN and gone and one != other):
                    yield "lose", one, other
                elif cuts and end == far == OPEN and one != other:
                    yield "cut", one, other
                if (one, other) in self.expiring and (gone or end != LOST):
                    yield "expire", one, other

    def _items(self, worker: Worker) -> Iterator[tuple[Fork | RRefId, ...]]:
        items: list[Fork | RRefId] = [*worker.held.values(), *worker.handles]
        for number, item in enumerate(items):
            yield (item,)
            if self.bounds.many > 1:
                for other in items[number + 1 :]:
                    yield (item, other)

    @property
    def whole(self) -> bool:
        """Whether nothing was lost: no worker, no channel, no news of members."""
        lost = self.left[:2] != (self.bounds.crashes, self.bounds.cuts)
        return not lost and not self.late

    # What happens.

    def _at(self, one: int) -> Worker:
        """A worker that is about to change."""
        worker = self.workers[one] = self.workers[one].copy()
        return worker

    def _say(self, one: int, other: int, said: Said) -> None:
        pair, end = (one, other), self.ends[one, other]
        if other in self.crashed:
            if end == LOST:
                # A channel that begins once more, in vain.
                self.ends[pair] = CUT
        elif end == LOST:
            self.waits = {**self.waits, pair: (*self.waits[pair], said)}
        elif self.ends[other, one] != LOST:
            self.channels[pair] += (said,)

    def _create(
        self, value: int, caller: int, owner: int, items: tuple[Fork, ...]
    ) -> None:
        self.made = (*self.made[:value], True, *self.made[value + 1 :])
        worker = self._at(caller)
        rref = GloballyUniqueId(99, value, worker.refs.node.incarnation)
        if caller == owner:
            worker.refs.own(rref)
            worker.handles.append(rref)
            self._settle(caller, worker)
            return
        key = ("create", value)
        fork = worker.refs.plan(key, self.nodes[owner], rref)
        worker.asking[key] = worker.held[fork.fork] = fork
        carrier = Carrier(key, creates=rref, fork=fork.fork)
        self._start(caller, owner, worker, carrier, items)

    def _send(self, one: int, other: int, items: tuple[Fork | RRefId, ...]) -> None:
        worker, key = self._at(one), ("carry", self.sent)
        self.sent += 1
        carrier = Carrier(key)
        self._start(one, other, worker, carrier, items)

    def _fetch(self, one: int, fork: Fork) -> None:
        crashes, cuts, timeouts, fetches = self.left
        self.left = (crashes, cuts, timeouts, fetches - 1)
        worker = self._at(one)
        carrier = Carrier(("fetch", fetches), target=fork.rref)
        self._start(one, fork.owner.id, worker, carrier, ())

    def _start(
        self,
        one: int,
        other: int,
        worker: Worker,
        carrier: Carrier,
        items: tuple[Fork | RRefId, ...],
    ) -> None:
        fate, forks = worker.refs.carry(
            carrier.key, self.nodes[other], items, carrier.target
        )
        if fate is CarrierStatus.DEAD:
            raise Broken("what the agent holds can be sent")
        if fate is CarrierStatus.READY:
            self._sent(one, other, worker, carrier._replace(forks=forks))
        else:
            worker.waiting[carrier.key] = other, carrier
        self._settle(one, worker)

    def _sent(self, one: int, other: int, worker: Worker, carrier: Carrier) -> None:
        self._say(one, other, carrier)
        if carrier.fork is not None:
            worker.refs.asked(carrier.fork)

    def _drop(self, one: int, fork: ForkId) -> None:
        worker = self._at(one)
        del worker.held[fork]
        worker.refs.drop(fork)
        self._settle(one, worker)

    def _disown(self, one: int, rref: RRefId) -> None:
        worker = self._at(one)
        worker.handles.remove(rref)
        worker.refs.disown(rref)
        self._settle(one, worker)

    def _reply(self, one: int, key: Key) -> None:
        worker = self._at(one)
        del worker.running[key]
        worker.refs.done(key)
        caller = self._caller(key)
        if caller is not None and self.ends[one, caller] != LOST:
            self._say(one, caller, Answered(key))
        self._settle(one, worker)

    def _caller(self, key: Key) -> int | None:
        assert isinstance(key, tuple), "keys are pairs here"
        kind, value = key
        return self.bounds.creations[value][0] if kind == "create" else None

    def _give_up(self, one: int, key: Key) -> None:
        crashes, cuts, timeouts, fetches = self.left
        self.left = (crashes, cuts, timeouts - 1, fetches)
        worker = self._at(one)
        fork = worker.asking.pop(key)
        if worker.waiting.pop(key, None) is not None:
            worker.refs.withdraw(key)
        else:
            self._say(one, fork.owner.id, Cancelled(key))
        worker.refs.uncreated(fork.fork, Reason.DEADLINE)
        self._settle(one, worker)

    def _crash(self, one: int) -> None:
        crashes, cuts, timeouts, fetches = self.left
        self.left = (crashes - 1, cuts, timeouts, fetches)
        self.crashed |= {one}
        self.workers[one] = Worker(type(self.workers[one].refs)(self.nodes[one]))
        for other in range(self.bounds.workers):
            self.channels[other, one] = ()
            self.ends[one, other] = LOST
            self.expiring -= {(one, other)}
            if self.waits[one, other]:
                self.waits = {**self.waits, (one, other): ()}
            # What waits finds out that there is nobody any more.
            if self.waits[other, one]:
                self.waits = {**self.waits, (other, one): ()}
                self.ends[other, one] = CUT

    def _cut(self, one: int, other: int) -> None:
        crashes, cuts, timeouts, fetches = self.left
        self.left = (crashes, cuts - 1, timeouts, fetches)
        self.ends[other, one] = CUT
        self._lose(one, other)

    def _lose(self, one: int, other: int) -> None:
        self.ends[one, other] = LOST
        self.expiring |= {(one, other)}
        worker = self._at(one)
        # What the other said, and this one did not hear.
        self.channels[other, one] = ()
        peer = self.nodes[other]
        worker.refs.lost(peer, Reason.LOST, 0.0)
        told = {verdict.key for verdict in worker.refs.verdicts}
        for key in tuple(worker.came):
            if key not in worker.refs.incoming and key not in told:
                del worker.came[key]
        for key, (to, _) in tuple(worker.waiting.items()):
            if to == other:
                del worker.waiting[key]
        for key, fork in tuple(worker.asking.items()):
            if fork.owner == peer:
                del worker.asking[key]
                worker.refs.uncreated(fork.fork, Reason.LOST)
        self._settle(one, worker)
        pairs = (one, other), (other, one)
        if other not in self.crashed and self.ends[other, one] == LOST:
            for pair in pairs:
                self.ends[pair], self.channels[pair] = OPEN, self.waits[pair]
            self.waits = {**self.waits, **dict.fromkeys(pairs, ())}

    def _expire(self, one: int, other: int) -> None:
        self.expiring -= {(one, other)}
        worker = self._at(one)
        worker.refs.expired(self.nodes[other], 0.0)
        self._settle(one, worker)

    def _introduce(self, one: int, other: int) -> None:
        worker = self._at(one)
        worker.refs.joined(self.nodes[other])
        self._settle(one, worker)

    def _tick(self, one: int) -> None:
        self.late = True
        worker = self._at(one)
        worker.refs.tick(1e9)
        self._settle(one, worker)

    def _deliver(self, one: int, other: int) -> None:
        said, *rest = self.channels[one, other]
        self.channels[one, other] = tuple(rest)
        worker, peer = self._at(other), self.nodes[one]
        refs = worker.refs
        match said:
            case Carrier():
                fate = refs.arrive(
                    said.key,
                    peer,
                    said.forks,
                    0.0,
                    creates=said.creates,
                    fork=said.fork,
                    target=said.target,
                )
                if fate is CarrierStatus.WAITS:
                    worker.came[said.key] = said
                else:
                    self._fated(other, worker, said, fate)
            case Answered():
                fork = worker.asking.pop(said.key, None)
                if fork is not None and said.dead:
                    refs.uncreated(fork.fork, Reason.REFERENCE)
                elif fork is not None:
                    refs.created(fork.fork)
            case Cancelled():
                refs.forget(said.key)
                worker.came.pop(said.key, None)
            case _:
                refs.receive(peer, said, 0.0)
        self._settle(other, worker)

    def _fated(
        self, one: int, worker: Worker, said: Carrier, fate: CarrierStatus
    ) -> None:
        caller = self._caller(said.key)
        if fate is CarrierStatus.READY:
            worker.held.update({fork.fork: fork for fork in said.forks})
            rref = said.creates or said.target
            if rref is not None:
                worker.running[said.key] = rref
        else:
            if self.whole:
                raise Broken(f"{said.key} carries a dead reference")
            if caller is not None:
                self._say(one, caller, Answered(said.key, dead=True))

    def _settle(self, one: int, worker: Worker) -> None:
        """Everything that a step of a machine has set free, in order."""
        refs = worker.refs
        while refs.verdicts or refs.out or refs.events:
            while refs.verdicts:
                verdict = refs.verdicts.pop(0)
                if verdict.incoming:
                    self._fated(
                        one, worker, worker.came.pop(verdict.key), verdict.status
                    )
                    continue
                other, carrier = worker.waiting.pop(verdict.key)
                if verdict.status is CarrierStatus.READY:
                    sent = carrier._replace(forks=verdict.forks)
                    self._sent(one, other, worker, sent)
                elif carrier.fork is not None:
                    del worker.asking[carrier.key]
                    refs.uncreated(carrier.fork, Reason.REFERENCE)
            for peer, message in refs.out:
                if self.whole and isinstance(message, ReferenceRefused):
                    raise Broken(f"{message.fork} is refused")
                self._say(one, peer.id, message)
            refs.out.clear()
            for event in refs.events:
                match event:
                    case Died(fork):
                        del worker.held[fork.fork]
            refs.events.clear()
