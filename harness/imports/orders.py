"""Which orders of imports are played.

True only here: the choice.  Up to `MOST_EXHAUSTIVE` modules, every subset is imported
in every order.  Above that, each module alone, each pair in both orders, and all
modules in the rows of a sequence covering array (`harness.engine.covering`), in which
any `STRENGTH` of them come in every one of their orders.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

from harness.engine.canonical import count_arrangements
from harness.engine.covering import rows
from harness.imports.processes import Order

# Five modules have 325 orders, ten to twenty seconds of a core; six have 1,956.
MOST_EXHAUSTIVE = 5

# Import cycles and patches of patches take two or three modules.
STRENGTH = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """Sets of modules, smallest first, with the orders that are played of each."""

    sets: tuple[tuple[Order, ...], ...]
    possible: int
    every: bool

    @property
    def orders(self) -> int:
        """How many orders are played."""
        return sum(map(len, self.sets))


def plan(modules: Order) -> Plan:
    """The orders to play of these modules.  Raises `TooLarge`."""
    count = len(modules)
    possible = count_arrangements(count) - 1
    if count <= MOST_EXHAUSTIVE:
        sets = tuple(
            tuple(permutations(chosen))
            for size in range(1, count + 1)
            for chosen in combinations(modules, size)
        )
        return Plan(sets, possible, every=True)
    covering = tuple(
        tuple(modules[index] for index in row) for row in rows(count, STRENGTH)
    )
    small = tuple(
        tuple(permutations(chosen))
        for size in (1, 2)
        for chosen in combinations(modules, size)
    )
    return Plan((*small, covering), possible, every=False)


def neighbours(orders: Sequence[Order]) -> list[tuple[Order, Order]]:
    """Pairs of the orders of which two modules that follow each other are swapped."""
    known = set(orders)
    found = []
    for order in orders:
        for place in range(len(order) - 1):
            other = swapped(order, place)
            if other in known and orders.index(order) < orders.index(other):
                found.append((order, other))
    return found


def swapped(order: Order, place: int) -> Order:
    """The order with the module at `place` and the next one exchanged."""
    first, second = order[place : place + 2]
    return (*order[:place], second, first, *order[place + 2 :])


def path(first: Order, second: Order) -> list[Order]:
    """From one order to the other, two neighbouring modules swapped at a time."""
    found, current = [first], first
    for index, module in enumerate(second):
        place = current.index(module)
        while place > index:
            place -= 1
            current = swapped(current, place)
            found.append(current)
    return found
