"""Calls: each has one end, whatever comes first, and is told to the callee once."""

from dataclasses import replace

import pytest

from everyorder.runtime.rpc.protocol.call_machine import TRANSITIONS, Calls
from everyorder.runtime.rpc.protocol.events import (
    Answered,
    Called,
    Cancelled,
    Died,
    Event,
    Failed,
    Freed,
    Reason,
    Settings,
)
from everyorder.runtime.rpc.protocol.identities import (
    Fork,
    GloballyUniqueId,
    WorkerNode,
)
from everyorder.runtime.rpc.protocol.messages import (
    Answer,
    Call,
    Cancel,
    Decline,
    Message,
)
from everyorder.runtime.rpc.protocol.ownership import Verdict
from everyorder.runtime.rpc.protocol.packets import Packet
from everyorder.runtime.rpc.protocol.reference_machine import (
    INTRODUCTION,
    ReferenceMachine,
)
from tests.rpc.protocol.network import DELAY, Network
from tests.rpc.protocol.times import TIMES

ME, PEER, OTHER = WorkerNode("a", 0, 1), WorkerNode("b", 1, 2), WorkerNode("c", 2, 3)


def machine(settings: Settings | None = None) -> Calls:
    references = ReferenceMachine(ME)
    references.joined(PEER)
    return Calls(references, settings or TIMES)


def sent(calls: Calls) -> list[Message]:
    messages = [message for _, message in calls.out]
    calls.out.clear()
    return messages


def told(calls: Calls) -> list[Event]:
    events = list(calls.events)
    calls.events.clear()
    return events


def test_states_have_an_end() -> None:
    states = {state for state, _ in TRANSITIONS}
    assert set(TRANSITIONS.values()) - states == {"ENDED"}
    assert all((state, "end") in TRANSITIONS for state in states)


def test_a_call_is_sent_at_once_with_what_is_left_of_its_time() -> None:
    calls = machine()
    number = calls.call(PEER, [b"x"], 10.0, deadline=11.2345)
    assert sent(calls) == [Call(number, [b"x"], (), 1235)]
    assert calls.call(PEER, [], 10.0) == number + 1
    assert sent(calls) == [Call(number + 1, [])]


ENDS: dict[str, tuple[Message | None, Event]] = {
    "answer": (Answer(1, (b"y",)), Answered(1, (b"y",))),
    "failed answer": (
        Answer(1, (b"y",), (), failed=True),
        Answered(1, (b"y",), (), failed=True),
    ),
    "decline": (
        Decline(1, Reason.TOO_LARGE, "so"),
        Failed(1, Reason.TOO_LARGE, "so"),
    ),
    "deadline": (None, Failed(1, Reason.DEADLINE)),
    "cancel": (None, Failed(1, Reason.CANCELLED)),
    "lost": (None, Failed(1, Reason.LOST)),
    "stop": (None, Failed(1, Reason.STOPPED)),
}


def end(calls: Calls, what: str, now: float) -> None:
    message, _ = ENDS[what]
    if message is not None:
        calls.receive(PEER, message, now)
    elif what == "deadline":
        calls.tick(now + 100)
    elif what == "cancel":
        calls.cancel(1, now)
    elif what == "lost":
        calls.lost(PEER, Reason.LOST, now)
    else:
        calls.stop(now)


@pytest.mark.parametrize("first", ENDS)
@pytest.mark.parametrize("second", ENDS)
def test_the_first_end_is_the_only_one(first: str, second: str) -> None:
    calls = machine()
    calls.call(PEER, [b"x"], 0.0, deadline=60.0)
    sent(calls)
    end(calls, first, 1.0)
    assert told(calls) == [ENDS[first][1]]
    cancels = [Cancel(1)] if first in ("deadline", "cancel") else []
    assert sent(calls) == cancels
    end(calls, second, 2.0)
    assert (told(calls), sent(calls)) == ([], [])
    assert calls.busy() == (0, 0)
    assert calls.due() == float("inf")


