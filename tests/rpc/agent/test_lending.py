"""Lending: large buffers go by shared memory, come back, and are whole and apart."""

import errno
import mmap
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.errors.rpc import (
    BlockGone,
    RemoteError,
    Undecodable,
    Unsendable,
    WorkerLost,
)
from everyorder.runtime.rpc.agent import Agent, CallRequest, current_agent
from everyorder.runtime.rpc.agent.agent import Job, serve
from everyorder.runtime.rpc.api.lifecycle import stop
from everyorder.runtime.rpc.protocol.events import Called, Settings
from everyorder.runtime.rpc.transport.shared_memory import SUPPORTED, WORTH
from tests.coded import code
from tests.rpc.worlds import HASTY, SECONDS, processes, threads

pytestmark = pytest.mark.skipif(not SUPPORTED, reason="no memory without a name here")

# Of numbers of four bytes: four times what is worth a block.
COUNT = WORTH


def total(x: Any) -> float:
    return float(x.sum().item())


def doubled_in_place(x: Any) -> Any:
    x.mul_(2)
    return x


def counts() -> dict[str, int]:
    return current_agent("test").lending.counts()


def shut_down() -> None:
    stop(current_agent("test"), timeout=SECONDS)


def shared() -> set[str]:
    """What lies in the folder that all processes share memory by."""
    folder = Path("/dev/shm")
    return set(os.listdir(folder)) if folder.exists() else set()


def lends(agent: Agent, ask: Callable[[], object]) -> bool:
    """Ask until something has been lent."""
    return agent.wait_until(
        lambda: ask() is not None and agent.lending.counts()["bytes"] > 1 << 20, SECONDS
    )


def test_large_tensors_are_lent_and_come_back() -> None:
    before = shared()
    with processes("fork", ["a", "b"]) as (agent, (other,)):
        node = agent.find("b")
        x = runtime.ones(COUNT)

        def ask(function: Any = total) -> Any:
            return agent.call_and_wait(
                node, CallRequest(function, (x,)), timeout=SECONDS
            )

        assert lends(agent, ask)
        for _ in range(20):
            assert ask() == COUNT
        # Written to there, and still what it was here.
        back = ask(doubled_in_place)
        assert total(back) == 2 * COUNT
        assert total(x) == COUNT
        back.add_(1)
        assert total(ask(doubled_in_place)) == 2 * COUNT
        del back
        assert agent.wait_until(lambda: agent.lending.counts()["lent"] == 0, SECONDS)
        assert agent.wait_until(lambda: other.do(counts)["lent"] == 0, SECONDS)
        # The same blocks again and again.
        assert agent.lending.counts()["peak"] <= 8 * COUNT * 4
        assert shared() == before
        other.ask(shut_down)
        stop(agent, timeout=SECONDS)
        other.answer()
    assert agent.lending.counts()["bytes"] == 0


def test_nothing_is_lent_where_nobody_wants_it() -> None:
    with processes("fork", ["a", "b"], shared_memory=False) as (agent, _):
        x = runtime.ones(COUNT)
        request = CallRequest(doubled_in_place, (x,))
        for _ in range(3):
            back = agent.call_and_wait(agent.find("b"), request, timeout=SECONDS)
            assert total(back) == 2 * COUNT
        assert agent.lending.counts() == {"bytes": 0, "peak": 0, "lent": 0, "free": 0}


def test_nothing_is_lent_within_a_process() -> None:
    with threads("a", "b") as (a, b):
        x = runtime.ones(COUNT)
        for to in (a, b):
            request = CallRequest(doubled_in_place, (x,))
            back = a.call_and_wait(to.node, request, timeout=SECONDS)
            assert (total(back), total(x)) == (2 * COUNT, COUNT)
        assert a.lending.counts()["peak"] == b.lending.counts()["peak"] == 0


def wait_for_ever(x: Any) -> None:
    signal.pause()


def test_what_was_lent_to_a_lost_worker_is_let_go() -> None:
    with processes("fork", ["a", "b"], settings=HASTY) as (agent, (other,)):
        node = agent.find("b")
        x = runtime.ones(COUNT)
        asked = CallRequest(total, (x,))
        assert lends(agent, lambda: agent.call_and_wait(node, asked, timeout=SECONDS))
        future = agent.call(node, CallRequest(wait_for_ever, (x,)), timeout=SECONDS)
        assert agent.wait_until(lambda: agent.lending.counts()["lent"] > 0, SECONDS)
        other.signal(signal.SIGKILL)
        with pytest.raises(WorkerLost):
            future.wait(SECONDS)
        assert agent.wait_until(lambda: agent.lending.counts()["lent"] == 0, SECONDS)


