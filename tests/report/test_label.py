from dataclasses import replace
from typing import get_args

import pytest

from harness.engine.result import Square
from harness.engine.theory import GUARANTEES as ENGINE_GUARANTEES
from harness.outcome import VERDICTS as ALL_VERDICTS
from harness.outcome import Verdict
from harness.report.label import (
    COUNTED,
    GUARANTEES,
    SENTENCES,
    VERDICTS,
    short_guarantee,
    square_sentence,
)
from tests.report.samples import CUT, PINNED, PROVEN


def test_every_verdict_has_its_words_most_severe_first() -> None:
    assert tuple(VERDICTS) == tuple(COUNTED) == ALL_VERDICTS
    assert set(SENTENCES) == set(get_args(Verdict))
    assert max(map(len, VERDICTS.values())) <= 7


def test_every_strategy_has_a_short_guarantee() -> None:
    families = {name.partition(":")[0] for name in ENGINE_GUARANTEES}
    assert set(GUARANTEES) == families


@pytest.mark.parametrize(
    ("strategy", "text"),
    [
        ("graph+walk:2+words:3", "any length"),
        ("words:3+walk:2+kA:1", "last 2"),
        ("kA:1", "1 hidden"),
        ("sca:4", "any 4 steps"),
        ("full", "add, remove"),
        ("another", "another"),
    ],
)
def test_short_guarantee_is_the_strongest(strategy: str, text: str) -> None:
    exploration = replace(PROVEN.exploration, strategy=strategy)
    assert short_guarantee(replace(PROVEN, exploration=exploration)) == text


def test_nothing_is_guaranteed_where_it_failed() -> None:
    assert short_guarantee(CUT) == "none"


def test_square_sentences() -> None:
    assert square_sentence(PROVEN, Square((0,), 1, 2)) == (
        "from {1}, 2 then 3 differs from 3 then 2"
    )
    assert square_sentence(PINNED, Square((2, 0), 1, 1)) == (
        "from 3 then 1, toggling 2 twice does not lead back"
    )