def test_only_who_was_asked_answers() -> None:
    calls = machine()
    calls.call(PEER, [b"x"], 0.0)
    calls.receive(OTHER, Answer(1, (b"y",)), 0.0)
    calls.receive(OTHER, Decline(1, Reason.REFERENCE), 0.0)
    assert told(calls) == []
    calls.receive(PEER, Answer(1, (b"y",)), 0.0)
    assert told(calls) == [Answered(1, (b"y",))]


def test_deadlines_pass_in_their_order_and_only_those() -> None:
    calls = machine()
    for deadline in (3.0, 1.0, 2.0, None):
        calls.call(PEER, [], 0.0, deadline=deadline)
    assert calls.due() == 1.0
    calls.tick(2.0)
    assert told(calls) == [Failed(2, Reason.DEADLINE), Failed(3, Reason.DEADLINE)]
    assert calls.due() == 3.0


def test_deadlines_of_calls_that_ended_are_not_kept() -> None:
    """One call that lasts does not keep those of all that came after it."""
    calls = machine()
    calls.call(PEER, [], 0.0, deadline=50.0)
    for number in range(2, 10_000):
        calls.call(PEER, [], 0.0, deadline=60.0)
        calls.receive(PEER, Answer(number, ()), 0.0)
    assert len(calls._deadlines) < 1010
    calls.tick(55.0)
    assert told(calls)[-1] == Failed(1, Reason.DEADLINE)
    assert calls.due() == float("inf")


def test_too_many_calls_wait_for_others_to_end() -> None:
    calls = machine(replace(TIMES, calls=2))
    numbers = [calls.call(PEER, [], 0.0, deadline=9.0) for _ in range(5)]
    assert [each.call for each in sent(calls) if isinstance(each, Call)] == numbers[:2]
    # One that waits may end by its deadline, and takes no place then.
    calls.cancel(numbers[2], 0.0)
    assert sent(calls) == []
    calls.receive(PEER, Answer(numbers[0], ()), 1.0)
    assert sent(calls) == [Call(numbers[3], [], (), 8000)]
    calls.receive(PEER, Answer(numbers[1], ()), 1.0)
    assert sent(calls) == [Call(numbers[4], [], (), 8000)]
    # Another peer has a limit of its own.
    other = calls.call(OTHER, [], 1.0)
    assert sent(calls) == [Call(other, [])]


def test_calls_that_wait_end_with_the_channel() -> None:
    calls = machine(replace(TIMES, calls=1))
    for _ in range(3):
        calls.call(PEER, [], 0.0)
    calls.lost(PEER, Reason.LOST, 0.0)
    assert told(calls) == [Failed(number, Reason.LOST) for number in (1, 2, 3)]
    sent(calls)
    calls.call(PEER, [], 0.0)
    assert sent(calls) == [Call(4, [])]


def test_what_is_too_large_is_not_sent() -> None:
    calls = machine()
    calls.call(PEER, [bytes(8), memoryview(bytearray(8)).cast("i")], 0.0, largest=15)
    calls.call(PEER, [bytes(8), memoryview(bytearray(8)).cast("i")], 0.0, largest=16)
    assert told(calls) == [Failed(1, Reason.TOO_LARGE)]
    assert [type(each) for each in sent(calls)] == [Call]


def test_a_call_that_comes_is_told_once_and_answered_once() -> None:
    calls = machine()
    for _ in range(2):
        calls.receive(PEER, Call(7, (b"x",), (), 1500), 10.0)
    assert told(calls) == [Called(PEER, 7, (b"x",), deadline=11.5)]
    for _ in range(2):
        calls.reply(PEER, 7, [b"y"], 10.0)
    assert sent(calls) == [Answer(7, [b"y"])]


