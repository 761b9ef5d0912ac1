"""Futures of remote calls: the futures of everybody, with values and no messages."""

from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import rpc
from everyorder.runtime.futures import Future
from tests.rpc.api import remote_functions as remote
from tests.rpc.api.bodies import OTHER, THIRD, in_world


@pytest.mark.spec("rpc 0.8", "futures hold values, never messages")
@pytest.mark.spec("rpc 0.13", "the future of everybody, with its name and its methods")
@in_world
def test_a_call_gives_a_future_of_the_value() -> None:
    future = rpc.rpc_async(OTHER, remote.add, (1, 2))
    assert type(future) is Future
    assert (future.wait(), future.value(), future.done()) == (3, 3, True)


@pytest.mark.spec("rpc 8 futures", "callbacks")
@in_world
def test_a_callback_gets_the_future_and_gives_a_value() -> None:
    first = rpc.rpc_async(OTHER, remote.add, (1, 2))
    second = first.then(lambda done: done.wait() + 10)
    assert second.wait() == 13
    assert rpc.rpc_async(OTHER, remote.nothing).then(lambda d: d.wait()).wait() is None


@pytest.mark.spec("rpc 8 futures", "callbacks")
@in_world
def test_a_chain_of_callbacks() -> None:
    future = rpc.rpc_async(OTHER, remote.add, (0, 0))
    for _ in range(20):
        future = future.then(lambda before: before.wait() + 1)
    assert future.wait() == 20


@pytest.mark.spec("rpc 8 futures", "callbacks")
@in_world
def test_a_callback_may_call_on() -> None:
    def call_on(done: Future[int]) -> Any:
        return rpc.rpc_sync(THIRD, remote.add, (done.wait(), 5))

    assert rpc.rpc_async(OTHER, remote.add, (1, 2)).then(call_on).wait() == 8
    inner = rpc.rpc_async(OTHER, remote.add, (1, 2)).then_async(
        lambda done: rpc.rpc_async(THIRD, remote.add, (done.wait(), 6))
    )
    assert inner.wait() == 9


@pytest.mark.spec("rpc 8 futures", "callbacks")
@in_world
def test_callbacks_of_the_wrong_kind() -> None:
    future = rpc.rpc_async(OTHER, remote.add, (1, 2))
    with pytest.raises(RuntimeError, match=r"missing|positional"):
        future.then(lambda: 1).wait()  # type: ignore[misc,arg-type]
    with pytest.raises(TypeError):
        future.then(3)  # type: ignore[arg-type]


@pytest.mark.spec("rpc 8 futures", "done, errors")
@in_world
def test_an_error_reaches_a_callback_that_waits() -> None:
    future = rpc.rpc_async(OTHER, remote.raises, (ValueError, "Expected error"))
    with pytest.raises(RuntimeError, match="Expected error"):
        future.then(lambda done: done.wait()).wait()
    assert future.then(lambda done: 3).wait() == 3


@pytest.mark.spec("rpc 8 futures", "done, errors")
@in_world
def test_an_error_of_a_callback() -> None:
    def fail(done: Future[int]) -> None:
        raise ValueError("Another expected error")

    with pytest.raises(RuntimeError, match="Another expected error"):
        rpc.rpc_async(OTHER, remote.add, (1, 2)).then(fail).wait()


@pytest.mark.spec("rpc 8 futures", "done, errors")
@in_world
def test_done_callbacks() -> None:
    told: Future[int] = Future()
    future = rpc.rpc_async(OTHER, remote.add, (1, 2))
    future.add_done_callback(lambda done: told.set_result(done.value()))
    assert told.wait(60) == 3


@pytest.mark.spec("rpc 8 futures", "wait_all")
@in_world
def test_all_of_several() -> None:
    futures = [rpc.rpc_async(OTHER, remote.add, (n, 1)) for n in range(5)]
    assert runtime.futures.wait_all(futures) == [1, 2, 3, 4, 5]
    every = runtime.futures.collect_all(futures).wait()
    assert [each.value() for each in every] == [1, 2, 3, 4, 5]