def test_what_is_lent_counts_as_if_it_was_sent() -> None:
    small = Settings(heartbeat=0.3, dead=30.0, expire=40.0, largest=4 * COUNT)
    with processes("fork", ["a", "b"], settings=small) as (agent, _):
        request = CallRequest(total, (runtime.ones(2 * COUNT),))
        for _ in range(3):
            with pytest.raises(Unsendable, check=code("PayloadTooLarge")):
                agent.call_and_wait(agent.find("b"), request, timeout=SECONDS)
        assert agent.lending.counts()["lent"] == 0


@pytest.mark.parametrize(
    ("mark", "error"),
    [
        (b"\1", Undecodable),
        (b"\0\0\0\0", Undecodable),
        (b"\2\0\0\0", Undecodable),
        (b"\1\0\0\0", BlockGone),
    ],
)
def test_payloads_that_are_none_of_ours(mark: bytes, error: type[Exception]) -> None:
    with threads("a") as (agent,), pytest.raises(error):
        agent.lending.incoming(agent.node, [b"1", b"no token", mark])


def test_a_payload_of_several_frames_is_marked() -> None:
    with threads("a") as (agent,):
        lending, node = agent.lending, agent.node
        assert lending.outgoing(node, [b"1"]) == [b"1"]
        sent = lending.outgoing(node, [b"1", b"2", b"\1\0\0\0"])
        assert sent == [b"1", b"2", b"\1\0\0\0", b""]
        assert lending.incoming(node, sent) == [b"1", b"2", b"\1\0\0\0"]


def three(*tensors: Any) -> float:
    return sum(map(total, tensors))


def refused(_: Any, call: str) -> None:
    raise OSError(errno.ENOMEM, call)


def without(call: str) -> None:
    """Have the system refuse something in this process from now on."""
    setattr({"mmap": mmap}.get(call, os), call, lambda *_, **__: refused(_, call))


def with_it(call: str) -> None:
    module = {"mmap": mmap}.get(call, os)
    setattr(module, call, KEPT[call])


KEPT = {
    "mmap": mmap.mmap,
    "open": os.open,
    "posix_fallocate": os.posix_fallocate,
    "memfd_create": os.memfd_create,
}


@pytest.mark.parametrize("call", ["posix_fallocate", "memfd_create"])
def test_where_there_is_no_memory_to_lend_all_is_sent(call: str) -> None:
    """At the caller, and at who answers."""
    before = shared()
    with processes("fork", ["a", "b"]) as (agent, (other,)):
        node = agent.find("b")
        large = CallRequest(doubled_in_place, (runtime.ones(COUNT),))

        def ask() -> Any:
            return agent.call_and_wait(node, large, timeout=SECONDS)

        assert lends(agent, ask)
        other.do(without, call)
        without(call)
        try:
            larger = CallRequest(doubled_in_place, (runtime.ones(9 * COUNT),))
            for _ in range(3):
                back = agent.call_and_wait(node, larger, timeout=SECONDS)
                assert total(back) == 18 * COUNT
        finally:
            with_it(call)
        assert agent.lending.counts()["peak"] < 9 * COUNT * 4
        other.do(with_it, call)
        assert total(ask()) == 2 * COUNT
    assert shared() == before


@pytest.mark.parametrize("call", ["mmap", "open"])
def test_who_cannot_have_what_was_lent_says_so_and_gives_it_back(call: str) -> None:
    with processes("fork", ["a", "b"]) as (agent, (other,)):
        node = agent.find("b")
        asked = CallRequest(three, tuple(runtime.ones(COUNT) for _ in range(3)))

        def ask() -> Any:
            return agent.call_and_wait(node, asked, timeout=SECONDS)

        assert lends(agent, ask)
        other.do(without, call)
        for _ in range(3):
            with pytest.raises(RemoteError, match="BlockGone") as error:
                ask()
            assert call in str(error.value)
        other.do(with_it, call)
        assert ask() == 3 * COUNT
        assert agent.wait_until(lambda: agent.lending.counts()["lent"] == 0, SECONDS)


@pytest.mark.parametrize("mark", [b"\1", b"\2\0\0\0", b"\1\0\0\0"])
def test_what_nobody_reads_is_dropped_whatever_it_is(mark: bytes) -> None:
    with threads("a") as (agent,):
        agent.lending.drop(agent.node, [b"1", b"no token", mark])


def test_a_request_that_nobody_waits_for_ends_without_its_lender() -> None:
    with threads("a") as (agent,):
        called = Called(agent.node, 7, [b"1", b"no token", b"\1\0\0\0"])
        job = Job(agent, called, None)
        job.cancelled = True
        agent._jobs[agent.node, 7] = job
        serve(job)
        assert agent.is_idle()
