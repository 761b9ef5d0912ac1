"""A world of the simulator: workers, their network, and one time for all of it.

True only here: in which order things happen.  The next of these does: an action of the
schedule, a packet that arrives, work that an agent put off, a session that has
something to do; at equal times in this order.  Clocks of workers differ: each has an
offset, and runs a little fast or slow.  A frozen worker does nothing, and finds its
packets when it thaws; a killed one is gone, and may be started anew, as another life.

After the schedule comes its end: weather and cuts are over, everybody thaws, and when
all who lost each other know it, every agent lets go of everything.  What is kept then
is leaked.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from everyorder.runtime.rpc.protocol.events import Lost, Reason
from everyorder.runtime.rpc.protocol.identities import WorkerNode
from everyorder.runtime.rpc.protocol.session import Session
from tests.rpc.protocol.network import next_time
from tests.rpc.protocol.times import TIMES
from tests.rpc.simulator.laws import AT_REST, LAWS
from tests.rpc.simulator.network import DELAYS, Link, Network, Weather
from tests.rpc.simulator.program import Request
from tests.rpc.simulator.scenes import SCENES
from tests.rpc.simulator.schedule import Action, Schedule
from tests.rpc.simulator.worker import Agent, Broken

SETTINGS = TIMES
# Whoever lost another one knows it by then.
KNOWN = SETTINGS.connect + 2 * SETTINGS.expire + 1.0
# Whatever has to be said is said by then.
QUIET = 25.0
# Times are found again only so exactly.
_EXACT = 1e-6
# More steps than any schedule needs: some worker talks without end.
_MOST = 30_000

MakeSession = Callable[..., Session]
# When, in which order, whose, and what; nobody's is what happens to the world.
Task = tuple[float, int, "Worker | None", Agent | None, Callable[[], None]]


@dataclass(slots=True)
class Worker:
    """A place where lives of one worker follow each other; `agent` is the one now.

    `offset` and `rate` make its clock of the world's time.
    """

    number: int
    name: str
    endpoint: str
    offset: float
    rate: float
    agent: Agent | None = None
    lives: int = 0
    frozen: bool = False
    inbox: list[list[bytes]] = field(default_factory=list)
    due: float | None = None

    def clock(self, time: float) -> float:
        """The worker's clock at a time of the world."""
        return self.offset + time * self.rate

    def behind(self, time: float) -> bool:
        """Whether its session has had something to do, and has not done it."""
        return self.due is not None and self.due <= time

    def time(self, clock: float) -> float:
        """The world's time when the worker's clock shows something."""
        return (clock - self.offset) / self.rate + _EXACT


