"""Drawn machines: what is proven is true, what is not is shown by a shortest history.

A machine is a set of steps with a hidden number beside it, which few operations change;
its truth is computed here by looking at every state that can be reached.
"""

import random
from collections.abc import Hashable, Sequence
from contextlib import suppress
from itertools import product

import pytest

from everyorder.harness.engine import (
    Budget,
    Exploration,
    History,
    SystemBase,
    Violation,
    explore,
    operations_of,
)
from everyorder.harness.engine.oracle import Judge
from everyorder.harness.engine.protocol import UNORDERED, Key
from everyorder.harness.engine.reference import map_states
from everyorder.harness.engine.session import ExplorationSession, Meter

MACHINES = 200


class Refused(Exception):
    """A step that fails."""


class Machine(SystemBase):
    """A registry with hidden state; its fingerprint is complete."""

    def __init__(self, seed: int, *, printed: bool = True) -> None:
        draw = random.Random(seed)
        self.printed = printed
        self.steps, self.uses = draw.choice([1, 2, 2, 3]), draw.choice([0, 0, 1])
        self.hidden = draw.choice([2, 3, 4])
        self.look = self.steps + self.uses
        places = [*product(range(1 << self.steps), range(self.hidden))]
        self.moves = {
            (operation, *place): draw.randrange(self.hidden)
            if draw.random() < (0.02 if operation == self.look else 0.08)
            else place[1]
            for operation in range(self.look + 1)
            for place in places
        }
        self.shown = {
            (operation, *place): draw.random() < 0.05
            for operation in range(self.steps, self.look + 1)
            for place in places
        }
        self.refused = {
            (step, active): draw.random() < 0.12
            for step in range(self.steps)
            for active in range(1 << self.steps)
        }
        self.reset()

    def reset(self) -> None:
        self.place = (0, 0)

    def go(self, operation: int) -> Hashable:
        active, hidden = self.place
        after = self.moves[operation, active, hidden]
        if operation >= self.steps:
            self.place = (active, after)
            return self.shown[operation, active, hidden]
        if not active >> operation & 1 and self.refused[operation, active]:
            self.place = (active, after)
            raise Refused(operation)
        self.place = (active ^ (1 << operation), after)
        return None

    def do(self, step: int) -> object:
        return self.go(step)

    def undo(self, step: int, handle: object) -> None:
        self.go(step)

    def use(self, use: int) -> Hashable:
        return self.go(self.steps + use)

    def observe(self) -> Hashable:
        return self.place[0], self.go(self.look)

    def laws(self) -> Sequence[Hashable]:
        return ()

    def failure(self, error: Exception) -> Hashable:
        return error.args

    def state(self, handles: Sequence[object] = ()) -> Hashable | None:
        return self.place if self.printed else None

    def reached(self) -> set[tuple[int, int]]:
        """Every complete state that any history leads to."""
        known = [(0, 0)]
        for place in known:
            for operation in range(self.look + 1):
                self.place = place
                with suppress(Refused):
                    self.go(operation)
                if self.place not in known:
                    known.append(self.place)
        return set(known)

    def agrees(self, longest: int) -> bool:
        """Whether all histories up to a length agree, seen at their ends."""
        known: dict[Hashable, Hashable] = {}
        for length in range(longest + 1):
            for history in product(range(self.look), repeat=length):
                self.reset()
                told: list[tuple[Hashable, Hashable]] = []
                for operation in history:
                    before = self.place[0]
                    found: Hashable = None
                    try:
                        found = self.go(operation)
                    except Refused:
                        found = "refused"
                    told.append(((operation, before), found))
                told.append(((self.look, self.place[0]), self.go(self.look)))
                if any(known.setdefault(key, found) != found for key, found in told):
                    return False
        return True


def explored(machine: Machine, strategy: str) -> Exploration:
    return explore(machine, strategy, budget=Budget(steps=20_000))


@pytest.mark.parametrize("seed", range(0, MACHINES, 10))
def test_a_proof_is_given_exactly_where_it_is_true(seed: int) -> None:
    for each in range(seed, seed + 10):
        machine = Machine(each)
        reached = machine.reached()
        true = len(reached) == len({active for active, _ in reached})
        found = explored(machine, "graph")
        assert found.holds == true, each
        for violation in found.violations:
            assert violation.proven_shortest, each
            assert_shortest(machine, violation)


def assert_shortest(machine: Machine, violation: Violation) -> None:
    """The history fails, and every shorter one of its operations passes."""
    history, kind = violation.shortest, violation.kind
    assert history is not None
    judge = Judge(
        machine,
        canonical(machine),
        ordering=UNORDERED,
        proving=True,
        operations=1_000_000,
    )
    assert judge.fault(history, kind) is not None
    operations = sorted({*history, machine.look})
    for length in range(len(history)):
        for shorter in product(operations, repeat=length):
            assert judge.fault(shorter, None) is None, shorter


def canonical(machine: Machine) -> dict[Key, History]:
    """The reference history of each state that can be reached."""
    session = ExplorationSession(
        machine,
        operations_of(machine),
        Meter(Budget(), None),
        ordering=UNORDERED,
        stop_after=1_000_000,
    )
    map_states(session)
    return session.record.canonical


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_histories_miss_nothing_up_to_their_length(longest: int) -> None:
    for seed in range(MACHINES):
        machine = Machine(seed, printed=False)
        true = machine.agrees(longest)
        found = explored(machine, f"histories:{longest}")
        assert true or not found.holds, seed
        assert found.complete or found.violations, seed
