from dataclasses import replace
from typing import get_args

import pytest

from everyorder.harness.engine.result import Square
from everyorder.harness.engine.strategy import GUARANTEES as ENGINE_GUARANTEES
from everyorder.harness.report.text import (
    COUNTED,
    GUARANTEES,
    SENTENCES,
    VERDICTS,
    sentence,
    short_guarantee,
    square_sentence,
)
from everyorder.harness.report.verdict import VERDICTS as ALL_VERDICTS
from everyorder.harness.report.verdict import Verdict
from tests.report.samples import CUT, PINNED, PROVEN


def test_every_verdict_has_its_histories_most_severe_first() -> None:
    assert tuple(VERDICTS) == tuple(COUNTED) == ALL_VERDICTS
    assert set(SENTENCES) == set(get_args(Verdict))
    assert max(map(len, VERDICTS.values())) <= 7


def test_every_strategy_has_a_short_guarantee() -> None:
    families = {name.partition(":")[0] for name in ENGINE_GUARANTEES}
    assert set(GUARANTEES) == families


@pytest.mark.parametrize(
    ("strategy", "text"),
    [
        ("graph+walk:2+histories:3", "any length"),
        ("stale+histories:3+sca:3+random:100", "no stale"),
        ("arrangements", "add orders"),
        ("random:9", "as played"),
        ("histories:3+walk:2+kA:1", "last 2"),
        ("kA:1", "1 hidden"),
        ("sca:4", "any 4 steps"),
        ("full", "add, remove"),
        ("another", "another"),
    ],
)
def test_short_guarantee_is_the_strongest(strategy: str, text: str) -> None:
    proven = strategy.startswith("graph+")
    exploration = replace(PROVEN.exploration, strategy=strategy, proven=proven)
    assert short_guarantee(replace(PROVEN, exploration=exploration)) == text


def test_a_search_that_proves_nothing_guarantees_what_was_played() -> None:
    for strategy, text in (
        ("graph", "as played"),
        ("graph+walk:2", "last 2"),
        ("graph+stale+histories:3+random:100", "no stale"),
    ):
        exploration = replace(PROVEN.exploration, strategy=strategy, proven=False)
        report = replace(PROVEN, exploration=exploration)
        assert (report.verdict, short_guarantee(report)) == ("holds", text)


def test_nothing_is_guaranteed_where_it_failed() -> None:
    assert short_guarantee(CUT) == "none"


def test_what_a_verdict_says_where_an_order_is_pinned() -> None:
    pairs = replace(PROVEN, pairs=((0, 1),))
    assert sentence(PROVEN) == "proven: no history of any length makes a difference"
    assert sentence(pairs) == (
        "proven: no history of any length makes a difference, but for the order that "
        "is pinned"
    )
    assert sentence(replace(pairs, exploration=CUT.exploration)) == sentence(CUT)
    assert sentence(PINNED) == (
        "pinned: depends on the declared order and on nothing else"
    )


def test_square_sentences() -> None:
    assert square_sentence(PROVEN, Square((0,), 1, 2)) == (
        "from {1}, 2 then 3 differs from 3 then 2"
    )
    assert square_sentence(PINNED, Square((2, 0), 1, 1)) == (
        "from 3 then 1, 2 and its undo do not lead back: it is not an inverse"
    )