def test_a_call_that_was_cancelled_is_not_answered() -> None:
    calls = machine()
    calls.receive(PEER, Call(7, ()), 0.0)
    told(calls)
    calls.receive(PEER, Cancel(7), 0.0)
    calls.receive(PEER, Cancel(7), 0.0)
    assert told(calls) == [Cancelled(PEER, 7)]
    calls.reply(PEER, 7, [], 0.0)
    assert sent(calls) == []


def test_an_answer_that_is_too_large_is_a_refusal() -> None:
    calls = machine()
    calls.receive(PEER, Call(7, ()), 0.0)
    calls.reply(PEER, 7, [bytes(9)], 0.0, largest=8)
    assert sent(calls) == [Decline(7, Reason.TOO_LARGE)]
    assert calls.busy() == (0, 0)


def test_a_machine_that_is_quiet_has_the_state_of_a_new_one() -> None:
    calls = machine()
    empty = calls.state(0.0)
    calls.call(PEER, [b"x"], 0.0, deadline=5.0)
    calls.receive(PEER, Call(7, (b"z",)), 0.0)
    state = calls.state(0.0)
    hash(state)
    assert state != empty
    calls.receive(PEER, Answer(1, ()), 0.0)
    calls.reply(PEER, 7, [], 0.0)
    assert calls.state(3.0) == empty


# Names that the peer gave; this worker has no such value.
NAME = GloballyUniqueId(1, 5, 2)
GONE = Fork(NAME, NAME, ME)


@pytest.mark.parametrize(
    "call",
    [Call(7, (), (GONE,)), Call(7, (), (), None, None, None, NAME)],
    ids=["carries", "fetches"],
)
def test_a_call_that_needs_what_is_not_there_is_declined(call: Call) -> None:
    calls = machine()
    calls.receive(PEER, call, 0.0)
    assert (told(calls), calls.busy()) == ([], (0, 0))
    assert sent(calls) == [Decline(7, Reason.REFERENCE)]


def test_an_answer_with_a_dead_reference_is_a_refusal() -> None:
    calls = machine()
    calls.receive(PEER, Call(7, ()), 0.0)
    calls.reply(PEER, 7, [], 0.0, carries=[GONE])
    assert (sent(calls), calls.busy()) == ([Decline(7, Reason.REFERENCE)], (0, 0))


# Calls that hold references, between sessions.


def shared(network: Network, user: str = "a", owner: str = "b") -> Fork:
    """A reference of a user to a value that its owner made."""
    session = network.sessions[user]
    call = network.call(user, owner, b"make", creates=session.new_id())
    fork = session.fork_of(call)
    network.run(0.2)
    return fork


def test_a_call_is_told_when_all_that_it_carries_is_confirmed() -> None:
    network = Network()
    network.group("a", "b", "c")
    fork = shared(network)
    late = False

    def hook(source: str, target: str, packet: Packet) -> tuple[float, ...]:
        # What the owner says to the callee is late.
        return (0.5,) if late and (source, target) == ("b", "c") else (DELAY,)

    network.hook = hook
    network.call("c", "b", b"hello")
    network.run(0.2)
    late = True
    network.sessions["a"].call(
        network.node("c"), [b"x"], carries=[fork], deadline=None, now=network.now
    )
    network.run(0.3)
    assert network.told("c", Called) == []
    network.run(0.5)
    (called,) = network.told("c", Called)
    assert isinstance(called, Called)
    (carried,) = called.carries
    assert (carried.rref, carried.owner) == (fork.rref, fork.owner)
    assert len(network.told("a", Answered)) == 2


def test_a_call_whose_reference_is_not_confirmed_yet_waits() -> None:
    network = Network()
    network.group("a", "b", "c")
    network.serve = lambda name, called: None
    session = network.sessions["a"]
    made = network.call("a", "b", b"make", creates=session.new_id(), timeout=None)
    fork = session.fork_of(made)
    use = session.call(
        network.node("c"), [b"x"], carries=[fork], deadline=None, now=network.now
    )
    network.run(0.5)
    assert network.told("c", Called) == []
    network.sessions["b"].reply(network.node("a"), made, [], now=network.now)
    network.run(0.5)
    assert [type(each) for each in network.told("c", Called)] == [Called]
    session.cancel(use, network.now)


