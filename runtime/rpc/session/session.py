"""Session: one worker, as a state machine of packets, time and what its agent wants.

True only here: how the machines are put together.  Packets that come are looked at
(mark, version, kind, size, group, life, key, session, number), and the messages of a
channel go, in order, to the machine of their kind; what the machines want to be sent
goes to the channels; the ends of channels go to all machines.

Rules:
- nothing here reads a clock, draws a number, blocks or does I/O: the same calls give
  the same packets and events;
- after each call everything that follows from it has happened, so `take_packets` and
  `take_events` are complete; what follows from events is for the agent;
- `receive` never raises: what is wrong is dropped and counted by its flaw; what
  somebody can do something about (another version, another group, a wrong key) is told
  as `Warned`, once for each source;
- a call from a worker to itself travels like any other: written, and read back.
"""

from collections import Counter, deque
from collections.abc import Hashable, Sequence
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple

from runtime.rpc.identities import Fork, ForkId, GloballyUniqueId, Node, RRefId
from runtime.rpc.messages.codec import decode, encode
from runtime.rpc.messages.kinds import (
    Accept,
    Answer,
    Call,
    Cancel,
    Decline,
    Delete,
    Finish,
    Idle,
    Member,
    MemberJoined,
    MemberLeft,
    Message,
    Refused,
    Register,
    Registered,
    Survey,
    Waiting,
)
from runtime.rpc.messages.notes import Hello, Join, note, of_note
from runtime.rpc.session.calls import Calls, Carries
from runtime.rpc.session.channel import Channel, End, Packet
from runtime.rpc.session.events import Buffer, Event, Payload, Reason, Warned
from runtime.rpc.session.finishing import Finishing
from runtime.rpc.session.members import Members
from runtime.rpc.session.references import References
from runtime.rpc.session.settings import Settings
from runtime.rpc.wire import HEADER, Flaw, Head, Kind, Malformed, head, parse, size

# Which machine takes a kind of message.
CALLS, REFERENCES, MEMBERS, FINISHING = range(4)
TAKES: dict[type[Message], int] = {
    Call: CALLS,
    Answer: CALLS,
    Decline: CALLS,
    Cancel: CALLS,
    Register: REFERENCES,
    Registered: REFERENCES,
    Refused: REFERENCES,
    Accept: REFERENCES,
    Delete: REFERENCES,
    MemberJoined: MEMBERS,
    MemberLeft: MEMBERS,
    Idle: FINISHING,
    Survey: FINISHING,
    Waiting: FINISHING,
    Finish: FINISHING,
}

# What is told besides being counted: somebody has started something in the wrong way.
_TOLD = {Flaw.VERSION, Flaw.GROUP, Flaw.KEY}
# So many sources are remembered as told; those of all others are told as one.
_SOURCES = 64
_BODY = HEADER.size


class _Oversized(NamedTuple):
    """A call or an answer whose payload is larger than is taken here."""

    message: Message


class Session:
    """One worker's life; `node` is what it is known as, with -1 for no number yet."""

    def __init__(
        self,
        name: str,
        *,
        incarnation: int,
        endpoint: str,
        key: str = "",
        settings: Settings = Settings(),  # noqa: B008  # it is frozen
        now: float = 0.0,
    ) -> None:
        self.settings = settings
        self._now = now
        self._incarnation = incarnation
        self._packets: list[Packet] = []
        self._events: list[Event] = []
        self._out: list[tuple[Node, Message]] = []
        self._ends: list[End] = []
        # Messages of this worker to itself.
        self._loop: deque[tuple[bytes, Sequence[Buffer]]] = deque()
        self._channels: dict[int, Channel] = {}
        # The numbers of sessions with those who left, if they come back in this life.
        self._numbers: dict[int, tuple[int, int]] = {}
        self._timers: list[tuple[float, int]] = []
        self._garbage: Counter[Flaw] = Counter()
        self._warned: set[tuple[Flaw, str]] = set()
        self._resent = 0
        self._stopped = False
        self._local = 0
        self._references = References(self.node_now)
        self._calls = Calls(self._references, settings)
        self._members = Members(name, incarnation, endpoint, key, self._proven)
        self._finishing = Finishing()
        for machine in (self._references, self._calls, self._members, self._finishing):
            machine.out = self._out
            machine.events = self._events

