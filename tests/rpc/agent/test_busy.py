"""Workers all of whose threads are busy: what they do for themselves goes on."""

import operator
import threading
from collections import defaultdict

import pytest

from everyorder.runtime.errors.rpc import RpcTimeout
from everyorder.runtime.rpc.agent import CallRequest
from tests.coded import code
from tests.rpc.worlds import SECONDS, threads


def wait_for(name: str) -> bool:
    """Wait as programs do that do not know of futures of ours."""
    return EVENTS[name].wait(SECONDS)


EVENTS: defaultdict[str, threading.Event] = defaultdict(threading.Event)


def test_answers_come_though_all_threads_are_busy() -> None:
    """Results, errors and callbacks: those who wait for them may have to free them."""
    with threads("a", "b", num_worker_threads=2) as (a, b):
        busy = [
            b.call(a.node, CallRequest(wait_for, ("busy",)), timeout=None)
            for _ in range(5)
        ]
        assert a.wait_until(lambda: a.pool.counts() == (2, 0, 3), SECONDS)
        try:
            asked = a.call(b.node, CallRequest(operator.add, (1, 2)), timeout=SECONDS)
            assert asked.wait(SECONDS) == 3
            told = a.call(b.node, CallRequest(operator.add, (1, 2)), timeout=SECONDS)
            assert told.then(lambda done: done.value() + 1).wait(SECONDS) == 4
            late = a.call(b.node, CallRequest(wait_for, ("late",)), timeout=0.05)
            with pytest.raises(RpcTimeout, check=code("RpcTimeout")):
                late.wait(SECONDS)
        finally:
            EVENTS["late"].set()
            EVENTS["busy"].set()
        assert [each.wait(SECONDS) for each in busy] == [True] * 5
    EVENTS.clear()
