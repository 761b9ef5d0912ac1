"""Whatever comes at any line, nothing is registered that nobody owns.

Of each operation every point is tried once, on a fresh dispatcher.
"""

import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import everyorder.runtime.dispatch
from everyorder.runtime.dispatch import (
    Library,
    Registration,
    dispatcher,
    fingerprint,
    library,
    registration,
)
from tests.injection import dispatchers
from tests.injection.dispatchers import (
    OPERATIONS,
    RETURNING,
    Believer,
    World,
    wrong,
)
from tests.injection.interrupting import (
    ROUNDS,
    Round,
    at_depths,
    at_lines,
    at_places,
    interrupted,
)
from tests.injection.telling import Record, Told, tell
from tests.torch_dispatch.thread_state import Look

# What is interrupted: the dispatcher, and who registers rules with it.
FOLDERS = (
    str(Path(everyorder.runtime.dispatch.__file__).parent) + os.sep,
    str(
        Path(everyorder.runtime.dispatch.__file__).parents[1]
        / "torch_dispatch"
        / "rules.py"
    ),
)
WAYS: dict[str, Round] = {
    "lines": at_lines,
    "places": at_places,
    "depths": at_depths,
}
# What a listener was told of when it is interrupted itself, it alone knows.
LISTENING = frozenset(
    (
        Believer.on_operator_registered.__code__,
        Believer.on_operator_deregistered.__code__,
    )
)
# No operation has so many points.
MOST = 5_000


def outcomes(act: Callable[[World], object]) -> tuple[object, object]:
    """The state before, and after, where nothing comes; caches are warm by then."""
    for _ in range(3):
        world = World()
        before = fingerprint(world.dispatcher.state)
        act(world)
        world.dispatcher.drain()
    return before, fingerprint(world.dispatcher.state)


def tried(name: str, way: str) -> tuple[int, list[str]]:
    """How many points an operation has, and what was wrong after which of them."""
    act, play = OPERATIONS[name], WAYS[way]
    expected, failed = outcomes(act), []
    for at in range(1, MOST):
        world, before = World(), Look()
        where = play(partial(act, world), FOLDERS, at)
        told = wrong(world, before, expected, where or "")
        if told is not None:
            failed.append(f"{where}: {told}")
        if where is None:
            return at - 1, failed
    raise AssertionError("there are more points")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_at_every_point(name: str, way: str, record_property: Record) -> None:
    """A state between two, an orphan, a lock that is held, a listener misled: none."""
    points, failed = tried(name, way)
    told = Told(
        operation=f"{name}, {way}", points=points, of=points, failures=len(failed)
    )
    tell(record_property, told)
    assert points > 2, "nothing was interrupted"
    assert failed == [], f"{len(failed)} of {points} points"


def _forgets_first(registry: Any, ledger: Any, keys: Any, tokens: Any) -> None:
    for key in keys:
        ledger.pop(key, None)
    registry.unregister(tokens)


def _owns_last(registry: Any, ledger: Any, tokens: Any, exclusive: bool = False) -> Any:
    registry.register(tokens, exclusive)
    return Registration(registry, ledger, tokens)


def _tells_one_by_one(calls: Any, errors: list[BaseException]) -> None:
    for each in calls:
        told = [each]
        told.pop()()


class _Finalized(Library):
    """Is taken down by a method of Python's, and not by its dispatcher."""

    __slots__ = ()

    def __del__(self) -> None:
        left = [token for held in self._ledger.values() for token in held]
        self._dispatcher.disown(self)
        self._dispatcher.dropped.append(left)


FAULTS = [
    (registration, "take_down", _forgets_first, "a kernel is closed", "nobody owns"),
    (library, "register_tokens", _owns_last, "impl", "nobody owns"),
    (
        dispatcher,
        "_notify_all",
        _tells_one_by_one,
        "a definition is closed",
        "believes",
    ),
    (dispatchers, "Library", _Finalized, "a library is lost", "nobody owns"),
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
    """What was so once: each was seen in thousands of rounds."""
    monkeypatch.setattr(where, name, fault)
    # Its own lines are interrupted as well.
    monkeypatch.setattr("tests.injection.test_dispatch.FOLDERS", (*FOLDERS, __file__))
    _, failed = tried(operation, "places")
    assert any(told in each for each in failed)


def played(seed: int, rounds: int) -> tuple[int, list[str]]:
    """How often a signal came while an operation ran, and what was wrong after it."""
    chance, came = random.Random(seed), 0
    known = {name: outcomes(act) for name, act in OPERATIONS.items()}
    failed = []
    for _ in range(rounds):
        name = chance.choice(list(OPERATIONS))
        world, before = World(), Look()
        program = partial(OPERATIONS[name], world)
        done = interrupted(program, chance.uniform(0, 2e-4), LISTENING)
        came += not done
        # Where it came nobody knows: what was about to be returned may be lost.
        where = "" if done else RETURNING[0]
        if (told := wrong(world, before, known[name], where)) is not None:
            failed.append(f"{name}: {told}")
    return came, failed


@pytest.mark.parametrize("rounds", ROUNDS)
def test_at_any_time(rounds: int, record_property: Record) -> None:
    """A real signal, by a real timer."""
    seed = random.SystemRandom().getrandbits(32)
    came, failed = played(seed, rounds)
    name = "operations of dispatchers, a timer"
    told = Told(
        operation=name, rounds=rounds, came=came, seed=seed, failures=len(failed)
    )
    tell(record_property, told)
    assert came > rounds / 20
    assert failed == [], f"seed {seed}"