def test_a_call_that_waits_ends_when_its_reference_dies() -> None:
    network = Network()
    network.group("a", "b", "c")
    network.serve = lambda name, called: None
    session = network.sessions["a"]
    made = network.call("a", "b", b"make", creates=session.new_id(), timeout=0.3)
    fork = session.fork_of(made)
    use = session.call(
        network.node("c"), [b"x"], carries=[fork], deadline=None, now=network.now
    )
    network.run(1.0)
    assert network.told("a", Failed) == [
        Failed(made, Reason.DEADLINE),
        Failed(use, Reason.REFERENCE),
    ]
    assert network.told("c", Called) == []


def test_a_reference_that_is_dead_ends_the_call_that_carries_it() -> None:
    network = Network()
    network.group("a", "b", "c")
    fork = shared(network)
    network.kill("b")
    network.run(3.0)
    assert network.told("a", Died) == [Died(fork, Reason.LOST)]
    call = network.sessions["a"].call(
        network.node("c"), [b"x"], carries=[fork], deadline=None, now=network.now
    )
    network.run(0.1)
    assert network.told("a", Failed) == [Failed(call, Reason.REFERENCE)]


def test_a_reference_to_a_value_of_who_has_left_is_not_waited_for_for_ever() -> None:
    """The caller has not heard of it yet, and the owner is asked in vain."""
    network = Network()
    network.group("a", "b", "c")
    fork = shared(network, "a", "c")

    def hook(source: str, target: str, packet: Packet) -> tuple[float, ...]:
        return () if source == "c" and target != "b" else (DELAY,)

    network.hook = hook
    network.sessions["c"].leave(network.now)
    network.run(0.1)
    network.kill("c")
    assert len(network.sessions["b"].members()) == 2
    call = network.sessions["a"].call(
        network.node("b"), [b"x"], carries=[fork], deadline=None, now=network.now
    )
    network.run(INTRODUCTION + 0.1)
    assert network.told("a", Failed) == [Failed(call, Reason.REFERENCE)]


def test_remote_that_times_out_is_a_dead_reference_and_nothing_is_kept() -> None:
    network = Network()
    network.group("a", "b")
    network.serve = lambda name, called: None
    session = network.sessions["a"]
    for _ in range(2):
        call = network.call("a", "b", creates=session.new_id(), timeout=0.5)
        fork = session.fork_of(call)
        network.run(1.0)
        assert network.told("a", Died)[-1:] == [Died(fork, Reason.DEADLINE)]
        (cancelled,) = network.told("b", Cancelled)[-1:]
        assert cancelled == Cancelled(network.node("a"), call)
        # The one who is at it finds out, and replies all the same.
        network.sessions["b"].reply(network.node("a"), call, [], now=network.now)
        network.run(1.0)
        assert network.told("b", Freed)[-1:] == [Freed(fork.rref)]
    assert network.sessions["b"].counts()["owners"] == 0
    assert session.counts()["users"] == 0


def test_an_answer_that_comes_too_late_leaves_no_reference_behind() -> None:
    network = Network()
    network.group("a", "b")
    owner = network.sessions["b"]
    rref = owner.new_id()
    owner.own(rref)
    network.serve = lambda name, called: None
    late = False

    def hook(source: str, target: str, packet: Packet) -> tuple[float, ...]:
        return (0.4,) if late and source == "b" else (DELAY,)

    network.hook = hook
    network.call("a", "b", b"x", timeout=0.3)
    network.run(0.1)
    (called,) = network.told("b", Called)
    assert isinstance(called, Called)
    late = True
    owner.reply(called.peer, called.call, [], carries=[rref], now=network.now)
    network.run(2.0)
    assert [type(each) for each in network.told("a", *_ENDS)] == [Failed]
    assert network.told("b", Freed) == []
    owner.disown(rref, network.now)
    network.run(0.1)
    assert network.told("b", Freed) == [Freed(rref)]
    assert network.sessions["a"].counts()["users"] == 0


