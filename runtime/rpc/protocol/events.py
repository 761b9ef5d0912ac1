"""The interface of a session: its events, and its settings.

Events are values, never messages.  A payload is opaque to a session: buffers that the
agent wrote, the first of them small.

Rules of events:
- each event is delivered once, in order of occurrence; its handler may call the session
  again;
- this worker holds each reference in `carries` from then on, also if it owns the value,
  until `Session.drop` is called with its fork;
- each `Called` is replied to once, also if it is cancelled: a value that it creates or
  fetches is kept until then.

Rules of settings: times are in seconds.  `expire` is longer than `dead`, by more than
clocks of two workers can drift apart in that time: a worker that receives nothing has
given up its holds on another worker before that worker frees them.  So all workers of a
group have equal settings of `SHARED`: a worker with other settings is refused, and the
refusal names them.
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
    RESTARTED = "the worker was restarted"
    LEFT = "the worker left"
    REFERENCE = "a reference that it carries is dead"
    STOPPED = "RPC is no longer running on this node"
    CANCELLED = "the caller cancelled it"
    TOO_LARGE = "it is larger than the other worker accepts"


class Called(NamedTuple):
    """A call of a peer; every reference that it carries is confirmed.

    `call` and `peer` identify it in `Session.reply`.  `creates` is the value that
    `remote` creates here: this worker is its owner from now on, and the caller its
    first user. `target` is the value to fetch.  `deadline` is in this worker's clock.
    The agent replies once, also after `Cancelled`: the reply is dropped then.
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
    """The caller of an incoming call no longer waits for its answer."""

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
    """A call ended without an answer; each call ends once."""

    call: int
    reason: Reason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The owner has registered a reference that this worker holds."""

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
    """A worker is not a member any more."""

    node: WorkerNode
    reason: Reason


@dataclass(frozen=True, slots=True)
class Admitted:
    """This worker is a member: `node`, with its assigned number.

    `world_size` is None in an open group.
    """

    node: WorkerNode
    world_size: int | None = None


@dataclass(frozen=True, slots=True)
class Completed:
    """The static group has had all of its members, some of which may have left again;
    once, after they were reported as `Joined`.
    """


@dataclass(frozen=True, slots=True)
class Rejected:
    """The keeper refuses this worker."""

    why: str

    @property
    def is_taken(self) -> bool:
        """Return True if the name or number is in use: others may be free."""
        return NOT_UNIQUE in self.why


@dataclass(frozen=True, slots=True)
class Finished:
    """All members have finished, and no message is in flight between any of them."""


@dataclass(frozen=True, slots=True)
class Warned:
    """Packets were dropped for a cause that a user can correct; once for each source.

    `what` is the cause, `source` the sender's key, "" if it is unknown.
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
    | Completed
    | Rejected
    | Finished
    | Warned
)


# Times: see above.  A packet with more frames or references is dropped.
SHARED = ("dead", "expire", "frames", "references")


@dataclass(frozen=True, slots=True)
class Settings:
    """Times and limits of a session, with the defaults of workers."""

    # A peer is probed when its last proof of life is this old.
    heartbeat: float = 1.0
    # A worker gives a peer up this long after it sent the last packet that arrived, or
    # after the peer's process was running last, if that is later (`Session.reached`): a
    # process whose interpreter is busy is not dead.  The link detects an ended process
    # at once (`Session.unreachable`).
    dead: float = 10.0
    # A worker releases a peer's holds this long after the peer's last packet.
    expire: float = 12.0
    # An unanswered handshake is given up after this.
    connect: float = 10.0
    # Unacknowledged messages are probed after this; longer than `acknowledge`.
    probe: float = 0.2
    # Received messages are acknowledged after this, unless a packet is sent before,
    acknowledge: float = 0.05
    # or after this many packets.
    acknowledge_each: int = 32
    # Packets, and their bytes, in flight to a peer.
    window: int = 256
    window_bytes: int = 64 << 20
    # Calls that wait for an answer of one peer; further calls are queued.
    calls: int = 4096
    # Larger messages are sent in parts: one packet must not delay proofs of life.
    packet: int = 96 << 20
    # Larger packets are acknowledged at once, as others wait for the room.
    bulky: int = 1 << 20
    # Bytes that this worker accepts as the payload of one call or answer.
    largest: int = 1 << 30
    # Frames of a packet, and references that it carries.
    frames: int = 8192
    references: int = 1024

    def shared(self) -> tuple[tuple[str, float], ...]:
        """Return the settings that must be equal in a group, by name."""
        return tuple((name, float(getattr(self, name))) for name in SHARED)

    def __post_init__(self) -> None:
        times = (self.heartbeat, self.connect, self.acknowledge)
        assert min(times) > 0, "a time is positive"
        assert self.heartbeat < self.dead < self.expire, "see the rules above"
        assert self.acknowledge < self.probe, (
            "an acknowledgement arrives before the probe"
        )
        assert min(self.window, self.window_bytes, self.calls, self.packet) > 0, (
            "the smallest message fits"
        )
