"""Strategies: sizes, claims, the faults that they find, and what "auto" chooses.

Questions that are too large are refused or cut short at once, never a hang.
"""

from collections.abc import Callable
from itertools import permutations, product
from math import factorial

import pytest

from everyorder.harness.base.errors import BadScenario, BadStrategy
from everyorder.harness.engine import (
    ASSUMPTIONS,
    GUARANTEES,
    KNOWN_STRATEGIES,
    Budget,
    Kind,
    Square,
    choose,
    explore,
    parse,
    plan,
)
from everyorder.harness.engine.histories import arrangements_size
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


def test_looking_alike_is_told() -> None:
    class Blind(Toy):
        def observe(self) -> bool:
            return bool(self.order)

    result = explore(Blind(2), "kA:1")
    assert result.skipped == (
        "kA:1: 4 states show 2 observations; states that look alike are not "
        "distinguished",
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


# What any number of steps that people write can afford.
PAIRS = "stale+histories:3"


def chosen(steps: int, *, printed: bool, budget: int | None = 250_000) -> str:
    parts, _ = choose(
        steps, 0, printed=printed, ordered=False, budget=Budget(steps=budget)
    )
    return "+".join(part.name for part in parts)


@pytest.mark.parametrize(
    ("steps", "printed", "opaque"),
    [
        (5, "graph+PAIRS+walk:2", "PAIRS+walk:2+kA:1"),
        (8, "graph+PAIRS+walk:2", "PAIRS+walk:2+kA:1"),
        (10, "graph+PAIRS+walk:1", "PAIRS+walk:1"),
        (12, "graph+PAIRS+walk:0+random:100", "PAIRS+walk:0+random:100"),
        (14, "graph+PAIRS+sca:3+random:8", "PAIRS+walk:0+random:9"),
        (16, "PAIRS+sca:3+random:100", "PAIRS+sca:3+random:100"),
        (
            60,
            "stale+histories:2+sca:2+random:100",
            "stale+histories:2+sca:2+random:100",
        ),
    ],
)
def test_the_ladder(steps: int, printed: str, opaque: str) -> None:
    for shown, expected in ((True, printed), (False, opaque)):
        assert chosen(steps, printed=shown) == expected.replace("PAIRS", PAIRS)


def test_an_ordered_system() -> None:
    parts, above = choose(5, 0, printed=False, ordered=True, budget=None)
    assert [part.name for part in parts] == [
        *("stale", "histories:3", "arrangements", "walk:2"),
    ]
    assert above == ()
    parts, _ = choose(5, 0, printed=True, ordered=True, budget=None)
    assert [part.name for part in parts] == [
        *("graph", "stale", "histories:3", "arrangements", "walk:2"),
    ]


def test_nothing_fits() -> None:
    assert chosen(5, printed=True, budget=3) == "sca:2"
    budget = Budget(steps=3)
    _, above = choose(5, 0, printed=True, ordered=False, budget=budget)
    sizes = {
        name: plan(5, 0, name).size
        for name in ("graph", "stale", "histories:3", "walk:2", "sca:4")
    }
    assert above == tuple(
        f"{name} would take {size:,} operations, the budget allows 3 "
        "(--steps raises it)"
        for name, size in sizes.items()
    )


@pytest.mark.parametrize("steps", [1, 5, 12, 15, 16, 20, 30, 60])
def test_uses_are_always_among_what_is_played(steps: int) -> None:
    for printed in (True, False):
        parts, _ = choose(
            steps, 3, printed=printed, ordered=False, budget=Budget(steps=250_000)
        )
        sizes = [part.size(steps, 3) - part.size(steps, 0) for part in parts]
        played = [part.name for part, more in zip(parts, sizes, strict=True) if more]
        assert "stale" in played, parts
        assert sum(part.size(steps, 3) for part in parts) > 125_000 or steps < 12


def test_steps_that_cannot_be_undone_are_not_walked() -> None:
    parts, _ = choose(5, 1, printed=False, ordered=False, budget=None, reversible=False)
    assert [part.name for part in parts] == ["stale", "histories:3", "kA:1"]


def test_no_limit() -> None:
    assert chosen(16, printed=True, budget=None) == "graph+stale+histories:3+walk:2"


def test_what_was_not_chosen_is_told() -> None:
    result = explore(Toy(4), "auto", budget=Budget(steps=400))
    assert result.strategy == "stale+histories:2+walk:0"
    allowed = "the budget allows 400 (--steps raises it)"
    assert result.skipped == (
        f"histories:3 would take 228 operations, {allowed}",
        f"walk:2 would take 1,024 operations, {allowed}",
    )
    assert result.guarantee == plan(4, 0, "stale+histories:2+walk:0").guarantee
    assert result.guarantee == (
        "stale: no use (the look is one) answers differently after a change of one "
        "step, with nothing or one other step active; histories:2: every history of "
        "at most 2 operations agrees, seen only at its end; walk:0: every operation "
        "was taken from every reachable state, in one run"
    )


def test_auto_sees_whether_there_is_a_fingerprint() -> None:
    assert explore(Toy(3, printed=True)).strategy == "graph+stale+histories:3+walk:2"
    assert explore(Newest(3), order_dependent=True).strategy == (
        "stale+histories:3+arrangements+walk:2"
    )


def test_every_strategy_has_its_claims() -> None:
    for known in KNOWN_STRATEGIES[1:]:
        (part,) = parse(known.replace("N", "2"))
        assert part.name == known.replace("N", "2")
        assert part.family in GUARANTEES
        assert part.family in ASSUMPTIONS
        assert "{" not in part.guarantee + part.assumption


def test_the_large_history_does_not_occur() -> None:
    for text in (*GUARANTEES.values(), *ASSUMPTIONS.values()):
        assert "exhaustive" not in text


def test_full_starts_at_once_whatever_its_size() -> None:
    found = explore(Toy(13), "full", budget=Budget(steps=100))
    assert (found.complete, found.executed.transitions) == (False, 100)


def test_rows_that_cannot_be_made_are_refused() -> None:
    with pytest.raises(BadStrategy, check=code("TooLarge")) as caught:
        explore(Toy(30), "sca:5")
    assert caught.value.size == 17_100_720


def test_auto_with_seconds_alone_still_looks_at_the_size() -> None:
    found = explore(Toy(60), "auto", budget=Budget(seconds=60))
    assert (found.strategy, found.complete) == (
        "stale+histories:2+sca:2+random:100",
        True,
    )
