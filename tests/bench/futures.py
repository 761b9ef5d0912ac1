"""Rows about futures and awaits: what one costs, beside those of others.

True only here: one thread; what is waited for is there.  What it costs to wake a thread
is the system's.
"""

import concurrent.futures
import warnings
from collections.abc import Iterator

from everyorder.runtime.futures import Future, awaitable
from tests.bench.calls import TURNS
from tests.bench.compare import torch
from tests.bench.python_dispatch import Loop, loop, row
from tests.bench.row import NO_TORCH, Row, pairs

AWAIT = "an await of a function, made and waited for, over torch's"
THEN = "a future, `then`, `set_result` and `wait`, over torch's"
PLAIN = "a future, `set_result` and `wait`, over torch's"
CALLBACK = "a future, a callback, its result, over that of concurrent.futures"


def three() -> int:
    """What an await computes."""
    return 3


def told(future: object) -> int:
    """A callback."""
    return 3


def chained(kind: type) -> Loop:
    """A future and one that follows it."""

    def run() -> None:
        future = kind()
        child = future.then(told)
        future.set_result(1)
        child.wait()

    return loop(run)


def plain(kind: type) -> Loop:
    """A future that nobody waits for before it is complete."""

    def run() -> None:
        future = kind()
        future.set_result(1)
        future.wait()

    return loop(run)


def futures() -> Iterator[Row]:
    """Futures and awaits, made, completed, asked."""

    def ours() -> None:
        future: Future[int] = Future()
        future.add_done_callback(told)
        future.set_result(1)
        future.wait()

    def theirs() -> None:
        future: concurrent.futures.Future[int] = concurrent.futures.Future()
        future.add_done_callback(told)
        future.set_result(1)
        future.result()

    yield row(CALLBACK, 1, "≤ 1", pairs(loop(ours), loop(theirs), TURNS))
    if torch is None:
        for what in (AWAIT, THEN, PLAIN):
            yield Row(what, "-", "≤ 1", None, NO_TORCH)
        return
    wait, make = torch.jit._awaitable_wait, torch.jit._awaitable
    made = pairs(
        loop(lambda: awaitable(three).wait()), loop(lambda: wait(make(three))), TURNS
    )
    yield row(AWAIT, 1, "≤ 1", made)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = torch.futures.Future
        yield row(THEN, 1, "≤ 1", pairs(chained(Future), chained(other), TURNS))
        yield row(PLAIN, 1, "≤ 1", pairs(plain(Future), plain(other), TURNS))


FUTURE_ROWS = (futures,)