class World:
    """What a schedule is played on."""

    def __init__(self, schedule: Schedule, make: MakeSession = Session) -> None:
        random = Random(schedule.seed ^ 0x5EED)
        self.schedule = schedule
        self.make = make
        self.time = 0.0
        self.steps = 0
        self.network = Network(schedule.seed)
        self.workers = [
            Worker(
                number,
                f"w{number}",
                f"at://{number}",
                random.uniform(0, 1000),
                random.uniform(0.98, 1.02),
            )
            for number in range(schedule.workers)
        ]
        # Somebody who comes under the name of another one, from elsewhere.
        number = random.randrange(1, schedule.workers)
        self.intruder = Worker(
            schedule.workers, f"w{number}", "at://intruder", 7.0, 1.0
        )
        self.workers.append(self.intruder)
        # Those who are there from the beginning; others come by a `restart`.
        self.early = [
            worker
            for worker in self.workers[:-1]
            if worker.number == 0 or random.random() < 0.85
        ]
        self.at = {worker.endpoint: worker for worker in self.workers}
        self.tasks: list[Task] = []
        self.counted = 0
        self.tokens = 0
        self.resting = False
        # Somebody lost a member that did not leave.
        self.cut_off = False
        self.ran: set[int] = set()
        self.told: dict[str, int] = {}
        self.sized = random.random() < 0.5

    # What a worker is asked for.

    def start(self, worker: Worker) -> None:
        """A life of a worker begins."""
        worker.lives += 1
        worker.frozen = False
        worker.inbox.clear()
        now = worker.clock(self.time)
        session = self.make(
            worker.name,
            incarnation=1 + worker.number + 100 * worker.lives,
            endpoint=worker.endpoint,
            settings=SETTINGS,
            now=now,
        )
        agent = worker.agent = Agent(
            session,
            lambda wait, what: self.later(worker, agent, wait, what),
            self.runs,
            now=now,
        )
        if worker.number == 0:
            session.keep(world_size=self.schedule.workers if self.sized else None)
        else:
            self.join(worker, agent)
        self.touched(worker)

    def join(self, worker: Worker, agent: Agent) -> None:
        """A worker asks to be a member."""
        wanted = worker.number % self.schedule.workers if self.sized else None
        agent.rejected = False
        agent.session.join(self.workers[0].endpoint, id=wanted, now=agent.now)

    def later(
        self, worker: Worker, agent: Agent, wait: float, what: Callable[[], None]
    ) -> None:
        """An agent puts something off."""
        self.counted += 1
        task = self.time + wait, self.counted, worker, agent, what
        heappush(self.tasks, task)

    def runs(self, token: int, name: str) -> None:
        """A request is told to an agent."""
        if token in self.ran:
            raise Broken(f"nothing runs twice, and {token} does, on {name}")
        self.ran.add(token)

    def ask(self, worker: Worker, what: Callable[[Agent], None]) -> None:
        """Have an agent do something now, with all that follows."""
        agent = worker.agent
        if agent is None or worker.frozen:
            return
        agent.now = worker.clock(self.time)
        what(agent)
        if worker.agent is agent:
            self.touched(worker)

    def touched(self, worker: Worker) -> None:
        """A session was asked for something: what it says is heard, and laws hold."""
        agent = worker.agent
        assert agent is not None, "it lives"
        session = agent.session
        agent.now = worker.clock(self.time)
        while True:
            for packet in session.take_packets():
                link = Link(worker.endpoint, packet.endpoint)
                self.network.send(link, packet.frames, self.time)
            events = session.take_events()
            if not events:
                break
            for event in events:
                agent.hear(event)
                if isinstance(event, Lost) and event.reason is Reason.LOST:
                    self.cut_off = True
            if agent.finished and not agent.leaving:
                # At once, or a little later, as agents do.
                agent.leaving = True
                wait = worker.number % 2 * 0.2
                self.later(worker, agent, wait, lambda: self.leave(worker))
        due = next_time(session)
        worker.due = None if due is None else max(worker.time(due), self.time)
        for law in LAWS:
            found = law(self)
            if found is not None:
                raise Broken(f"{law.__doc__ and law.__doc__.strip()} {found}")

    # Time.

    def play(self) -> None:
        """Play the schedule, and its end.

        Raises:
            Broken: a law does not hold.
        """
        for worker in self.early:
            self.start(worker)
        self.until(self.time + 0.5)
        for action in self.schedule.actions:
            self.until(self.time + action.after)
            getattr(self, "_" + action.kind)(action)
        self.end()

    def until(self, time: float) -> None:
        """Let everything happen that does until then."""
        while True:
            self.steps += 1
            if self.steps > _MOST:
                raise Broken("there is an end to what workers say to each other")
            packet = self.network.due()
            task = self.tasks[0][0] if self.tasks else None
            ticking = [
                worker
                for worker in self.workers
                if worker.due is not None and worker.agent and not worker.frozen
            ]
            tick = min((worker.due for worker in ticking if worker.due), default=None)
            times = [each for each in (packet, task, tick) if each is not None]
            if not times or min(times) > time:
                self.time = time
                return
            first = self.time = max(self.time, min(times))
            if packet is not None and packet <= first:
                link, frames = self.network.take()
                self.arrived(self.at[link.target], frames)
            elif task is not None and task <= first:
                self._task()
            else:
                worker = min(ticking, key=lambda each: (each.due, each.number))
                now = worker.clock(self.time)
                self.ask(worker, lambda agent, now=now: agent.session.tick(now))  # type: ignore[misc]  # bound now

    def _task(self) -> None:
        _, _, worker, agent, what = heappop(self.tasks)
        if worker is None or agent is None:
            if not self.resting:
                what()
            return
        if worker.agent is not agent:
            return
        if worker.frozen:
            self.later(worker, agent, 0.05, what)
            return
        self.ask(worker, lambda _: what())

    def arrived(self, worker: Worker, frames: list[bytes]) -> None:
        """A packet is there."""
        if worker.agent is None:
            return
        if worker.frozen:
            worker.inbox.append(frames)
            return
        now = worker.clock(self.time)
        self.ask(worker, lambda agent: agent.session.receive(frames, "", now))

    # Actions.

    def _one(self, number: int) -> Worker:
        # The intruder is there now and then, and does little.
        which = number % (4 * self.schedule.workers + 1)
        return self.workers[which % self.schedule.workers if which else -1]

    def _peer(self, agent: Agent, number: int) -> WorkerNode | None:
        members = list(agent.members)
        if agent.session.node.id < 0:
            return None
        if agent.done:
            return None
        everybody = [agent.session.node, *members]
        return everybody[number % len(everybody)]

    def _request(self, action: Action) -> Request:
        random = Random(action.d)
        self.tokens += 1
        return Request(
            # Nested ones are told apart by their last digits.
            self.tokens,
            wait=random.choice((0.0, 0.0, 0.01, 0.3, 2.0)),
            keep=random.random() < 0.5,
            forward=random.choice((0, 0, 0, 0, 1, 2)),
            answer=random.choice((0, 0, 0, 1, 2)),
            failed=random.random() < 0.1,
            bulk=random.choice((0, 0, 0, 0, 100_000)),
        )

    def _deadline(self, agent: Agent, action: Action) -> float | None:
        wait = (None, None, 0.05, 0.5, 3.0)[action.d // 7 % 5]
        return None if wait is None else agent.now + wait

    def _call(self, action: Action, creates: bool = False) -> None:
        def asks(agent: Agent) -> None:
            peer = self._peer(agent, action.b)
            if peer is not None:
                carries = agent.items(action.c, action.c // 5 % 3)
                deadline = self._deadline(agent, action)
                request = self._request(action)
                agent.call(peer, request, carries, deadline, creates=creates)

        self.ask(self._one(action.a), asks)

    def _remote(self, action: Action) -> None:
        self._call(action, creates=True)

    def _fetch(self, action: Action) -> None:
        def asks(agent: Agent) -> None:
            held = list(agent.held.values())
            if held:
                fork = held[action.b % len(held)]
                request = self._request(action)._replace(forward=0)
                deadline = self._deadline(agent, action)
                agent.call(fork.owner, request, [], deadline, target=fork)

        self.ask(self._one(action.a), asks)

    def _drop(self, action: Action) -> None:
        def asks(agent: Agent) -> None:
            held = list(agent.held)
            if held:
                agent.drop(held[action.b % len(held)])

        self.ask(self._one(action.a), asks)

    def _own(self, action: Action) -> None:
        self.ask(self._one(action.a), lambda agent: agent.own())

    def _disown(self, action: Action) -> None:
        self.ask(self._one(action.a), lambda agent: agent.disown(action.b))

    def _cancel(self, action: Action) -> None:
        def asks(agent: Agent) -> None:
            calls = list(agent.asked)
            if calls:
                agent.session.cancel(calls[action.b % len(calls)], agent.now)

        self.ask(self._one(action.a), asks)

    def _weather(self, action: Action) -> None:
        one, other = self._one(action.a), self._one(action.b)
        random = Random(action.d)
        weather = Weather(
            random.choice(DELAYS),
            random.choice((0.0, 0.0, 0.05, 0.3)),
            random.choice((0.0, 0.0, 0.2)),
            random.choice((0.0, 0.5, 3.0)),
            random.choice((0, 0, 1, 2, 4, 5, 6, 6, 8, 9, 10)),
            random.random() < 0.5,
        )
        pairs = (
            [(one, other)]
            if action.c % 4
            else [
                (source, target) for source in self.workers for target in self.workers
            ]
        )
        for source, target in pairs:
            link = Link(source.endpoint, target.endpoint)
            self.network.weather[link] = weather

    def _calm(self, action: Action) -> None:
        self.network.weather.clear()

    def _cut(self, action: Action) -> None:
        one, other = self._one(action.a), self._one(action.b)
        links = {Link(one.endpoint, other.endpoint)}
        if action.c % 3:
            links.add(Link(other.endpoint, one.endpoint))
        self.network.cut |= links
        # About as long as leases are, or until somebody heals it.
        lasts = (None, 0.4, 1.3, 1.6, 1.8, 2.1, 2.6)[action.d % 7]
        if lasts is not None:

            def heal() -> None:
                self.network.cut -= links

            self.at_last(lasts, heal)

    def _scene(self, action: Action) -> None:
        scene = SCENES[action.a % len(SCENES)](self, Random(action.d))

        def go_on() -> None:
            wait = next(scene, None)
            if wait is not None:
                self.at_last(wait, go_on)

        if not action.b:
            go_on()
            return
        for worker in self.workers[:-1]:
            if worker.agent is None:
                self.start(worker)
        self.at_last(0.5, go_on)

    def at_last(self, wait: float, what: Callable[[], None]) -> None:
        """Something happens to the world after a while, until it comes to rest."""
        self.counted += 1
        heappush(self.tasks, (self.time + wait, self.counted, None, None, what))

    def _heal(self, action: Action) -> None:
        self.network.cut.clear()

    def _kill(self, action: Action) -> None:
        worker = self._one(action.a)
        # Without the first one nobody is admitted: it lives longer than others.
        if worker.number or action.b % 4 == 0:
            self.kill(worker)
            if action.c % 2:
                self._restart(action)

    def kill(self, worker: Worker) -> None:
        """A worker is no more, and says nothing."""
        worker.agent, worker.frozen, worker.due = None, False, None
        worker.inbox.clear()

    def _restart(self, action: Action) -> None:
        worker = self._one(action.a)
        if worker.agent is None:
            self.start(worker)

    def _intrude(self, action: Action) -> None:
        worker = self.intruder
        if worker.agent is None:
            self.start(worker)
        elif worker.agent.rejected:
            self.ask(worker, lambda agent: self.join(worker, agent))

    def _finish(self, action: Action) -> None:
        worker = self._one(action.a)
        if worker.agent is not None and worker.agent.admitted:
            self.ask(worker, self._done)

    def _done(self, agent: Agent) -> None:
        agent.done = True
        agent.session.finish(agent.now)

    def _freeze(self, action: Action) -> None:
        worker = self._one(action.a)
        worker.frozen = worker.agent is not None

    def _thaw(self, action: Action) -> None:
        self.thaw(self._one(action.a))

    def thaw(self, worker: Worker) -> None:
        """A worker goes on, as if no time had passed; its packets are there."""
        if not worker.frozen:
            return
        worker.frozen = False
        inbox = worker.inbox[:]
        worker.inbox.clear()
        for frames in inbox:
            self.arrived(worker, frames)
        now = worker.clock(self.time)
        self.ask(worker, lambda agent: agent.session.tick(now))

    def _leave(self, action: Action) -> None:
        worker = self._one(action.a)
        if worker.number:
            self.leave(worker)

    def leave(self, worker: Worker) -> None:
        """A worker says goodbye, and is no more."""
        agent = worker.agent
        if agent is None or worker.frozen:
            return
        agent.leaving = True
        self.ask(worker, lambda agent: agent.session.leave(agent.now))
        worker.agent, worker.due = None, None
        others = [f for f in agent.held.values() if f.owner != agent.session.node]
        if agent.asked or others:
            raise Broken(f"who leaves has an end of all: {agent.asked}, {others}")

    # The end.

    def end(self) -> None:
        """Let everything come to rest, and see what is left.

        Raises:
            Broken: something is.
        """
        self.resting = True
        self.network.calm()
        for worker in self.workers:
            self.thaw(worker)
        self.until(self.time + KNOWN)
        for worker in self.workers:
            self.ask(worker, self._close)
        until = self.time + QUIET
        while (left := self._left()) is not None:
            if self.time >= until:
                raise Broken(left)
            self.until(self.time + 0.5)
        if self.schedule.seed % 2:
            self.finish()

    def _left(self) -> str | None:
        for law in AT_REST:
            found = law(self)
            if found is not None:
                return f"{law.__doc__ and law.__doc__.strip()} {found}"
        return None

    def _close(self, agent: Agent) -> None:
        agent.closing = True
        while agent.handles:
            agent.disown(0)
        for fork in list(agent.held):
            # One that is dropped may be the end of another.
            if fork in agent.held:
                agent.drop(fork)

    def finish(self) -> None:
        """Everybody says that it is done, and then is told that all are.

        Raises:
            Broken: somebody is not.
        """
        for worker in self.workers:
            self.ask(worker, self._done)
        self.until(self.time + QUIET)
        for worker in self.workers:
            agent = worker.agent
            if agent is not None and agent.admitted and not agent.finished:
                names = agent.session.unfinished()
                raise Broken(f"{worker.name} does not end: it waits for {names}")
