"""Sessions: who joins is a member, who calls is answered, who is done is waited for."""

from everyorder.runtime.rpc.protocol.events import (
    Admitted,
    Answered,
    Called,
    Cancelled,
    Confirmed,
    Died,
    Event,
    Failed,
    Finished,
    Freed,
    Joined,
    Lost,
    Reason,
)
from everyorder.runtime.rpc.protocol.identities import WorkerNode
from everyorder.runtime.rpc.protocol.packets import Packet, message_name
from tests.rpc.protocol.network import DELAY, Network


def text(event: Event) -> str:
    """The payload of an event."""
    assert isinstance(event, Called | Answered)
    return b"|".join(map(bytes, event.payload)).decode()


def answers(network: Network, name: str) -> list[tuple[int, str]]:
    return [
        (each.call, text(each))
        for each in network.told(name, Answered)
        if isinstance(each, Answered)
    ]


def failures(network: Network, name: str) -> list[tuple[int, Reason]]:
    return [
        (each.call, each.reason)
        for each in network.events[name]
        if isinstance(each, Failed)
    ]


def test_a_group_knows_its_members() -> None:
    network = Network()
    first, second, third = network.group("a", "b", "c")
    nodes = (WorkerNode("a", 0, 1), WorkerNode("b", 1, 2), WorkerNode("c", 2, 3))
    assert first.members() == second.members() == third.members() == nodes
    assert network.events["a"] == [
        Admitted(nodes[0]),
        Joined(nodes[1]),
        Joined(nodes[2]),
    ]
    assert network.events["c"] == [
        Admitted(nodes[2]),
        Joined(nodes[0]),
        Joined(nodes[1]),
    ]


def test_calls_are_answered_between_all() -> None:
    network = Network()
    network.group("a", "b", "c")
    calls = {
        (source, target): network.call(source, target, f"{source}{target}".encode())
        for source in "abc"
        for target in "abc"
    }
    network.run(1)
    for name in "abc":
        assert sorted(answers(network, name)) == sorted(
            (call, f"echo {source}{target}")
            for (source, target), call in calls.items()
            if source == name
        )
        assert network.sessions[name].garbage() == {}


def test_a_deadline_that_passes_is_told_to_both() -> None:
    network = Network()
    network.group("a", "b")
    network.serve = lambda name, called: None
    call = network.call("a", "b", b"slow", timeout=1.0)
    network.run(0.9)
    (called,) = network.told("b", Called)
    assert isinstance(called, Called)
    assert failures(network, "a") == []
    network.run(0.2)
    assert failures(network, "a") == [(call, Reason.DEADLINE)]
    assert network.told("b", Cancelled) == [Cancelled(network.node("a"), call)]
    network.sessions["b"].reply(called.peer, called.call, [b"late"], now=network.now)
    network.run(1)
    assert answers(network, "a") == []
    assert network.sessions["b"].counts()["called"] == 0


def test_remote_makes_a_value_that_is_fetched_and_freed() -> None:
    network = Network()
    user, _ = network.group("a", "b")
    rref = user.new_id()
    call = network.call("a", "b", b"make", creates=rref)
    fork = user.fork_of(call)
    assert (fork.rref, fork.owner) == (rref, network.node("b"))
    network.run(1)
    (called,) = network.told("b", Called)
    assert isinstance(called, Called)
    assert called.creates == rref
    assert network.told("a", Confirmed, Answered, Died)[0] == Confirmed(fork)
    assert network.told("b", Freed) == []
    user.drop(fork.fork, network.now)
    network.run(1)
    assert network.told("b", Freed) == [Freed(rref)]


def test_all_that_follows_is_there_at_once() -> None:
    network = Network()
    user, owner = network.group("a", "b")
    network.serve = lambda name, called: None
    given_up, cut_off = (network.call("a", "b", b"x", timeout=None) for _ in range(2))
    network.run(0.1)
    user.cancel(given_up, network.now)
    assert user.take_events() == [Failed(given_up, Reason.CANCELLED)]
    names = [message_name(packet.frames) for packet in user.take_packets()]
    assert names == ["Cancel"]
    owned = owner.new_id()
    owner.own(owned)
    network.serve = lambda name, called: [b"y"]
    owner.call(user.node, [], carries=[owned], deadline=None, now=network.now)
    network.run(0.1)
    (called,) = network.told("a", Called)
    assert isinstance(called, Called)
    user.drop(called.carries[0].fork, network.now)
    names = [message_name(packet.frames) for packet in user.take_packets()]
    assert names == ["Delete"]
    user.unreachable("b", network.now)
    assert user.take_events() == [
        Failed(cut_off, Reason.LOST),
        Lost(network.node("b"), Reason.LOST),
    ]
    rref = owner.new_id()
    owner.own(rref)
    owner.disown(rref, network.now)
    assert owner.take_events() == [Freed(rref)]


