"""References: the machine by itself, where worlds that are explored are too small.

All that a few workers can do with a few references is explored in every order
(`tests/rpc/exploring`); here is what takes one reference more, or time.
"""

from everyorder.runtime.rpc.protocol.call_machine import Calls
from everyorder.runtime.rpc.protocol.events import Died, Failed, Freed, Reason
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
    Register,
)
from everyorder.runtime.rpc.protocol.ownership import (
    CarrierStatus,
    Owners,
    Use,
    Users,
    Verdict,
)
from everyorder.runtime.rpc.protocol.reference_machine import (
    INTRODUCTION,
    ReferenceMachine,
)
from tests.rpc.protocol.times import TIMES

ME, PEER, OTHER = WorkerNode("a", 0, 1), WorkerNode("b", 1, 2), WorkerNode("c", 2, 3)
KEY = ("call", PEER, 1)


def machine(*known: WorkerNode) -> ReferenceMachine:
    references = ReferenceMachine(ME)
    for node in known:
        references.joined(node)
    return references


def names(node: WorkerNode, *numbers: int) -> list[GloballyUniqueId]:
    return [GloballyUniqueId(node.id, number, node.incarnation) for number in numbers]


def forks(owner: WorkerNode, giver: WorkerNode, *numbers: int) -> list[Fork]:
    """References to values of an owner, as they come from somebody."""
    values, given = names(owner, *numbers), names(giver, *numbers)
    return [Fork(rref, fork, owner) for rref, fork in zip(values, given, strict=True)]


def test_two_references_of_one_owner_die_together() -> None:
    references = machine(PEER, OTHER)
    one, two = forks(OTHER, PEER, 1, 2)
    assert references.arrive(KEY, PEER, [one, two], 0.0) is CarrierStatus.WAITS
    assert [type(each) for _, each in references.out] == [Register, Register]
    references.out.clear()
    references.lost(OTHER, Reason.LOST, 0.0)
    assert references.verdicts == [Verdict(KEY, True, CarrierStatus.DEAD)]
    # The sender is let go for both; the owner is told nothing.
    assert references.out == [(PEER, Accept(one.fork)), (PEER, Accept(two.fork))]
    assert references.counts()["users"] == references.counts()["carriers"] == 0


def test_an_owner_is_waited_for_until_its_time_is_over() -> None:
    references = machine(PEER)
    (fork,) = forks(OTHER, PEER, 1)
    assert references.arrive(KEY, PEER, [fork], 10.0) is CarrierStatus.WAITS
    assert references.next_time() == 10.0 + INTRODUCTION
    references.tick(10.0 + INTRODUCTION - 0.001)
    assert (references.out, references.verdicts) == ([], [])
    references.tick(10.0 + INTRODUCTION)
    assert references.out == [(PEER, Accept(fork.fork))]
    assert references.verdicts == [Verdict(KEY, True, CarrierStatus.DEAD)]
    assert references.next_time() is None


def test_an_owner_that_nobody_introduced_cannot_be_lost() -> None:
    references = machine(PEER)
    (fork,) = forks(OTHER, PEER, 1)
    references.arrive(KEY, PEER, [fork], 0.0)
    references.lost(OTHER, Reason.LOST, 1.0)
    references.joined(OTHER)
    assert references.out == [(OTHER, Register(fork.rref, fork.fork, PEER))]


def test_a_value_that_waits_to_be_sent_is_kept() -> None:
    references = machine(PEER)
    own = references.new_id()
    references.own(own)
    made = references.plan(("call", OTHER, 1), OTHER, references.new_id())
    references.asked(made.fork)
    assert references.carry(KEY, PEER, [own, made]) == (CarrierStatus.WAITS, ())
    references.disown(own)
    assert references.events == []
    references.created(made.fork)
    (verdict,) = references.verdicts
    assert (verdict.status, [each.rref for each in verdict.forks]) == (
        CarrierStatus.READY,
        [own, made.rref],
    )
    # The receiver keeps it from now on.
    references.expired(PEER, 0.0)
    assert Freed(own) not in references.events
    references.lost(PEER, Reason.LOST, 0.0)
    references.expired(PEER, 0.0)
    assert references.events[-1] == Freed(own)


def test_a_call_that_is_cancelled_while_its_answer_waits_keeps_nothing() -> None:
    references = machine(PEER, OTHER)
    calls = Calls(references, TIMES)
    own = references.new_id()
    references.own(own)
    made = references.plan(("call", OTHER, 1), OTHER, references.new_id())
    calls.receive(PEER, Call(7, (), (), None, None, None, own), 0.0)
    calls.reply(PEER, 7, [], 0.0, carries=[made])
    assert calls.out == []
    references.disown(own)
    assert references.events == []
    calls.receive(PEER, Cancel(7), 0.0)
    assert references.events == [Freed(own)]
    assert references.counts()["carriers"] == 0


