"""Rows of `sca:t`, above all where not every order can be."""

from itertools import combinations, permutations

import pytest

from everyorder.harness.engine import Relations, explore
from everyorder.harness.engine.covering_arrays import rows
from tests.engine.related import Related
from tests.engine.toys import Exclusive, Toy

# 0 before 1 before 2, and 3 before 4.
CHAIN = frozenset({(0, 1), (1, 2), (0, 2), (3, 4)})


def orders(some: list[tuple[int, ...]], size: int) -> set[tuple[int, ...]]:
    return {part for row in some for part in combinations(row, size)}


@pytest.mark.parametrize("strength", [1, 2, 3])
def test_rows_cover_every_order(strength: int) -> None:
    chosen = rows(7, strength)
    covered = {part for row in chosen for part in combinations(row, strength)}
    assert covered == set(permutations(range(7), strength))
    assert all(sorted(row) == list(range(7)) for row in chosen)


def test_rows_grow_with_the_logarithm() -> None:
    assert [len(rows(n, 3)) for n in (6, 8, 12, 16)] == [10, 14, 18, 22]
    assert rows(0, 3) == ((),)
    assert len(rows(2, 3)) == 2


def test_rows_skip_what_fails() -> None:
    result = explore(Exclusive(2), "sca:2")
    # Two rows: one add, one failing add, one remove each.
    assert (result.holds, result.executed.transitions, result.planned) == (True, 6, 6)


@pytest.mark.parametrize("strength", [1, 2, 3])
def test_rows_cover_every_order_that_can_be(strength: int) -> None:
    chosen = rows(6, strength, CHAIN)
    assert all(sorted(row) == list(range(6)) for row in chosen)
    can_be = {
        row
        for row in permutations(range(6))
        if all(row.index(a) < row.index(b) for a, b in CHAIN)
    }
    assert set(chosen) <= can_be
    assert orders(list(chosen), strength) == orders(list(can_be), strength)


def test_of_a_ring_there_is_one_row_that_tries() -> None:
    ring = frozenset({(0, 1), (1, 0), (0, 0), (1, 1)})
    assert rows(2, 2, ring) == ((0, 1),)


class Noting(Related):
    """Keeps the order of what came about in each of its lives."""

    def __init__(self, relations: Relations, steps: int) -> None:
        self.up: list[list[int]] = []
        self.down: list[list[int]] = []
        super().__init__(relations, steps)

    def reset(self) -> None:
        super().reset()
        self.up.append([])
        self.down.append([])

    def do(self, step: int) -> object:
        handle = super().do(step)
        self.up[-1].append(step)
        return handle

    def undo(self, step: int, handle: object) -> None:
        super().undo(step, handle)
        self.down[-1].append(step)


NEEDS = Relations(requires={1: frozenset({0}), 2: frozenset({1})})
FOLLOWS = Relations(after={1: frozenset({0})})


@pytest.mark.parametrize(
    ("relations", "up", "down"),
    [(NEEDS, 3, 3), (FOLLOWS, 1, 0), (Relations(), 0, 0)],
    ids=["requires", "after", "none"],
)
def test_what_is_not_covered_is_told(relations: Relations, up: int, down: int) -> None:
    registry = Noting(relations, 4)
    found = explore(registry, "sca:2")
    assert found.holds
    assert registry.misused == []
    # Rows are lives in which all was added; other stages of a run have such, too.
    rising = [tuple(life) for life in registry.up if len(life) == 4]
    falling = [
        tuple(life)
        for added, life in zip(registry.up, registry.down, strict=True)
        if len(added) == len(life) == 4
    ]
    assert len(orders(rising, 2)) == 12 - up
    assert len(orders(falling, 2)) == 12 - down
    told = (
        f"sca:2: of 12 orders of 2 steps, {up} of adding and {down} of removing did "
        "not occur: a step fails, cannot be undone, has to precede another or excludes "
        "it"
    )
    assert found.skipped == ((told,) if up or down else ())


def test_steps_that_fail_are_told() -> None:
    (told,) = explore(Exclusive(3), "sca:2").skipped
    assert told.startswith(
        "sca:2: of 6 orders of 2 steps, 4 of adding and 4 of removing"
    )


def test_steps_that_stay_are_told() -> None:
    relations = Relations(lasting=frozenset({0}))
    (told,) = explore(Related(relations, 3), "sca:2").skipped
    assert told.startswith(
        "sca:2: of 6 orders of 2 steps, 0 of adding and 4 of removing"
    )


class Earlier(Toy):
    """Shows whether 4 came before 3; 0 needs 3, so 3 is often moved in a row."""

    relations = Relations(requires={0: frozenset({3})})

    def flaw(self) -> bool:
        order = self.order
        return {3, 4} <= set(order) and order.index(4) < order.index(3)


def test_a_fault_in_an_order_that_relations_move_is_found() -> None:
    found = explore(Earlier(14), "sca:2")
    assert [violation.kind for violation in found.violations] == ["order"]
    assert found.violations[0].shortest == (4, 3)