def test_what_is_due_happens_before_what_is_asked_for() -> None:
    network = Network()
    user, _ = network.group("a", "b")
    call = network.call("a", "b", b"x", timeout=1.0)
    user.cancel(call, network.now + 1.0)
    assert user.take_events() == [Failed(call, Reason.DEADLINE)]


def test_who_is_lost_ends_its_own_calls_alone() -> None:
    network = Network()
    callee, _, _ = network.group("a", "b", "c")
    network.serve = lambda name, called: None
    calls = {name: network.call(name, "a", b"x", timeout=None) for name in "bc"}
    network.run(0.1)
    callee.unreachable("b", network.now)
    cancelled = [each for each in callee.take_events() if isinstance(each, Cancelled)]
    assert cancelled == [Cancelled(network.node("b"), calls["b"])]


def test_what_a_lost_member_holds_is_kept_until_it_has_given_up_for_certain() -> None:
    """Others are heard meanwhile: that changes nothing."""
    network = Network()
    owner, _, _ = network.group("a", "b", "c")
    rref, node = owner.new_id(), network.node("b")
    owner.own(rref)
    owner.call(node, [b"x"], carries=[rref], deadline=None, now=network.now)
    network.run(0.1)
    owner.disown(rref, network.now)
    heard = owner._channels[node.incarnation].lease.heard
    network.kill("b")
    network.until(lambda: network.told("a", Lost) != [])
    assert network.now < heard + network.settings.expire
    assert network.told("a", Freed) == []
    network.until(lambda: network.told("a", Freed) == [Freed(rref)])
    assert network.now == heard + network.settings.expire


def test_what_a_member_holds_that_leaves_is_released_at_once() -> None:
    network = Network()
    owner, user = network.group("a", "b")
    rref = owner.new_id()
    owner.own(rref)
    call = owner.call(user.node, [b"x"], carries=[rref], deadline=None, now=network.now)
    network.run(0.1)
    owner.disown(rref, network.now)
    assert [number for number, _ in answers(network, "a")] == [call]
    user.leave(network.now)
    network.run(0.1)
    assert network.told("a", Freed) == [Freed(rref)]


def test_all_finish_together_and_those_who_do_not_are_named() -> None:
    network = Network()
    sessions = network.group("a", "b", "c")
    for session in (sessions[0], sessions[2]):
        session.finish(network.now)
    network.run(1)
    assert sessions[0].unfinished() == sessions[2].unfinished() == ("b",)
    assert network.told("a", Finished) == network.told("c", Finished) == []
    sessions[1].finish(network.now)
    network.run(1)
    for name, session in network.sessions.items():
        assert network.told(name, Finished) == [Finished()]
        assert session.unfinished() == ()


def test_without_a_keeper_whom_the_asker_lost_is_lost_to_those_whom_it_tells() -> None:
    """Else one would be told that all are done while a member that it knows works."""
    network = Network()
    _, b, c, d = network.group("a", "b", "c", "d")
    network.kill("a")
    network.until(lambda: len(b.members()) == len(d.members()) == 3)
    between = {"b", "c"}
    network.hook = lambda source, target, packet: (
        () if {source, target} == between else (DELAY,)
    )
    b.finish(network.now)
    d.finish(network.now)
    network.until(lambda: network.told("d", Finished) != [])
    lost = Lost(c.node, Reason.LOST)
    assert lost in network.told("b", Lost)
    assert network.told("d", Lost, Finished)[-2:] == [lost, Finished()]
    c.finish(network.now)
    network.until(lambda: network.told("c", Finished) != [])


def test_twenty_four_workers_call_each_other_and_finish() -> None:
    network = Network()
    names = [f"w{number}" for number in range(24)]
    sessions = network.group(*names, world_size=24)
    for source in names:
        for target in names:
            network.call(source, target, source.encode())
    network.run(1.0)
    for source in names:
        assert [told for _, told in answers(network, source)] == [f"echo {source}"] * 24
    for session in sessions:
        session.finish(network.now)
    network.until(lambda: all(network.told(name, Finished) for name in names))
    assert all(session.garbage() == {} for session in sessions)


def play() -> tuple[object, ...]:
    """A run, as everything that was sent and told."""
    network = Network()
    sent: list[object] = []

    def hook(source: str, target: str, packet: Packet) -> tuple[float, ...]:
        sent.append((source, target, [bytes(each) for each in packet.frames]))
        return (DELAY,)

    network.hook = hook
    sessions = network.group("a", "b", "c")
    for source in "abc":
        for target in "abc":
            rref = network.sessions[source].new_id()
            network.call(source, target, b"x", creates=rref)
    network.run(2.0)
    states = [session.state() for session in sessions]
    told = [[type(event) for event in network.events[name]] for name in "abc"]
    return sent, states, told


def test_the_same_calls_give_the_same_packets_events_and_states() -> None:
    assert play() == play()
