"""Shrinking: minimal histories, proven so, within an allowance."""

from collections.abc import Hashable
from itertools import product

import pytest

from harness.engine import Square, explore, replay
from harness.engine import judge as judging
from tests.engine.toys import Ordered, Stale, Sticky, Suffix, Toy


class Pattern(Toy):
    """A flaw from the moment on that the history holds the history as a subsequence."""

    def __init__(self, pattern: tuple[int, ...], steps: int = 3) -> None:
        super().__init__(steps)
        self.pattern = pattern

    def flaw(self) -> Hashable:
        operations = iter(self.history)
        return "!" if all(one in operations for one in self.pattern) else ""


@pytest.mark.parametrize("pattern", [*product(range(2), repeat=3), (0, 1, 1, 0)])
def test_the_shortest_history_is_as_short_as_a_search_finds(
    pattern: tuple[int, ...],
) -> None:
    (violation,) = explore(Pattern(pattern), "walk:2").violations
    shortest = violation.shortest
    assert shortest is not None
    assert violation.proven_shortest
    assert len(shortest) <= len(violation.history)

    # The first history by length that ends differently from the first to its state.
    first: dict[tuple[int, ...], Hashable] = {}
    for length in range(8):
        for history in product(range(3), repeat=length):
            end = replay(Pattern(pattern), history).actions[-1]
            if first.setdefault(end.state, end.value) != end.value:
                assert len(shortest) == length
                return
    raise AssertionError("the pattern is a fault, so some history shows it")


def test_the_histories_of_planted_orders_are_the_orders() -> None:
    for pattern in ((1, 0), (2, 1), (2, 0, 1), (3, 2, 1, 0)):
        (violation,) = explore(Ordered(pattern, 4), "walk:2").violations
        assert violation.shortest == pattern
        assert violation.proven_shortest


def test_a_long_walk_becomes_a_short_history() -> None:
    (violation,) = explore(Suffix((7, 2, 5), 8), "walk:2").violations
    assert len(violation.history) > 1000
    assert violation.shortest == (7, 2, 5)
    assert violation.square == Square((7,), 2, 5)


def test_the_fingerprint_shortens_the_search() -> None:
    (violation,) = explore(Sticky(6, printed=True), "graph").violations
    assert (violation.shortest, violation.proven_shortest) == ((0, 2, 1), True)


def test_an_exhausted_allowance_leaves_the_history_unproven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcomes = set()
    for operations in range(0, 700, 23):
        monkeypatch.setattr(
            judging.Judge.__init__, "__kwdefaults__", {"operations": operations}
        )
        (violation,) = explore(Pattern((1, 0, 1, 2)), "walk:2").violations
        outcomes.add((violation.shortest is not None, violation.proven_shortest))
        if violation.shortest is not None:
            kind, state = violation.kind, violation.state
            assert (kind, replay(Pattern((1, 0, 1, 2)), violation.shortest).state) == (
                "order",
                state,
            )
    assert outcomes == {(False, False), (True, False), (True, True)}


def test_a_finding_that_fresh_systems_do_not_show() -> None:
    class Worn(Toy):
        def flaw(self) -> Hashable:
            return "!" if self.lives < 24 and len(self.history) == 20 else ""

    result = explore(Worn(), "walk:1")
    (violation,) = result.violations
    assert (violation.kind, violation.shortest) == ("nondeterminism", None)
    assert not violation.proven_shortest


def test_uses_are_kept_where_they_are_needed() -> None:
    (violation,) = explore(Stale(4, 2), "walk:1").violations
    assert violation.shortest == (4, 0, 4)
    assert violation.square is None
