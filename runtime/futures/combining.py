"""Futures made of others: of several, of one and callbacks, and of other libraries'.

`collect_all` waits for all futures, and its error is that of the first in the list;
`wait_all` waits for the first error that comes.  `call_end_callbacks` is complete after
its callbacks were called.  A future of `concurrent.futures` or of asyncio is asked for
its outcome when it is complete; the table of `runtime.futures.future` says what becomes
of one that is cancelled.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from runtime.errors.future import FutureCancelled, FutureMisuse, described
from runtime.futures.future import Future, hand_on
from runtime.futures.settling import Error, Outcome, Step, Value

if TYPE_CHECKING:
    import asyncio
    import concurrent.futures


T = TypeVar("T")
_Steps = list[tuple[Future[Any], Step]]


def collect_all(futures: Iterable[Future[T]]) -> Future[list[Future[T]]]:
    """A future of the same futures, complete when all of them are.

    With an error among them it is completed with the error of the first in the list.

    Raises:
        FutureMisuse: one of them is no future.
    """
    return _combined("collect_all", futures, at_first_error=False)[0]


def wait_all(futures: Iterable[Future[T]]) -> list[T]:
    """The values of all futures, in their order.

    Raises:
        FutureMisuse: one of them is no future.
        BaseException: the first error that came; the others are not waited for.
    """
    complete, steps = _combined("wait_all", futures, at_first_error=True)
    try:
        return [each.value() for each in complete.wait()]
    finally:
        # Those that are not waited for any more may live long.
        _withdraw(steps)
        # As in `Future.wait`.
        del futures, complete, steps


def call_end_callbacks(
    future: Future[T], *callbacks: Callable[[Future[T]], object]
) -> Future[T]:
    """A future with the same outcome, complete after the callbacks were called.

    For whoever measures how long a value takes, whatever it is: errors of the callbacks
    are logged, and change nothing of the outcome.

    Raises:
        FutureMisuse: `future` is no future, or a callback cannot be called.
    """
    (future,) = _checked("call_end_callbacks", [future])
    after: Future[T] = Future()
    for each in callbacks:
        future.add_done_callback(each)
    future._register(Step(None, after, hand_on))
    return after


def _combined(
    call: str, futures: Iterable[Future[T]], at_first_error: bool
) -> tuple[Future[list[Future[T]]], _Steps]:
    """The future of all, and what is registered at each."""
    members = _checked(call, futures)
    combined: Future[list[Future[T]]] = Future()
    if not members:
        combined.set_result([])
    # The places of those that are complete: who is told twice changes nothing.
    complete: set[int] = set()
    steps: _Steps = []
    for place, each in enumerate(members):
        told = partial(_told, members, complete, place, at_first_error)
        steps.append((each, Step(None, combined, told)))
        each._register(steps[-1][1])
    return combined, steps


def _withdraw(steps: _Steps) -> None:
    for future, step in steps:
        future._withdraw(step)


def _told(
    members: list[Future[Any]],
    complete: set[int],
    place: int,
    at_first_error: bool,
    member: Future[Any],
    combined: object,
) -> Outcome | None:
    """The outcome of all, now that one more is complete; None before the last."""
    outcome = member._outcome
    if at_first_error and isinstance(outcome, Error):
        return outcome
    complete.add(place)
    if len(complete) < len(members):
        return None
    errors = (each._outcome for each in members)
    return next((each for each in errors if isinstance(each, Error)), Value(members))


def _checked(call: str, futures: Iterable[Any]) -> list[Future[Any]]:
    members = list(futures)
    for place, each in enumerate(members):
        if not isinstance(each, Future):
            raise FutureMisuse(
                code="FutureMisuse",
                call=call,
                found=f"{described(each)} at place {place}",
                wanted="futures of `runtime.futures`",
            )
    return members


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
            code="FutureMisuse",
            call=call,
            found=described(other),
            wanted=f"a future of `{call.removeprefix('from_')}`",
        )
