"""Garbage: whatever comes is dropped and counted, and does no harm."""

from dataclasses import replace
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everyorder.runtime.rpc.protocol.events import (
    Admitted,
    Answered,
    Buffer,
    Called,
    Event,
    Failed,
    Joined,
    Reason,
    Rejected,
    Warned,
)
from everyorder.runtime.rpc.protocol.identities import WorkerNode
from everyorder.runtime.rpc.protocol.packets import Packet
from everyorder.runtime.rpc.protocol.session import Session
from everyorder.runtime.rpc.protocol.wire import (
    HEADER,
    Admission,
    Member,
    PacketError,
    PacketKind,
    Rejection,
    head,
    of_note,
)
from tests.rpc.protocol.network import DELAY, Network
from tests.rpc.protocol.times import TIMES

Frames = list[Buffer]


def recorded() -> tuple[Network, list[tuple[str, Frames]]]:
    """Three workers that said all sorts of things; what each was sent."""
    network = Network()
    sent: list[tuple[str, Frames]] = []

    def hook(source: str, target: str, packet: Packet) -> tuple[float, ...]:
        sent.append((target, list(packet.frames)))
        return (DELAY,)

    network.hook = hook
    user, owner, _ = network.group("a", "b", "c")
    rref = user.new_id()
    fork = user.fork_of(network.call("a", "b", b"make", creates=rref))
    network.run(0.5)
    deadline = network.now + 5
    node = network.node("c")
    user.call(node, [b"x"], carries=[fork], deadline=deadline, now=network.now)
    network.call("b", "c", b"x" * 100000, b"y")
    network.run(0.5)
    user.drop(fork.fork, network.now)
    network.call("c", "a", b"slow", timeout=0.0005)
    network.run(1.0)
    for session in (user, owner):
        session.finish(network.now)
    network.run(1.0)
    return network, sent


def unharmed(network: Network) -> bool:
    """Whether all can still call all."""
    for name in "abc":
        network.events[name].clear()
    for source in "abc":
        for target in "abc":
            network.call(source, target, b"still there")
    network.run(3.0)
    return all(len(network.told(name, Answered)) == 3 for name in "abc")


@settings(max_examples=60)
@given(frames=st.lists(st.binary(max_size=100), max_size=3))
def test_any_bytes_are_dropped_counted_and_change_nothing(frames: list[bytes]) -> None:
    network = together()
    session = network.sessions["b"]
    before, count = session.state(), session.counts()["garbage"]
    session.receive(frames, "", network.now)
    assert session.state() == before
    assert session.counts()["garbage"] == count + 1
    assert session.take_packets() == []


@cache
def together() -> Network:
    """Two workers, for all examples: no bytes change them."""
    network = Network()
    network.group("a", "b")
    return network


def mutated(frames: Frames, random: Random) -> Frames:
    """Frames with some of their bytes changed, cut, doubled or joined."""
    first = bytearray(frames[0])
    rest = list(frames[1:])
    for _ in range(random.choice((1, 1, 2, 5))):
        place = random.randrange(len(first)) if first else 0
        match random.randrange(7):
            case 0 | 1 if first:
                first[place] = random.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 2 if first:
                first[place] ^= 1 << random.randrange(8)
            case 3:
                del first[place:]
            case 4:
                first[place:place] = random.randbytes(random.randrange(9))
            case 5:
                rest = rest[:-1] if rest else [random.randbytes(3)]
            case 6:
                rest.insert(0, b"")
    return [bytes(first), *rest]


def fuzz(count: int, seed: int) -> dict[str, int]:
    """Bring so many mutated packets to three workers; what was dropped.

    Each is dropped, or taken for what it says; what it says may be that a worker left.
    """
    random = Random(seed)
    dropped: dict[str, int] = {}
    done = 0
    while done < count:
        network, sent = recorded()
        for _ in range(min(2000, count - done)):
            target, frames = random.choice(sent)
            session = network.sessions[target]
            network.now += 1e-6
            session.receive(mutated(frames, random), "", network.now)
            if not random.randrange(16):
                session.tick(network.now)
            session.take_packets()
            for event in session.take_events():
                if isinstance(event, Called):
                    session.reply(event.peer, event.call, [b"x"], now=network.now)
            done += 1
        for session in network.sessions.values():
            hash(session.state())
            session.tick(network.now + 60)
            session.stop(network.now + 60)
            for flaw, number in session.garbage().items():
                dropped[flaw] = dropped.get(flaw, 0) + number
    return dropped


def test_mutated_packets_never_raise() -> None:
    dropped = fuzz(2000, 1)
    assert {"CUT", "MARK", "VERSION", "KIND", "BODY", "GROUP", "TARGET"} <= set(dropped)
    assert {"STRANGER", "SESSION", "SEQUENCE", "COUNT"} <= set(dropped)


