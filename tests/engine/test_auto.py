"""What "auto" chooses, and why."""

import pytest

from harness.engine import Budget, choose, explore, plan
from tests.engine.toys import Newest, Toy


def chosen(steps: int, *, printed: bool, budget: int | None = 250_000) -> str:
    parts, _ = choose(
        steps, 0, printed=printed, ordered=False, budget=Budget(steps=budget)
    )
    return "+".join(part.name for part in parts)


@pytest.mark.parametrize(
    ("steps", "printed", "opaque"),
    [
        (5, "graph+walk:2+words:3", "walk:2+words:3+kA:1"),
        (8, "graph+walk:2+words:3", "walk:2+words:3+kA:1"),
        (10, "graph+walk:1+words:3", "walk:1+words:3"),
        (12, "graph+words:2", "walk:0+words:2"),
        (14, "graph+words:2", "walk:0+words:2"),
        (16, "sca:3", "sca:3"),
        (60, "sca:2", "sca:2"),
    ],
)
def test_the_ladder(steps: int, printed: str, opaque: str) -> None:
    assert chosen(steps, printed=True) == printed
    assert chosen(steps, printed=False) == opaque


def test_an_ordered_system() -> None:
    parts, above = choose(5, 0, printed=False, ordered=True, budget=None)
    assert [part.name for part in parts] == ["arrangements", "walk:2", "words:3"]
    assert above == ()
    parts, _ = choose(5, 0, printed=True, ordered=True, budget=None)
    assert [part.name for part in parts] == ["graph", "walk:2", "words:3"]


def test_nothing_fits() -> None:
    assert chosen(5, printed=True, budget=3) == "sca:2"
    budget = Budget(steps=3)
    _, above = choose(5, 0, printed=True, ordered=False, budget=budget)
    size = plan(5, 0, "sca:3").size
    assert above == (f"sca:3 would be stronger: {size} steps, the budget allows 3",)


def test_no_limit() -> None:
    assert chosen(16, printed=True, budget=None) == "graph+walk:2+words:3"


def test_what_was_not_chosen_is_told() -> None:
    result = explore(Toy(4), "auto", budget=Budget(steps=400))
    assert result.strategy == "walk:1+words:2"
    assert result.skipped == (
        "walk:1+words:3 would be stronger: 484 steps, the budget allows 400",
    )
    assert result.guarantee == plan(4, 0, "walk:1+words:2").guarantee
    assert result.guarantee == (
        "walk:1: every letter was taken from every reachable set after every history "
        "of the last 1 letters, in one run; words:2: every word of at most 2 letters "
        "agrees, seen only at its end"
    )


def test_auto_sees_whether_there_is_a_fingerprint() -> None:
    assert explore(Toy(3, printed=True)).strategy == "graph+walk:2+words:3"
    assert explore(Newest(3), order_dependent=True).strategy == (
        "arrangements+walk:2+words:3"
    )
