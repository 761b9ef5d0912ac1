"""Members: who joins, who is rejected and why, who left, and what others hear of it."""

import pytest

from everyorder.runtime.rpc.protocol.events import (
    Admitted,
    Answered,
    Completed,
    Failed,
    Joined,
    Lost,
    Reason,
    Rejected,
)
from everyorder.runtime.rpc.protocol.identities import WorkerNode
from everyorder.runtime.rpc.protocol.membership import TRANSITIONS, MembershipMachine
from everyorder.runtime.rpc.protocol.messages import MemberJoined, MemberLeft
from everyorder.runtime.rpc.protocol.packets import Packet
from everyorder.runtime.rpc.protocol.session import Session
from everyorder.runtime.rpc.protocol.wire import (
    Admission,
    Head,
    Join,
    Member,
    PacketKind,
    Rejection,
    parse,
)
from tests.rpc.protocol.network import DELAY, Network
from tests.rpc.protocol.times import TIMES


def test_states_are_reached_from_the_first_one() -> None:
    reached = {"ALONE"}
    for _ in TRANSITIONS:
        reached |= {
            after for (before, _), after in TRANSITIONS.items() if before in reached
        }
    assert reached == {"ALONE", "JOINING", "MEMBER", "KEEPER", "REJECTED"}


def rejected(network: Network, name: str) -> list[str]:
    return [each.why for each in network.events[name] if isinstance(each, Rejected)]


def joining(network: Network, name: str, **options: object) -> Session:
    session = network.add(name)
    session.join("a", id=options.get("id"), now=network.now)  # type: ignore[arg-type]
    network.run(4.0)
    return session


def test_ids_are_the_smallest_that_are_free_unless_one_is_wanted() -> None:
    network = Network()
    network.add("a").keep(world_size=None)
    assert joining(network, "b").node.id == 1
    assert joining(network, "c", id=5).node.id == 5
    assert joining(network, "d").node.id == 2
    # One who left makes room.
    network.sessions["b"].leave(network.now)
    network.run(1.0)
    assert joining(network, "e").node.id == 1
    names = [each.name for each in network.sessions["a"].members()]
    assert names == ["a", "e", "d", "c"]


def test_a_keeper_may_have_any_number() -> None:
    network = Network()
    session = network.add("a")
    session.keep(world_size=2, id=1)
    assert session.node == WorkerNode("a", 1, 1)
    assert joining(network, "b").node.id == 0


@pytest.mark.parametrize(
    ("name", "number", "why"),
    [
        ("x", 1, "RPC worker id 1 is not unique: worker b has it"),
        ("x", 0, "RPC worker id 0 is not unique: worker a has it"),
        ("x", 32768, "worker id 32768 is above 32767"),
        ("not a name", None, "invalid worker name `not a name`"),
        ("", None, "invalid worker name ``"),
    ],
)
def test_who_cannot_be_a_member_is_told_why(
    name: str, number: int | None, why: str
) -> None:
    network = Network()
    network.group("a", "b")
    session = joining(network, name, id=number)
    assert rejected(network, name) == [why]
    assert session.next_time() is None
    assert len(network.sessions["a"].members()) == 2


def same_name(network: Network, endpoint: str) -> Session:
    """Another worker called "b", somewhere else."""
    session = Session(
        "b", incarnation=99, endpoint=endpoint, now=network.now, settings=TIMES
    )
    network.sessions[endpoint] = session
    network.events[endpoint] = []
    session.join("a", id=None, now=network.now)
    return session


def test_a_name_is_not_given_twice() -> None:
    network = Network()
    network.group("a", "b")
    same_name(network, "elsewhere")
    network.run(4.0)
    why = "RPC worker name b is not unique: worker 1 has it"
    assert rejected(network, "elsewhere") == [why]
    assert network.told("a", Lost) == []


def test_a_name_whose_worker_is_gone_is_given_again() -> None:
    network = Network()
    network.group("a", "b")
    gone = network.node("b")
    network.run(1.0)
    network.kill("b")
    session = same_name(network, "elsewhere")
    network.run(4.0)
    assert session.node == WorkerNode("b", 1, 99)
    # Nothing is kept of the dispute.
    state = network.sessions["a"]._members.state(network.now)
    assert state == (*state[:-1], ())  # type: ignore[index]  # it is a tuple
    assert network.told("a", Lost) == [Lost(gone, Reason.LOST)]


