"""Request threads: as many as asked for, and one more for each that waits."""

import threading
from collections.abc import Iterator

import pytest

from everyorder.runtime.base.registry import Registry
from everyorder.runtime.futures import Future
from everyorder.runtime.rpc.agent import request_pool as pools
from everyorder.runtime.rpc.agent.request_pool import RequestPool
from tests.rpc.api.bodies import until

SECONDS = 60


@pytest.fixture
def pool() -> Iterator[RequestPool]:
    made = RequestPool("w", 2)
    yield made
    assert made.close(SECONDS)


def settled() -> Future[str]:
    """A future that a request completes with the name of its thread."""
    return Future()


def named(future: Future[str]) -> None:
    future.set_result(threading.current_thread().name)


def test_a_request_may_run_elsewhere_as_long_as_not_all_are_busy() -> None:
    alone, two = RequestPool("w", 1), RequestPool("w", 2)
    gate: Future[str] = Future()
    try:
        assert (alone.has_room(), two.has_room()) == (False, True)
        two.put(lambda told: told.wait(SECONDS), gate)
        assert not two.has_room()
        gate.set_result("open")
        assert until(two.has_room)
    finally:
        assert alone.close(SECONDS)
        assert two.close(SECONDS)


def test_no_thread_before_a_request(pool: RequestPool) -> None:
    assert pool.counts() == (0, 0, 0)


def test_requests_run_on_threads_of_the_worker(pool: RequestPool) -> None:
    futures = [settled() for _ in range(20)]
    for future in futures:
        pool.put(named, future)
    names = {future.wait(SECONDS) for future in futures}
    assert names <= {"w request 1", "w request 2"}
    assert pool.counts()[0] <= 2


def test_an_idle_thread_is_taken_before_another_is_made(pool: RequestPool) -> None:
    for _ in range(5):
        future = settled()
        pool.put(named, future)
        assert future.wait(SECONDS) == "w request 1"
        assert until(lambda: pool.counts()[1] == 1)


def test_each_thread_begins_by_entering() -> None:
    entered: list[str] = []
    pool = RequestPool("w", 1, lambda: entered.append(threading.current_thread().name))
    future = settled()
    pool.put(named, future)
    assert future.wait(SECONDS) == "w request 1"
    assert entered == ["w request 1"]
    assert pool.close(SECONDS)


def nest(depth: int, pool: RequestPool) -> Future[int]:
    """A request that waits for another one, so many times."""
    result: Future[int] = Future()

    def request(left: int) -> None:
        inner: Future[int] = Future()
        if left:
            pool.put(lambda _: inner.set_result(nest(left - 1, pool).wait()), None)
            result.set_result(inner.wait() + 1)
        else:
            result.set_result(0)

    pool.put(request, depth)
    return result


def test_threads_that_wait_are_replaced(pool: RequestPool) -> None:
    assert nest(20, pool).wait(SECONDS) == 20
    assert pool.counts()[0] > 2


def test_without_replacing_nested_requests_starve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pools, "WAITS", Registry("functions that wait"))
    pool = RequestPool("w", 2)
    result = nest(3, pool)
    with pytest.raises(TimeoutError):
        result.wait(0.3)
    monkeypatch.undo()
    assert result.wait(SECONDS) == 3
    assert pool.close(SECONDS)


def test_busy_threads_are_not_replaced(pool: RequestPool) -> None:
    held = threading.Lock()

    def stay(event: threading.Event) -> None:
        event.set()
        with held:
            pass

    began = [threading.Event() for _ in range(2)]
    with held:
        for event in began:
            pool.put(stay, event)
        assert all(event.wait(SECONDS) for event in began)
        third = settled()
        pool.put(named, third)
        with pytest.raises(TimeoutError):
            third.wait(0.1)
        assert pool.counts() == (2, 0, 1)
    third.wait(SECONDS)


def test_surplus_threads_leave(
    pool: RequestPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "_IDLE_SECONDS", 0.02)
    assert nest(8, pool).wait(SECONDS) == 8
    assert until(lambda: pool.counts()[0] <= 2)
    future = settled()
    pool.put(named, future)
    assert future.wait(SECONDS)


def test_a_defect_is_logged_and_the_thread_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError

    alone = RequestPool("w", 1)
    alone.put(fail, None)
    future = settled()
    alone.put(named, future)
    future.wait(SECONDS)
    assert alone.close(SECONDS)
    assert [each.message for each in caplog.records] == ["a request ended by a defect"]


def test_close_waits_for_requests_and_takes_no_more() -> None:
    pool = RequestPool("w", 1)
    began, free = threading.Event(), threading.Event()
    ran: list[int] = []

    def first(_: object) -> None:
        began.set()
        free.wait(SECONDS)
        ran.append(1)

    pool.put(first, None)
    assert began.wait(SECONDS)
    pool.put(ran.append, 2)
    assert not pool.close(0.01)
    pool.put(ran.append, 3)
    free.set()
    assert pool.close(SECONDS)
    assert ran == [1, 2]
    assert pool.counts()[0] == 0


def test_close_by_a_request_does_not_wait_for_itself() -> None:
    pool = RequestPool("w", 1)
    done: Future[bool] = Future()
    pool.put(lambda _: done.set_result(pool.close(SECONDS)), None)
    assert done.wait(SECONDS)


def test_what_a_worker_does_for_itself_waits_for_no_request(pool: RequestPool) -> None:
    began, free = [threading.Event() for _ in range(2)], threading.Event()

    def stay(event: threading.Event) -> None:
        event.set()
        free.wait(SECONDS)

    own = settled()
    pool.put_own(named, own)
    assert own.wait(SECONDS) == "w request 1"
    for event in began:
        pool.put(stay, event)
    assert all(event.wait(SECONDS) for event in began)
    request = settled()
    pool.put(named, request)
    own = settled()
    pool.put_own(named, own)
    assert own.wait(SECONDS).startswith("w own")
    assert not request.done()
    free.set()
    request.wait(SECONDS)


def test_what_a_worker_does_for_itself_has_so_many_threads(
    pool: RequestPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "MOST_OWN", 1)
    began, free = [threading.Event() for _ in range(3)], threading.Event()

    def stay(event: threading.Event) -> None:
        event.set()
        free.wait(SECONDS)

    for event in began[:2]:
        pool.put(stay, event)
    pool.put_own(stay, began[2])
    assert all(event.wait(SECONDS) for event in began)
    late = settled()
    pool.put_own(named, late)
    assert pool.counts() == (2, 0, 1)
    free.set()
    assert late.wait(SECONDS).startswith("w request")
