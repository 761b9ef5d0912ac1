"""A group of workers as a registry: who is there, and who refers to what.

True only here: what a step of a group is.  Sessions are real; the network between them
delivers everything in order, and each step goes on until nothing is left to say, so
what is explored is the order of the steps.  (What the network does in between is
explored by `tests/rpc/exploring` and drawn by `tests/rpc/simulator`.)

The state is all that the sessions know, but for times and the numbers of what was said
before: names of lives, values and references are numbered by first visit.
"""

from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Protocol

from everyorder.runtime.rpc.protocol.events import (
    Answered,
    Called,
    Died,
    Event,
    Failed,
    Finished,
    Freed,
    Joined,
    Lost,
)
from everyorder.runtime.rpc.protocol.identities import (
    Fork,
    GloballyUniqueId,
    RRefId,
    WorkerNode,
)
from everyorder.runtime.rpc.protocol.session import Session
from tests.rpc.protocol.times import TIMES

# As long as an acknowledgement may be put off, and then some.
_WHILE = 0.06
_STEP = 0.06


class Functions(Protocol):
    """Functions by name, as `runtime.rpc.codec.named_functions.Registry` has them."""

    def add(self, function: Callable[[], str], name: str) -> Any:
        """Have a function called by a name, until what is returned is closed."""

    def has(self, name: str) -> bool:
        """Whether there is one of that name."""

    def find(self, name: str) -> Callable[..., Any]:
        """The function of a name."""

    def names(self) -> tuple[str, ...]:
        """All names."""