def test_a_name_that_two_want_is_told_to_all_who_wait_for_a_whole_group() -> None:
    network = Network()
    network.add("a").keep(world_size=3)
    joining(network, "b")
    same_name(network, "elsewhere")
    network.run(4.0)
    why = "RPC worker name b is not unique: worker 1 has it"
    assert [rejected(network, name) for name in ("a", "b", "elsewhere")] == [[why]] * 3
    # The keeper ends; who was told does not ask it again.
    network.sessions["a"].leave(network.now)
    network.kill("a")
    network.run(4.0)
    assert rejected(network, "b") == [why]


def test_a_rejection_that_comes_twice_is_one() -> None:
    network = Network()
    network.add("a").keep(world_size=3)
    joining(network, "b")
    network.run(1.0)
    same_name(network, "elsewhere")
    network.run(4.0)
    members = network.sessions["b"]._members
    (why,) = rejected(network, "b")
    before = members.status, members.due()
    members.note(network.node("a").incarnation, Rejection(why), network.now)
    assert before == (members.status, members.due()) == ("REJECTED", float("inf"))
    assert rejected(network, "b") == [why]


def test_who_asks_after_a_name_that_two_want_is_told_too() -> None:
    network = Network()
    keeper = network.add("a")
    keeper.keep(world_size=4)
    joining(network, "b")
    assert keeper.uninformed() == 0
    same_name(network, "elsewhere")
    network.run(4.0)
    assert keeper.uninformed() == 1
    joining(network, "c")
    network.run(4.0)
    why = "RPC worker name b is not unique: worker 1 has it"
    assert rejected(network, "c") == [why]
    assert keeper.uninformed() == 0
    assert [node.name for node in keeper.members()] == ["a", "b"]


def test_a_name_that_is_wanted_later_does_not_concern_a_whole_group() -> None:
    network = Network()
    network.group("a", "b", world_size=2)
    same_name(network, "elsewhere")
    network.run(4.0)
    assert [len(rejected(network, each)) for each in ("a", "b", "elsewhere")] == [
        *(0, 0, 1)
    ]


def test_a_member_that_is_named_again_goes_on() -> None:
    network = Network()
    network.serve = lambda name, called: None
    network.group("a", "b", "c")
    session = network.sessions["c"]
    network.call("c", "b", b"asked", timeout=None)
    network.run(1.0)
    again = Member(network.node("b"), "another endpoint")
    session._members.receive(network.node("a"), MemberJoined(again), network.now)
    session._drain(network.now)
    network.run(0.1)
    assert network.told("c", Failed, Lost) == []


def test_a_full_group_takes_nobody() -> None:
    network = Network()
    network.group("a", "b", world_size=2)
    joining(network, "c")
    assert rejected(network, "c") == ["the group has all of its 2 workers"]
    network = Network()
    network.add("a").keep(world_size=2)
    joining(network, "b", id=2)
    assert rejected(network, "b") == ["worker id 2 is not below the group's size, 2"]


def test_a_group_is_complete_also_for_who_never_sees_all_at_one_time() -> None:
    network = Network()
    network.add("a").keep(world_size=3)
    joining(network, "b")
    network.hook = lambda source, target, packet: () if target == "c" else (DELAY,)
    joining(network, "c")
    sessions = [network.sessions[name] for name in "abc"]
    assert [len(network.told(name, Completed)) for name in "abc"] == [1, 1, 0]
    sessions[1].leave(network.now)
    network.run(1.0)
    del network.sessions["b"]
    network.hook = lambda source, target, packet: (DELAY,)
    network.until(lambda: bool(network.told("c", Completed)))
    network.run(1.0)
    assert network.told("c", Admitted, Completed)[-1:] == [Completed()]
    assert [each.name for each in sessions[2].members()] == ["a", "c"]


def test_a_keeper_names_all_members_to_all() -> None:
    """Before it has, a member that waits for the others depends on it."""
    network = Network()
    network.add("a").keep(world_size=3)
    joining(network, "b")
    network.hook = lambda source, target, packet: () if target == "b" else (DELAY,)
    joining(network, "c")
    keeper = network.sessions["a"]
    assert keeper.is_announcing()
    assert network.told("b", Completed) == []
    network.hook = lambda source, target, packet: (DELAY,)
    network.until(lambda: not keeper.is_announcing())
    # All of them are known before.
    assert network.told("b", Joined, Completed)[-2:] == [
        Joined(network.node("c")),
        Completed(),
    ]
    keeper.leave(network.now)
    assert not keeper.is_announcing()