@pytest.mark.spec("rpc 8 futures", "wait_all")
@in_world
def test_the_first_error_of_several() -> None:
    futures = [
        rpc.rpc_async(OTHER, remote.add, (1, 1)),
        rpc.rpc_async(OTHER, remote.raises, (ValueError, "Expected error")),
    ]
    with pytest.raises(ValueError, match="Expected error"):
        runtime.futures.wait_all(futures)
    assert futures[0].wait() == 2


@pytest.mark.spec("rpc 8 futures", "before the slow ones")
@in_world
def test_an_error_ends_waiting_before_the_slow_ones() -> None:
    slow = rpc.rpc_async(THIRD, remote.pass_gate, ("first error",))
    failed = rpc.rpc_async(OTHER, remote.raises, (ValueError, "Expected error"))
    with pytest.raises(ValueError, match="Expected error"):
        runtime.futures.wait_all([slow, failed])
    assert not slow.done()
    rpc.rpc_sync(THIRD, remote.open_gate, ("first error",))
    assert slow.wait() is None


@pytest.mark.spec("rpc 0.13", "the future of everybody, with its name and its methods")
@pytest.mark.spec("rpc 8 futures", "completed twice")
@in_world
def test_a_future_is_completed_once() -> None:
    future = rpc.rpc_async(OTHER, remote.add, (1, 2))
    assert future.wait() == 3
    with pytest.raises(RuntimeError, match="is complete"):
        future.set_result(4)
    with pytest.raises(RuntimeError, match="is complete"):
        future.set_exception(ValueError("late"))
    assert future.wait() == 3


@pytest.mark.spec("rpc 8 futures", "not pickled")
@in_world
def test_a_future_does_not_travel() -> None:
    future: Future[int] = Future()
    for call in (rpc.rpc_sync, rpc.rpc_async, rpc.remote):
        with pytest.raises(RuntimeError, match="Future objects cannot be pickled"):
            call(OTHER, remote.identity, (future,))
    waits: tuple[Any, ...] = (
        lambda: rpc.rpc_sync(OTHER, remote.a_future),
        lambda: rpc.rpc_async(OTHER, remote.a_future).wait(),
        lambda: rpc.remote(OTHER, remote.a_future).to_here(),
    )
    for wait in waits:
        with pytest.raises(RuntimeError, match="Future objects cannot be pickled"):
            wait()


@pytest.mark.spec("rpc 8 futures", "wait_all")
@in_world
def test_wait_all_waits_for_what_was_begun_inside() -> None:
    with rpc._wait_all():
        first = rpc.rpc_async(OTHER, remote.pass_gate, ("wait all", 1))
        second = rpc.rpc_async(THIRD, remote.add, (1, 1))
        rpc.rpc_async(OTHER, remote.open_gate, ("wait all",))
        assert len(rpc.api._thread_local_var.future_list) == 3
    assert (first.done(), second.done()) == (True, True)
    assert not hasattr(rpc.api._thread_local_var, "future_list")


def begin_one_that_fails() -> None:
    with rpc._wait_all():
        rpc.rpc_async(OTHER, remote.add, (1, 1))
        rpc.rpc_async(OTHER, remote.raises, (ValueError, "Expected error"))


def fail_inside() -> None:
    with rpc._wait_all():
        rpc.rpc_async(OTHER, remote.add, (1, 1))
        raise KeyError("own")


@pytest.mark.spec("rpc 8 futures", "wait_all")
@in_world
def test_wait_all_raises_what_failed_inside() -> None:
    with pytest.raises(ValueError, match="Expected error"):
        begin_one_that_fails()
    with pytest.raises(KeyError, match="own"):
        fail_inside()
    assert not hasattr(rpc.api._thread_local_var, "future_list")
    with rpc._wait_all():
        pass