class Group:
    """Workers by name; `w0` keeps the group, and is always there."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lives = 0
        self.sessions: dict[str, Session] = {}
        self.held: dict[tuple[str, str], Fork] = {}
        self.values: dict[str, dict[RRefId, str]] = {}
        self.members: dict[str, set[str]] = {}
        self.events: list[str] = []
        self.calls: dict[tuple[str, int], str] = {}
        # Functions by name, where a scenario has some.
        self.callables: Functions | None = None
        self.answers: list[bytes] = []
        self.start("w0").keep(world_size=None)
        self.settle()

    def start(self, name: str) -> Session:
        """A life of a worker."""
        self.lives += 1
        session = Session(
            name, incarnation=self.lives, endpoint=name, now=self.now, settings=TIMES
        )
        self.sessions[name] = session
        self.values[name], self.members[name] = {}, set()
        return session

    # Steps.

    def join(self, name: str) -> Callable[[], None]:
        """A worker joins; it leaves when that is undone."""
        self.start(name).join("w0", id=None, now=self.now)
        self.settle()

        def leave() -> None:
            self.sessions[name].leave(self.now)
            self.settle()
            del self.sessions[name], self.values[name], self.members[name]

        return leave

    def create(self, value: str, user: str, owner: str) -> Callable[[], None]:
        """A user creates a value on another worker, and lets go of it again."""
        session = self.sessions[user]
        rref = session.new_id()
        call = session.call(
            self.node(owner),
            [value.encode()],
            creates=rref,
            deadline=None,
            now=self.now,
        )
        self.held[user, value] = session.fork_of(call)
        self.calls[user, call] = value
        self.settle()
        return self.dropping(user, value)

    def share(self, value: str, user: str, other: str) -> Callable[[], None]:
        """A user gives another worker a reference, which lets go of it again."""
        self.call(user, other, value)
        return self.dropping(other, value)

    def call(self, user: str, other: str, value: str) -> None:
        """A user calls another worker with a reference."""
        carries = [self.held[user, value]]
        call = self.sessions[user].call(
            self.node(other),
            [value.encode()],
            carries=carries,
            deadline=None,
            now=self.now,
        )
        self.calls[user, call] = value
        self.settle()

    def register(self, name: str) -> Callable[[], None]:
        """A function can be called by a name."""
        assert self.callables is not None, "the scenario has some"
        added = self.callables.add(lambda: name, name)

        def remove() -> None:
            added.close()

        return remove

    def ask(self, name: str) -> str:
        """`w0` calls a function of its own by its name: what the answer is."""
        call = self.sessions["w0"].call(
            self.node("w0"), [b"call", name.encode()], deadline=None, now=self.now
        )
        self.calls["w0", call] = name
        self.settle()
        return self.answers.pop().decode()

    def dropping(self, user: str, value: str) -> Callable[[], None]:
        """What lets go of a reference."""

        def drop() -> None:
            self.sessions[user].drop(self.held.pop((user, value)).fork, self.now)
            self.settle()

        return drop

    def node(self, name: str) -> WorkerNode:
        """A worker as it lives now."""
        return self.sessions[name].node

    # What follows.

    def settle(self) -> None:
        """Let everything be said, heard and acknowledged."""
        until = self.now + _WHILE
        while True:
            if not self.deliver():
                if self.now >= until:
                    return
                self.now += _STEP
                for session in tuple(self.sessions.values()):
                    session.tick(self.now)

    def deliver(self) -> bool:
        """Deliver what was sent, and hear what happened; whether anything did."""
        moved = False
        for name, session in tuple(self.sessions.items()):
            for packet in session.take_packets():
                moved = True
                target = self.sessions.get(packet.endpoint)
                if target is not None:
                    frames = [bytes(frame) for frame in packet.frames]
                    target.receive(frames, "", self.now)
            for event in session.take_events():
                moved = True
                self.hear(name, event)
        return moved

    def hear(self, name: str, event: Event) -> None:
        """An agent that keeps what it is given, and answers at once."""
        session = self.sessions[name]
        match event:
            case Called():
                value, *rest = (bytes(each).decode() for each in event.payload)
                answer = "done"
                if rest:
                    assert self.callables is not None, "the scenario has some"
                    there = self.callables.has(rest[0])
                    answer = self.callables.find(rest[0])() if there else "nothing"
                if event.creates is not None:
                    self.values[name][event.creates] = value
                for fork in event.carries:
                    self.held[name, value] = fork
                session.reply(event.peer, event.call, [answer.encode()], now=self.now)
            case Answered():
                del self.calls[name, event.call]
                if name == "w0" and bytes(event.payload[0]) != b"done":
                    self.answers.append(bytes(event.payload[0]))
            case Failed() | Died() | Finished():
                self.events.append(f"{name} {event}")
            case Freed(rref):
                del self.values[name][rref]
            case Joined(node):
                self.members[name].add(node.name)
            case Lost(node):
                self.members[name].discard(node.name)
            case _:
                pass

    # What is seen.

    def seen(self) -> str:
        """Who is there, who has what value, and who refers to it."""
        lines = []
        for name, session in sorted(self.sessions.items()):
            counts = session.counts()
            lines.append(
                f"{name}: knows {sorted(self.members[name])}, "
                f"has {sorted({*self.values[name].values()})}, "
                f"holds {sorted(value for who, value in self.held if who == name)}, "
                f"lists {counts['forks']}, uses {counts['users']}"
            )
        return "\n".join(lines)

    def wrong(self) -> list[str]:
        """The laws that are broken: nothing fails, and nothing is left half done."""
        found = [*self.events]
        for name, session in self.sessions.items():
            counts = session.counts()
            open_ = ("pending", "children", "carriers", "calls", "called", "queued")
            found += [
                f"{name}: {each} {counts[each]}" for each in open_ if counts[each]
            ]
        return found

    def state(self) -> Hashable:
        """Everything, but for times, and with names numbered by first visit."""
        names: dict[object, int] = {}
        functions = () if self.callables is None else self.callables.names()
        return functions, tuple(
            (
                name,
                # But for the next name that it gives.
                plain(session._references.state()[:-1], names),  # type: ignore[index]  # a tuple
                plain(session._members.members(), names),
                session._members.status,
                session._termination.status,
                sorted_(self.values[name], names),
                tuple(sorted(self.members[name])),
                tuple(
                    (channel.node.name, channel.state)
                    for channel in session._channels.values()
                ),
            )
            for name, session in sorted(self.sessions.items())
        )


def sorted_(values: dict[RRefId, str], names: dict[object, int]) -> Hashable:
    """The values of a worker, by what they are called."""
    return tuple(
        (value, plain(rref, names))
        for rref, value in sorted(values.items(), key=lambda item: item[1])
    )


def plain(state: object, names: dict[object, int]) -> Hashable:
    """A state without names that are given once: each is a number, by first visit."""
    if isinstance(state, GloballyUniqueId):
        return "name", names.setdefault(state, len(names))
    if isinstance(state, WorkerNode):
        return state.name, state.id, names.setdefault(state, len(names))
    if isinstance(state, tuple | list):
        return tuple(plain(each, names) for each in state)
    if isinstance(state, Enum):
        return state.name
    if is_dataclass(state) and not isinstance(state, type):
        return tuple(
            plain(getattr(state, field.name), names) for field in fields(state)
        )
    assert isinstance(state, Hashable), "everything else is a value"
    return state
