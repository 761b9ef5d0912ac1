"""Counters that wrap: a fault that only some values of a hidden number show.

The shortest history is computed from the table of the registry, breadth first, with
nothing of the engine.
"""

from collections import deque
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

import pytest

from everyorder.harness.engine import Budget, StateForm, Violation, explore
from tests.engine.related import digest
from tests.engine.toys import Toy

STEPS, USES = 2, 1
USE, LOOK = STEPS, STEPS + USES
# Active steps as a mask, and the counter.
Place = tuple[int, int]
# How much an operation adds to the counter, by the active steps before it.
Weights = Mapping[tuple[int, int], int]

# What the engine sees: no state, all of it, or all but the counter.
VISIBLE = ("nothing", "everything", "no counter")


@dataclass(frozen=True)
class Row:
    """A counter, the value at which it is wrong, and what shows that."""

    modulus: int
    wrong: int
    weights: Weights
    shown_by: int = USE
    # Active steps at which it is shown.
    masks: tuple[int, ...] = (0, 1, 2, 3)

    def is_wrong(self, place: Place, operation: int) -> bool:
        mask, counter = place
        return (operation, counter) == (self.shown_by, self.wrong) and (
            mask in self.masks
        )

    def after(self, place: Place, operation: int) -> Place:
        mask, counter = place
        added = self.weights.get((operation, mask), 0)
        mask ^= 1 << operation if operation < STEPS else 0
        return mask, (counter + added) % self.modulus


class Wrapped(Toy):
    """A registry with such a counter, played by its table."""

    def __init__(self, row: Row, visible: str) -> None:
        self.row = row
        self.visible = visible
        self.settled = visible == "nothing"
        super().__init__(STEPS, USES)

    def clear(self) -> None:
        super().clear()
        self.counter = 0

    @property
    def place(self) -> Place:
        return sum(1 << step for step in self.order), self.counter

    def do(self, step: int) -> object:
        _, self.counter = self.row.after(self.place, step)
        return super().do(step)

    def undo(self, step: int, handle: object) -> None:
        _, self.counter = self.row.after(self.place, step)
        super().undo(step, handle)

    def use(self, use: int) -> Hashable:
        wrong = self.row.is_wrong(self.place, USE)
        _, self.counter = self.row.after(self.place, USE)
        return super().use(use) != wrong

    def flaw(self) -> Hashable:
        return "!" if self.row.is_wrong(self.place, LOOK) else ""

    def state(self, handles: Sequence[object] = ()) -> Hashable | None:
        if self.settled:
            return None
        counter = self.counter if self.visible == "everything" else 0
        blind = repr((sorted(self.order), counter))
        return StateForm(digest(blind), digest(blind + repr(self.order)), objects=10)


def plain_answers(row: Row) -> dict[tuple[int, int], bool]:
    """Return what the shortest way to each set of active steps shows."""
    answers = {}
    for way in ((), (0,), (1,), (0, 1)):
        place: Place = (0, 0)
        for operation in way:
            place = row.after(place, operation)
        for operation in (USE, LOOK):
            answers[place[0], operation] = row.is_wrong(place, operation)
    return answers


def shortest(row: Row, operations: Collection[int]) -> int | None:
    """Return the length of the shortest history of these that shows another answer.

    A look at the end is implied.
    """
    plain = plain_answers(row)
    lengths: dict[Place, int] = {(0, 0): 0}
    queue: deque[Place] = deque(lengths)
    failing = []
    while queue:
        place = queue.popleft()
        for operation in {*operations, LOOK}:
            length = lengths[place] + (operation != LOOK)
            if operation >= STEPS:
                wrong = row.is_wrong(place, operation)
                failing += [length] * (plain[place[0], operation] != wrong)
            after = row.after(place, operation)
            if after not in lengths:
                lengths[after] = length
                queue.append(after)
    return min(failing, default=None)


