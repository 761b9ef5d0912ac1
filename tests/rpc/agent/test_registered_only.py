"""Workers that take registered functions only: what runs there, and what is refused."""

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import rpc
from everyorder.runtime.errors.rpc import RemoteError, RpcError, UnknownCallable
from everyorder.runtime.rpc.agent import Agent, CallRequest, WorkerSlot
from everyorder.runtime.rpc.agent.rendezvous import join, parse_init_method
from everyorder.runtime.rpc.api.lifecycle import stop
from everyorder.runtime.rpc.api.rref import reference_of
from everyorder.runtime.rpc.codec.named_functions import REGISTRY
from tests.coded import code
from tests.rpc.worlds import SECONDS, at_once, options, place

RAN: list[str] = []


def ran(where: str) -> None:
    RAN.append(where)


class Trap:
    """A value whose pickle runs a function where it is read."""

    def __reduce__(self) -> Any:
        return ran, ("where it was read",)


def offered(value: Any) -> Any:
    return [value, value]


@contextmanager
def one_of_two() -> Iterator[tuple[Agent, Agent]]:
    """A worker that takes everything, and one that takes registered functions."""
    where = place()

    def begun(rank: int) -> Agent:
        given = options(registered_only=bool(rank))
        return join("ab"[rank], parse_init_method(where, rank, 2), given, WorkerSlot())

    made = at_once(lambda: begun(0), lambda: begun(1))
    try:
        yield made[0], made[1]
    finally:
        for agent in made:
            stop(agent, graceful=False)


@pytest.mark.spec("rpc 4.12", "workers that run registered functions only")
def test_it_runs_what_is_registered_and_reads_what_runs_no_code() -> None:
    RAN.clear()
    with one_of_two() as (a, b), REGISTRY.add(offered, "offered"):
        asked = CallRequest(offered, (1,))
        assert a.call_and_wait(b.node, asked, timeout=SECONDS) == [1, 1]
        handle = a.remote(b.node, asked, timeout=SECONDS)
        assert a.fetch_and_wait(handle, timeout=SECONDS) == [1, 1]
        handle.drop()
        with pytest.raises(RemoteError) as caught:
            a.call_and_wait(b.node, CallRequest(offered, (Trap(),)), timeout=SECONDS)
        assert caught.value.remote_type == "UnknownCallable"
        assert caught.value.code == "OnlyRegistered"
        assert RAN == []
        # Elsewhere the same value is read, and what it runs is run.
        assert a.call_and_wait(
            a.node, CallRequest(offered, (Trap(),)), timeout=SECONDS
        ) == [None, None]
        assert RAN == ["where it was read"]


def test_proxies_are_refused_by_what_they_are() -> None:
    """On either side; a registered function takes the reference itself."""
    asks_type = "type of a value on another worker, which proxies ask for, was refused"
    ways: dict[Callable[[rpc.RRef[int]], Any], str] = {
        lambda rref: rref.rpc_sync().bit_length(): asks_type,
        lambda rref: rref._get_type(): asks_type,
        lambda rref: rref.backward(): "`backward` of a value on another worker was",
    }
    with one_of_two() as (a, b), REGISTRY.add(offered, "offered"):
        for agent, other in ((a, b), (b, a)):
            asked = CallRequest(offered, (1,))
            reference = reference_of(
                agent, agent.remote(other.node, asked, timeout=SECONDS)
            )
            for way, said in ways.items():
                with pytest.raises(RpcError) as caught:
                    way(reference)
                # Whoever takes registered functions only does not even read the call.
                there = "A call of another function, by a proxy, or with values"
                said = said if agent is b else there
                assert said in " ".join(str(caught.value).split())
            taken = CallRequest(offered, (reference,))
            if agent is a:
                for each in a.call_and_wait(other.node, taken, timeout=SECONDS):
                    assert each.to_here() == [1, 1]
                continue
            with pytest.raises(
                UnknownCallable,
                check=code("OnlyRegistered"),
                match="The answer of a worker without",
            ):
                b.call_and_wait(other.node, taken, timeout=SECONDS)


@pytest.mark.spec("rpc 4.12", "workers that run registered functions only")
@pytest.mark.parametrize(
    "asked",
    [
        CallRequest(operator.add, (1, 2)),
        CallRequest(runtime.add, (runtime.ones(1), 1)),
    ],
)
def test_nothing_else_runs_there_or_is_asked_by_it(asked: CallRequest) -> None:
    with one_of_two() as (a, b):
        with pytest.raises(RemoteError) as caught:
            a.call_and_wait(b.node, asked, timeout=SECONDS)
        assert caught.value.remote_type == "UnknownCallable"
        assert caught.value.code == "OnlyRegistered"
        with pytest.raises(UnknownCallable, check=code("OnlyRegistered")):
            b.call_and_wait(a.node, asked, timeout=SECONDS)
        assert b.is_idle()
