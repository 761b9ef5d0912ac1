"""The interface of a session: its events, and its settings.

Events are values, never messages.  A payload is opaque to a session: buffers that the
agent wrote, the first of them small.

Rules of events:
- each event comes once, in the order in which things happened; its handler may call the
  session again;
- each reference in `carries` is held by this worker from then on, also if it owns the
  value, until `Session.drop` is called with its fork;
- each `Called` is replied to once, also if it is cancelled: a value that it creates or
  fetches is kept until then.

Rules of settings: times are in seconds.  `expire` is longer than `dead`, by more than
clocks of two workers can run apart meanwhile: a worker that hears nothing has given up
what it holds of another one before that one frees it.  So all workers of a group have
equal settings of `SHARED`: a worker with others is refused, and told which.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from everyorder.runtime.rpc.protocol.identities import Fork, RRefId, WorkerNode

# Part of the reason when another member has the name or the number.
NOT_UNIQUE = "is not unique"

Buffer = bytes | bytearray | memoryview
Payload = Sequence[Buffer]


class Reason(Enum):
    """Why a call has no answer, or a reference is dead; the values are for messages."""

    DEADLINE = "the deadline passed"
    LOST = "the connection to the worker was lost"
    RESTARTED = "the worker was started anew"
    LEFT = "the worker left"
    REFERENCE = "a reference that it carries is dead"
    STOPPED = "RPC is no longer running on this node"
    CANCELLED = "the caller gave it up"
    TOO_LARGE = "it is larger than the other worker takes"


class Called(NamedTuple):
    """A peer asks for something; every reference it carries is confirmed by now.

    `call` and `peer` name it in `Session.reply`.  `creates` is the value that `remote`
    makes here: this worker is its owner from now on, and the caller its first user.
    `target` is the value that is fetched.  `deadline` is in this worker's clock.  It is
    replied to once, also if it is `Cancelled` meanwhile: the reply is dropped then.
    """

    peer: WorkerNode
    call: int
    payload: Payload
    carries: tuple[Fork, ...] = ()
    creates: RRefId | None = None
    target: RRefId | None = None
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The caller of a call that came in no longer waits for its answer."""

    peer: WorkerNode
    call: int


class Answered(NamedTuple):
    """The answer to a call; `failed` is that of `Session.reply`."""

    call: int
    payload: Payload
    carries: tuple[Fork, ...] = ()
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """A call ended without an answer; each call has one end only."""

    call: int
    reason: Reason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The owner knows of a reference that this worker holds."""

    fork: Fork


@dataclass(frozen=True, slots=True)
class Died:
    """A reference that this worker holds is dead."""

    fork: Fork
    reason: Reason


@dataclass(frozen=True, slots=True)
class Freed:
    """A value of this worker has no references any more: the agent drops it."""

    rref: RRefId


@dataclass(frozen=True, slots=True)
class Joined:
    """A worker is a member now, and can be called."""

    node: WorkerNode


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker is no member any more."""

    node: WorkerNode
    reason: Reason


@dataclass(frozen=True, slots=True)
class Admitted:
    """This worker is a member: `node`, with the number that it got.

    `world_size` is None in a group that anybody may join.
    """

    node: WorkerNode
    world_size: int | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """The keeper refuses this worker."""

    why: str

    @property
    def is_taken(self) -> bool:
        """Whether another member has the name or the number: others may be free."""
        return NOT_UNIQUE in self.why


@dataclass(frozen=True, slots=True)
class Finished:
    """All members are done, and nothing is in flight anywhere."""


@dataclass(frozen=True, slots=True)
class Warned:
    """Packets were dropped for a cause that a user can mend; once for each source.

    `what` is the cause, `source` the sender, as far as it is known.
    """

    what: str
    source: str


Event = (
    Called
    | Cancelled
    | Answered
    | Failed
    | Confirmed
    | Died
    | Freed
    | Joined
    | Lost
    | Admitted
    | Rejected
    | Finished
    | Warned
)


# The first two: see above.  A packet with more frames or references is no message.
SHARED = ("dead", "expire", "frames", "references")


@dataclass(frozen=True, slots=True)
class Settings:
    """Times and limits of a session, with the defaults of workers."""

    # A sign of life is asked for when the last one is so old.
    heartbeat: float = 1.0
    # A worker gives a peer up so long after it sent the last thing that arrived.  What
    # is compiled may keep all threads of a process waiting for seconds, which is no
    # death; a process that ended is found out by its link (`Session.unreachable`).
    dead: float = 10.0
    # It releases what the peer held so long after it last heard of it.
    expire: float = 12.0
    # A channel that nobody answers is given up after this.
    connect: float = 10.0
    # What is not acknowledged by then is asked about; longer than `acknowledge`.
    probe: float = 0.2
    # What came is acknowledged after this, if nothing is sent meanwhile,
    acknowledge: float = 0.05
    # or after so many packets.
    acknowledge_each: int = 32
    # Packets, and their bytes, that are on their way to a peer at once.
    window: int = 256
    window_bytes: int = 64 << 20
    # Calls that wait for an answer of one peer; what is more waits here.
    calls: int = 4096
    # What is larger is sent in pieces: it may not keep signs of life from coming.
    packet: int = 96 << 20
    # What is larger than this is acknowledged at once, as others wait for its room.
    bulky: int = 1 << 20
    # The bytes of one call's or answer's payload that are taken here.
    largest: int = 1 << 30
    # The frames of a packet, and the references that it carries.
    frames: int = 8192
    references: int = 1024

    def shared(self) -> tuple[tuple[str, float], ...]:
        """The settings that all workers of a group must have the same, by name."""
        return tuple((name, float(getattr(self, name))) for name in SHARED)

    def __post_init__(self) -> None:
        times = (self.heartbeat, self.connect, self.acknowledge)
        assert min(times) > 0, "a time is positive"
        assert self.heartbeat < self.dead < self.expire, "see the rules above"
        assert self.acknowledge < self.probe, "an answer has the time to come"
        assert min(self.window, self.window_bytes, self.calls, self.packet) > 0, (
            "something fits"
        )
