"""Requests: what is left of an error that was told, and what goes on after it."""

import threading
from collections.abc import Callable, Iterator, Sequence
from weakref import ref

import pytest

from everyorder.runtime.errors.rpc import BlockGone, RpcTimeout
from everyorder.runtime.futures import Future
from everyorder.runtime.rpc.agent import Agent, CallRequest, ReferenceHandle
from everyorder.runtime.rpc.codec.remote_errors import free_frames
from tests.coded import code
from tests.rpc.worlds import SECONDS, threads


class Kept:
    """What a frame has; it can be seen to go."""


def fail(kept: Kept) -> None:
    raise ValueError("so")


def catches_and_goes_on() -> Iterator[object]:
    kept = Kept()
    try:
        fail(kept)
    except ValueError as error:
        caught = error
    yield caught
    yield "it goes on"


def raises_and_goes_on() -> Iterator[object]:
    try:
        raise ValueError("so")
    except ValueError as error:
        caught = error
    yield caught
    yield "it goes on"


@pytest.mark.parametrize("generator", [catches_and_goes_on, raises_and_goes_on])
def test_a_generator_that_caught_the_error_goes_on(
    generator: Callable[[], Iterator[object]],
) -> None:
    paused = generator()
    error = next(paused)
    assert isinstance(error, ValueError)
    free_frames(error)
    assert next(paused) == "it goes on"


def ends_by_it(seen: list["ref[Kept]"]) -> Iterator[None]:
    kept = Kept()
    seen.append(ref(kept))
    yield
    fail(kept)


def test_what_frames_have_that_ended_by_the_error_goes() -> None:
    seen: list[ref[Kept]] = []
    running = ends_by_it(seen)
    next(running)
    with pytest.raises(ValueError, match="so") as caught:
        next(running)
    assert seen[0]() is not None
    free_frames(caught.value)
    assert seen[0]() is None


HOLD, HELD = threading.Event(), threading.Event()


def hold() -> None:
    HELD.set()
    HOLD.wait(SECONDS)


def given(reference: object) -> object:
    return reference


def owned(agent: Agent) -> ReferenceHandle:
    value: Future[int] = Future()
    value.set_result(1)
    return agent.own(value)


def is_alone(agent: Agent) -> bool:
    """Whether nobody refers to a value of a worker."""
    return int(agent.debug_info()["num_forks"]) == 0


def test_what_came_with_a_request_that_is_not_begun_is_given_back() -> None:
    HOLD.clear()
    HELD.clear()
    with threads("a", "b", num_worker_threads=1) as (a, b):
        busy = a.call(b.node, CallRequest(hold), timeout=SECONDS)
        assert HELD.wait(SECONDS)
        handle = owned(a)
        late = a.call(b.node, CallRequest(given, (handle,)), timeout=0.01)
        with pytest.raises(RpcTimeout, check=code("RpcTimeout")):
            late.wait(SECONDS)
        assert b.wait_until(
            lambda: any(job.cancelled for job in [*b._jobs.values()]), SECONDS
        )
        HOLD.set()
        busy.wait(SECONDS)
        assert b.wait_until(b.is_idle, SECONDS)
        b.do(lambda _: None, "test")
        assert a.wait_until(lambda: is_alone(a), SECONDS)
        assert b.debug_info()["users"] == 0


def test_what_came_with_a_payload_that_is_gone_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(peer: object, payload: Sequence[object]) -> None:
        raise BlockGone(why="so")

    with threads("a", "b") as (a, b):
        handle = owned(a)
        with monkeypatch.context() as patched:
            patched.setattr(type(b.lending), "incoming", lambda _, *args: gone(*args))
            request = CallRequest(given, (handle,))
            with pytest.raises(BlockGone):
                a.call_and_wait(b.node, request, timeout=SECONDS)
        b.do(lambda _: None, "test")
        assert a.wait_until(lambda: is_alone(a), SECONDS)
        assert b.debug_info()["users"] == 0
