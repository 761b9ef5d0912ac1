"""Several faults of one run are all told, each once, and each with its own history."""

from collections.abc import Hashable

import pytest

from everyorder.harness.engine import Budget, Exploration, Relations, explore
from everyorder.harness.engine.session import PATIENCE
from tests.engine.related import Related
from tests.engine.toys import Ordered, Refused, Toy

NONE = Relations()


def told(found: Exploration) -> set[tuple[str, tuple[int, ...] | None]]:
    return {(each.kind, each.shortest) for each in found.violations}


class Two(Related):
    """Shows the order of 1 and 0, and remembers for ever what was asked first."""

    def __init__(self, *, settled: bool = True) -> None:
        super().__init__(NONE, 3, 1, printed=not settled, settled=settled)

    def clear(self) -> None:
        super().clear()
        self.cache: list[bool] = []

    def use(self, use: int) -> Hashable:
        if not self.cache:
            self.cache.append(2 in self.order)
        return self.cache[0]

    def observe(self) -> Hashable:
        both = [step for step in self.order if step < 2]
        return tuple(sorted(self.order)), both == [1, 0]

    def concrete(self) -> Hashable:
        return tuple(self.order), tuple(self.cache)


BOTH = {("order", (1, 0)), ("use", (3, 2, 3))}


@pytest.mark.parametrize(
    "strategy", ["auto", "walk:1", "walk:2", "histories:3", "kA:2", "random:2"]
)
def test_two_faults_are_both_told(strategy: str) -> None:
    assert told(explore(Two(), strategy, stop_after=3)) == BOTH
    assert len(explore(Two(), strategy).violations) == 1


@pytest.mark.parametrize("strategy", ["auto", "graph", "graph+histories:3"])
def test_two_faults_at_complete_states(strategy: str) -> None:
    found = explore(Two(settled=False), strategy, stop_after=3)
    assert told(found) == BOTH
    assert all(each.proven_shortest and each.replayed for each in found.violations)
    assert [each.paths for each in found.violations if each.kind == "use"] == [
        ("registry: ((2,), ((2,), ())) / ((2,), ((2,), (False,)))",)
    ]
    assert not found.proven


def test_three_kinds_at_once() -> None:
    class Three(Two):
        """A refused step leaves its mark as well."""

        def clear(self) -> None:
            super().clear()
            self.left = False

        def refuses(self, step: int) -> str:
            refused = step == 2 and self.order == [0]
            self.left = self.left or refused
            return "not beside 0" if refused else ""

        def observe(self) -> Hashable:
            return super().observe(), self.left

    found = explore(Three(), "histories:3", stop_after=10)
    assert told(found) >= BOTH
    assert ("wedged", (0, 2)) in told(found)


def test_one_fault_in_many_places_is_told_once() -> None:
    for strategy in ("walk:2", "histories:4", "arrangements"):
        found = explore(Ordered((1, 0), 4), strategy, stop_after=10)
        assert told(found) == {("order", (1, 0))}
        assert len(found.violations) == 1


def test_no_more_than_asked_for_are_told() -> None:
    class Each(Toy):
        """Every pair shows its order."""

        def flaw(self) -> Hashable:
            return tuple(self.order[:2])

    for most in (1, 2, 5):
        found = explore(Each(4), "histories:2", stop_after=most)
        assert len(found.violations) == most
        assert not found.complete


def test_others_are_looked_for_for_a_while() -> None:
    first = explore(Ordered((1, 0), 8), "walk:2")
    others = explore(Ordered((1, 0), 8), "walk:2", stop_after=1_000)
    more = others.executed.transitions - first.executed.transitions
    assert 0 < more <= PATIENCE
    (told_,) = others.skipped
    assert told_.startswith("stopped at a violation: ")


def test_a_budget_that_is_spent_keeps_what_was_found() -> None:
    found = explore(Two(), "walk:2", stop_after=3, budget=Budget(steps=60))
    assert found.executed.transitions <= 60
    assert told(found) <= BOTH
    assert told(found)
    assert not found.complete


def test_after_an_undo_that_raises_nothing_is_played() -> None:
    class Stuck(Two):
        def undo(self, step: int, handle: object) -> None:
            if step == 1:
                raise Refused("stuck")
            super().undo(step, handle)

    found = explore(Stuck(), "histories:2", stop_after=10)
    assert ("undo", (1, 1)) in told(found)
    assert found.violations[-1].kind == "undo"
