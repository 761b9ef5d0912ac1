"""A network in memory, with a clock of its own: sessions and what is between them.

Packets are delivered in the order in which they were sent, after `delay`; `hook` may
change that: it is asked about every packet, and gives the delays of its copies.
"""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count

from everyorder.runtime.rpc.protocol.events import Buffer, Called, Event, Settings
from everyorder.runtime.rpc.protocol.identities import RRefId, WorkerNode
from everyorder.runtime.rpc.protocol.packets import Packet
from everyorder.runtime.rpc.protocol.session import Session
from tests.rpc.protocol.times import TIMES

DELAY = 0.001
# More than ever happens at one time: somebody talks, or is woken, without end.
MOST = 10_000
# Asked about a packet: who sends it, where to, and the packet.  The delays of its
# copies: none for one that is lost.
Hook = Callable[[str, str, Packet], Sequence[float]]


def next_time(session: Session) -> float | None:
    """When a session has something to do; what it remembers of that is true."""
    remembered = session.next_time()
    session._due = None
    assert session.next_time() == remembered
    return remembered


class Network:
    """Workers by name; a worker's endpoint is its name."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.now = 100.0
        self.settings = TIMES if settings is None else settings
        self.sessions: dict[str, Session] = {}
        self.events: dict[str, list[Event]] = {}
        self.keys: dict[str, str] = {}
        self.hook: Hook = lambda source, target, packet: (DELAY,)
        # What answers calls, by name of the worker; None is the agent's silence.
        self.serve: Callable[[str, Called], Sequence[Buffer] | None] = (
            lambda name, called: [b"echo " + bytes(each) for each in called.payload]
        )
        self.frozen: set[str] = set()
        self._way: list[tuple[float, int, str, str, list[Buffer]]] = []
        self._order = count()
        self._lives = count(1)
        # When time went on last, and what happened since.
        self._still = (self.now, 0)

    def add(self, name: str, *, settings: Settings | None = None) -> Session:
        """A worker that is not a member yet; one of the same name ends."""
        session = Session(
            name,
            incarnation=next(self._lives),
            endpoint=name,
            key=self.keys.get(name, ""),
            settings=settings or self.settings,
            now=self.now,
        )
        self.sessions[name] = session
        self.events[name] = []
        return session

    def kill(self, name: str) -> None:
        """A worker is gone, with what was on its way to it."""
        del self.sessions[name]

    def group(self, *names: str, world_size: int | None = None) -> list[Session]:
        """Members of one group; the first keeps it."""
        sessions = [self.add(name) for name in names]
        sessions[0].keep(world_size=world_size)
        for session in sessions[1:]:
            session.join(names[0], id=None, now=self.now)
        self.until(
            lambda: all(len(each.members()) == len(names) for each in sessions), 5
        )
        return sessions

    def node(self, name: str) -> WorkerNode:
        """A worker's node."""
        return self.sessions[name].node

    # Time.

    def step(self) -> bool:
        """The next thing that happens; False if nothing ever will."""
        self._collect()
        due: list[tuple[float, str]] = []
        for name, session in self.sessions.items():
            time = next_time(session)
            if time is not None and name not in self.frozen:
                due.append((max(time, self.now), name))
        first = min(due, default=None)
        if self._way and (first is None or self._way[0][0] <= first[0]):
            time, _, source, target, frames = heappop(self._way)
            self.now = max(self.now, time)
            session_ = self.sessions.get(target)
            if target in self.frozen:
                later = (self.now + 0.1, next(self._order), source, target, frames)
                heappush(self._way, later)
            elif session_ is not None:
                session_.receive(frames, self.keys.get(source, ""), self.now)
        elif first is not None:
            self.now = first[0]
            self.sessions[first[1]].tick(self.now)
        else:
            return False
        self._collect()
        since, many = self._still
        self._still = (self.now, many + 1 if since == self.now else 0)
        assert many < MOST, "time goes on"
        return True

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        self._collect()
        while self._next() <= end:
            self.step()
        self.now = end
        self._collect()

    def until(self, condition: Callable[[], bool], seconds: float = 10.0) -> None:
        """Let time pass until something is so."""
        end = self.now + seconds
        self._collect()
        while not condition():
            assert self._next() <= end, "it did not come to that"
            self.step()

    def _next(self) -> float:
        times = [
            time
            for name, session in self.sessions.items()
            if name not in self.frozen and (time := next_time(session)) is not None
        ]
        if self._way:
            times.append(self._way[0][0])
        return max(self.now, min(times, default=float("inf")))

    def _collect(self) -> None:
        """Take packets and events, and serve calls, until there are none."""
        again = True
        while again:
            again = False
            for name, session in list(self.sessions.items()):
                for packet in session.take_packets():
                    frames: list[Buffer] = [bytes(each) for each in packet.frames]
                    for delay in self.hook(name, packet.endpoint, packet):
                        item = (
                            self.now + delay,
                            next(self._order),
                            name,
                            packet.endpoint,
                            list(frames),
                        )
                        heappush(self._way, item)
                for event in session.take_events():
                    again = True
                    self.events[name].append(event)
                    if isinstance(event, Called):
                        reply = self.serve(name, event)
                        if reply is not None:
                            session.reply(event.peer, event.call, reply, now=self.now)

    # What tests ask for.

    def call(
        self,
        source: str,
        target: str,
        *payload: bytes,
        timeout: float | None = 5.0,
        creates: RRefId | None = None,
    ) -> int:
        """One worker calls another."""
        deadline = None if timeout is None else self.now + timeout
        return self.sessions[source].call(
            self.node(target),
            payload,
            deadline=deadline,
            now=self.now,
            creates=creates,
        )

    def told(self, name: str, *kinds: type[Event]) -> list[Event]:
        """The events of some kinds that a worker was told, in order."""
        return [each for each in self.events[name] if isinstance(each, kinds)]
