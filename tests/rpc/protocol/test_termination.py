"""Termination: all at once, when nothing is in flight, and never before."""

from random import Random

import pytest

from everyorder.runtime.rpc.protocol.events import Answered, Called, Event, Finished
from everyorder.runtime.rpc.protocol.identities import WorkerNode
from everyorder.runtime.rpc.protocol.messages import Finish, Idle, Survey, Waiting
from everyorder.runtime.rpc.protocol.packets import Packet
from everyorder.runtime.rpc.protocol.termination import TRANSITIONS, Termination
from tests.rpc.protocol.network import DELAY, Network

A, B, C = WorkerNode("a", 0, 1), WorkerNode("b", 1, 2), WorkerNode("c", 2, 3)
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


def idle(
    termination: Termination, me: WorkerNode, counts: tuple[int, int] = (0, 0)
) -> None:
    termination.advance(me, ALL, counts, busy=False, unacknowledged=False)


def report(termination: Termination, node: WorkerNode, idle: Idle) -> None:
    termination.receive(node, idle, (0, 0), False)


def asking(*reports: tuple[WorkerNode, Idle]) -> Termination:
    """The one who asks, done itself, and what the others reported."""
    termination = Termination()
    termination.done()
    for node, said in reports:
        report(termination, node, said)
    idle(termination, A)
    return termination


def surveys(termination: Termination) -> list[tuple[WorkerNode, int]]:
    return [
        (node, each.wave) for node, each in termination.out if isinstance(each, Survey)
    ]


def waits(*names: str) -> Waiting:
    """What those who are counted are told."""
    return Waiting(names, tuple(each.incarnation for each in ALL))


def test_all_are_asked_once_more_when_the_sums_are_equal() -> None:
    termination = asking((B, Idle(0, 3, 1)), (C, Idle(0, 1, 2)))
    assert surveys(termination) == []
    report(termination, C, Idle(0, 1, 3))
    idle(termination, A)
    assert surveys(termination) == [(B, 1), (C, 1)]
    report(termination, B, Idle(1, 3, 1))
    idle(termination, A)
    assert termination.status == "DONE"
    report(termination, C, Idle(1, 1, 3))
    idle(termination, A)
    assert termination.status == "FINISHING"
    assert [each for _, each in termination.out][-2:] == [Finish(), Finish()]
    termination.advance(A, ALL, (0, 0), busy=False, unacknowledged=True)
    assert termination.events == []
    idle(termination, A)
    assert (termination.status, termination.events) == ("FINISHED", [Finished()])


@pytest.mark.parametrize(
    "second",
    [Idle(1, 2, 3), Idle(1, 1, 3, busy=True), Idle(0, 1, 3)],
    ids=["sent since", "busy since", "reported since"],
)
def test_nothing_ends_where_something_happened_since(second: Idle) -> None:
    termination = asking((B, Idle(0, 3, 1)), (C, Idle(0, 1, 3)))
    assert surveys(termination) == [(B, 1), (C, 1)]
    report(termination, B, Idle(1, 3, 1))
    report(termination, C, second)
    idle(termination, A)
    assert termination.status == "DONE"


def test_all_are_asked_anew_when_the_coordinator_s_own_counts_change() -> None:
    termination = asking((B, Idle(0, 3, 1)), (C, Idle(0, 1, 3)))
    idle(termination, A, (1, 1))
    assert surveys(termination) == [(B, 1), (C, 1), (B, 2), (C, 2)]


def test_a_member_that_was_told_of_others_reports_when_it_is_done() -> None:
    """Also where it has answered a survey before, of whoever sent one."""
    member = Termination()
    member.receive(A, waits("c"), (0, 0), False)
    member.receive(A, Survey(1), (0, 0), False)
    idle(member, B)
    assert not member.due(B)
    member.done()
    assert member.due(B)


def test_who_is_done_hears_who_is_not() -> None:
    termination = asking((B, Idle(0, 0, 0)))
    waiting = waits("c")
    assert termination.out == [(B, waiting), (C, waiting)]
    assert termination.unfinished(A, ALL) == ("c",)
    member = Termination()
    member.done()
    assert member.unfinished(B, ALL) == ("a",)
    member.receive(A, waiting, (0, 0), False)
    assert member.unfinished(B, ALL) == ("c",)


def test_who_is_done_reports_when_it_is_idle_and_what_changed() -> None:
    member = Termination()
    member.advance(B, ALL, (0, 0), busy=False, unacknowledged=False)
    assert member.out == []
    member.done()
    member.advance(B, ALL, (1, 0), busy=True, unacknowledged=False)
    assert member.out == []
    for counts in ((1, 1), (1, 1), (2, 1)):
        member.advance(B, ALL, counts, busy=False, unacknowledged=False)
    member.advance(B, ALL, (2, 1), busy=True, unacknowledged=False)
    assert member.out == [
        (A, Idle(0, 1, 1)),
        (A, Idle(0, 2, 1)),
        (A, Idle(0, 2, 1, busy=True)),
    ]
    # The one who asks is lost: the next one is told.
    member.lost(A)
    member.advance(B, (B, C), (2, 1), busy=False, unacknowledged=False)
    member.out.clear()
    other = Termination()
    other.done()
    other.advance(C, ALL, (0, 0), busy=False, unacknowledged=False)
    other.lost(A)
    other.advance(C, (B, C), (0, 0), busy=False, unacknowledged=False)
    assert other.out == [(A, Idle(0, 0, 0)), (B, Idle(0, 0, 0))]


def test_who_asks_is_told_again_after_it_was_lost() -> None:
    """It may be there again, in a session that knows nothing of reports."""
    member = Termination()
    member.done()
    for _ in range(2):
        member.advance(B, ALL, (0, 0), busy=False, unacknowledged=False)
    member.lost(A)
    member.advance(B, ALL, (0, 0), busy=False, unacknowledged=False)
    assert member.out == [(A, Idle(0, 0, 0)), (A, Idle(0, 0, 0))]


def test_who_asks_looks_again_when_it_has_lost_somebody() -> None:
    """Also before it is done itself: those who are waited for are told."""
    termination = Termination()
    report(termination, B, Idle(0, 0, 0))
    report(termination, C, Idle(0, 0, 0))
    idle(termination, A)
    assert termination.out == [(B, waits("a")), (C, waits("a"))]
    termination.out.clear()
    assert not termination.due(A)
    termination.lost(C)
    assert termination.due(A)
    idle(termination, A)
    assert termination.out == [(B, waits("a", "c")), (C, waits("a", "c"))]


def test_who_is_waited_for_and_was_lost_is_asked_again() -> None:
    """What is said to it finds out whether it is gone."""
    termination = asking((B, Idle(0, 0, 0)))
    termination.out.clear()
    termination.lost(C)
    idle(termination, A)
    assert termination.out == [(B, waits("c")), (C, waits("c"))]


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


@pytest.mark.slow
def test_the_end_comes_once_in_many_runs() -> None:
    for seed in range(100, 250):
        play(seed)
