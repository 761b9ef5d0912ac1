"""Pulses: which processes run, by answers that need no interpreter."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from everyorder.runtime.rpc.transport.interface import LinkState
from tests.rpc.transport.test_faults import World

PULSE = 0.6


@pytest.fixture(params=["tcp", "ipc"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with ExitStack() as ends:
        yield World(ends, request.param, pulse=PULSE)


def comes_to(world: World, condition: Callable[[], bool]) -> None:
    """Wait for a condition; it is looked at now and then."""

    def look() -> bool:
        world.worker.wake_at(0.05)
        return condition()

    world.inbox.until(look)


def test_a_process_is_alive_while_it_runs(world: World) -> None:
    program, endpoint = world.program()
    assert world.worker.alive() == {}
    world.echo(endpoint, b"before")
    comes_to(world, lambda: [*world.worker.alive()] == [endpoint])
    assert world.worker.alive() == {endpoint: PULSE}
    program.stop()
    comes_to(world, lambda: not world.worker.alive())
    program.run.send_signal(signal.SIGCONT)
    comes_to(world, lambda: [*world.worker.alive()] == [endpoint])
    # The link for packets was up all the time.
    assert [each.state for each in world.inbox.links] == [LinkState.UP]
    program.run.send_signal(signal.SIGKILL)
    comes_to(world, lambda: not world.worker.alive())


def test_a_link_that_is_given_up_has_no_pulse(world: World) -> None:
    _, endpoint = world.program()
    _, other = world.program()
    for each in (endpoint, other):
        world.echo(each, each.encode())
    comes_to(world, lambda: len(world.worker.alive()) == 2)
    files = len(os.listdir("/proc/self/fd"))
    for number in range(3):
        world.worker.forget(endpoint)
        comes_to(world, lambda: [*world.worker.alive()] == [other])
        world.echo(endpoint, b"again %d" % number)
        comes_to(world, lambda: len(world.worker.alive()) == 2)
    # The other programs have pulses of their own to this one, sooner or later.
    comes_to(world, lambda: len(os.listdir("/proc/self/fd")) <= files + 4)
    world.worker.close()
    assert world.worker.alive() == {}