def test_who_joins_asks_until_it_is_answered() -> None:
    network = Network()
    lost = {"b": 3, "a": 2}

    def hook(source: str, target: str, packet: Packet) -> tuple[float, ...]:
        lost[source] -= 1
        return () if lost[source] >= 0 else (DELAY,)

    network.hook = hook
    network.add("a").keep(world_size=None)
    network.add("b").join("a", id=None, now=network.now)
    network.until(lambda: network.node("b").id == 1)
    assert network.told("a", Joined) == [Joined(network.node("b"))]
    network.run(2.0)
    assert network.told("b", Admitted) == [Admitted(network.node("b"))]


def test_all_hear_of_who_leaves() -> None:
    network = Network()
    sessions = network.group("a", "b", "c")
    gone = network.node("c")
    sessions[2].leave(network.now)
    network.run(1.0)
    for name in "ab":
        assert network.told(name, Lost) == [Lost(gone, Reason.LEFT)]
    call = sessions[0].call(gone, [b"x"], deadline=None, now=network.now)
    network.run(0.1)
    assert network.told("a", Failed) == [Failed(call, Reason.LEFT)]


def test_all_hear_of_who_is_killed() -> None:
    network = Network()
    network.group("a", "b", "c")
    gone = network.node("c")
    network.kill("c")
    network.run(3.0)
    for name in "ab":
        assert network.told(name, Lost) == [Lost(gone, Reason.LOST)]


def test_calls_end_at_once_where_nobody_listens_any_more() -> None:
    """The silence that releases what the worker held is still waited for."""
    network = Network()
    network.group("a", "b", "c")
    gone = network.node("c")
    calls = [network.call("b", each, b"slow", timeout=None) for each in "ac"]
    network.serve = lambda name, called: None
    network.run(0.1)
    network.kill("c")
    network.sessions["b"].unreachable("c", network.now)
    network.run(0.01)
    assert network.told("b", Failed) == [Failed(calls[1], Reason.LOST)]
    assert network.told("b", Lost) == []
    network.run(3.0)
    assert network.told("b", Lost) == [Lost(gone, Reason.LOST)]


def test_all_hear_of_who_is_started_anew() -> None:
    network = Network()
    network.group("a", "b", "c")
    old = network.node("c")
    calls = [network.call(each, "c", b"slow", timeout=None) for each in "ab"]
    network.kill("c")
    joining(network, "c")
    new = network.node("c")
    assert (new.id, new.incarnation > old.incarnation) == (2, True)
    for name, call in zip("ab", calls, strict=True):
        assert network.told(name, Lost) == [Lost(old, Reason.RESTARTED)]
        assert network.told(name, Failed) == [Failed(call, Reason.RESTARTED)]
        assert network.sessions[name].members()[2] == new
    network.call("b", "c", b"hello")
    network.run(1.0)
    assert len(network.told("c", Joined)) == 2


def test_two_who_lose_each_other_stay_members_and_find_each_other_again() -> None:
    network = Network()
    network.group("a", "b", "c")
    network.call("b", "c", b"x")
    network.run(0.5)
    cut = True

    def hook(source: str, target: str, packet: Packet) -> tuple[float, ...]:
        return () if cut and "a" not in (source, target) else (DELAY,)

    network.hook = hook
    lost = network.call("b", "c", b"x", timeout=None)
    network.run(4.0)
    assert network.told("b", Failed) == [Failed(lost, Reason.LOST)]
    assert network.told("b", Lost) == network.told("c", Lost) == []
    again = network.call("b", "c", b"x", timeout=None)
    cut = False
    network.run(2.0)
    answered = network.told("b", Answered)[-1]
    assert isinstance(answered, Answered)
    assert answered.call == again
    network.call("c", "b", b"x")
    network.run(0.1)
    assert len(network.told("c", Answered)) == 1


