"""What the functions of a scenario raise and answer, and what becomes of it."""

import unittest
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import numpy as np
import pytest

from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.exploration.explore_scenario import explore
from everyorder.harness.report.verdict import Report
from everyorder.harness.scenario import Scenario, step, steps, use
from everyorder.harness.state import canonical
from everyorder.harness.systems.outcomes import (
    ErrorOutcome,
    ScenarioSkipped,
    call_with_outcomes,
    check_answer,
    error_fields,
    is_failed_check,
    is_one_of,
    name_and_text,
)

ASKED = use("listed", lambda _: None)


def answer(value: object) -> Any:
    return check_answer(ASKED, value)


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
    assert check_answer(asked, one) == check_answer(asked, other)
    assert check_answer(asked, one) != check_answer(asked, [one, other])


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
        f"a scenario cannot use {found}, returned by the use 'listed'; expected its "
        "items: list(...), or the awaited result."
    )


def raising(error: BaseException) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


def test_a_result_passes() -> None:
    assert call_with_outcomes(divmod, 7, 2) == (3, 1)


def test_an_exception_passes() -> None:
    error = KeyError("a")
    with pytest.raises(KeyError) as caught:
        call_with_outcomes(raising(error))
    assert caught.value is error


def test_pytest_fail_is_an_outcome() -> None:
    with pytest.raises(ErrorOutcome) as caught:
        call_with_outcomes(pytest.fail, "three of them")
    assert name_and_text(caught.value) == ("Failed", "three of them")
    assert caught.value.__context__ is None
    assert is_failed_check(caught.value)


def test_other_outcomes_that_are_no_exception() -> None:
    class Cancelled(BaseException):
        pass

    with pytest.raises(ErrorOutcome) as caught:
        call_with_outcomes(raising(Cancelled("by hand")))
    assert name_and_text(caught.value) == ("Cancelled", "by hand")
    assert not is_failed_check(caught.value)


@pytest.mark.parametrize(
    "skip",
    [
        lambda: pytest.skip("no database"),
        raising(unittest.SkipTest("no database")),
    ],
)
def test_skip_skips_the_scenario(skip: Callable[[], Any]) -> None:
    with pytest.raises(ScenarioSkipped) as caught:
        call_with_outcomes(skip)
    assert str(caught.value) == "no database"


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()], ids=repr
)
def test_who_wants_to_end_is_let_through(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        call_with_outcomes(raising(error))
    assert caught.value is error


def test_pytest_exit_is_let_through() -> None:
    with pytest.raises(pytest.exit.Exception):
        call_with_outcomes(pytest.exit, "enough")


def test_texts_without_addresses() -> None:
    class Thing:
        """Is written with its address."""

        __qualname__ = __module__ = "a"

    assert name_and_text(ValueError(f"no {Thing()!r} and no {Thing()!r} at 0 x")) == (
        "ValueError",
        "no <a.a object at 0x...> and no <a.a object at 0x...> at 0 x",
    )


def test_an_error_without_a_text() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("mute")

    assert name_and_text(Mute()) == ("Mute", "<no text: RuntimeError>")


class Silent(BaseException):
    """No `Exception`, and its text is none either."""

    def __str__(self) -> str:
        raise Silent


def test_an_error_without_a_text_that_is_no_exception() -> None:
    """It ended the process."""
    assert name_and_text(Silent()) == ("Silent", "<no text: Silent>")
    with pytest.raises(ErrorOutcome) as caught:
        call_with_outcomes(raising(Silent()))
    told = caught.value
    assert (told.name, told.text) == ("Silent", "<no text: Silent>")


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit, pytest.exit.Exception])
def test_who_wants_to_end_is_let_through_by_a_text(end: type[BaseException]) -> None:
    class Pressed(Exception):
        def __str__(self) -> str:
            raise end

    with pytest.raises(end):
        name_and_text(Pressed())


def test_what_an_outcome_stands_for() -> None:
    with pytest.raises(ErrorOutcome) as caught:
        call_with_outcomes(raising(Silent()))
    assert is_one_of(caught.value, (ValueError, Silent))
    assert not is_one_of(caught.value, (ValueError,))
    assert is_one_of(KeyError("a"), (LookupError,))


def test_a_use_that_raises_what_is_no_exception_as_declared() -> None:
    def fail(_: object) -> None:
        raise Silent

    def add(names: set[str]) -> Any:
        names.add("a")
        return names.clear

    made = Scenario(
        step("add", add),
        uses=[use("fail", fail, raises=Silent)],
        create=set,
        observe=lambda names: str(len(names)),
    )
    assert explore(made, "walk:1").verdict == "holds"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (AssertionError(), True),
        (KeyError("a"), False),
        (ErrorOutcome("Exit", ""), False),
    ],
)
def test_what_says_that_something_does_not_hold(error: Exception, said: bool) -> None:
    assert is_failed_check(error) == said


def test_where_the_recursion_ended_is_not_a_part_of_an_outcome() -> None:
    limit = "maximum recursion depth exceeded"
    error = RecursionError(f"{limit} while calling a Python object")
    assert name_and_text(error) == ("RecursionError", limit)
    assert error_fields(error, print) == (("error", "RecursionError"), ("text", limit))
    own = RecursionError("a plugin requires itself")
    assert name_and_text(own) == ("RecursionError", "a plugin requires itself")
