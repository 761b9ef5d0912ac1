"""The share of the search for complete states in the budget, and the random walk."""

from collections.abc import Hashable

import pytest

from everyorder.harness.engine import Budget, explore, histories, session
from everyorder.harness.engine.limits import GROWN, UNCLOSED, interleaved
from everyorder.harness.engine.session import Incomplete, Meter
from everyorder.harness.engine.states import Search
from tests.engine.test_states import Counting, Registry, kinds


class Tiring(Registry):
    """After 300 operations of one life a look differs; no state shows their number."""

    def reset(self) -> None:
        super().reset()
        self.age = 0

    def do(self, step: int) -> object:
        self.age += 1
        return super().do(step)

    def undo(self, step: int, handle: object) -> None:
        self.age += 1
        super().undo(step, handle)

    def use(self, use: int) -> Hashable:
        self.age += 1
        return super().use(use)

    def observe(self) -> Hashable:
        return super().observe(), self.age > 300


class Aging(Tiring):
    """After 300 operations of one life its state differs, and nothing else does."""

    def observe(self) -> Hashable:
        return Registry.observe(self)

    def now(self) -> tuple[object, ...]:
        return (*super().now(), self.age > 300)

    def blind(self) -> tuple[object, ...]:
        return (*super().blind(), self.age > 300)


class Crossing(Registry):
    """Counts the undos of the first step while the second one is active."""

    def reset(self) -> None:
        super().reset()
        self.crossed = 0

    def undo(self, step: int, handle: object) -> None:
        self.crossed += step == 0 and 1 in self.items
        super().undo(step, handle)

    def now(self) -> tuple[object, ...]:
        return (*super().now(), self.crossed)

    def blind(self) -> tuple[object, ...]:
        return (*super().blind(), self.crossed)


class GrowingAndStale(Counting):
    """It counts, and a look after the second use of a life is wrong."""

    def reset(self) -> None:
        super().reset()
        self.uses_left = 2

    def use(self, use: int) -> Hashable:
        self.uses_left -= 1
        return super().use(use)

    def observe(self) -> Hashable:
        return super().observe(), self.uses_left > 0


def test_ten_plain_steps_are_proven_with_the_default_budget() -> None:
    found = explore(Registry(10, 3))
    assert (found.proven, kinds(found), found.complete) == (True, [], True)
    closure = found.closure
    assert closure is not None
    assert (closure.states, closure.transitions) == (1_024, 1_024 * 14)
    assert sum(spent for _, spent in found.spent) < 250_000
    # A constant of 20,000 ended the search, whatever the budget.
    assert dict(found.spent)["graph"] > 20_000


@pytest.mark.parametrize("kind", [Tiring, Aging])
def test_a_random_walk_finds_what_the_cover_cannot(
    kind: type[Tiring], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It compares the answers, and the states where all answers are equal."""
    found = explore(kind(2, 1), "graph")
    assert not found.proven
    assert kinds(found) == ["hidden"]
    monkeypatch.setattr(Search, "walk_at_random", lambda *_: None)
    assert explore(kind(2, 1), "graph").proven


def test_a_random_walk_is_the_same_in_every_run() -> None:
    one, two = (explore(Tiring(2, 1), "graph").violations for _ in range(2))
    assert one == two


@pytest.mark.parametrize(
    ("steps", "walked"),
    [(500_000, 3_900), (250_000, 2_000), (4_000, 900)],
)
def test_a_random_walk_has_thousands_of_operations(steps: int, walked: int) -> None:
    found = explore(Registry(3, 1), "graph", budget=Budget(steps=steps))
    assert found.closure is not None
    assert found.proven
    assert walked <= found.closure.walked <= 1.2 * walked


def test_histories_of_two_operations_are_first() -> None:
    found = explore(GrowingAndStale(3, 1))
    (violation,) = found.violations
    assert violation.shortest == (3, 3)
    # Before any strategy began.
    assert found.executed.transitions == 0


def test_a_report_says_when_histories_of_two_operations_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(histories, "MOST_SHALLOW", 31)
    assert explore(Registry(3, 1)).skipped == (
        "histories of two operations on fresh systems: 16 of them are too many to "
        "begin with (--strategy histories:2 plays them)",
    )
    monkeypatch.setattr(histories, "MOST_SHALLOW", 32)
    assert explore(Registry(3, 1)).skipped == ()


@pytest.mark.parametrize("steps", [10_000, 100_000])
def test_states_that_grow_get_a_small_share(steps: int) -> None:
    budget = Budget(steps=steps)
    found = explore(Counting(3, 1), "graph", budget=budget)
    assert not found.proven
    assert found.executed.transitions <= steps // GROWN + 50


def test_states_that_grow_by_two_steps_get_a_tenth() -> None:
    found = explore(Crossing(3, 1), "graph", budget=Budget(steps=20_000))
    assert not found.proven
    assert 20_000 // UNCLOSED <= found.executed.transitions <= 20_000 // UNCLOSED + 500
    (skipped,) = found.skipped
    assert "; what grows: " in skipped or "; two of them differ in: " in skipped


def test_two_turns_are_interleaved_in_every_order() -> None:
    assert list(interleaved(((1, 1),))) == [(1, 1)]
    assert list(interleaved(((1, 1), (5,)))) == [(1, 1, 5), (1, 5, 1)]
    assert list(interleaved(((1, 1), (2, 2)))) == [
        (1, 1, 2, 2),
        (1, 2, 2, 1),
        (1, 2, 1, 2),
    ]


def test_too_many_states_are_told_with_the_steps_that_they_need() -> None:
    found = explore(Registry(8, 1), "graph", budget=Budget(steps=3_000))
    assert not found.proven
    (skipped,) = found.skipped
    assert skipped.startswith("graph: the states did not close: ")
    _, _, needed = skipped.partition("; at least ")
    number = int(needed.split()[0].replace(",", ""))
    # 256 states and ten operations, each taken twice, and the ways between them.
    assert 2 * 2_560 <= number <= 3 * 2_560
    assert needed.endswith("steps of the budget are needed (--steps raises it)")
    raised = explore(Registry(8, 1), "graph", budget=Budget(steps=3 * number))
    assert raised.proven


@pytest.mark.parametrize("steps", range(100, 3_000, 100))
def test_no_budget_says_that_found_states_did_not_close(steps: int) -> None:
    found = explore(Registry(4, 1), "graph", budget=Budget(steps=steps))
    closure = found.closure
    assert closure is not None
    if closure.states == 16 and closure.transitions == 16 * 6:
        assert not any("did not close" in text for text in found.skipped)
        proven = "were not all taken from a second history" in " ".join(found.skipped)
        assert proven != found.proven
    else:
        assert any("did not close" in text for text in found.skipped)


def test_strategies_after_a_search_get_what_is_left() -> None:
    for steps in range(1_000, 12_000, 1_000):
        found = explore(Registry(9, 2), budget=Budget(steps=steps))
        assert found.executed.transitions <= steps
        if not found.complete:
            assert not found.proven


def test_repeated_explorations_share_the_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    meter = Meter(Budget(steps=10, seconds=5), None)
    meter.count(7)
    again = meter.repeated()
    assert (again.left, again.start) == (10, meter.start)
    monkeypatch.setattr(session, "monotonic", lambda: meter.start + 6)
    with pytest.raises(Incomplete):
        again.check_time()