def test_who_was_frozen_joins_again_in_the_same_life() -> None:
    network = Network()
    network.group("a", "b", "c")
    node = network.node("b")
    network.frozen.add("b")
    network.run(5.0)
    assert network.told("a", Lost) == [Lost(node, Reason.LOST)]
    assert network.told("c", Lost) == [Lost(node, Reason.LOST)]
    network.frozen.clear()
    network.run(5.0)
    everybody = (network.node("a"), node, network.node("c"))
    for name in "abc":
        assert network.sessions[name].members() == everybody
    number = network.call("c", "b", b"again")
    network.run(1.0)
    assert [each.call for each in network.told("c", *ENDS)] == [number]  # type: ignore[union-attr]


def test_who_was_told_that_it_is_a_member_finds_that_it_is_none() -> None:
    """Of the keeper only the answer comes that it is one, before it is lost."""
    network = Network()
    network.group("a", "b", "c")
    network.run(0.5)
    cut = True

    def hook(source: str, target: str, packet: Packet) -> tuple[float, ...]:
        found = parse(packet.frames)
        assert isinstance(found, Head)
        passes = found.kind in (PacketKind.JOIN, PacketKind.ADMITTED)
        return () if cut and {source, target} == {"a", "b"} and not passes else (DELAY,)

    network.hook = hook
    network.sessions["b"].unreachable("a", network.now)
    network.run(4.0)
    assert network.told("a", Lost) == [Lost(network.node("b"), Reason.LOST)]
    cut = False
    network.run(10.0)
    names = [each.name for each in network.sessions["a"].members()]
    assert names == ["a", "b", "c"]
    call = network.call("a", "b", b"x")
    network.run(1.0)
    assert [each.call for each in network.told("a", *ENDS)] == [call]  # type: ignore[union-attr]


def test_who_is_admitted_and_never_heard_of_is_lost() -> None:
    network = Network()
    network.add("a").keep(world_size=None)

    def hook(source: str, target: str, packet: Packet) -> tuple[float, ...]:
        found = parse(packet.frames)
        assert isinstance(found, Head)
        return (DELAY,) if found.kind in (PacketKind.JOIN, PacketKind.ADMITTED) else ()

    network.hook = hook
    joining(network, "b")
    node = network.node("b")
    assert network.told("a", Joined, Lost) == [Joined(node)]
    network.run(network.settings.connect)
    assert network.told("a", Joined, Lost)[:2] == [
        Joined(node),
        Lost(node, Reason.LOST),
    ]


def test_members_have_endpoints() -> None:
    network = Network()
    (session, _) = network.group("a", "b")
    nodes = [network.node("b"), network.node("a"), WorkerNode("x", 7, 7)]
    assert [session.endpoint_of(node) for node in nodes] == ["b", "a", ""]


def test_without_a_keeper_the_others_go_on_and_nobody_joins() -> None:
    network = Network()
    network.group("a", "b", "c", "d")
    network.kill("a")
    network.run(3.0)
    network.call("b", "c", b"x")
    network.run(1.0)
    assert len(network.told("b", *ENDS)) == 1
    session = joining(network, "e")
    assert session.node.id == -1
    gone = network.node("d")
    network.call("b", "d", b"x")
    network.run(1.0)
    network.kill("d")
    network.run(3.0)
    assert network.told("b", Lost)[-1] == Lost(gone, Reason.LOST)


def test_another_group_at_the_same_place_is_not_joined_by_the_old_one() -> None:
    network = Network()
    network.group("a", "b", "c")
    network.kill("a")
    network.add("a").keep(world_size=None)
    network.run(10.0)
    assert [each.name for each in network.sessions["a"].members()] == ["a"]
    assert [each.name for each in network.sessions["b"].members()] == ["b", "c"]
    assert network.sessions["a"].garbage().keys() == {"TARGET"}


ENDS = (Answered, Failed)


# The machine by itself.

ME = WorkerNode("b", -1, 2)
KEEPER = Member(WorkerNode("a", 0, 1), "a")
SELF = Member(WorkerNode("b", 1, 2), "b")
OTHER = Member(WorkerNode("c", 2, 3), "c")


def member() -> MembershipMachine:
    """One who was admitted beside the keeper."""
    members = MembershipMachine(ME, "b", "", lambda node: 0.0)
    members.join("a", None, 0.0)
    members.note(1, Admission(SELF.node, (KEEPER, SELF)), 0.0)
    members.events.clear()
    members.changes.clear()
    return members


