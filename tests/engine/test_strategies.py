"""The other strategies: their sizes, what they see, and that they agree."""

from collections.abc import Callable
from itertools import combinations, permutations, product
from math import factorial

import pytest

from harness.engine import Budget, Kind, Square, explore, plan
from harness.engine.covering_arrays import rows
from harness.engine.suites import arrangements_size
from harness.errors import BadScenario
from tests.coded import code
from tests.engine.toys import (
    Exclusive,
    FlakyError,
    Layered,
    Leaking,
    Newest,
    Ordered,
    Readded,
    Sometimes,
    Sticky,
    Stuck,
    Suffix,
    Toy,
    Unlawful,
    Wedged,
)


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5])
def test_full_takes_the_known_number_of_steps(steps: int) -> None:
    size = 2 * steps * factorial(steps) ** 2
    assert plan(steps, 0, "full").size == size
    if steps < 5:
        result = explore(Toy(steps), "full")
        assert result.holds
        assert result.executed.transitions == result.planned == size


def test_full_at_five_steps_is_what_upstream_takes() -> None:
    result = explore(Toy(5), "full")
    assert (result.holds, result.executed.transitions) == (True, 144_000)


def test_full_ends_the_adding_where_a_step_raises() -> None:
    result = explore(Exclusive(2), "full")
    # Each of 2 * 2 rounds: one add, one failing add, one remove.
    assert result.executed.transitions == result.planned == 12
    assert result.failures == {
        ((0,), 1): ("Refused", "taken by 0"),
        ((1,), 0): ("Refused", "taken by 1"),
    }


@pytest.mark.parametrize(
    ("strategy", "steps", "uses", "size"),
    [
        ("graph", 5, 0, 320),
        ("graph", 3, 2, 80),
        ("histories:3", 5, 0, 5 + 2 * 25 + 3 * 125),
        ("histories:2", 2, 1, 3 + 2 * 9),
        ("histories:0", 3, 0, 0),
        ("arrangements", 5, 0, 8155),
        ("kA:0", 3, 0, 8 * 3 + 3 * 12),
        ("sca:2", 6, 0, 24),
        ("graph+walk:1", 3, 0, 24 + 24 + 72),
    ],
)
def test_sizes_are_exact(strategy: str, steps: int, uses: int, size: int) -> None:
    assert plan(steps, uses, strategy).size == size
    result = explore(Toy(steps, uses, printed=True), strategy)
    assert result.holds
    assert result.executed.transitions == result.planned == size


def test_arrangements_by_another_count() -> None:
    histories = [a for k in range(5) for a in permutations(range(4), k)]
    assert arrangements_size(4, 1) == sum(len(history) + 1 for history in histories) * 5


def test_graph_needs_a_fingerprint() -> None:
    with pytest.raises(BadScenario, check=code("NoFingerprint")) as caught:
        explore(Toy(2), "graph")
    assert str(caught.value) == (
        "'graph' compares complete states, but the system's state() is None. "
        "Return the whole state from it, or explore with 'walk:1' or 'kA:1', which "
        "need none."
    )


def test_graph_sees_what_no_observation_shows() -> None:
    class Hidden(Sticky):
        def flaw(self) -> str:
            return ""

    assert explore(Hidden(printed=True), "walk:2").holds
    violation = explore(Hidden(printed=True), "graph").violations[0]
    assert violation.kind == "order"
    assert violation.state == (0, 1, 2)
    assert (violation.expected, violation.found) == (
        ((0, 1, 2), False),
        ((0, 1, 2), True),
    )
    assert violation.shortest == (0, 2, 1)
    assert violation.square == Square((0,), 2, 1)
    assert violation.proven_shortest


@pytest.mark.parametrize("strength", [1, 2, 3])
def test_rows_cover_every_order(strength: int) -> None:
    chosen = rows(7, strength)
    covered = {part for row in chosen for part in combinations(row, strength)}
    assert covered == set(permutations(range(7), strength))
    assert all(sorted(row) == list(range(7)) for row in chosen)


def test_rows_grow_with_the_logarithm() -> None:
    assert [len(rows(n, 3)) for n in (6, 8, 12, 16)] == [12, 14, 18, 24]
    assert rows(0, 3) == ((),)
    assert len(rows(2, 3)) == 2


def test_rows_skip_what_fails() -> None:
    result = explore(Exclusive(2), "sca:2")
    # Two rows: one add, one failing add, one remove each.
    assert (result.holds, result.executed.transitions, result.planned) == (True, 6, 6)