_ENDS = (Answered, Failed)


def test_a_worker_that_stops_ends_everything_of_its_own() -> None:
    network = Network()
    network.group("a", "b")
    fork = shared(network)
    network.serve = lambda name, called: None
    session = network.sessions["a"]
    call = network.call("a", "b", b"x", timeout=None)
    network.call("b", "a", b"x", timeout=None)
    network.run(0.1)
    network.events["a"].clear()
    session.stop(network.now)
    network.run(0.1)
    assert network.told("a", Failed) == [Failed(call, Reason.STOPPED)]
    assert network.told("a", Died) == [Died(fork, Reason.STOPPED)]
    assert len(network.told("a", Cancelled)) == 1
    assert session.next_time() is None
    after = session.call(
        network.node("b"), [], carries=(), deadline=None, now=network.now
    )
    assert session.take_events() == [Failed(after, Reason.STOPPED)]
    assert session.take_packets() == []


def test_calls_before_there_is_a_group_end_at_once() -> None:
    network = Network()
    session = network.add("a")
    call = session.call(PEER, [], deadline=None, now=network.now)
    assert session.take_events() == [Failed(call, Reason.LEFT)]


def test_twenty_thousand_calls_wait_without_being_sent() -> None:
    """Back-pressure: what is on its way is bounded, what waits is numbers here."""
    network = Network()
    network.group("a", "b")
    network.run(0.2)
    session, node = network.sessions["a"], network.node("b")
    for _ in range(20_000):
        session.call(node, (), deadline=None, now=network.now)
    assert len(session.take_packets()) == network.settings.window
    counts = session.counts()
    assert counts["calls"] == 20_000
    assert counts["queued"] == network.settings.calls - network.settings.window


@pytest.mark.parametrize("end", ["confirmed", "dead", "cancelled"])
def test_an_answer_waits_for_the_reference_that_it_carries(end: str) -> None:
    network = Network()
    network.group("a", "b", "c")
    network.serve = lambda name, called: None
    call = network.call("a", "b", b"give", timeout=None)
    callee, third = network.sessions["b"], network.sessions["c"]
    made = network.call("b", "c", b"make", creates=callee.new_id(), timeout=None)
    fork = callee.fork_of(made)
    network.run(0.1)
    callee.reply(network.node("a"), call, [b"y"], carries=[fork], now=network.now)
    network.run(0.5)
    assert network.told("a", *_ENDS) == []
    if end == "confirmed":
        third.reply(network.node("b"), made, [], now=network.now)
        network.run(0.5)
        (answered,) = network.told("a", *_ENDS)
        assert isinstance(answered, Answered)
        assert [each.rref for each in answered.carries] == [fork.rref]
    elif end == "dead":
        callee.cancel(made, network.now)
        network.run(0.5)
        assert network.told("a", *_ENDS) == [Failed(call, Reason.REFERENCE)]
    else:
        network.sessions["a"].cancel(call, network.now)
        network.run(0.5)
        assert network.told("a", *_ENDS) == [Failed(call, Reason.CANCELLED)]
        third.reply(network.node("b"), made, [], now=network.now)
        network.run(0.5)
        callee.drop(fork.fork, network.now)
        network.run(0.5)
        assert network.told("c", Freed) == [Freed(fork.rref)]
    assert callee.counts()["called"] == callee.counts()["carriers"] == 0


