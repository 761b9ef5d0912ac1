"""Workers that were members: calls of them fail as those in flight do."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from everyorder.runtime import rpc
from everyorder.runtime.errors.rpc import ReferenceDead, RpcMisuse, WorkerLost
from everyorder.runtime.rpc.agent import Agent, WorkerSlot, in_worker_slot, member_table
from everyorder.runtime.rpc.agent.rendezvous import join, parse_init_method
from everyorder.runtime.rpc.api.lifecycle import stop
from everyorder.runtime.rpc.protocol.identities import WorkerInfo, WorkerNode
from tests.coded import code
from tests.rpc.worlds import HASTY, SECONDS, options, place

END: dict[str, Callable[[Agent], None]] = {
    "left": lambda agent: stop(agent, graceful=False),
    "lost": lambda agent: agent.transport.close(0),
}


@pytest.fixture(params=END)
def departed(request: pytest.FixtureRequest) -> Iterator[tuple[str, Agent]]:
    """How a worker "b" has departed, and the worker "a" that is left and current."""
    where = parse_init_method(place())
    first = join("a", where, options(HASTY), WorkerSlot())
    second = join("b", where, options(HASTY), WorkerSlot())
    try:
        assert first.wait_until(lambda: len(first.nodes()) == 2, SECONDS)
        END[request.param](second)
        with in_worker_slot(first.slot):
            assert first.wait_until(lambda: len(first.nodes()) == 1, SECONDS)
            yield request.param, first
    finally:
        for each in (first, second):
            if not each.ended:
                stop(each, graceful=False)


ASK: dict[str, Callable[[Any], Any]] = {
    "sync": lambda to: lambda: rpc.rpc_sync(to, max, (1, 2)),
    "async": lambda to: rpc.rpc_async(to, max, (1, 2)).wait,
}


@pytest.mark.parametrize("to", ["b", 1, WorkerInfo("b", 1)], ids=str)
@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
def test_a_call_to_a_worker_that_has_departed_fails_by_its_future(
    departed: tuple[str, Agent], ask: Callable[[Any], Any], to: Any
) -> None:
    wait = ask(to)
    with pytest.raises(WorkerLost) as error:
        wait()
    assert isinstance(error.value, ConnectionError)
    assert error.value.worker == "b"
    reasons = {"left": "left", "lost": "the connection to the worker was lost"}
    assert reasons[departed[0]] in error.value.reason


def test_a_reference_that_a_departed_worker_should_create_is_dead(
    departed: tuple[str, Agent],
) -> None:
    rref = rpc.remote("b", max, (1, 2))
    with pytest.raises((ReferenceDead, WorkerLost)):
        rref.to_here(SECONDS)
    assert rref.owner_name() == "b"


def test_who_was_never_a_member_is_a_mistake(departed: tuple[str, Agent]) -> None:
    for to in ("c", 2, WorkerInfo("b", 2)):
        with pytest.raises(RpcMisuse, check=code("UnknownWorker")):
            rpc.rpc_async(to, max, (1, 2))
    # It is not a member any more, either.
    with pytest.raises(RpcMisuse, check=code("UnknownWorker")):
        rpc.get_worker_info("b")


def test_a_name_and_an_id_are_those_of_their_last_owner() -> None:
    table = member_table.MemberTable("a")
    old, other = WorkerNode("b", 1, 11), WorkerNode("c", 1, 12)
    again = WorkerNode("b", 2, 13)
    table.put(old)
    table.remove(old)
    assert table.find("b", departed=True) == table.find(1, departed=True) == old
    table.put(other)
    assert table.find(1, departed=True) == other
    assert table.find("b", departed=True) == old
    table.put(again)
    assert table.find("b", departed=True) == again
    table.remove(old)
    assert [each.name for each in table.nodes()] == ["c", "b"]


def test_not_all_that_have_departed_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(member_table, "_MOST_DEPARTED", 2)
    table = member_table.MemberTable("a")
    nodes = [WorkerNode(f"w{number}", number, number) for number in range(1, 5)]
    for each in nodes:
        table.put(each)
        table.remove(each)
    assert table.find("w3", departed=True) == nodes[2]
    with pytest.raises(RpcMisuse, check=code("UnknownWorker")):
        table.find("w2", departed=True)