def test_only_the_keeper_tells_of_members() -> None:
    members = member()
    members.receive(OTHER.node, MemberJoined(OTHER), 0.0)
    members.receive(OTHER.node, MemberLeft(KEEPER.node, Reason.LEFT), 0.0)
    assert (members.events, members.changes) == ([], [])
    members.receive(KEEPER.node, MemberJoined(OTHER), 0.0)
    members.receive(KEEPER.node, MemberJoined(OTHER), 0.0)
    assert (members.events, members.changes) == ([Joined(OTHER.node)], [OTHER])
    members.receive(KEEPER.node, MemberLeft(OTHER.node, Reason.LOST), 0.0)
    assert members.changes[1:] == [(OTHER.node, Reason.LOST)]
    # Whoever is lost finds that out by itself.
    members.receive(KEEPER.node, MemberLeft(SELF.node, Reason.LOST), 0.0)
    assert members.changes[2:] == []
    assert members.members() == (KEEPER.node, SELF.node)


@pytest.mark.parametrize(
    ("source", "note"),
    [
        (3, Admission(SELF.node, (KEEPER, SELF))),
        (1, Admission(SELF.node, ())),
        (1, Admission(SELF.node._replace(incarnation=9), (KEEPER, SELF))),
        (1, Admission(SELF.node._replace(name="x"), (KEEPER, SELF))),
    ],
)
def test_notes_about_others_change_nothing(source: int, note: Admission) -> None:
    members = MembershipMachine(ME, "b", "", lambda node: 0.0)
    members.join("a", None, 0.0)
    members.note(source, note, 0.0)
    assert (members.status, members.node) == ("JOINING", ME)


def test_notes_that_come_late_change_nothing() -> None:
    members = member()
    before = members.state(0.0)
    members.note(1, Rejection("late"), 0.0)
    members.note(1, Admission(SELF.node, (KEEPER, SELF, OTHER)), 0.0)
    members.note(7, Join("x", "x"), 0.0)
    assert members.state(0.0) == before
    assert (members.events, members.notes[1:]) == ([], [])


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ((), ""),
        ((("dead", 2.0), ("unheard of", 1.0)), ""),
        ((("dead", 3.0),), "it has dead = 3, and the group has 2"),
        ((("world_size", 3.0),), "it has world_size = 3, and the group has 2"),
        (
            (("dead", 0.5), ("frames", 9.0)),
            "it has dead = 0.5, and the group has 2; "
            "it has frames = 9, and the group has 8",
        ),
    ],
)
def test_who_has_other_figures_than_the_group_is_rejected(
    said: tuple[tuple[str, float], ...], why: str
) -> None:
    shared = (("dead", 2.0), ("frames", 8.0))
    keeper = MembershipMachine(KEEPER.node, "a", "", lambda node: 0.0, shared)
    keeper.keep(2, 0)
    keeper.note(5, Join("b", "b", shared=said), 0.0)
    (letter,) = keeper.notes
    if why:
        assert letter.note == Rejection(why)
        assert len(keeper.members()) == 1
    else:
        assert letter.kind == PacketKind.ADMITTED


def test_an_open_group_has_no_size() -> None:
    keeper = MembershipMachine(KEEPER.node, "a", "", lambda node: 0.0)
    keeper.keep(None, 0)
    joins = MembershipMachine(ME, "b", "", lambda node: 0.0)
    joins.join("a", None, 0.0, 3)
    asked = joins.notes.pop().note
    assert isinstance(asked, Join)
    keeper.note(5, asked, 0.0)
    why = "it has world_size = 3, and the group has none"
    assert keeper.notes.pop().note == Rejection(why)


def test_who_was_a_member_stays_one_if_another_group_rejects_it() -> None:
    members = member()
    members.lost(KEEPER.node, Reason.LOST, 0.0)
    assert members.due() == 1.0
    members.events.clear()
    members.note(9, Rejection("another group's"), 2.0)
    assert (members.status, members.due(), members.events) == (
        "MEMBER",
        float("inf"),
        [],
    )


def test_who_is_rejected_by_its_own_keeper_is_told() -> None:
    members = member()
    members.lost(KEEPER.node, Reason.LOST, 0.0)
    members.note(1, Rejection("not unique"), 2.0)
    assert members.events[-1] == Rejected("not unique")
    assert (members.status, members.due()) == ("REJECTED", float("inf"))


