"""The judge complains of a wrong verdict, and of nothing else.

Reports are real ones, of another specimen than the one that is judged.
"""

from dataclasses import replace
from functools import cache

import pytest

from everyorder import Report, Violation, explore
from tests.zoo.realistic.circuit_breaker import (
    BREAKER,
    Breaker,
    LatchedBreaker,
    ResettingBreaker,
)
from tests.zoo.realistic.judge import (
    DEFAULT,
    STRATEGIES,
    complaints_of,
    judge,
    scenario_of,
    table,
)
from tests.zoo.realistic.oracle import Truth, truth
from tests.zoo.realistic.specimen import Specimen

RIGHT = Specimen(BREAKER, Breaker)
FAULTY = Specimen(BREAKER, LatchedBreaker, "an open circuit never closes")
OTHER = Specimen(BREAKER, ResettingBreaker, "one recovery resets the count")


@cache
def known(specimen: Specimen) -> Truth:
    return truth(specimen)


@cache
def report(specimen: Specimen, strategy: str = DEFAULT) -> Report:
    return explore(scenario_of(specimen), strategy)


def complaints(
    specimen: Specimen, of: Specimen, strategy: str = DEFAULT, *, by: str = ""
) -> list[str]:
    return complaints_of(
        specimen, known(specimen), report(of, by or strategy), strategy
    )


def test_what_is_true_is_not_complained_of() -> None:
    assert complaints(RIGHT, RIGHT) == []
    assert complaints(FAULTY, FAULTY) == []


def test_a_right_one_that_is_refuted_is_wrong() -> None:
    (complaint,) = complaints(RIGHT, FAULTY)
    assert complaint.startswith("wrong: right, called order")


def test_a_faulty_one_that_is_proven_is_wrong() -> None:
    (complaint,) = complaints(FAULTY, RIGHT)
    assert complaint == "wrong: faulty after 4 operations, called proven"


def test_a_faulty_one_that_holds_is_wrong_by_the_default_strategy_only() -> None:
    assert complaints(FAULTY, RIGHT, by="stale") == [
        "wrong: faulty after 4 operations, called holds"
    ]
    assert complaints(FAULTY, RIGHT, "stale") == []


def test_histories_of_four_operations_find_what_four_show() -> None:
    assert complaints(FAULTY, RIGHT, "histories:3") == []
    assert complaints(FAULTY, RIGHT, "histories:4") == [
        "wrong: faulty after 4 operations, called holds"
    ]


def test_a_right_one_that_is_not_proven_is_open_by_the_default_strategy() -> None:
    (complaint,) = complaints(RIGHT, RIGHT, by="stale")
    assert complaint.startswith("open: right, called holds")
    assert complaints(RIGHT, RIGHT, "stale") == []


def test_a_history_that_shows_nothing_is_wrong() -> None:
    """Another registry's: it is not this one's fault, nor its shortest history."""
    assert [each for each in complaints(FAULTY, OTHER) if "shows nothing" in each]


def test_a_shorter_history_than_the_shortest_is_wrong() -> None:
    assert [each for each in complaints(FAULTY, OTHER) if "is shorter" in each]


@pytest.mark.parametrize("specimen", [RIGHT, FAULTY])
def test_not_fresh_without_a_difference_is_wrong(specimen: Specimen) -> None:
    """Systems were called not fresh, and the list of differences was empty."""

    def not_fresh(*paths: str) -> list[str]:
        of = report(FAULTY)
        violation = Violation("not fresh", (), None, None, (), paths=paths)
        exploration = replace(of.exploration, violations=(violation,))
        said = replace(of, exploration=exploration)
        assert said.verdict == "not fresh"
        return complaints_of(specimen, known(specimen), said, DEFAULT)

    added = ["wrong: called not fresh, without a difference"]
    assert not_fresh() == not_fresh("Breaker.opened: False / True") + added


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_is_judged(strategy: str) -> None:
    judged = [judge(each, known(each), strategy) for each in (RIGHT, FAULTY)]
    assert [each.line() for each in judged if each.complaints] == []
    assert [each.strategy for each in judged] == [strategy] * 2


def test_the_table_counts_verdicts() -> None:
    judged = [judge(each, known(each)) for each in (RIGHT, FAULTY)]
    head, row, total = table(judged).splitlines()
    assert head.split()[:4] == ["kind", "right", "proven", "holds"]
    assert row.split()[2:-1] == ["1", "1", "0", "0", "1", "1", "1", "0"]
    assert total.split()[1:-1] == ["1", "1", "0", "0", "1", "1", "1", "0"]
