"""A peer that does not keep to the rules: it has a channel, and says what it likes.

Its messages are well written, and name what there is; what they say in this order is
nonsense.  Nothing of it raises, and the two others go on with each other.
"""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from everyorder.runtime.rpc.protocol.events import (
    Answered,
    Called,
    Confirmed,
    Freed,
    Reason,
)
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
    encode,
)
from everyorder.runtime.rpc.protocol.wire import Member
from tests.rpc.protocol.network import Network

# Three workers of a network, another life of one of them, and a stranger.
NODES = st.sampled_from(
    [
        WorkerNode("a", 0, 1),
        WorkerNode("b", 1, 2),
        WorkerNode("c", 2, 3),
        WorkerNode("b", 1, 9),
        WorkerNode("x", 7, 7),
    ]
)
# Some that the workers give themselves, and others.
UNIQUES = st.builds(
    GloballyUniqueId, st.integers(0, 2), st.integers(0, 3), st.integers(1, 3)
)
CALLS = st.integers(0, 4)
FORKS = st.builds(Fork, UNIQUES, UNIQUES, NODES)
CARRIES = st.lists(FORKS, max_size=2).map(tuple)
PAYLOADS = st.just((b"x",))
REASONS = st.sampled_from(Reason)
SMALL = st.integers(0, 3)


def _call(
    call: int,
    carries: tuple[Fork, ...],
    creates: tuple[GloballyUniqueId, GloballyUniqueId] | None,
    target: GloballyUniqueId | None,
) -> Call:
    rref, fork = creates or (None, None)
    return Call(call, (b"x",), carries, 10, rref, fork, target)


MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(
        _call,
        CALLS,
        CARRIES,
        st.none() | st.tuples(UNIQUES, UNIQUES),
        st.none() | UNIQUES,
    ),
    st.builds(Answer, CALLS, PAYLOADS, CARRIES),
    st.builds(Decline, CALLS, REASONS),
    st.builds(Cancel, CALLS),
    st.builds(Register, UNIQUES, UNIQUES, NODES),
    st.builds(ReferenceRegistered, UNIQUES),
    st.builds(ReferenceRefused, UNIQUES),
    st.builds(Accept, UNIQUES),
    st.builds(Delete, UNIQUES, UNIQUES),
    st.builds(MemberJoined, st.builds(Member, NODES, st.sampled_from("abcx"))),
    st.builds(MemberLeft, NODES, REASONS),
    st.builds(Idle, SMALL, SMALL, SMALL, st.booleans()),
    st.builds(Survey, SMALL),
    st.builds(Waiting, st.just(("x",)), st.lists(SMALL, max_size=3).map(tuple)),
    st.just(Finish()),
    st.builds(FramePart, SMALL, SMALL, SMALL, st.tuples(st.binary(max_size=3))),
)
# What the one who is spoken to does in between.
DEEDS = st.sampled_from(["call", "remote", "share", "finish", "wait"])


def play(rogue: str, said: Sequence[Message | str]) -> Network:
    """One says what it likes to "b", which does something in between."""
    network = Network()
    network.group("a", "b", "c")
    network.run(0.2)
    session = network.sessions["b"]
    held: list[Fork] = []
    if rogue == "c":
        network.call("c", "b", b"x")
        network.run(0.2)
    channel = network.sessions[rogue]._channels[session.node.incarnation]
    for each in said:
        match each:
            case "call":
                network.call("b", rogue, b"x", timeout=0.3)
            case "remote":
                rref = session.new_id()
                network.call("b", rogue, b"x", timeout=0.3, creates=rref)
            case "share":
                held = [
                    told.fork
                    for told in network.told("b", Confirmed)
                    if isinstance(told, Confirmed)
                ]
                session.call(
                    network.node(rogue),
                    [b"x"],
                    carries=held[:1],
                    deadline=network.now + 0.3,
                    now=network.now,
                )
            case "finish":
                session.finish(network.now)
            case "wait":
                network.run(0.1)
            case _:
                body, tail = encode(each)  # type: ignore[arg-type]  # no text
                channel.send(body, tail, len(body), network.now)
    network.run(1.0)
    hash(session.state())
    for fork in held:
        session.drop(fork.fork, network.now)
    network.run(6.0)
    return network


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from("ac"), st.lists(st.one_of(MESSAGES, MESSAGES, DEEDS), max_size=12)
)
def test_nonsense_raises_nothing_and_the_others_go_on(
    rogue: str, said: list[Message | str]
) -> None:
    network = play(rogue, said)
    session = network.sessions["b"]
    other = "c" if rogue == "a" else "a"
    if network.node(other) in session.members() and rogue == "c":
        # A keeper may say who is a member; anybody else changes nothing for others.
        network.events["b"].clear()
        network.call("b", other, b"still there")
        network.run(1.0)
        assert len(network.told("b", Answered)) == 1
    calls = [
        (each.peer, each.call)
        for each in network.told("b", Called)
        if isinstance(each, Called)
    ]
    # With numbers of its own, the rogue may call as often as it likes.
    assert len([each for each in calls if each[0].name == other]) <= 1
    session.stop(network.now)
    assert session.next_time() is None


