"""Kinds of messages: what one worker says to another, as frozen values.

True only here: which messages there are.  `KINDS` is the one table; the number of a
kind is a part of the format.

    calls        Call, Answer, Decline, Cancel
    references   Register, Registered, Refused, Accept, Delete
    members      MemberJoined, MemberLeft, Idle, Survey, Waiting, Finish
    payloads     Part

All of them travel on a channel: once, and in order.  What is said without one (who asks
to join, and who is asked whether he is there) is `runtime.rpc.messages.notes`.

Rules: a reference is carried as a `Fork` whose `fork` is the one of the receiver; the
sender is its parent.  References beside a call travel in `carries`, in the order in
which the payload names them.
"""

from dataclasses import dataclass

from runtime.rpc.identities import Fork, ForkId, Node, RRefId
from runtime.rpc.session.events import Payload, Reason


@dataclass(frozen=True, slots=True)
class Call:
    """A worker asks for something; `call` is a number that it gives once.

    `milliseconds` is what is left until its deadline.  `creates` and `fork` come
    together: the value that `remote` makes, and the reference of the caller.
    """

    call: int
    payload: Payload
    carries: tuple[Fork, ...] = ()
    milliseconds: int | None = None
    creates: RRefId | None = None
    fork: ForkId | None = None
    target: RRefId | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a call."""

    call: int
    payload: Payload
    carries: tuple[Fork, ...] = ()
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Decline:
    """A call has no answer; `reason` says why."""

    call: int
    reason: Reason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Cancel:
    """The caller does not wait any longer."""

    call: int


@dataclass(frozen=True, slots=True)
class Register:
    """A user tells the owner that it holds a reference; `parent` gave it."""

    rref: RRefId
    fork: ForkId
    parent: Node


@dataclass(frozen=True, slots=True)
class Registered:
    """The owner knows of a reference."""

    fork: ForkId


@dataclass(frozen=True, slots=True)
class Refused:
    """The owner has no such value, or has it no more."""

    fork: ForkId


@dataclass(frozen=True, slots=True)
class Accept:
    """The receiver of a reference tells its parent that it need not hold it."""

    fork: ForkId


@dataclass(frozen=True, slots=True)
class Delete:
    """A user tells the owner that it holds a reference no more."""

    rref: RRefId
    fork: ForkId


@dataclass(frozen=True, slots=True)
class Member:
    """A member as others reach it: its node, its endpoint, its public key."""

    node: Node
    endpoint: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class MemberJoined:
    """The keeper tells of a new member."""

    member: Member


@dataclass(frozen=True, slots=True)
class MemberLeft:
    """The keeper tells of one who is a member no more."""

    node: Node
    reason: Reason


@dataclass(frozen=True, slots=True)
class Idle:
    """A worker that is done says so; `wave` is the survey that it answers.

    `sent` and `received` count messages on channels that are open; `busy` says that
    something is in flight for it all the same.
    """

    wave: int
    sent: int
    received: int
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Survey:
    """Whether all are done is asked once more."""

    wave: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """Who is not done yet, and the incarnations of all members that are counted."""

    names: tuple[str, ...]
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    """All are done, and nothing is in flight."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a frame of the call or answer that follows: too large for a packet.

    `size` is that of the frame, `offset` where the piece belongs; `payload` is one
    buffer.
    """

    frame: int
    size: int
    offset: int
    payload: Payload


Message = (
    Call
    | Answer
    | Decline
    | Cancel
    | Register
    | Registered
    | Refused
    | Accept
    | Delete
    | MemberJoined
    | MemberLeft
    | Idle
    | Survey
    | Waiting
    | Finish
    | Part
)

# The numbers are those of the format: a new kind gets a new one.
KINDS: dict[int, type[Message]] = {
    1: Call,
    2: Answer,
    3: Decline,
    4: Cancel,
    5: Register,
    6: Registered,
    7: Refused,
    8: Accept,
    9: Delete,
    10: MemberJoined,
    11: MemberLeft,
    12: Idle,
    13: Survey,
    14: Waiting,
    15: Finish,
    16: Part,
}
