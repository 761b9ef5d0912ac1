"""Whatever comes at any line, no callback is lost, and nobody waits for ever.

Of each operation every point is tried once, in a fresh world.
"""

import logging
import os
import random
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import pytest

import everyorder.runtime.futures
from everyorder.runtime.errors import FutureTimeout
from everyorder.runtime.futures import awaits, completion, future
from tests.forking import free_logging
from tests.injection.futures import OPERATIONS, WITH_THREADS, Noting, World, wrong
from tests.injection.interrupting import (
    ROUNDS,
    Round,
    at_depths,
    at_lines,
    at_places,
    interrupted,
)

FOLDERS = (str(Path(everyorder.runtime.futures.__file__).parent) + os.sep,)
WAYS: dict[str, Round] = {
    "lines": at_lines,
    "places": at_places,
    "depths": at_depths,
}
# That a callback was begun it notes itself; and logging has locks of its own.
SPARED = frozenset((Noting.__call__.__code__, logging.Logger.error.__code__))
# No operation has so many points.
MOST = 5_000


@pytest.fixture(autouse=True)
def _silent(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Callbacks fail on purpose, thousands of times."""
    with caplog.at_level(logging.CRITICAL, "everyorder.runtime.futures"):
        yield


def tried(name: str, way: str) -> tuple[int, list[str]]:
    """How many points an operation has, and what was wrong after which of them."""
    act, play = OPERATIONS[name], WAYS[way]
    failed = []
    for _ in range(3):
        act(World())
    for at in range(1, MOST):
        world = World()
        where = play(partial(act, world), FOLDERS, at)
        told = wrong(world)
        if told is not None:
            failed.append(f"{where}: {told}")
        if where is None:
            return at - 1, failed
    raise AssertionError("there are more points")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_at_every_point(name: str, way: str) -> None:
    """A callback lost or called twice, who waits for ever, a lock that is held."""
    points, failed = tried(name, way)
    print(f"{name}, {way}: {points} points, {len(failed)} failures")
    assert points > 5, "nothing was interrupted"
    assert failed == [], f"{len(failed)} of {points} points"


def _loses_the_rest(stack: Any, interrupt: BaseException) -> None:
    stack.clear()


def _forgets_nobody(self: Any, timeout: float | None) -> Any:
    waiter: SimpleQueue[None] = SimpleQueue()
    with completion.LOCK:
        self._waiters.add(waiter)
    with suppress(Empty):
        waiter.get(timeout=timeout)
    self._waiters.discard(waiter)
    if self._outcome is None:
        raise FutureTimeout(seconds=0)
    return self._outcome


def _is_said_to_run(self: Any) -> Any:
    user = self, threading.get_ident()
    awaits._USERS.add(user)
    with self.lock:
        self.value, self.done = self.fn(*self.args, **self.kwargs), True
    awaits._USERS.discard(user)
    return self.value


FAULTS = [
    (completion, "_resume", _loses_the_rest, "complete", "callbacks:"),
    (future.Future, "_wait_outcome", _forgets_nobody, "wait_in_vain", "before it is"),
    (awaits._Call, "run", _is_said_to_run, "run_an_await", "said to run"),
]


@pytest.mark.parametrize(("where", "name", "fault", "operation", "told"), FAULTS)
def test_a_fault_is_found(
    where: Any,
    name: str,
    fault: Any,
    operation: str,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is easily written, and lost something in an interrupted round."""
    monkeypatch.setattr(where, name, fault)
    # Its own lines are interrupted as well.
    monkeypatch.setattr("tests.injection.test_futures.FOLDERS", (*FOLDERS, __file__))
    _, failed = tried(operation, "lines")
    assert any(told in each for each in failed)


def played(seed: int, rounds: int) -> tuple[int, list[str]]:
    """How often a signal came while an operation ran, and what was wrong after it."""
    chance, came, failed = random.Random(seed), 0, []
    alone = [name for name, act in OPERATIONS.items() if act not in WITH_THREADS]
    for _ in range(rounds):
        name = chance.choice(alone)
        world = World()
        program = partial(OPERATIONS[name], world)
        came += not interrupted(program, chance.uniform(0, 2e-4), SPARED)
        if (told := wrong(world)) is not None:
            failed.append(f"{name}: {told}")
    return came, failed


@pytest.mark.parametrize("rounds", ROUNDS)
def test_at_any_time(rounds: int) -> None:
    """A real signal, by a real timer."""
    seed = random.SystemRandom().getrandbits(32)
    came, failed = played(seed, rounds)
    free_logging()
    print(f"seed {seed}: {rounds} rounds, {came} interrupted, {len(failed)} failures")
    assert came > rounds / 20
    assert failed == [], f"seed {seed}"
