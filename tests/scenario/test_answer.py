"""What a use answered, as a value that can be compared."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import numpy as np
import pytest

from harness.errors import NotAScenario
from harness.exploring import explore
from harness.heap import canonical
from harness.outcome import Report
from harness.scenario import Scenario, steps, use
from harness.systems.outcomes import checked_answer

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


class Switches:
    """What was switched on last says how: by a truth or by a number."""

    def __init__(self) -> None:
        self.names: dict[str, object] = {}
        self.on: object = False

    def add(self, name: str) -> Callable[[], None]:
        self.on = self.names[name] = {"a": True, "b": 1}[name]
        return lambda: self.remove(name)

    def remove(self, name: str) -> None:
        del self.names[name]
        self.on = next(reversed(self.names.values()), False)


def explored(ask: Callable[[Switches], object], **options: Any) -> Report:
    return explore(
        Scenario(
            *steps("add", "ab", Switches.add),
            uses=[use("ask", ask, **options)],
            create=Switches,
            observe=lambda of: " ".join(sorted(of.names)),
        ),
        "graph",
    )


def test_a_truth_where_there_was_a_number_is_a_fault() -> None:
    """`True == 1`, so the two were one answer."""
    report = explored(lambda of: of.on)
    assert report.verdict == "order"
    violation = report.exploration.violations[0]
    assert {str(violation.expected), str(violation.found)} == {"1", "True"}
    assert violation.paths == ("registry.on: 1 / True",)


def test_a_dict_in_another_order_is_a_fault_unless_it_is_told() -> None:
    """Two dicts of other orders are equal, so the two were one answer."""
    report = explored(lambda of: of.names.copy())
    assert report.verdict == "order"
    violation = report.exploration.violations[0]
    assert report.lines(violation.shortest or ()) == (
        "step_2 = add('b')",
        "step_1 = add('a')",
        "ask",
    )
    report = explored(lambda of: of.names.copy(), unordered=True)
    assert report.verdict == "proven"
    assert [caveat.text for caveat in report.exploration.caveats] == [
        "the order of what ask answers does not count"
    ]


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
