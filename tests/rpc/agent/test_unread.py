"""Errors of calls whose futures are dropped: those that were not read are logged."""

import gc
import logging
import threading
from collections.abc import Iterator

import pytest

from everyorder.runtime.futures import Future, collect_all, wait_all
from everyorder.runtime.rpc.agent import Agent, CallRequest
from tests.rpc.worlds import SECONDS, threads


class Lines(logging.Handler):
    """The messages of errors of workers, by the calls in them."""

    def __init__(self, agent: Agent) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []
        self._agent = agent

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        self._agent.notify_watchers()


@pytest.fixture
def world() -> Iterator[tuple[Agent, Agent, Lines]]:
    logger = logging.getLogger("everyorder.runtime.rpc")
    with threads("a", "b") as (a, b):
        lines = Lines(a)
        logger.addHandler(lines)
        try:
            yield a, b, lines
        finally:
            logger.removeHandler(lines)


World = tuple[Agent, Agent, Lines]
FAILS = pytest.raises(ValueError, match="invalid literal")


def failing(world: World, what: str) -> Future[int]:
    a, b, _ = world
    return a.call(b.node, CallRequest(int, (what,)), timeout=SECONDS)


def logged(world: World, what: str) -> bool:
    """Whether the error of a call is logged in the end."""
    a, _, lines = world
    return a.wait_until(lambda: any(f"'{what}'" in t for t in lines.lines), SECONDS)


def test_an_error_that_nobody_reads_is_logged(world: World) -> None:
    failing(world, "dropped at once")
    assert logged(world, "dropped at once")
    future = failing(world, "dropped later")
    assert world[0].wait_until(future.done, SECONDS)
    gc.collect()
    assert len(world[2].lines) == 1
    del future
    assert logged(world, "dropped later")
    assert world[2].lines[-1].startswith("a: the call int on b failed")


def test_an_error_that_is_read_is_not_logged(world: World) -> None:
    read = failing(world, "waited")
    with FAILS:
        read.wait(SECONDS)
    assert isinstance(read.error(), ValueError)
    read = failing(world, "asked")
    assert world[0].wait_until(read.done, SECONDS)
    assert isinstance(read.error(), ValueError)
    then = failing(world, "followed").then(lambda future: type(future.error()))
    assert issubclass(then.wait(SECONDS), ValueError)
    some = [failing(world, "first"), failing(world, "second")]
    with FAILS:
        collect_all(some).wait(SECONDS)
    with FAILS:
        wait_all([failing(world, "third")])
    del read, some
    gc.collect()
    failing(world, "the only one")
    assert logged(world, "the only one")
    assert len(world[2].lines) == 1


GATE = threading.Event()


def wait_for_gate() -> None:
    GATE.wait(SECONDS)


def test_calls_that_this_worker_ends_itself_are_not_logged(world: World) -> None:
    a, b, lines = world
    waiting = a.call(b.node, CallRequest(wait_for_gate), timeout=None)
    try:
        a.close()
        assert waiting.done()
        del waiting
        gc.collect()
        a.log_unread()
        assert lines.lines == []
    finally:
        GATE.set()


def test_errors_of_futures_that_were_waited_for_together_are_read(world: World) -> None:
    futures = [failing(world, f"number {number}") for number in range(3)]
    assert world[0].wait_until(lambda: all(each.done() for each in futures), SECONDS)
    with FAILS:
        wait_all(futures)
    futures.clear()
    gc.collect()
    failing(world, "the last one")
    assert logged(world, "the last one")
    assert len(world[2].lines) == 1
