"""Futures of other libraries, both ways, and what cancelling does."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from everyorder.runtime.errors import FutureCancelled, FutureMisuse
from everyorder.runtime.futures import (
    Future,
    from_asyncio,
    from_concurrent,
    to_asyncio,
    to_concurrent,
)
from tests.futures.test_future import with_error, with_value
from tests.futures.threads import SECONDS, Threads

Concurrent = concurrent.futures.Future


def ran(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, SECONDS))


def test_to_concurrent() -> None:
    """The value, the very exception, and before either nothing."""
    future: Future[Any] = Future()
    other = to_concurrent(future)
    assert not other.done()
    value, error = object(), KeyError("mine")
    future.set_result(value)
    assert other.result() is value
    assert to_concurrent(with_value(None)).result() is None
    assert to_concurrent(with_error(error)).exception() is error


def test_an_end_of_an_iteration_crosses() -> None:
    """Where no coroutine has to raise it, it is an exception like any other."""
    error = StopIteration("mine")
    assert to_concurrent(with_error(error)).exception() is error
    assert from_concurrent(to_concurrent(with_error(error))).error() is error


def test_to_concurrent_from_another_thread() -> None:
    future: Future[int] = Future()
    other = to_concurrent(future)
    with Threads(lambda: other.result(SECONDS)) as threads:
        future.set_result(3)
    assert threads.results == [3]
    done, rest = concurrent.futures.wait([other], SECONDS)
    assert (done, rest) == ({other}, set())


def test_to_concurrent_is_not_cancelled() -> None:
    future: Future[int] = Future()
    other = to_concurrent(future)
    assert other.running()
    assert other.cancel() is False
    future.set_result(3)
    assert other.result() == 3


def test_from_concurrent() -> None:
    other: Concurrent[Any] = Concurrent()
    future = from_concurrent(other)
    assert not future.done()
    value, error = object(), KeyError("mine")
    other.set_result(value)
    assert future.wait() is value
    other = Concurrent()
    other.set_exception(error)
    assert from_concurrent(other).error() is error
    other = Concurrent()
    other.set_exception(SystemExit(3))
    with pytest.raises(SystemExit):
        from_concurrent(other).wait()


def test_from_an_executor() -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        future = from_concurrent(pool.submit(threading.get_ident))
        child = future.then(lambda f: f.wait())
        assert child.wait() != threading.get_ident()


def test_from_concurrent_that_is_cancelled() -> None:
    other: Concurrent[int] = Concurrent()
    future = from_concurrent(other)
    assert other.cancel()
    with pytest.raises(FutureCancelled, match=r"concurrent\.futures"):
        future.wait()


def test_there_and_back() -> None:
    future: Future[int] = Future()
    back = from_concurrent(to_concurrent(future))
    future.set_result(3)
    assert back.wait() == 3


@pytest.mark.parametrize("wrong", [None, 3, Future()])
@pytest.mark.parametrize("call", [from_concurrent, from_asyncio])
def test_what_is_no_future_of_theirs(call: Any, wrong: object) -> None:
    with pytest.raises(FutureMisuse, match=call.__name__):
        call(wrong)


def test_await_what_is_complete() -> None:
    async def main() -> None:
        assert await with_value(3) == 3
        with pytest.raises(KeyError, match="mine"):
            await with_error(KeyError("mine"))

    ran(main())


def test_await_from_another_thread() -> None:
    """The loop goes on meanwhile, and is woken on its own thread."""

    async def main() -> None:
        future: Future[int] = Future()
        turns: list[int] = []

        async def beside() -> None:
            turns.append(1)
            with Threads(lambda: future.set_result(3)):
                pass

        task = asyncio.ensure_future(beside())
        assert await future == 3
        await task
        assert turns == [1]

    ran(main())


def test_an_error_crosses_into_a_loop() -> None:
    async def main() -> None:
        future: Future[int] = Future()
        error = KeyError("mine")
        asyncio.get_running_loop().call_soon(future.set_exception, error)
        with pytest.raises(KeyError) as caught:
            await future
        assert caught.value is error

    ran(main())


@pytest.mark.parametrize("early", [True, False])
def test_what_no_coroutine_can_raise(early: bool) -> None:
    async def main() -> None:
        future: Future[int] = Future()
        settle = [lambda: future.set_exception(StopIteration("x"))]
        if early:
            settle.pop()()
            other = to_asyncio(future)
        else:
            other = to_asyncio(future)
            settle.pop()()
        with pytest.raises(FutureMisuse, match="StopIteration"):
            await other
        with pytest.raises(FutureMisuse, match="StopIteration"):
            await future

    ran(main())


def test_gather_and_wait_for() -> None:
    async def main() -> None:
        first: Future[int] = Future()
        second: Future[int] = Future()
        loop = asyncio.get_running_loop()
        loop.call_soon(second.set_result, 2)
        loop.call_soon(first.set_result, 1)
        found = await asyncio.gather(to_asyncio(first), to_asyncio(second))
        assert [*found] == [1, 2]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(to_asyncio(Future()), 0.001)

    ran(main())


def test_who_awaits_is_cancelled() -> None:
    """The future goes on, and is told to others; its outcome finds nobody there."""

    async def main() -> None:
        future: Future[int] = Future()

        async def waits() -> int:
            return await future

        task = asyncio.ensure_future(waits())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not future.done()
        future.set_result(3)
        await asyncio.sleep(0)
        assert await future == 3

    ran(main())


def test_who_awaits_in_vain_again_and_again_is_forgotten() -> None:
    """A future that lives long does not collect those who gave up."""
    future: Future[int] = Future()
    seen: list[int] = []

    async def main() -> None:
        future.add_done_callback(lambda f: seen.append(1))
        for _ in range(5):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(to_asyncio(future), 0)
        future.add_done_callback(lambda f: seen.append(2))
        other = to_asyncio(future)
        await asyncio.sleep(0)
        assert len(future._callbacks) == 3
        future.set_result(3)
        assert await other == 3

    ran(main())
    assert seen == [1, 2]


def test_a_loop_that_is_closed_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    future: Future[int] = Future()

    async def main() -> None:
        to_asyncio(future)

    ran(main())
    future.set_result(3)
    assert future.value() == 3
    assert caplog.records == []


def test_outside_of_a_loop() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        to_asyncio(Future())


def test_from_asyncio() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        other: asyncio.Future[Any] = loop.create_future()
        future = from_asyncio(other)
        value, error = object(), KeyError("mine")
        other.set_result(value)
        assert await future is value
        other = loop.create_future()
        future = from_asyncio(other)
        other.set_exception(error)
        with pytest.raises(KeyError) as caught:
            await future
        assert caught.value is error

        async def work() -> int:
            return 3

        assert await from_asyncio(asyncio.ensure_future(work())) == 3

    ran(main())


def test_from_asyncio_that_is_cancelled() -> None:
    async def main() -> None:
        other: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        future = from_asyncio(other)
        other.cancel()
        with pytest.raises(FutureCancelled, match="asyncio"):
            await future

    ran(main())


def in_a_loop(act: Callable[[asyncio.AbstractEventLoop], None]) -> None:
    """Do something beside a loop that runs in another thread."""
    loop = asyncio.new_event_loop()

    def run() -> None:
        loop.run_forever()
        loop.close()

    with Threads(run):
        try:
            act(loop)
        finally:
            loop.call_soon_threadsafe(loop.stop)


def test_a_thread_waits_for_a_loop() -> None:
    """From a thread that is not the loop's, and `wait` stops that one alone."""

    def act(loop: asyncio.AbstractEventLoop) -> None:
        async def work() -> int:
            return threading.get_ident()

        task = asyncio.run_coroutine_threadsafe(make_task(work), loop).result(SECONDS)
        assert from_asyncio(task).wait(SECONDS) != threading.get_ident()

    async def make_task(work: Any) -> Any:
        return asyncio.ensure_future(work())

    in_a_loop(act)


@pytest.mark.parametrize("closed", [True, False])
def test_from_what_is_complete_when_no_loop_runs(closed: bool) -> None:
    loop = asyncio.new_event_loop()
    value, failed, gone = (loop.create_future() for _ in range(3))
    value.set_result(3)
    failed.set_exception(KeyError("mine"))
    gone.cancel()
    if closed:
        loop.close()
    try:
        futures = [from_asyncio(each) for each in (value, failed, gone)]
    finally:
        loop.close()
    assert futures[0].value() == 3
    assert isinstance(futures[1].error(), KeyError)
    assert isinstance(futures[2].error(), FutureCancelled)


def test_what_somebody_completed_first_stays(caplog: pytest.LogCaptureFixture) -> None:
    """And nothing is logged by the other library, be it a value or an error."""
    for error in (None, KeyError("theirs")):
        other: Concurrent[int] = Concurrent()
        future = from_concurrent(other)
        future.set_result(1)
        if error is None:
            other.set_result(2)
        else:
            other.set_exception(error)
        assert (future.value(), caplog.records) == (1, [])


def test_from_a_loop_that_is_closed() -> None:
    loop = asyncio.new_event_loop()
    other: asyncio.Future[int] = loop.create_future()
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        from_asyncio(other)
