"""Finishing: all at once, when nothing is in flight, and never before."""

from random import Random

import pytest

from runtime.rpc.identities import Node
from runtime.rpc.messages import Finish, Idle, Survey, Waiting
from runtime.rpc.session.events import Answered, Called, Event, Finished
from runtime.rpc.session.finishing import TRANSITIONS, Finishing
from runtime.rpc.session.packets import Packet
from tests.rpc.session.network import DELAY, Network

A, B, C = Node("a", 0, 1), Node("b", 1, 2), Node("c", 2, 3)
ALL = (A, B, C)


def test_states_are_reached_from_the_first_one() -> None:
    reached = {"RUNNING"}
    for _ in TRANSITIONS:
        reached |= {to for (state, _), to in TRANSITIONS.items() if state in reached}
    assert reached == {"RUNNING", "DONE", "FINISHING", "FINISHED"}


def test_one_worker_finishes_by_itself() -> None:
    network = Network()
    network.add("a").keep(world_size=None)
    session = network.sessions["a"]
    assert session.unfinished() == ("a",)
    session.finish(network.now)
    assert session.take_events()[-1] == Finished()
    session.finish(network.now)
    assert session.take_events() == []
    assert session.unfinished() == ()


def idle(finishing: Finishing, me: Node, counts: tuple[int, int] = (0, 0)) -> None:
    finishing.look(me, ALL, counts, busy=False, unacknowledged=False)


def report(finishing: Finishing, node: Node, idle: Idle) -> None:
    finishing.receive_with(node, idle, (0, 0), False)


def asking(*reports: tuple[Node, Idle]) -> Finishing:
    """The one who asks, done itself, and what the others reported."""
    finishing = Finishing()
    finishing.done()
    for node, said in reports:
        report(finishing, node, said)
    idle(finishing, A)
    return finishing


def surveys(finishing: Finishing) -> list[tuple[Node, int]]:
    return [
        (node, each.wave) for node, each in finishing.out if isinstance(each, Survey)
    ]


def waits(*names: str) -> Waiting:
    """What those who are counted are told."""
    return Waiting(names, tuple(each.incarnation for each in ALL))


def test_all_are_asked_once_more_when_the_sums_are_equal() -> None:
    finishing = asking((B, Idle(0, 3, 1)), (C, Idle(0, 1, 2)))
    assert surveys(finishing) == []
    report(finishing, C, Idle(0, 1, 3))
    idle(finishing, A)
    assert surveys(finishing) == [(B, 1), (C, 1)]
    report(finishing, B, Idle(1, 3, 1))
    idle(finishing, A)
    assert finishing.status == "DONE"
    report(finishing, C, Idle(1, 1, 3))
    idle(finishing, A)
    assert finishing.status == "FINISHING"
    assert [each for _, each in finishing.out][-2:] == [Finish(), Finish()]
    finishing.look(A, ALL, (0, 0), busy=False, unacknowledged=True)
    assert finishing.events == []
    idle(finishing, A)
    assert (finishing.status, finishing.events) == ("FINISHED", [Finished()])


@pytest.mark.parametrize(
    "second",
    [Idle(1, 2, 3), Idle(1, 1, 3, busy=True), Idle(0, 1, 3)],
    ids=["sent since", "busy since", "reported since"],
)
def test_nothing_ends_where_something_happened_since(second: Idle) -> None:
    finishing = asking((B, Idle(0, 3, 1)), (C, Idle(0, 1, 3)))
    assert surveys(finishing) == [(B, 1), (C, 1)]
    report(finishing, B, Idle(1, 3, 1))
    report(finishing, C, second)
    idle(finishing, A)
    assert finishing.status == "DONE"


def test_who_is_done_hears_who_is_not() -> None:
    finishing = asking((B, Idle(0, 0, 0)))
    waiting = waits("c")
    assert finishing.out == [(B, waiting), (C, waiting)]
    assert finishing.unfinished(A, ALL) == ("c",)
    member = Finishing()
    member.done()
    assert member.unfinished(B, ALL) == ("a",)
    member.receive_with(A, waiting, (0, 0), False)
    assert member.unfinished(B, ALL) == ("c",)


def test_who_is_done_reports_when_it_is_idle_and_what_changed() -> None:
    member = Finishing()
    member.look(B, ALL, (0, 0), busy=False, unacknowledged=False)
    assert member.out == []
    member.done()
    member.look(B, ALL, (1, 0), busy=True, unacknowledged=False)
    assert member.out == []
    for counts in ((1, 1), (1, 1), (2, 1)):
        member.look(B, ALL, counts, busy=False, unacknowledged=False)
    member.look(B, ALL, (2, 1), busy=True, unacknowledged=False)
    assert member.out == [
        (A, Idle(0, 1, 1)),
        (A, Idle(0, 2, 1)),
        (A, Idle(0, 2, 1, busy=True)),
    ]
    # The one who asks is lost: the next one is told.
    member.lost(A)
    member.look(B, (B, C), (2, 1), busy=False, unacknowledged=False)
    member.out.clear()
    other = Finishing()
    other.done()
    other.look(C, ALL, (0, 0), busy=False, unacknowledged=False)
    other.lost(A)
    other.look(C, (B, C), (0, 0), busy=False, unacknowledged=False)
    assert other.out == [(A, Idle(0, 0, 0)), (B, Idle(0, 0, 0))]