def test_a_call_that_ends_while_its_answer_is_confirmed_keeps_nothing() -> None:
    references = machine(PEER, OTHER)
    calls = Calls(references, TIMES)
    number = calls.call(PEER, [], 0.0)
    answer = Answer(number, (), tuple(forks(OTHER, PEER, 1)))
    calls.receive(PEER, answer, 0.0)
    assert (calls.events, references.counts()["carriers"]) == ([], 1)
    calls.cancel(number, 0.0)
    assert calls.events == [Failed(number, Reason.CANCELLED)]
    assert references.counts()["carriers"] == references.counts()["users"] == 0


def test_a_call_that_fetches_and_is_forgotten_keeps_nothing() -> None:
    references = machine(PEER, OTHER)
    own = references.new_id()
    references.own(own)
    waits = references.arrive(KEY, PEER, forks(OTHER, PEER, 1), 0.0, target=own)
    assert waits is CarrierStatus.WAITS
    references.disown(own)
    assert (references.events, references.counts()["carriers"]) == ([], 1)
    references.forget(KEY)
    assert references.events == [Freed(own)]
    assert references.counts()["carriers"] == references.counts()["users"] == 0


def test_a_value_that_is_made_here_for_nobody_any_more_is_freed() -> None:
    references = machine()
    call = ("call", ME, 1)
    fork = references.plan(call, ME, references.new_id())
    references.asked(fork.fork)
    made = references.arrive(call, ME, [], 0.0, creates=fork.rref, fork=fork.fork)
    assert made is CarrierStatus.READY
    references.drop(fork.fork)
    references.done(call)
    assert references.events == []
    references.created(fork.fork)
    assert references.events[-1] == Freed(fork.rref)
    assert references.counts()["users"] == references.counts()["forks"] == 0


def test_an_answer_or_a_failure_brings_no_dead_reference_back() -> None:
    references = machine(OTHER)
    fork = references.plan(("call", OTHER, 1), OTHER, references.new_id())
    references.asked(fork.fork)
    references.lost(OTHER, Reason.LOST, 0.0)
    assert references.events == [Died(fork, Reason.LOST)]
    references.created(fork.fork)
    references.uncreated(fork.fork, Reason.DEADLINE)
    assert references.events == [Died(fork, Reason.LOST)]
    assert (references.out, references.counts()["users"]) == ([], 0)


def test_nothing_is_fetched_by_way_of_another_value_s_reference() -> None:
    references = machine(PEER)
    (fork,) = forks(PEER, PEER, 1)
    assert references.arrive(KEY, PEER, [fork], 0.0) is CarrierStatus.READY
    call = ("call", PEER, 2)
    assert references.carry(call, PEER, [], fork.rref) == (CarrierStatus.READY, ())
    (unknown,) = names(PEER, 2)
    assert references.carry(call, PEER, [], unknown) == (CarrierStatus.DEAD, ())


def test_what_is_told_of_a_peer_is_not_sent_when_it_is_lost() -> None:
    references = machine(PEER, OTHER)
    (kept,) = forks(OTHER, PEER, 1)
    (lost,) = forks(PEER, PEER, 2)
    references.arrive(KEY, PEER, [lost], 0.0)
    references.arrive(("call", PEER, 2), PEER, [kept], 0.0)
    references.drop(lost.fork)
    assert [node for node, _ in references.out] == [OTHER, PEER]
    references.lost(PEER, Reason.LOST, 0.0)
    assert all(node == OTHER for node, _ in references.out)
    assert Died(lost, Reason.LOST) not in references.events


def test_a_reference_looks_otherwise_as_long_as_it_matters_where_it_came_from() -> None:
    (fork,) = forks(OTHER, PEER, 1)

    def state(use: Use, source: str) -> object:
        users = Users()
        users.add(fork, use, source, PEER)
        return users.state()

    assert state(Use.PENDING, "one") != state(Use.PENDING, "another")
    assert state(Use.CONFIRMED, "one") == state(Use.CONFIRMED, "another")


def test_of_a_value_that_was_never_told_nobody_hears_that_it_is_free() -> None:
    for told in (False, True):
        owners, (fork,) = Owners(), forks(ME, PEER, 1)
        assert owners.create(fork.rref, fork.fork, PEER, KEY)
        if told:
            owners.report(fork.rref)
        owners.unlist(fork.fork)
        assert owners.freed == []
        owners.release(fork.rref, KEY)
        assert owners.values == {}
        assert owners.freed == [Freed(fork.rref)] * told