def test_looking_alike_is_told() -> None:
    class Blind(Toy):
        def observe(self) -> bool:
            return bool(self.order)

    result = explore(Blind(2), "kA:1")
    assert result.skipped == (
        "kA:1: 4 states show 2 observations; states that look alike are not told apart",
    )


def test_what_is_reached_only_by_removing_is_reached() -> None:
    for strategy in ("arrangements", "kA:1", "walk:0", "graph", "histories:4"):
        result = explore(Layered(2, printed=True), strategy)
        assert result.holds
        assert list(result.states) == [(), (0,), (1,), (0, 1)]
        assert list(result.failures) == [((), 1)]


SOUND: dict[str, Callable[[], Toy]] = {
    "plain": lambda: Toy(3, printed=True),
    "with uses": lambda: Toy(2, 2, printed=True),
    "exclusive": lambda: Exclusive(3, printed=True),
}

# Each fault with the kind that every strategy that sees it reports.
FAULTY: dict[str, tuple[Callable[[], Toy], Kind]] = {
    "order of two": (lambda: Ordered((1, 0), printed=True), "order"),
    "order by suffix": (lambda: Suffix((1, 0), printed=True), "order"),
    "newest": (lambda: Newest(printed=True), "order"),
    "wedged": (lambda: Wedged(printed=True), "wedged"),
    "leak": (lambda: Leaking(printed=True), "leak"),
    "undo": (lambda: Stuck(printed=True), "undo"),
    "law": (lambda: Unlawful(printed=True), "law"),
}

LADDER = (
    "walk:0",
    "walk:1",
    "walk:2",
    "graph",
    "histories:3",
    "arrangements",
    "kA:1",
    "full",
    "auto",
)


@pytest.mark.parametrize("strategy", LADDER)
@pytest.mark.parametrize("name", SOUND)
def test_no_strategy_blames_a_sound_system(name: str, strategy: str) -> None:
    result = explore(SOUND[name](), strategy)
    assert (result.violations, result.complete) == ((), True)


@pytest.mark.parametrize("strategy", LADDER)
@pytest.mark.parametrize("name", FAULTY)
def test_all_strategies_agree_on_a_faulty_system(name: str, strategy: str) -> None:
    make, kind = FAULTY[name]
    violations = explore(make(), strategy).violations
    assert [violation.kind for violation in violations] == [kind]
    assert violations[0].shortest is not None
    assert violations[0].proven_shortest


# Which strategies find the faults of longer histories (n = 3).
POWER: dict[str, tuple[Callable[[], Toy], set[str]]] = {
    "order of three": (
        lambda: Ordered((2, 0, 1)),
        {"walk:1", "walk:2", "histories:3", "arrangements", "kA:1", "full"},
    ),
    "suffix of three": (
        lambda: Suffix((1, 0, 2)),
        {"walk:1", "walk:2", "histories:3", "arrangements", "kA:1", "full"},
    ),
    "second registration": (
        lambda: Readded(1, 2),
        {"walk:0", "walk:1", "walk:2", "histories:3", "kA:1", "full"},
    ),
    "fourth registration": (
        lambda: Readded(1, 4),
        {"walk:0", "walk:1", "walk:2", "full"},
    ),
    "sticky": (
        Sticky,
        {"walk:0", "walk:1", "walk:2", "arrangements", "kA:1", "full"},
    ),
    "retry": (
        Sometimes,
        {"walk:0", "walk:1", "walk:2", "histories:3", "kA:1", "full"},
    ),
    "drifting error": (
        FlakyError,
        {"walk:0", "walk:1", "walk:2", "histories:3", "kA:1", "full"},
    ),
}


@pytest.mark.parametrize("name", POWER)
def test_the_power_of_the_strategies(name: str) -> None:
    make, expected = POWER[name]
    ladder = [one for one in LADDER if one not in ("graph", "auto")]
    found = {one for one in ladder if explore(make(), one).violations}
    assert found == expected


def test_every_planted_suffix_up_to_two_is_found_by_walk_1() -> None:
    for length in (1, 2):
        for suffix in product(range(3), repeat=length):
            result = explore(Suffix(suffix), "walk:1")
            assert not result.holds, suffix


def test_every_order_of_four_is_found_by_walk_2() -> None:
    budget = Budget(steps=10_000)
    for pattern in permutations(range(4)):
        if pattern != (0, 1, 2, 3):
            toy = Ordered(pattern, 4)
            result = explore(toy, "walk:2", budget=budget)
            assert [v.shortest for v in result.violations] == [pattern]