def test_two_answers_to_one_call_whose_references_wait_raise_nothing() -> None:
    network = Network()
    network.group("a", "b", "c")
    network.serve = lambda name, called: None
    call = network.call("b", "c", b"x", timeout=None)
    network.run(0.2)
    owner, rogue = network.sessions["a"], network.sessions["c"]
    rref = owner.new_id()
    owner.own(rref)
    channel = rogue._channels[network.node("b").incarnation]
    for number in (5, 6):
        name = GloballyUniqueId(2, number, network.node("c").incarnation)
        answer = Answer(call, (b"x",), (Fork(rref, name, network.node("a")),))
        body, tail = encode(answer)
        channel.send(body, tail, len(body), network.now)
    network.run(1.0)
    (told,) = network.told("b", Answered)
    assert isinstance(told, Answered)
    assert [each.fork.local_id for each in told.carries] == [5]
    assert network.sessions["b"].counts()["users"] == 1
    # What nobody waited for is listed no more.
    assert owner.counts()["forks"] == 1


def say(network: Network, source: str, target: str, message: Message) -> None:
    """Somebody says something, well written."""
    session = network.sessions[source]
    body, tail = encode(message)
    channel = session._channels[network.node(target).incarnation]
    channel.send(body, tail, len(body), network.now)
    network.run(0.1)


def owning(network: Network) -> tuple[GloballyUniqueId, GloballyUniqueId]:
    """Two values of "a", the keeper of "b" and "c"."""
    network.group("a", "b", "c")
    network.run(0.2)
    network.serve = lambda name, called: None
    owner = network.sessions["a"]
    rrefs = owner.new_id(), owner.new_id()
    for rref in rrefs:
        owner.own(rref)
    return rrefs


def test_nobody_takes_the_names_that_an_owner_will_give() -> None:
    network = Network()
    known, other = owning(network)
    owner = network.sessions["a"]
    own = owner.node.incarnation
    for number in range(2, 6):
        name = GloballyUniqueId(0, number, own)
        for parent in ("a", "c"):
            say(network, "c", "a", Register(known, name, network.node(parent)))
    # Nor have another one take them, by a reference that it passes on.
    for number in range(6, 10):
        name = GloballyUniqueId(0, number, own)
        fork = Fork(known, name, network.node("a"))
        say(network, "c", "b", Call(number, (b"x",), (fork,)))
    assert owner.counts()["forks"] == 0
    node = network.node("b")
    owner.call(node, [b"x"], carries=[other], deadline=None, now=network.now)
    network.run(0.1)
    (called,) = network.told("b", Called)
    assert isinstance(called, Called)
    owner.disown(other, network.now)
    network.run(0.1)
    # It is kept for the one who has it.
    assert network.told("a", Freed) == []
    network.sessions["b"].drop(called.carries[0].fork, network.now)
    network.run(0.1)
    assert network.told("a", Freed) == [Freed(other)]


def test_nobody_takes_the_names_of_what_another_will_create() -> None:
    network = Network()
    owning(network)
    caller = network.sessions["b"]
    life = caller.node.incarnation
    for number in range(4):
        names = [GloballyUniqueId(1, n, life) for n in (number, number + 100)]
        say(network, "c", "a", Call(number, (b"x",), (), None, names[0], names[1]))
        names = [GloballyUniqueId(1, n, life) for n in (number + 100, number)]
        say(network, "c", "a", Call(number, (b"x",), (), None, names[0], names[1]))
    assert network.told("a", Called) == []
    created = caller.new_id()
    network.call("b", "a", b"x", creates=created)
    network.run(0.1)
    (called,) = network.told("a", Called)
    assert isinstance(called, Called)
    assert (called.peer.name, called.creates) == ("b", created)


def test_a_reference_to_ones_own_value_by_a_name_of_another_is_dead() -> None:
    network = Network()
    known, _ = owning(network)
    taken = GloballyUniqueId(1, 3, network.node("b").incarnation)
    fork = Fork(known, taken, network.node("a"))
    say(network, "c", "a", Call(1, (b"x",), (fork,)))
    assert network.told("a", Called) == []
    assert network.sessions["a"].counts()["forks"] == 0
