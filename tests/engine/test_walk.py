"""Walks take every operation after every history, exactly once where they can."""

from collections import Counter
from collections.abc import Hashable
from itertools import combinations, product
from random import Random

import pytest

from everyorder.harness.base.errors import BadStrategy
from everyorder.harness.engine import Budget, State, explore, plan
from everyorder.harness.engine.histories import SuiteWalk
from everyorder.harness.engine.protocol import UNORDERED, Operations
from everyorder.harness.engine.session import ExplorationSession, Meter
from tests.coded import code
from tests.engine.toys import Exclusive, Layered, Sometimes, Toy

Node = tuple[State, tuple[int, ...]]


class Spy(ExplorationSession):
    """A session that notes (set, last operations) and operation of each transition and
    lead.
    """

    def __init__(self, system: Toy, depth: int) -> None:
        operations = Operations(system.steps, system.uses)
        meter = Meter(Budget(), None)
        super().__init__(
            system, operations, meter, ordering=UNORDERED, stop_after=10**6
        )
        self.toy = system
        self.depth = depth
        self.played: list[int] = []
        self.taken: Counter[tuple[Node, int]] = Counter()
        self.leads = 0

    def note(self, operation: int) -> tuple[Node, int]:
        history = tuple(self.played[len(self.played) - self.depth :])
        self.played.append(operation)
        return (tuple(sorted(self.toy.order)), history), operation

    def transition(self, operation: int) -> None:
        self.taken[self.note(operation)] += 1
        super().transition(operation)

    def play_setup(self, operation: int) -> None:
        self.note(operation)
        self.leads += 1
        super().play_setup(operation)


def spied(system: Toy, depth: int) -> Spy:
    spy = Spy(system, depth)
    SuiteWalk(spy, depth).run()
    assert spy.findings == []
    return spy


@pytest.mark.parametrize("uses", [0, 1, 2])
@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_every_set_and_history_and_operation_once(
    steps: int, depth: int, uses: int
) -> None:
    spy = spied(Toy(steps, uses), depth)
    operations = range(steps + uses)
    sets = [
        tuple(i for i in range(steps) if mask >> i & 1) for mask in range(1 << steps)
    ]
    nodes = product(sets, product(operations, repeat=depth))
    assert spy.taken == Counter(product(nodes, operations))
    assert spy.leads == depth


def test_without_steps_the_uses_are_walked() -> None:
    spy = spied(Toy(0, 2), 1)
    assert spy.taken == Counter(
        {(((), (last,)), operation): 1 for last in range(2) for operation in range(2)}
    )


def test_nothing_to_walk() -> None:
    assert spied(Toy(0), 2).taken == Counter()


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_failing_steps_are_loops_of_the_circuit(depth: int) -> None:
    spy = spied(Exclusive(3), depth)
    assert set(spy.taken.values()) == {1}
    # Six of the eight sets hold at most one of the two exclusive steps.
    assert len(spy.taken) == 6 * 3 ** (depth + 1)
    assert spy.leads == depth


class Closed(Toy):
    """Sound: a set may be active when it is part of one of the largest sets."""

    def __init__(self, steps: int, largest: list[set[int]]) -> None:
        super().__init__(steps)
        self.largest = largest

    def refuses(self, step: int) -> str:
        target = {*self.order, step}
        return "" if any(target <= one for one in self.largest) else "too much"


def test_downward_closed_families_have_a_circuit() -> None:
    draw = Random(1873)
    for _ in range(60):
        steps, depth = draw.randint(1, 5), draw.randint(0, 2)
        largest = [
            {i for i in range(steps) if draw.random() < 0.6}
            for _ in range(draw.randint(1, 3))
        ]
        sets = {
            part
            for one in largest
            for size in range(len(one) + 1)
            for part in combinations(sorted(one), size)
        }
        spy = spied(Closed(steps, largest), depth)
        assert set(spy.taken.values()) == {1}
        assert len(spy.taken) == len(sets) * steps ** (depth + 1)
        assert spy.leads == depth


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_an_unbalanced_digraph_is_covered_by_going_back(depth: int) -> None:
    spy = spied(Layered(3), depth)
    assert set(spy.taken.values()) == {1}
    nodes = {node for node, _ in spy.taken}
    assert spy.taken == Counter(product(nodes, range(3)))
    assert {node[0] for node in nodes} == {
        tuple(i for i in range(3) if mask >> i & 1) for mask in range(8)
    }
    assert spy.leads > depth


def test_a_walk_that_cannot_come_back_says_so() -> None:
    spy = Spy(Sometimes(3), 0)
    with pytest.raises(Exception, match="walk:0 cannot reach") as caught:
        SuiteWalk(spy, 0).run()
    assert "because steps fail by history" in str(caught.value)
    assert {finding.kind for finding in spy.findings} == {"error"}


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5])
def test_exact_counts(steps: int, depth: int) -> None:
    operations = steps ** (depth + 1) * 2**steps
    result = explore(Toy(steps), f"walk:{depth}")
    assert result.holds
    assert result.executed.transitions == result.planned == operations
    assert plan(steps, 0, f"walk:{depth}").size == operations


def test_a_quarter_of_a_million_transitions() -> None:
    result = explore(Toy(14), "walk:0")
    assert (result.holds, result.executed.transitions) == (True, 14 * 2**14)


def test_the_sizes_of_five_steps() -> None:
    assert [plan(5, 0, f"walk:{s}").size for s in range(3)] == [160, 800, 4000]


def test_a_walk_too_large_to_start() -> None:
    with pytest.raises(BadStrategy, check=code("TooLarge")) as caught:
        explore(Toy(30), "walk:1")
    assert caught.value.fields() == {
        "what": "walk:1's nodes",
        "size": 30 * 2**30,
        "limit": 2**30,
    }


def test_a_deep_fault_needs_the_deeper_walk() -> None:
    class Deep(Toy):
        def flaw(self) -> Hashable:
            return "!" if self.history[-3:] == [1, 0, 2] else ""

    assert explore(Deep(), "walk:0").holds
    assert not explore(Deep(), "walk:2").holds