@pytest.mark.slow
def test_fifty_thousand_mutated_packets() -> None:
    assert sum(fuzz(50_000, 2).values()) > 25_000


@pytest.mark.nightly
def test_a_million_mutated_packets() -> None:
    assert sum(fuzz(1_000_000, 3).values()) > 500_000


def test_packets_whose_header_is_not_ours_leave_a_group_unharmed() -> None:
    """Bytes before the numbers of the session are changed, one bit at a time."""
    network, sent = recorded()
    target, frames = next(
        (to, each) for to, each in sent if to == "b" and each[0][3] == PacketKind.DATA
    )
    session = network.sessions[target]
    session.tick(network.now)
    before = session.state()
    # Without keys, a packet in the name of another member is one of that member.
    bits = [bit for bit in range(28 * 8) if bit != 12 * 8 + 1]
    for bit in bits:
        first = bytearray(frames[0])
        first[bit // 8] ^= 1 << bit % 8
        session.receive([bytes(first), *frames[1:]], "", network.now)
        assert session.state() == before, bit
    assert session.counts()["garbage"] == len(bits)
    assert unharmed(network)


def source(session: Session) -> tuple[int, int, int]:
    """Group, and incarnations of keeper and worker."""
    keeper = session.members()[0].incarnation
    return keeper, keeper, session.node.incarnation


# What is wrong with a packet: the byte that is changed, the flaw, what is told.
CASES: dict[str, tuple[int, str, str | None]] = {
    "another version": (2, "VERSION", "it is of another version"),
    "another group": (4, "GROUP", "it is of another group"),
    "a stranger": (12, "STRANGER", None),
    "another life": (20, "TARGET", None),
    "another session": (28, "SESSION", None),
}


def changed(frames: Frames, place: int) -> Frames:
    """Frames with one byte changed."""
    first = bytearray(frames[0])
    first[place] = 7
    return [bytes(first), *frames[1:]]


@pytest.mark.parametrize("what", CASES)
def test_what_somebody_can_act_on_is_told_once(what: str) -> None:
    place, name, told = CASES[what]
    network = Network()
    session = network.group("a", "b")[1]
    network.run(0.2)
    network.call("a", "b", b"x")
    (packet,) = network.sessions["a"].take_packets()
    for _ in range(3):
        session.receive(changed(packet.frames, place), "", network.now)
    assert session.garbage() == {name: 3}
    warned = [each for each in session.take_events() if isinstance(each, Warned)]
    assert warned == ([] if told is None else [Warned(told, "")])


def test_a_key_that_is_not_the_sender_s_is_told() -> None:
    network = Network()
    network.keys = {"a": "key of a", "b": "key of b"}
    session = network.group("a", "b")[1]
    network.run(0.2)
    assert session.garbage() == {}
    network.call("a", "b", b"x")
    (packet,) = network.sessions["a"].take_packets()
    session.receive(packet.frames, "key of c", network.now)
    assert session.garbage() == {"KEY": 1}
    assert session.take_events() == [
        Warned("its key is not that of the sender", "key of c")
    ]
    session.receive(packet.frames, "key of a", network.now)
    assert [type(each) for each in session.take_events()] == [Called]


def test_nobody_joins_or_leaves_in_the_name_of_another_s_key() -> None:
    network = Network()
    network.keys = {"a": "key of a", "b": "key of b"}
    keeper, other = network.group("a", "b")
    network.keys["x"] = "key of x"
    thief = Session("x", incarnation=77, endpoint="x", key="key of b", now=network.now)
    thief.join("a", id=None, now=network.now)
    (packet,) = thief.take_packets()
    keeper.receive(packet.frames, "key of x", network.now)
    assert keeper.garbage() == {"KEY": 1}
    group, _, incarnation = source(other)
    bye = head(PacketKind.BYE, group, incarnation, keeper.node.incarnation, 1, 1)
    keeper.receive([bye], "key of x", network.now)
    assert (keeper.garbage(), len(keeper.members())) == ({"KEY": 2}, 2)


def test_warnings_are_remembered_of_some_sources_and_then_of_all_others_as_one() -> (
    None
):
    session = Session("a", incarnation=1, endpoint="a")
    session.keep(world_size=None)
    session.take_events()
    wrong = head(PacketKind.DATA, 5, 5, 1)
    for number in range(200):
        session.receive([wrong], str(number), 0.0)
    assert len(session.take_events()) == 65
    assert session.garbage() == {"GROUP": 200}


def _answer(
    session: Session, kind: PacketKind, said: Admission | Rejection, key: str
) -> list[type[Event]]:
    """What follows from an answer to who asked to join."""
    start = head(kind, 77, 77, session.node.incarnation)
    session.receive([start + of_note(said)], key, 0.0)
    return [type(each) for each in session.take_events()]


@pytest.mark.parametrize(
    ("meeting", "keeper", "flaws"),
    [
        ("tcp://k:1", "key of k", [Warned]),
        ("tcp://k:1#key of k", "key of k", [Warned]),
        ("tcp://k:1#key of k", "key of x", [Warned]),
    ],
)
def test_nobody_admits_in_the_name_of_another_s_key(
    meeting: str, keeper: str, flaws: list[type[Event]]
) -> None:
    session = Session("b", incarnation=5, endpoint="b", key="key of b")
    session.join(meeting, id=None, now=0.0)
    node, other = WorkerNode("b", 1, 5), WorkerNode("k", 0, 77)
    said = Admission(node, (Member(other, "k", keeper), Member(node, "b", "key of b")))
    assert _answer(session, PacketKind.ADMITTED, said, "key of x") == flaws
    assert session.node.id == -1
    said = replace(said, members=(Member(other, "k", "key of k"), said.members[1]))
    assert _answer(session, PacketKind.ADMITTED, said, "key of k") == [Admitted, Joined]
    assert session.members() == (other, node)


def test_nobody_rejects_in_the_name_of_another_s_key() -> None:
    session = Session("b", incarnation=5, endpoint="b", key="key of b")
    session.join("tcp://k:1#key of k", id=None, now=0.0)
    said = Rejection("so")
    assert _answer(session, PacketKind.REJECTED, said, "key of x") == [Warned]
    assert _answer(session, PacketKind.REJECTED, said, "key of k") == [Rejected]


def _with_a_small_one() -> tuple[Session, Session, Network]:
    """Who does not know that the other one takes less than it said when it joined."""
    network = Network()
    session = network.add("a")
    small = replace(TIMES, frames=4, references=2)
    owner = network.add("b", settings=small)
    owner._members._shared = session.settings.shared()
    session.keep(world_size=None)
    owner.join("a", id=None, now=network.now)
    network.run(1.0)
    return session, owner, network


def test_packets_of_too_many_parts_or_references_are_dropped() -> None:
    session, owner, network = _with_a_small_one()
    network.call("a", "b", b"x", *[b"y"] * 5)
    network.run(0.3)
    assert owner.garbage()["BODY"] >= 1
    session, owner, network = _with_a_small_one()
    rref = session.new_id()
    session.own(rref)
    node = network.node("b")
    session.call(node, [b"x"], carries=[rref] * 3, deadline=None, now=network.now)
    network.run(0.3)
    assert owner.garbage()["BODY"] >= 1
    assert network.told("b", Called) == []


def test_a_call_that_is_larger_than_the_other_takes_ends_at_the_caller() -> None:
    network = Network()
    caller = network.add("a")
    network.add("b", settings=replace(network.settings, largest=1000))
    caller.keep(world_size=None)
    network.sessions["b"].join("a", id=None, now=network.now)
    network.run(1.0)
    # Its size is known by now: nothing is sent.
    call = network.call("a", "b", bytes(2000))
    assert caller.take_packets() == []
    network.run(0.1)
    assert network.told("a", Failed) == [Failed(call, Reason.TOO_LARGE)]
    network.serve = lambda name, called: [bytes(2000)]
    call = network.call("b", "a", b"x")
    network.run(0.1)
    assert network.told("b", Failed) == [Failed(call, Reason.TOO_LARGE)]


def test_a_call_that_is_larger_than_is_taken_here_is_refused_by_the_callee() -> None:
    network = Network()
    caller, callee = network.group("a", "b")
    callee.settings = replace(network.settings, largest=1000)
    rref = caller.new_id()
    caller.own(rref)
    node = network.node("b")
    call = caller.call(
        node, [b"x", bytes(2000)], carries=[rref], deadline=None, now=network.now
    )
    after = network.call("a", "b", b"small")
    network.run(0.1)
    assert network.told("a", Failed) == [Failed(call, Reason.TOO_LARGE)]
    assert [each.call for each in network.told("a", Answered)] == [after]  # type: ignore[union-attr]
    network.run(1.0)
    assert caller.counts()["forks"] == 0
    # The same with an answer.
    network.serve = lambda name, called: [b"x", bytes(2000)]
    call = network.call("b", "a", b"x")
    network.run(0.1)
    assert network.told("b", Failed) == [Failed(call, Reason.TOO_LARGE)]


def test_flaws_have_names_and_sentences() -> None:
    assert all(flaw.value.startswith("it") for flaw in PacketError)
    assert HEADER.size == 52
