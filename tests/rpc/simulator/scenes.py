"""Scenes: what chance alone plays too rarely, in the middle of everything else.

True only here: which scenes there are, and what each is for.  A scene is a generator
that does something to a world, and yields for how long it waits.  What it needs may be
missing (a worker was killed, a reference died): then it is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import TYPE_CHECKING, Any

from everyorder.runtime.rpc.protocol.identities import Fork
from everyorder.runtime.rpc.protocol.messages import (
    KINDS,
    Accept,
    Call,
    MemberJoined,
    ReferenceRegistered,
)
from tests.rpc.simulator.network import Link, Weather
from tests.rpc.simulator.program import Request

if TYPE_CHECKING:
    from tests.rpc.simulator.worker import Agent
    from tests.rpc.simulator.world import Worker, World

Scene = Callable[["World", Random], Iterator[float]]
NUMBERS = {kind: number for number, kind in KINDS.items()}


def there(
    world: World, random: Random, many: int, keeper: int | None = None
) -> list[list[Worker]]:
    """So many workers, each of which takes each other for a member, once or never.

    The keeper is at a place of its own among them, or, with -1, is none of them: what
    it loses is a member no more.
    """
    living = [
        worker
        for worker in world.workers
        if worker.agent and worker.agent.admitted and not worker.frozen
    ]
    random.shuffle(living)
    if keeper is not None:
        living = [worker for worker in living if worker.number]
    if keeper is not None and keeper >= 0 and world.workers[0].agent is not None:
        living.insert(keeper, world.workers[0])
    found: list[Worker] = []
    for worker in living:
        agent = worker.agent
        if agent is None or agent.done or agent.leaving:
            continue
        if all(knows(worker, other) and knows(other, worker) for other in found):
            found.append(worker)
    return [found[:many]] if len(found) >= many else []


def knows(worker: Worker, other: Worker) -> bool:
    """Whether a worker takes another one, as it lives now, for a member."""
    if worker.agent is None or other.agent is None:
        return False
    return other.agent.session.node in worker.agent.members


def request(world: World, **words: Any) -> Request:
    """A request of its own."""
    world.tokens += 1
    return Request(world.tokens)._replace(**words)


def asks(
    world: World,
    worker: Worker,
    other: Worker,
    carries: list[Fork],
    *,
    creates: bool = False,
    within: float | None = None,
    **words: Any,
) -> Fork | None:
    """Have a worker call another one; the reference of what is created."""
    made: list[Fork] = []

    def call(agent: Agent) -> None:
        if other.agent is None:
            return
        peer = other.agent.session.node
        if peer not in agent.members:
            return
        mine = [fork for fork in carries if fork.fork in agent.held]
        deadline = None if within is None else agent.now + within
        words_ = request(world, **words)
        number = agent.call(peer, words_, list(mine), deadline, creates=creates)
        asked = agent.asked.get(number)
        if asked is not None and asked.fork is not None:
            made.append(agent.held[asked.fork])

    world.ask(worker, call)
    return made[0] if made else None


def drops(world: World, worker: Worker, fork: Fork) -> None:
    """Have a worker let go of a reference, if it has it."""

    def drop(agent: Agent) -> None:
        if fork.fork in agent.held:
            agent.drop(fork.fork)

    world.ask(worker, drop)


def starve(world: World, source: Worker, target: Worker, kind: type) -> None:
    """One kind of message does not get through any more."""
    link = Link(source.endpoint, target.endpoint)
    world.network.weather[link] = Weather(held_back=NUMBERS[kind], starved=True)


def feed(world: World, source: Worker, target: Worker) -> None:
    """Everything gets through again."""
    world.network.weather.pop(Link(source.endpoint, target.endpoint), None)


def links(one: Worker, other: Worker) -> set[Link]:
    """Both links between two workers."""
    return {Link(one.endpoint, other.endpoint), Link(other.endpoint, one.endpoint)}


def refused(world: World, random: Random) -> Iterator[float]:
    """A reference arrives after its sender was cut off from the owner."""
    for parent, child, owner in there(world, random, 3, keeper=1):
        fork = asks(world, parent, owner, [], creates=True)
        yield 0.5
        starve(world, parent, child, Call)
        if fork is not None:
            asks(world, parent, child, [fork])
        yield 0.02
        world.network.cut |= links(parent, owner)
        yield random.choice((2.3, 2.7, 3.2))
        feed(world, parent, child)
        yield 1.0
        world.network.cut -= links(parent, owner)


def unheard(world: World, random: Random) -> Iterator[float]:
    """A reference arrives whose owner the receiver has not heard of."""
    for parent, child, owner in there(world, random, 3, keeper=-1):
        world.kill(owner)
        starve(world, world.workers[0], child, MemberJoined)
        yield 0.1
        world.start(owner)
        yield 0.5
        fork = None
        if owner.agent is not None and knows(parent, owner):
            fork = asks(world, parent, owner, [], creates=True)
        yield 0.5
        if fork is not None:
            within = random.choice((None, None, 1.0))
            asks(world, parent, child, [fork], keep=True, within=within)
        # Some hear of it in time.
        yield random.choice((0.5, 6.0, 6.0, 6.0))
        feed(world, world.workers[0], child)


def half_listed(world: World, random: Random) -> Iterator[float]:
    """Of two references one is listed, the other is not, when an owner is gone."""
    for parent, child, owner, other in there(world, random, 4, keeper=0):
        one = asks(world, parent, owner, [], creates=True)
        two = asks(world, parent, other, [], creates=True)
        yield 0.5
        starve(world, other, child, ReferenceRegistered)
        if one is not None and two is not None:
            within = random.choice((None, None, 0.4, 1.0))
            asks(world, parent, child, [one, two], keep=True, within=within)
        yield random.choice((0.1, 0.5))
        if random.random() < 0.5:
            world.kill(owner)
        world.network.cut |= links(owner, child)
        yield 2.5
        feed(world, other, child)
        world.network.cut -= links(owner, child)


def retired(world: World, random: Random) -> Iterator[float]:
    """What is let go of, and pinned, loses its owner."""
    for parent, child, owner in there(world, random, 3):
        fork = asks(world, parent, owner, [], creates=True)
        yield 0.5
        starve(world, child, parent, Accept)
        if fork is not None:
            asks(world, parent, child, [fork], keep=True)
            yield 0.05
            drops(world, parent, fork)
        yield random.choice((0.1, 0.6))
        world.network.cut |= links(parent, owner)
        yield 2.4
        feed(world, child, parent)
        world.network.cut -= links(parent, owner)


def planned(world: World, random: Random) -> Iterator[float]:
    """What is to be created waits for what is being created, and is dropped."""
    for user, owner in there(world, random, 2):
        one = asks(world, user, owner, [], creates=True, wait=0.4)
        within = random.choice((None, 0.1, 0.1))
        if one is None:
            continue
        two = asks(world, user, owner, [one], creates=True, within=within, keep=True)
        yield 0.01
        if two is not None:
            asks(world, user, owner, [two], within=2.0)
            yield 0.01
            if random.random() < 0.8:
                drops(world, user, two)
        yield 0.6


def flickering(world: World, random: Random) -> Iterator[float]:
    """Two workers lose each other, or almost, again and again, and go on talking."""
    for one, other in there(world, random, 2):
        for _ in range(random.randrange(2, 5)):
            for link in sorted(links(one, other)):
                slow = random.choice((0.0002, 0.05, 0.3, 0.6))
                weather = Weather(slow, lost=0.2, doubled=0.3, jitter=3.0)
                world.network.weather[link] = weather
            asks(world, one, other, [], creates=True)
            asks(world, other, one, [], creates=True)
            yield random.choice((0.01, 0.3))
            cut = set(sorted(links(one, other))[: random.randrange(1, 3)])
            world.network.cut |= cut
            yield random.choice((1.4, 1.55, 1.7, 1.9, 2.05))
            world.network.cut -= cut
            for _ in range(3):
                asks(world, one, other, [])
                asks(world, other, one, [])
                yield 0.1
        for link in links(one, other):
            world.network.weather.pop(link, None)


def fenced(world: World, random: Random) -> Iterator[float]:
    """A worker that is given up, and may count on it, turns out to be started anew."""
    for one, other in there(world, random, 2):
        if not other.number:
            continue
        asks(world, one, other, [], creates=True)
        asks(world, other, one, [], creates=True)
        yield 0.2
        world.network.cut |= links(one, other)
        # Given up after a while, and released later: in between is the point.
        yield random.choice((1.55, 1.65, 1.75, 1.85))
        world.kill(other)
        world.network.cut -= links(one, other)
        world.start(other)
        yield 0.5


def readmitted(world: World, random: Random) -> Iterator[float]:
    """A member is given up by its keeper, for a moment; another one never missed it."""
    keeper = world.workers[0]
    for one, other in there(world, random, 2, keeper=-1):
        if not knows(keeper, one):
            continue
        asks(world, one, other, [], creates=True)
        asks(world, other, one, [], creates=True)
        yield 0.3
        world.network.cut |= links(keeper, one)
        heals = random.choice((13, 15, 16, 19))
        # What begins anew is late, or what is left of before is.
        slow = random.choice(sorted(links(one, other)))
        delay = random.choice((0.0002, 0.1, 0.4, 0.7, 0.7))
        since = random.choice((0, heals))
        for step in range(36):
            if step == heals:
                world.network.cut -= links(keeper, one)
            if step == since:
                world.network.weather[slow] = Weather(delay, doubled=0.5)
            asks(world, one, other, [])
            asks(world, other, one, [])
            yield 0.1
        world.network.weather.pop(slow, None)


def deaf(world: World, random: Random) -> Iterator[float]:
    """One worker hears nothing of another one, and goes on talking to it."""
    for one, other in there(world, random, 2, keeper=-1):
        asks(world, one, other, [], creates=True)
        asks(world, other, one, [], creates=True)
        yield 0.3
        back = Link(other.endpoint, one.endpoint)
        forth = Link(one.endpoint, other.endpoint)
        world.network.cut.add(back)
        yield 1.9
        # It begins anew; whether that is heard at once decides who is late.
        deafer = random.random() < 0.7
        if deafer:
            world.network.cut.add(forth)
        for step in range(random.choice((10, 40, 40))):
            if step == 5 and deafer:
                world.network.cut.discard(forth)
            asks(world, one, other, [])
            yield 0.15
        world.network.cut -= {back, forth}


def taken(world: World, random: Random) -> Iterator[float]:
    """Who was given up comes back, and another one has its name."""
    keeper, intruder = world.workers[0], world.intruder
    for one in world.workers[1:-1]:
        if one.name != intruder.name or not knows(keeper, one):
            continue
        world.network.cut |= links(keeper, one)
        yield random.choice((2.2, 2.6))
        if intruder.agent is None:
            world.start(intruder)
        elif intruder.agent.rejected:
            world.ask(intruder, lambda agent: world.join(intruder, agent))
        yield 0.4
        world.network.cut -= links(keeper, one)
        yield 1.5
        world.kill(intruder)
        yield 2.0
        if one.agent is not None and one.agent.rejected:
            world.ask(one, lambda agent, one=one: world.join(one, agent))  # type: ignore[misc]  # bound now


SCENES: tuple[Scene, ...] = (
    refused,
    unheard,
    half_listed,
    retired,
    planned,
    flickering,
    fenced,
    readmitted,
    deaf,
    taken,
)