def test_who_asks_is_told_again_after_it_was_lost() -> None:
    """It may be there again, in a session that knows nothing of reports."""
    member = Finishing()
    member.done()
    for _ in range(2):
        member.look(B, ALL, (0, 0), busy=False, unacknowledged=False)
    member.lost(A)
    member.look(B, ALL, (0, 0), busy=False, unacknowledged=False)
    assert member.out == [(A, Idle(0, 0, 0)), (A, Idle(0, 0, 0))]


def test_who_asks_looks_again_when_it_has_lost_somebody() -> None:
    """Also before it is done itself: those who are waited for are told."""
    finishing = Finishing()
    report(finishing, B, Idle(0, 0, 0))
    report(finishing, C, Idle(0, 0, 0))
    idle(finishing, A)
    assert finishing.out == [(B, waits("a")), (C, waits("a"))]
    finishing.out.clear()
    assert not finishing.due(A)
    finishing.lost(C)
    assert finishing.due(A)
    idle(finishing, A)
    assert finishing.out == [(B, waits("a", "c")), (C, waits("a", "c"))]


def test_who_is_waited_for_and_was_lost_is_asked_again() -> None:
    """What is said to it finds out whether it is gone."""
    finishing = asking((B, Idle(0, 0, 0)))
    finishing.out.clear()
    finishing.lost(C)
    idle(finishing, A)
    assert finishing.out == [(B, waits("c")), (C, waits("c"))]


def test_who_is_done_hears_of_who_joins() -> None:
    network = Network()
    network.group("a", "b")
    network.sessions["b"].finish(network.now)
    network.run(0.1)
    assert network.sessions["b"].unfinished() == ("a",)
    network.add("c").join("a", id=None, now=network.now)
    network.run(0.1)
    assert network.sessions["b"].unfinished() == ("a", "c")


def test_the_end_waits_for_calls_in_flight_and_for_references() -> None:
    network = Network()
    sessions = network.group("a", "b", "c")
    network.serve = lambda name, called: None
    call = network.call("b", "c", b"slow", timeout=None)
    network.run(0.1)
    for session in sessions:
        session.finish(network.now)
    network.run(3.0)
    assert all(network.told(name, Finished) == [] for name in "abc")
    (called,) = network.told("c", Called)
    assert isinstance(called, Called)
    sessions[2].reply(called.peer, called.call, [], now=network.now)
    network.run(1.0)
    assert all(network.told(name, Finished) == [Finished()] for name in "abc")
    order = [type(each) for each in network.events["b"][-2:]]
    assert order == [Answered, Finished]
    assert call == 1


def test_who_is_killed_is_not_waited_for() -> None:
    for victim in "abc":
        network = Network()
        network.group("a", "b", "c")
        others = [name for name in "abc" if name != victim]
        for name in others:
            network.sessions[name].finish(network.now)
        network.run(1.0)
        assert network.sessions[others[0]].unfinished() == (victim,)
        network.kill(victim)
        network.run(4.0)
        for name in others:
            assert network.told(name, Finished) == [Finished()], victim


def test_those_who_are_told_may_leave_at_once() -> None:
    network = Network()
    sessions = network.group("a", "b", "c")
    for session in sessions:
        session.finish(network.now)
    gone: set[str] = set()
    while len(gone) < 3:
        network.step()
        for name in set("abc") - gone:
            if network.told(name, Finished):
                network.sessions[name].leave(network.now)
                gone.add(name)
    assert all(network.told(name, Finished) == [Finished()] for name in "abc")


def play(seed: int) -> None:
    """A storm of calls that make calls; losses; all are done at some time."""
    random = Random(seed)
    network = Network()
    network.group("a", "b", "c")
    running = 0
    early: list[Event] = []

    def serve(name: str, called: Called) -> list[bytes]:
        hops = int(bytes(called.payload[0]))
        if hops:
            network.call(
                name, random.choice("abc"), str(hops - 1).encode(), timeout=None
            )
        return [b""]

    def hook(source: str, target: str, packet: Packet) -> tuple[float, ...]:
        if random.random() < 0.1:
            return ()
        return (random.choice((DELAY, 0.01, 0.1)),)

    network.serve = serve
    network.hook = hook
    waiting = list("abc")
    while waiting:
        for _ in range(random.randrange(3)):
            network.call(random.choice("abc"), random.choice("abc"), b"5", timeout=None)
        network.run(random.choice((0.0, 0.01, 0.3)))
        if random.random() < 0.5:
            network.sessions[waiting.pop()].finish(network.now)
        early += network.told("a", Finished) if waiting else []
    assert early == []
    network.until(lambda: all(network.told(name, Finished) for name in "abc"), 60.0)
    running = sum(session.counts()["calls"] for session in network.sessions.values())
    assert running == 0
    # Nothing follows: no call is told after the end.
    for name in "abc":
        kinds = [type(each) for each in network.events[name]]
        assert Called not in kinds[kinds.index(Finished) :]


# Of 116 one is lost when the others are told, and is admitted anew.
@pytest.mark.parametrize("seed", [*range(8), 116])
def test_the_end_comes_once_and_nothing_follows(seed: int) -> None:
    play(seed)


@pytest.mark.long
def test_the_end_comes_once_in_many_runs() -> None:
    for seed in range(100, 250):
        play(seed)
