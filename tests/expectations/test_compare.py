"""Missing, changed and stale are three verdicts."""

from dataclasses import replace

import pytest

from harness.expectations import (
    Comparison,
    Document,
    Key,
    accept,
    compare,
    document_of,
)
from harness.expectations.document import digest_of
from tests.expectations.samples import PAIR, document, report

NONE, ONE, TWO, BOTH = Key(()), Key((0,)), Key((1,)), Key((0, 1))
OTHER = (("state", "other\n"),)


def entries(*changes: tuple[Key, object], without: tuple[Key, ...] = ()) -> Document:
    bodies = {k: b for k, b in document().entries if k not in without}
    bodies.update(changes)  # type: ignore[arg-type]  # bodies are written as such
    return document(
        entries=tuple(sorted(bodies.items(), key=lambda entry: entry[0].rank))
    )


def test_as_expected() -> None:
    comparison = compare(document(), document())
    assert comparison == Comparison(document(), document(), (), (), (), (), 4)
    assert comparison.verdict == "unchanged"
    assert comparison.passed
    assert not comparison.only_new


def test_nothing_is_expected() -> None:
    found = report({(): "nothing", (0,): "one"})
    comparison = compare(None, found)
    assert comparison == Comparison(
        None, document_of(found), (), (NONE, ONE), (), (), 0
    )
    assert comparison.verdict == "missing"
    assert comparison.only_new
    assert not comparison.divisible


def test_three_verdicts_at_once() -> None:
    old = entries(without=(BOTH,))
    new = entries((ONE, OTHER), without=(TWO,))
    comparison = compare(old, new)
    assert comparison.missing == (BOTH,)
    assert comparison.changed == (ONE,)
    assert comparison.stale == (TWO,)
    assert comparison.unchanged == 1
    assert comparison.fields == ()
    assert comparison.verdict == "changed"
    assert not comparison.passed


@pytest.mark.parametrize(
    ("new", "verdict", "only_new"),
    [
        (entries((ONE, OTHER)), "changed", False),
        (entries((Key((0,), 1), OTHER)), "missing", True),
        (entries(without=(BOTH,)), "stale", False),
        (document(guarantee=("less",)), "changed", False),
        (document(strategy="walk:0"), "changed", False),
        (document(transitions=7), "changed", False),
        (document(uses=("call()",)), "changed", False),
        (document(pinned="the newest wins"), "changed", False),
        (document(scenario="moved"), "changed", False),
    ],
)
def test_verdict(new: Document, verdict: str, only_new: bool) -> None:
    comparison = compare(document(), new)
    assert comparison.verdict == verdict
    assert comparison.only_new is only_new


def test_a_fourth_step_only_adds_but_another_first_step_does_not() -> None:
    grown = replace(entries((Key((2,)), OTHER)), steps=("one()", "two()", "three()"))
    assert compare(document(), grown).only_new
    assert compare(document(), grown).fields == ("steps", "explored")
    moved = replace(grown, steps=("zero()", "one()", "two()"))
    assert not compare(document(), moved).only_new
    assert not compare(document(), moved).divisible


def test_effort_chosen_by_hand_is_not_compared() -> None:
    less = document(strategy="walk:0", guarantee=("less",), transitions=4)
    assert compare(document(), less).fields == ("strategy", "guarantee", "explored")
    assert compare(document(), less, effort=False).passed
    assert not compare(document(), entries((ONE, OTHER)), effort=False).passed


def test_a_digest_agrees_with_the_body_in_full() -> None:
    assert compare(entries((ONE, digest_of(PAIR))), document()).passed
    assert compare(document(), entries((ONE, digest_of(OTHER)))).changed == (ONE,)


def test_accept_everything() -> None:
    new = entries((ONE, OTHER), without=(TWO,))
    assert accept(compare(document(), new)) == new
    assert accept(compare(None, new), frozenset({ONE})) == new


def test_accept_some_keys() -> None:
    failing = Key((0,), 1)
    old, new = document(), entries((ONE, OTHER), (failing, OTHER), without=(TWO,))
    comparison = compare(old, new)
    assert accept(comparison, frozenset()) == old
    assert accept(comparison, frozenset({ONE})) == entries((ONE, OTHER))
    assert accept(comparison, frozenset({failing})) == entries((failing, OTHER))
    assert accept(comparison, frozenset({TWO})) == entries(without=(TWO,))
    assert accept(comparison, frozenset({ONE, TWO, failing})) == new
    assert compare(accept(comparison, frozenset({ONE})), new).changed == ()


def test_where_steps_mean_something_else_all_is_taken() -> None:
    new = replace(entries((ONE, OTHER)), steps=("two()", "one()"))
    assert accept(compare(document(), new), frozenset({TWO})) == new
