"""What a use answered, as a value that can be compared."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest

from harness.errors import NotAScenario
from harness.heap import canonical
from harness.scenario import use
from harness.systems.answer import checked_answer

ASKED = use("listed", lambda _: None)


def answer(value: object) -> Any:
    return checked_answer(ASKED, value)


def test_text_stays_the_text_it_is() -> None:
    assert answer("a") == "a"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (True, 1),
        (1, 1.0),
        (0.0, -0.0),
        ("1", 1),
        ([1], (1,)),
        ([1, 2], [2, 1]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({1}, frozenset({1})),
        (b"a", bytearray(b"a")),
    ],
)
def test_answers_differ_by_type_value_and_order(one: object, other: object) -> None:
    assert answer(one) != answer(other)
    assert answer(one) == answer(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 2], [2, 1]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": [1, 2]}, {"a": [2, 1]}),
    ],
)
def test_order_that_does_not_count(one: object, other: object) -> None:
    asked = use("listed", lambda _: None, unordered=True)
    assert checked_answer(asked, one) == checked_answer(asked, other)
    assert checked_answer(asked, one) != checked_answer(asked, [one, other])


def test_an_answer_that_changes_later_is_kept_as_it_was() -> None:
    found = ["a"]
    before = answer(found)
    found.append("b")
    assert before == canonical(["a"])
    assert answer(found) == canonical(["a", "b"])


def test_what_once_was_no_answer() -> None:
    """Arrays and the like have no equality that is true or false."""
    assert answer(np.zeros(2)) == answer(np.zeros(2))
    assert answer(np.zeros(2)) != answer(np.ones(2))
    assert answer(np.zeros(2)) != answer(np.zeros(2, dtype=np.float32))


def test_views_of_dicts_are_lists() -> None:
    table = {"a": 1}
    assert answer(table.keys()) == answer(["a"])
    assert answer(table.values()) == answer([1])
    assert answer(table.items()) == answer([("a", 1)])


def counting() -> Iterator[int]:
    yield 1


async def counting_later() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (counting(), "the generator counting"),
        (counting_later(), "the asynchronous generator counting_later"),
        (iter([1]), "list_iterator"),
        (map(str, [1]), "map"),
    ],
)
def test_what_has_not_run_is_no_answer(value: object, found: str) -> None:
    with pytest.raises(NotAScenario) as caught:
        answer(value)
    assert str(caught.value) == (
        f"a scenario cannot take {found}, returned by the use 'listed'; it wants what "
        "it gives: list(...), or the result that is awaited."
    )