@pytest.mark.parametrize("what", ["call", "answer"])
def test_what_ended_before_its_verdict_is_not_sent(what: str) -> None:
    references = ReferenceMachine(ME)
    references.joined(PEER)
    calls = Calls(references, TIMES)
    rref = references.new_id()
    references.own(rref)
    key = (what, PEER, 9)
    fate, forks = references.carry(key, PEER, [rref])
    calls.judge(Verdict(key, False, fate, forks), 0.0)
    assert sent(calls) == []
    references.disown(rref)
    assert references.events == [Freed(rref)]


def sends_own(network: Network, count: int) -> int:
    """The first of two calls the other one, with references to values of its own."""
    session = network.sessions["a"]
    rrefs = [session.new_id() for _ in range(count)]
    for rref in rrefs:
        session.own(rref)
    return session.call(
        network.node("b"),
        [b"x"],
        carries=rrefs,
        deadline=network.now + 5,
        now=network.now,
    )


@pytest.mark.parametrize("count", [1025, 70000])
def test_more_references_than_are_taken_are_not_sent(count: int) -> None:
    network = Network()
    network.group("a", "b")
    call = sends_own(network, count)
    after = network.call("a", "b", b"x")
    network.run(1.0)
    told_ = network.told("a", Answered, Failed)
    assert told_ == [
        Failed(
            call, Reason.TOO_LARGE, f"{count} references; at most 1024 are accepted"
        ),
        Answered(after, (b"echo x",)),
    ]
    assert network.sessions["a"].counts()["forks"] == 0


def test_an_answer_with_more_references_than_are_taken_is_declined() -> None:
    network = Network()
    network.group("a", "b")
    network.serve = lambda name, called: None
    call = network.call("a", "b", b"x")
    network.run(0.1)
    session, called = network.sessions["b"], network.told("b", Called)[0]
    assert isinstance(called, Called)
    rrefs = [session.new_id() for _ in range(1025)]
    for rref in rrefs:
        session.own(rref)
    session.reply(called.peer, called.call, [b"y"], carries=rrefs, now=network.now)
    network.run(0.1)
    detail = "1025 references; at most 1024 are accepted"
    assert network.told("a", Answered, Failed) == [
        Failed(call, Reason.TOO_LARGE, detail)
    ]


@pytest.mark.parametrize("count", [8192, 8193, 9000])
def test_more_buffers_than_a_packet_has_arrive_in_order(count: int) -> None:
    network = Network()
    network.group("a", "b")
    frames = [str(number).encode() for number in range(count)]
    call = network.call("a", "b", *frames)
    after = network.call("a", "b", b"x")
    network.run(3.0)
    answers = network.told("a", Answered, Failed)
    assert [each.call for each in answers if isinstance(each, Answered)] == [
        call,
        after,
    ]
    first = answers[0]
    assert isinstance(first, Answered)
    assert list(map(bytes, first.payload)) == [b"echo " + each for each in frames]


def test_more_buffers_than_can_be_numbered_are_not_sent() -> None:
    network = Network()
    network.group("a", "b")
    call = network.call("a", "b", *[b""] * 65537)
    after = network.call("a", "b", b"x")
    network.run(1.0)
    assert network.told("a", Answered, Failed) == [
        Failed(call, Reason.TOO_LARGE, "65537 buffers; at most 65536 are accepted"),
        Answered(after, (b"echo x",)),
    ]


def test_a_call_to_who_is_gone_gives_no_reference() -> None:
    network = Network()
    network.group("a", "b")
    session, gone = network.sessions["a"], network.node("b")
    rref = session.new_id()
    session.own(rref)
    network.sessions["b"].leave(network.now)
    network.run(0.1)
    call = session.call(gone, [b"x"], carries=[rref], deadline=None, now=network.now)
    network.run(0.1)
    assert network.told("a", Failed) == [Failed(call, Reason.LEFT)]
    assert session.counts()["forks"] == 0
    session.disown(rref, network.now)
    network.run(0.1)
    assert network.told("a", Freed) == [Freed(rref)]
