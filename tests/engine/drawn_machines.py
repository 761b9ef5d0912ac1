"""Drawn machines that know their own truth.

A machine is a set of active steps with a hidden number beside it; each
operation may move the number, and what it gives may depend on it.  As the pair of both
is all that there is, everything about all histories can be computed from it, by tables
and without any part of the engine.
"""

import random
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import pytest

from everyorder.harness.engine import History, Relations, SystemBase
from tests.engine.toys import Refused

Place: TypeAlias = tuple[int, int]
"""The active steps as a mask, and the hidden number."""

Shown: TypeAlias = tuple[Hashable, Hashable]
"""What was asked, with the mask at which it was; and what came back."""


@dataclass(frozen=True)
class Odds:
    """How likely it is that an operation is out of the ordinary at a place."""

    moves: float = 0.08
    looks_move: float = 0.03
    shows: float = 0.04
    refuses: float = 0.1
    hidden_refuses: float = 0.02
    relations: bool = True


class Machine(SystemBase):
    """A drawn system; `refusals` are at masks, or at places if they are faulty."""

    def __init__(self, seed: int, odds: Odds, *, printed: bool, settled: bool) -> None:
        draw = random.Random(seed)
        self.printed = printed
        self.settled = settled
        self.steps = draw.choice([1, 2, 2, 3, 3])
        self.uses = draw.choice([0, 0, 1, 2])
        self.look = self.steps + self.uses
        self.hidden = draw.choice([1, 2, 3, 4, 6])
        self.relations = (
            drawn_relations(draw, self.steps)
            if odds.relations
            else SystemBase.relations
        )
        places = [*product(range(1 << self.steps), range(self.hidden))]

        def chance(odd: float) -> bool:
            return draw.random() < odd

        self.moves = {
            (operation, place): draw.randrange(self.hidden)
            if chance(odds.looks_move if operation == self.look else odds.moves)
            else place[1]
            for operation in range(self.look + 1)
            for place in places
        }
        self.shown = {
            (operation, place): chance(odds.shows)
            for operation in range(self.steps, self.look + 1)
            for place in places
        }
        refusable = self.relations.refusable
        blocked = {
            (step, mask): chance(odds.refuses)
            for step in range(self.steps)
            for mask in range(1 << self.steps)
            if not mask >> step & 1 or step in refusable
        }
        self.blocked = {
            (step, place): blocked[step, place[0]] != chance(odds.hidden_refuses)
            for step in range(self.steps)
            for place in places
            if (step, place[0]) in blocked
        }
        self.place: Place = (0, 0)

    # As the engine sees it.

    def reset(self) -> None:
        self.place = (0, 0)

    def go(self, operation: int) -> Hashable:
        self.place, value = self.after(self.place, operation)
        if value == "refused":
            raise Refused(operation)
        return value

    def do(self, step: int) -> object:
        self.go(step)
        return None

    def undo(self, step: int, handle: object) -> None:
        self.go(step)

    def use(self, use: int) -> Hashable:
        return self.go(self.steps + use)

    def observe(self) -> Hashable:
        return self.go(self.look)

    def failure(self, error: Exception) -> Hashable:
        return "refused"

    def state(self, handles: Sequence[object] = ()) -> Hashable | None:
        return self.place if self.printed else None

    # As it is.

    def after(self, place: Place, operation: int) -> tuple[Place, Hashable]:
        """Where an operation leads to, and what it gives."""
        mask, _ = place
        hidden = self.moves[operation, place]
        if operation == self.look:
            return (mask, hidden), (mask, self.shown[operation, place])
        if operation >= self.steps:
            return (mask, hidden), self.shown[operation, place]
        if self.blocked.get((operation, place), False):
            return (mask, hidden), "refused"
        return (mask ^ 1 << operation, hidden), None

    def possible(self, mask: int) -> Iterator[int]:
        """The operations that make sense with these steps active, ascending."""
        active = {step for step in range(self.steps) if mask >> step & 1}
        for step in range(self.steps):
            if step in active:
                needed = any(
                    step in needs
                    for other, needs in self.relations.requires.items()
                    if other in active
                )
                if not needed:
                    yield step
            elif self.relations.excludes.get(step, frozenset()) & active:
                continue
            elif self.relations.requires.get(step, frozenset()) <= active:
                yield step
        yield from range(self.steps, self.look + 1)

    def end(self, history: History) -> Place:
        """Where a history leads to from the beginning."""
        place = (0, 0)
        for operation in history:
            if operation in set(self.possible(place[0])):
                place, _ = self.after(place, operation)
        return place

    def ways(self) -> dict[int, History]:
        """The shortest history of steps to each mask, breadth first, as documented."""
        ways: dict[int, History] = {0: ()}
        queue = [0]
        for mask in queue:
            for step in range(self.steps):
                if mask ^ 1 << step in ways or step not in set(self.possible(mask)):
                    continue
                reached = self.end((*ways[mask], step))[0]
                if reached not in ways:
                    ways[reached] = (*ways[mask], step)
                    queue.append(reached)
        return ways


def drawn_relations(draw: random.Random, steps: int) -> Relations:
    """Often none; sometimes a step that needs another, or that is not let go.

    Of two steps of which neither needs the other, one sometimes excludes the other.
    """
    requires: dict[int, frozenset[int]] = {}
    if steps > 1 and draw.random() < 0.15:
        step, needed = draw.sample(range(steps), 2)
        requires[step] = frozenset({needed})
    refusable = {step for step in range(steps) if draw.random() < 0.1}
    excludes: dict[int, frozenset[int]] = {}
    if steps > 1 and not requires and draw.random() < 0.15:
        one, other = draw.sample(range(steps), 2)
        excludes = {one: frozenset({other}), other: frozenset({one})}
    return Relations(
        requires=requires, excludes=excludes, refusable=frozenset(refusable)
    )


def parts(count: int, at_once: int, *, rest: Any = pytest.mark.slow) -> list[Any]:
    """The numbers of `count` parts of the seeds, for `parametrize`.

    `make test` plays the first `at_once` of them; the others have the mark `rest`.
    """
    long = (pytest.param(part, marks=rest) for part in range(count))
    return [*range(at_once), *list(long)[at_once:]]
