"""The shape of laws, and of what they say."""

import pytest

from everyorder.invariants import LAWS, Law, Violation
from everyorder.invariants.law import Finding, group_findings, law


@law("state")
def nothing_is_odd(numbers: list[int]) -> list[Finding]:
    """No number is odd.

    More words that are no part of the sentence.
    """
    return [(f"number {n}", "even", "odd") for n in numbers if n % 2]


def test_a_law_takes_name_and_sentence_from_its_function() -> None:
    assert (nothing_is_odd.name, nothing_is_odd.sentence, nothing_is_odd.scope) == (
        "nothing_is_odd",
        "No number is odd.",
        "state",
    )
    assert not nothing_is_odd.per_operator


def test_a_law_lists_violations() -> None:
    assert nothing_is_odd.check([2, 3, 4]) == [
        Violation("nothing_is_odd", "number 3", "even", "odd")
    ]
    assert str(nothing_is_odd.check([3])[0]) == (
        "nothing_is_odd at number 3: expected even, found odd"
    )


def test_a_law_never_raises() -> None:
    assert nothing_is_odd.check(["a", 1]) == [
        Violation(
            "nothing_is_odd", "the whole subject", "something readable", "TypeError"
        )
    ]


def test_places_that_differ_alike_are_one_finding() -> None:
    places = [(name, "x", "y") for name in "abcdef"] + [("g", "x", "z")]
    assert group_findings("d::f", places) == [
        ("d::f at a, b, c, d and 2 more", "x", "y"),
        ("d::f at g", "x", "z"),
    ]


@pytest.mark.parametrize("each", LAWS, ids=lambda each: each.name)
def test_every_law_is_one_sentence(each: Law) -> None:
    assert each.sentence.endswith(".")
    assert each.sentence.count(". ") == 0
    assert each.scope in ("state", "step", "run")


def test_names_are_unique() -> None:
    assert len({each.name for each in LAWS}) == len(LAWS)
