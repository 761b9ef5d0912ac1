"""Every message and note, for Hypothesis."""

from hypothesis import strategies as st

from everyorder.runtime.rpc.protocol.events import Reason
from everyorder.runtime.rpc.protocol.identities import (
    Fork,
    GloballyUniqueId,
    WorkerNode,
)
from everyorder.runtime.rpc.protocol.messages import (
    Accept,
    Answer,
    Call,
    Cancel,
    Decline,
    Delete,
    Finish,
    FramePart,
    Idle,
    MemberJoined,
    MemberLeft,
    Message,
    ReferenceRefused,
    ReferenceRegistered,
    Register,
    Survey,
    Waiting,
)
from everyorder.runtime.rpc.protocol.wire import (
    NOTHING,
    Admission,
    Heartbeat,
    Hello,
    Join,
    Member,
    Note,
    PacketKind,
    Rejection,
)

NUMBERS = st.integers(0, 2**64 - 1)
IDS = st.integers(-1, 2**31 - 1)
NAMES = st.text(max_size=30)
REASONS = st.sampled_from(Reason)
UNIQUES = st.builds(GloballyUniqueId, IDS, NUMBERS, NUMBERS)
NODES = st.builds(WorkerNode, NAMES, IDS, NUMBERS)
FORKS = st.builds(Fork, UNIQUES, UNIQUES, NODES, NAMES)
MEMBERS = st.builds(Member, NODES, NAMES, NAMES)
CARRIES = st.lists(FORKS, max_size=3).map(tuple)
PAYLOADS = st.lists(st.binary(max_size=20), max_size=3).map(tuple)
# `creates` and `fork` come together, or not at all.
CREATES = st.one_of(st.just((None, None)), st.tuples(UNIQUES, UNIQUES))


def _call(
    call: int,
    payload: tuple[bytes, ...],
    carries: tuple[Fork, ...],
    milliseconds: int | None,
    creates: tuple[GloballyUniqueId, GloballyUniqueId] | tuple[None, None],
    target: GloballyUniqueId | None,
) -> Call:
    rref, fork = creates
    return Call(call, payload, carries, milliseconds, rref, fork, target)


EVERY: dict[type[Message], st.SearchStrategy[Message]] = {
    Call: st.builds(
        _call,
        NUMBERS,
        PAYLOADS,
        CARRIES,
        st.none() | st.integers(0, 2**32 - 1),
        CREATES,
        st.none() | UNIQUES,
    ),
    Answer: st.builds(Answer, NUMBERS, PAYLOADS, CARRIES, st.booleans()),
    Decline: st.builds(Decline, NUMBERS, REASONS, NAMES),
    Cancel: st.builds(Cancel, NUMBERS),
    Register: st.builds(Register, UNIQUES, UNIQUES, NODES),
    ReferenceRegistered: st.builds(ReferenceRegistered, UNIQUES),
    ReferenceRefused: st.builds(ReferenceRefused, UNIQUES),
    Accept: st.builds(Accept, UNIQUES),
    Delete: st.builds(Delete, UNIQUES, UNIQUES),
    MemberJoined: st.builds(MemberJoined, MEMBERS),
    MemberLeft: st.builds(MemberLeft, NODES, REASONS),
    Idle: st.builds(Idle, NUMBERS, NUMBERS, NUMBERS, st.booleans()),
    Survey: st.builds(Survey, NUMBERS),
    Waiting: st.builds(
        Waiting,
        st.lists(NAMES, max_size=3).map(tuple),
        st.lists(NUMBERS, max_size=3).map(tuple),
    ),
    Finish: st.just(Finish()),
    FramePart: st.builds(
        FramePart,
        st.integers(0, 65535),
        NUMBERS,
        NUMBERS,
        st.tuples(st.binary(max_size=9)),
    ),
}

BEATS = st.builds(Heartbeat, NUMBERS, NUMBERS, st.lists(NUMBERS, max_size=5).map(tuple))
HELLOS = st.builds(Hello, NUMBERS)
SIZES = st.none() | st.integers(0, 2**31)
FIGURES = st.lists(st.tuples(NAMES, st.floats(allow_nan=False)), max_size=3).map(tuple)
NOTES: dict[PacketKind, st.SearchStrategy[Note]] = {
    PacketKind.HELLO: HELLOS,
    PacketKind.WELCOME: HELLOS,
    PacketKind.PING: BEATS,
    PacketKind.PONG: BEATS,
    PacketKind.RESET: st.just(NOTHING),
    PacketKind.BYE: st.just(NOTHING),
    PacketKind.JOIN: st.builds(Join, NAMES, NAMES, NAMES, SIZES, FIGURES),
    PacketKind.ADMITTED: st.builds(
        Admission,
        NODES,
        st.lists(MEMBERS, max_size=3).map(tuple),
        SIZES,
        st.booleans(),
    ),
    PacketKind.REJECTED: st.builds(Rejection, NAMES),
}