def test_who_was_a_member_asks_for_the_number_that_it_had() -> None:
    members = member()
    members.lost(KEEPER.node, Reason.LOST, 0.0)
    members.note(1, Rejection("not unique"), 2.0)
    members.join("a", None, 3.0)
    assert members.notes[-1].note == Join("b", "b", "", SELF.node.id)


def test_who_asks_twice_is_admitted_once_and_told_twice() -> None:
    keeper = MembershipMachine(WorkerNode("a", -1, 1), "a", "", lambda node: 0.0)
    keeper.keep(None, 0)
    for _ in range(2):
        keeper.note(2, Join("b", "b"), 0.0)
    assert keeper.events[1:] == [Joined(SELF.node)]
    assert [letter.kind for letter in keeper.notes] == [PacketKind.ADMITTED] * 2
    assert keeper.notes[0] == keeper.notes[1]
    # Another endpoint in the same life is not answered.
    keeper.note(2, Join("b", "elsewhere"), 0.0)
    assert len(keeper.notes) == 2


def test_who_joins_hears_of_all_and_all_hear_of_it() -> None:
    """The answer may be that to an earlier request, when fewer were there."""
    keeper = MembershipMachine(WorkerNode("a", -1, 1), "a", "", lambda node: 0.0)
    keeper.keep(None, 0)
    keeper.note(2, Join("b", "b"), 0.0)
    keeper.out.clear()
    keeper.note(3, Join("c", "c"), 0.0)
    assert keeper.out == [
        (SELF.node, MemberJoined(OTHER)),
        (OTHER.node, MemberJoined(SELF)),
    ]


def test_the_endpoint_of_another_s_key_does_not_take_its_place() -> None:
    keeper = MembershipMachine(
        WorkerNode("a", -1, 1), "a", "", lambda node: float("inf")
    )
    keeper.keep(None, 0)
    keeper.note(2, Join("b", "b", "its key"), 0.0)
    keeper.note(5, Join("b", "b", "another key"), 0.0)
    assert keeper.events[2:] == []
    assert [each.kind for each in keeper.notes] == [
        PacketKind.ADMITTED,
        PacketKind.REJECTED,
    ]


def test_who_listens_there_with_the_same_key_is_the_next_life() -> None:
    keeper = MembershipMachine(
        WorkerNode("a", -1, 1), "a", "", lambda node: float("inf")
    )
    keeper.keep(None, 0)
    keeper.note(2, Join("b", "b", "its key"), 0.0)
    keeper.note(5, Join("b", "b", "its key"), 0.0)
    assert keeper.events[2:] == [
        Lost(SELF.node, Reason.RESTARTED),
        Joined(WorkerNode("b", 1, 5)),
    ]


def test_who_shares_a_key_does_not_take_the_place_of_who_is_there() -> None:
    proven = 0.0
    keeper = MembershipMachine(WorkerNode("a", -1, 1), "a", "", lambda node: proven)
    keeper.keep(None, 0)
    keeper.note(2, Join("b", "b", "a key"), 0.0)
    # Started anew elsewhere, or another one: that is seen by whether the first lives.
    keeper.note(5, Join("b", "elsewhere", "a key"), 1.0)
    assert keeper.events[2:] == []
    assert [each.kind for each in keeper.notes] == [PacketKind.ADMITTED]
    proven = 2.0
    keeper.note(5, Join("b", "elsewhere", "a key"), 2.0)
    assert keeper.events[2:] == []
    assert [each.kind for each in keeper.notes] == [
        PacketKind.ADMITTED,
        PacketKind.REJECTED,
    ]
    keeper.lost(WorkerNode("b", 1, 2), Reason.LOST, 3.0)
    keeper.note(5, Join("b", "elsewhere", "a key"), 3.0)
    assert keeper.events[2:] == [
        Lost(WorkerNode("b", 1, 2), Reason.LOST),
        Joined(WorkerNode("b", 1, 5)),
    ]


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_key_that_is_shared_gives_nobody_the_name_of_another(name: str) -> None:
    keeper = MembershipMachine(
        WorkerNode("a", -1, 1), "a", "our key", lambda node: float("inf")
    )
    keeper.keep(None, 0)
    keeper.note(2, Join("b", "b", "our key"), 0.0)
    keeper.note(5, Join(name, "elsewhere", "our key"), 0.0)
    assert keeper.events[2:] == []
    assert [each.kind for each in keeper.notes] == [
        PacketKind.ADMITTED,
        PacketKind.REJECTED,
    ]
