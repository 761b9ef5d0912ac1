"""Faulty agents: attempts that fail, requests that come late, packets that are lost."""

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.errors.rpc import (
    ReferenceDead,
    RpcMisuse,
    RpcTimeout,
    Unsendable,
)
from everyorder.runtime.rpc.agent import (
    Agent,
    CallRequest,
    WorkerSlot,
    backend_type,
    in_worker_slot,
)
from everyorder.runtime.rpc.api.lifecycle import init_rpc, stop
from tests.coded import code
from tests.rpc.faulty_agent import FAULTY_BACKEND, FaultyAgent, FaultyOptions, start
from tests.rpc.worlds import PATIENT, SECONDS, at_once, place, stopped

PYTHON = CallRequest(operator.add, (1, 2))
SCRIPT = CallRequest(runtime.add, (runtime.ones(1), 1))
RETRIED = ("RREF_FORK_REQUEST", "RREF_CHILD_ACCEPT", "RREF_USER_DELETE")


@contextmanager
def faulty(*names: str, **faults: Any) -> Iterator[list[Agent]]:
    given = FaultyOptions(
        init_method=place(), session=PATIENT, join_timeout=SECONDS, **faults
    )
    seats = [WorkerSlot() for _ in names]

    def begun(rank: int) -> Agent:
        with in_worker_slot(seats[rank]):
            return start(names[rank], rank, len(names), given)

    try:
        yield at_once(*(lambda rank=n: begun(rank) for n in range(len(names))))
    finally:
        for seat in seats:
            if seat.agent is not None:
                stop(seat.agent, graceful=False)


@pytest.mark.spec("rpc 4.11", "options, and what is none")
def test_it_is_a_backend() -> None:
    kind = backend_type()[FAULTY_BACKEND]
    given = FaultyOptions(init_method=place(), num_fail_sends=3)
    with in_worker_slot() as own:
        init_rpc("a", kind, 0, 1, given)
        assert isinstance(own.agent, FaultyAgent)
        assert own.agent.options is given
        stop(own.agent)
        init_rpc("a", rpc_backend_options=given)
        assert isinstance(own.agent, FaultyAgent)
        stop(own.agent)


