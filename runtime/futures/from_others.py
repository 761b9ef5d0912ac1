"""Futures of others: of `concurrent.futures` and of `asyncio`, as futures of ours.

True only here: where a future of another library is asked for its outcome.  What
becomes of cancelling, and the other way, is told in `to_others`.
"""

from typing import TYPE_CHECKING, Any, TypeVar

from runtime.errors.future import FutureCancelled, FutureMisuse, described
from runtime.futures.future import Future
from runtime.futures.outcome import Value

if TYPE_CHECKING:
    import asyncio
    import concurrent.futures

T = TypeVar("T")


def from_concurrent(other: "concurrent.futures.Future[T]") -> Future[T]:
    """A future with the outcome of one of `concurrent.futures`.

    Raises:
        FutureMisuse: it is none.
    """
    from concurrent.futures import Future as Concurrent

    _check("from_concurrent", other, Concurrent)
    future: Future[T] = Future()

    def tell(settled: "concurrent.futures.Future[T]") -> None:
        _take(future, settled, "concurrent.futures")

    other.add_done_callback(tell)
    return future


def from_asyncio(other: "asyncio.Future[T]") -> Future[T]:
    """A future with the outcome of a future or task of asyncio, from any thread.

    Raises:
        FutureMisuse: it is none.
        RuntimeError: it is not complete, and its loop is closed.
    """
    import asyncio

    _check("from_asyncio", other, asyncio.Future)
    future: Future[T] = Future()

    def tell(settled: "asyncio.Future[T]") -> None:
        _take(future, settled, "asyncio")

    loop = other.get_loop()
    if other.done():
        # Its loop may never run again.
        tell(other)
    elif asyncio._get_running_loop() is loop:
        other.add_done_callback(tell)
    else:
        loop.call_soon_threadsafe(other.add_done_callback, tell)
    return future


def _take(future: Future[Any], settled: Any, library: str) -> None:
    if settled.cancelled():
        future.set_error_if_needed(FutureCancelled(library=library))
    elif (error := settled.exception()) is not None:
        future.set_error_if_needed(error)
    else:
        # Somebody may have completed it, as with an error.
        future._offer(Value(settled.result()))


def _check(call: str, other: object, kind: type) -> None:
    if not isinstance(other, kind):
        raise FutureMisuse(
            call=call,
            found=described(other),
            wanted=f"a future of `{call.removeprefix('from_')}`",
        )
