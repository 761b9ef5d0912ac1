"""What "auto" chooses, and why."""

import pytest

from harness.engine import Budget, choose, explore, plan
from tests.engine.toys import Newest, Toy

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
        f"{name} would take {size:,} operations, the budget allows 3"
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
    assert result.skipped == (
        "histories:3 would take 228 operations, the budget allows 400",
        "walk:2 would take 1,024 operations, the budget allows 400",
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