@pytest.mark.spec("rpc 4.11", "options, and what is none")
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"messages_to_fail": ["CALL"]},
            "No mapping to rpc::MessageType exists for CALL",
        ),
        (
            {"messages_to_delay": {"NO": 1}},
            "No mapping to rpc::MessageType exists for NO",
        ),
        ({"messages_to_delay": {"PYTHON_CALL": -1}}, "must be non-negative"),
        ({"messages_to_delay": {"RREF_USER_DELETE": 1}}, "a delay for the control"),
        ({"num_worker_threads": 0}, "num_worker_threads must be positive"),
    ],
)
def test_what_no_fault_is(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(RpcMisuse) as error:
        FaultyOptions(**wrong)
    assert said in " ".join(str(error.value).split())


@pytest.mark.spec("rpc 4.11", "options, and what is none")
def test_without_faults_it_is_as_any() -> None:
    with faulty("a", "b") as (a, b):
        assert a.call_and_wait(b.node, PYTHON, timeout=SECONDS) == 3
        handle = a.remote(b.node, PYTHON, timeout=SECONDS)
        assert a.fetch(handle, timeout=SECONDS).wait(SECONDS) == 3
        handle.drop()
        stopped(a, b)


@pytest.mark.spec("rpc 4.11", "calls that fail")
@pytest.mark.parametrize(("name", "asked"), [("PYTHON", PYTHON), ("SCRIPT", SCRIPT)])
@pytest.mark.parametrize("to", [0, 1])
def test_attempts_that_fail(name: str, asked: CallRequest, to: int) -> None:
    faults = {"messages_to_fail": [f"{name}_CALL"], "num_fail_sends": 2}
    with faulty("a", "b", **faults) as agents:
        a, node = agents[0], agents[to].node
        text = "Send attempt failed intentionally"
        with pytest.raises(Unsendable, check=code("SentInVain"), match=text):
            a.call_and_wait(node, asked, timeout=SECONDS)
        with pytest.raises(Unsendable, check=code("SentInVain"), match=text):
            a.call(node, asked, timeout=SECONDS).wait()
        found = a.call(node, asked, timeout=SECONDS).wait(SECONDS)
        assert found == 3 if asked is PYTHON else found.tolist() == [2.0]


@pytest.mark.spec("rpc 4.11", "creations that fail")
@pytest.mark.parametrize(("name", "asked"), [("PYTHON", PYTHON), ("SCRIPT", SCRIPT)])
@pytest.mark.parametrize("to", [0, 1])
def test_creations_that_fail_are_dead(name: str, asked: CallRequest, to: int) -> None:
    faults = {"messages_to_fail": [f"{name}_REMOTE_CALL"], "num_fail_sends": 1}
    with faulty("a", "b", **faults) as agents:
        a, node = agents[0], agents[to].node
        handle = a.remote(node, asked, timeout=SECONDS)
        with pytest.raises(Unsendable, check=code("SentInVain")):
            handle.created.wait(SECONDS)
        with pytest.raises(
            ReferenceDead, check=code("ReferenceDead"), match="RRef creation"
        ):
            a.fetch(handle, timeout=SECONDS)
        with pytest.raises(
            ReferenceDead, check=code("ReferenceDead"), match="RRef creation"
        ):
            handle.carried()
        handle.drop()
        stopped(*agents)


@pytest.mark.spec("rpc 4.11", "requests that come late")
@pytest.mark.parametrize("to", [0, 1])
def test_requests_that_come_late(to: int) -> None:
    late = {
        "PYTHON_CALL": 0.3,
        "SCRIPT_REMOTE_CALL": 0.3,
        "PYTHON_RREF_FETCH_CALL": 0.3,
    }
    with faulty("a", "b", messages_to_delay=late) as agents:
        a, node = agents[0], agents[to].node
        with pytest.raises(RpcTimeout, match="RPC ran for more than"):
            a.call_and_wait(node, PYTHON, timeout=0.05)
        assert a.call_and_wait(node, PYTHON, timeout=None) == 3
        dead = a.remote(node, SCRIPT, timeout=0.001)
        with pytest.raises(RpcTimeout, match="RPC ran for more than"):
            dead.created.wait(SECONDS)
        with pytest.raises(
            ReferenceDead, check=code("ReferenceDead"), match="RRef creation"
        ):
            a.fetch(dead, timeout=SECONDS)
        handle = a.remote(node, PYTHON, timeout=SECONDS)
        if to:
            with pytest.raises(RpcTimeout, check=code("RpcTimeout")):
                a.fetch(handle, timeout=0.01).wait(SECONDS)
        assert a.fetch(handle, timeout=SECONDS).wait(SECONDS) == 3
        dead.drop()
        handle.drop()
        stopped(*agents)


@pytest.mark.spec("rpc 4.11", "requests that come late")
@pytest.mark.parametrize("how", ["PYTHON", "SCRIPT"])
def test_fetches_of_what_is_there_come_late(how: str) -> None:
    """A fetch does not say what made the value: it is late by either name."""
    late = {f"{how}_RREF_FETCH_CALL": 0.3}
    with faulty("a", "b", messages_to_delay=late) as (a, b):
        handle = a.remote(b.node, PYTHON, timeout=SECONDS)
        handle.created.wait(SECONDS)
        assert b.wait_until(lambda: b.debug_info()["num_pending_futures"] == 0, SECONDS)
        with pytest.raises(RpcTimeout, check=code("RpcTimeout")):
            a.fetch(handle, timeout=0.01).wait(SECONDS)
        assert a.fetch(handle, timeout=SECONDS).wait(SECONDS) == 3
        handle.drop()
        stopped(a, b)


def fetched(reference: Any) -> Any:
    handle = getattr(reference, "_handle", reference)
    try:
        return handle.agent.fetch(handle, timeout=SECONDS).wait(SECONDS)
    finally:
        handle.drop()


@pytest.mark.spec("rpc 4.11", "control messages that fail arrive in the end")
def test_control_messages_arrive_in_the_end() -> None:
    faults = {"messages_to_fail": RETRIED, "num_fail_sends": 2}
    with faulty("a", "b", "c", **faults) as (a, b, c):
        handle = a.remote(b.node, PYTHON, timeout=SECONDS)
        shared = CallRequest(fetched, (handle,))
        assert a.call_and_wait(c.node, shared, timeout=SECONDS) == 3
        handle.drop()
        a.do(lambda _: None, "test")
        assert b.wait_until(lambda: b.debug_info()["num_owner_rrefs"] == 0, SECONDS)
        failed = [agent.transport.counts()["failed"] for agent in (a, b, c)]
        assert sum(failed) >= 6
        stopped(a, b, c)
