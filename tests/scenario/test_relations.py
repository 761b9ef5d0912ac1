"""What steps have to do with each other, from texts to numbers."""

from typing import Any

import pytest

from harness.engine.protocol import Relations
from harness.errors import NotAScenario
from harness.scenario import Scenario, Step, step, use


def made(text: str, **options: Any) -> Step:
    return step(text, lambda _: lambda: None, **options)


def scenario(*steps: Step, **options: Any) -> Scenario:
    return Scenario(*steps, **{"create": list, "observe": str, **options})


TABLE = made("table")


def test_without_relations() -> None:
    assert scenario(TABLE, made("row")).relations == Relations()


def test_all_relations() -> None:
    found = scenario(
        made("row", requires=TABLE, may_refuse=True),
        TABLE,
        made("index", after=["table", "row"], undo=lambda _: None),
        step("view", lambda _: None, undo=None),
        step("log", lambda _: None, undo=None, again=True, raises=LookupError),
        uses=[use("count", len), use("version", len, constant=True)],
        ordered=[("index", TABLE), ("table", "row")],
    ).relations
    assert found == Relations(
        lasting=frozenset({3, 4}),
        again=frozenset({4}),
        requires={0: frozenset({1})},
        after={2: frozenset({0, 1})},
        refusable=frozenset({0}),
        pairs=frozenset({(1, 2), (0, 1)}),
        declared=frozenset({4, 6}),
    )


def test_what_is_given_is_always_there() -> None:
    """It outlives the steps, so nothing follows from requiring it."""
    found = scenario(made("row", requires=TABLE, after="table"), given=[TABLE])
    assert found.relations == Relations()


@pytest.mark.parametrize(
    ("steps", "options", "text"),
    [
        (
            (TABLE, made("row", requires="tabel")),
            {},
            "'tabel' in requires= of 'row', which is no step of it; it wants one of "
            "its steps, such as table",
        ),
        (
            (TABLE, made("row", after="index")),
            {},
            "'index' in after= of 'row', which is no step of it; it wants one of its "
            "steps, such as table or row",
        ),
        (
            (TABLE,),
            {"ordered": [("table", "chair")]},
            "'chair' in ordered=, which is no step of it; it wants one of its steps, "
            "such as table",
        ),
        (
            (TABLE,),
            {"ordered": [("table", TABLE)]},
            "ordered=[('table', 'table')]; it wants pairs of two steps",
        ),
        (
            (TABLE, made("row", requires="index"), made("index", after="row")),
            {},
            "steps of which each waits for another ('row', 'index'); it wants "
            "requires= and after= without a circle",
        ),
        (
            (made("row", requires="row"),),
            {},
            "steps of which each waits for another ('row'); it wants requires= and "
            "after= without a circle",
        ),
    ],
)
def test_what_cannot_be(steps: Any, options: Any, text: str) -> None:
    with pytest.raises(NotAScenario) as caught:
        scenario(*steps, **options)
    assert str(caught.value) == f"a scenario cannot take {text}."