def shortest_of_all(row: Row, most: int) -> int | None:
    """Return the same by playing every history up to a length."""
    plain = plain_answers(row)
    for length in range(most + 1):
        for history in product(range(LOOK), repeat=length):
            place: Place = (0, 0)
            for operation in history[:-1]:
                place = row.after(place, operation)
            for operation in (*history[-1:], LOOK):
                if operation >= STEPS:
                    wrong = row.is_wrong(place, operation)
                    if plain[place[0], operation] != wrong:
                        return length
                place = row.after(place, operation)
    return None


def at_any(operation: int, added: int = 1) -> Weights:
    return {(operation, mask): added for mask in range(4)}


def removals(step: int) -> Weights:
    return {(step, mask): 1 for mask in range(4) if mask >> step & 1}


ROWS: dict[str, tuple[Row, int]] = {
    "three removals of one step, modulo 5": (Row(5, 3, removals(0)), 7),
    "two removals with another one active, modulo 3, asked when all are gone": (
        Row(3, 2, {(0, 3): 1}, masks=(0,)),
        7,
    ),
    "removals of two steps, modulo 8, seen when there is one": (
        Row(8, 3, {**removals(0), **removals(1)}, LOOK, (1, 2)),
        7,
    ),
    "four removals of one step, modulo 8": (Row(8, 4, removals(0), LOOK), 8),
    "seven toggles, modulo 8": (Row(8, 7, at_any(0)), 8),
    "three removals with another one active, modulo 5": (Row(5, 3, {(0, 3): 1}), 8),
    "nine toggles, modulo 5 by twos": (Row(5, 3, at_any(0, 2), masks=(1,)), 10),
    "four removals with another one active, modulo 8": (Row(8, 4, {(0, 3): 1}), 10),
}


def explored(row: Row, visible: str) -> Violation:
    """Return the violation that is found without naming a strategy."""
    return explore(Wrapped(row, visible), budget=Budget(steps=20_000)).violations[0]


@pytest.mark.parametrize("visible", VISIBLE)
@pytest.mark.parametrize("name", ROWS)
def test_the_printed_history_is_as_short_as_a_search_finds(
    name: str, visible: str
) -> None:
    """Printed were 334 operations where 7 suffice, 18 for 10, and 122 for 8."""
    row, length = ROWS[name]
    assert shortest(row, range(LOOK)) == length
    violation = explored(row, visible)
    assert len(violation.history) > length
    assert len(violation.shown) == length


@pytest.mark.parametrize("name", ROWS)
def test_the_search_of_these_tests_agrees_with_every_history(name: str) -> None:
    row, length = ROWS[name]
    assert shortest_of_all(row, length) == length


def drawn(seed: int) -> Row:
    """Return a counter that any operation changes, by the active steps before it."""
    random = Random(seed)
    modulus = random.choice((3, 5, 8))
    weights = {
        each: random.choice((0, 0, 0, 1, 1, 2, -1))
        for each in product(range(LOOK), range(1 << STEPS))
    }
    wrong = random.choice((modulus - 1, modulus // 2))
    return Row(modulus, wrong, weights, USE if seed % 2 else LOOK)


SEEDS = 60


@pytest.mark.parametrize("visible", VISIBLE)
def test_no_shorter_history_is_claimed_only_if_there_is_none(visible: str) -> None:
    lengths: list[tuple[int, int]] = []
    for seed in range(SEEDS):
        row = drawn(seed)
        least = shortest(row, range(LOOK))
        if least is None:
            continue
        violation = explored(row, visible)
        lengths.append((len(violation.shown), least))
        if violation.proven_shortest:
            assert shortest(row, violation.shown) == len(violation.shown), seed
    assert len(lengths) > SEEDS // 3
    # A history of other operations may be shorter, where these are too many to try.
    assert sum(shown != least for shown, least in lengths) <= SEEDS // 20
    assert all(shown >= least for shown, least in lengths)


def test_a_shorter_history_of_other_operations_is_found() -> None:
    """Eight operations were shown where three suffice: lengths were all or nothing."""
    links = {(0, 1): 1, (0, 3): -1, (1, 2): 1, (2, 1): 1}
    row = Row(8, 7, links, shown_by=LOOK)
    system = Wrapped(row, "everything")
    (violation,) = explore(system, budget=Budget(steps=20_000)).violations
    assert len(violation.shown) == shortest(row, range(LOOK)) == 3
