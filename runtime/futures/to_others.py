"""Futures for others: of `concurrent.futures` and of `asyncio`, with our outcomes.

True only here: what becomes of cancelling.  A future of ours cannot be cancelled: it
stands for work that nobody takes back.

| made by                           | where the other side is cancelled                |
|-----------------------------------|--------------------------------------------------|
| `to_concurrent`                   | it cannot be: it runs from the start             |
| `to_asyncio`, `await future`      | it alone is; ours goes on, and tells nobody      |
| `from_concurrent`, `from_asyncio` | ours is completed with `FutureCancelled`         |

Rules:
- values and exceptions cross as they are; but no coroutine can raise StopIteration;
- a future of asyncio is touched on the thread of its loop only; a loop that is closed
  is not told;
- who waits with `wait` stops his loop: coroutines say `await`;
- the libraries are loaded when they are first needed.
"""

from typing import TYPE_CHECKING, Any, TypeVar

from runtime.errors.future import FutureMisuse
from runtime.futures.settling import Step

if TYPE_CHECKING:
    import asyncio
    import concurrent.futures

    from runtime.futures.future import Future

T = TypeVar("T")


def to_concurrent(future: "Future[T]") -> "concurrent.futures.Future[T]":
    """A future of `concurrent.futures` with the same outcome."""
    from concurrent.futures import Future as Concurrent

    other: Concurrent[T] = Concurrent()
    other.set_running_or_notify_cancel()

    def tell(settled: "Future[T]") -> None:
        error = settled.error()
        if error is None:
            other.set_result(settled.value())
        else:
            other.set_exception(error)

    future.add_done_callback(tell)
    return other


def to_asyncio(future: "Future[T]") -> "asyncio.Future[T]":
    """A future of the loop that runs in this thread, with the same outcome.

    Raises:
        RuntimeError: no loop runs in this thread.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    other: asyncio.Future[T] = loop.create_future()

    def tell() -> None:
        # Who awaited it may have been cancelled.
        if not other.done():
            _tell(future, other)

    def tell_loop(settled: "Future[T]") -> None:
        try:
            loop.call_soon_threadsafe(tell)
        except RuntimeError:
            if not loop.is_closed():
                raise

    if future.done():
        tell()
    else:
        step = Step(tell_loop, None)
        future._register(step)
        # Who is cancelled again and again leaves nothing behind.
        other.add_done_callback(lambda _: future._withdraw(step))
    return other


def _tell(settled: "Future[Any]", other: Any) -> None:
    error = settled.error()
    if error is None:
        other.set_result(settled.value())
        return
    if isinstance(error, StopIteration):
        # Inside of a coroutine it means an end without an error; asyncio refuses it.
        told = FutureMisuse(
            call="await",
            found="a future that was completed with StopIteration",
            wanted="errors that a coroutine can raise",
        )
        told.__cause__ = error
        error = told
    other.set_exception(error)
