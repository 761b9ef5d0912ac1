"""What the functions of a scenario raise, and what becomes of it."""

import unittest
from collections.abc import Callable
from typing import Any

import pytest

from harness.exploring import explore
from harness.scenario import Scenario, step, use
from harness.systems.outcomes import (
    Outcome,
    ScenarioSkipped,
    is_failed_check,
    is_one_of,
    settled,
    told_of,
)


def raising(error: BaseException) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


def test_a_result_passes() -> None:
    assert settled(divmod, 7, 2) == (3, 1)


def test_an_exception_passes() -> None:
    error = KeyError("a")
    with pytest.raises(KeyError) as caught:
        settled(raising(error))
    assert caught.value is error


def test_pytest_fail_is_an_outcome() -> None:
    with pytest.raises(Outcome) as caught:
        settled(pytest.fail, "three of them")
    assert told_of(caught.value) == ("Failed", "three of them")
    assert caught.value.__context__ is None
    assert is_failed_check(caught.value)


def test_other_outcomes_that_are_no_exception() -> None:
    class Cancelled(BaseException):
        pass

    with pytest.raises(Outcome) as caught:
        settled(raising(Cancelled("by hand")))
    assert told_of(caught.value) == ("Cancelled", "by hand")
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
        settled(skip)
    assert str(caught.value) == "no database"


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()], ids=repr
)
def test_who_wants_to_end_is_let_through(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        settled(raising(error))
    assert caught.value is error


def test_pytest_exit_is_let_through() -> None:
    with pytest.raises(pytest.exit.Exception):
        settled(pytest.exit, "enough")


def test_texts_without_addresses() -> None:
    class Thing:
        """Is written with its address."""

        __qualname__ = __module__ = "a"

    assert told_of(ValueError(f"no {Thing()!r} and no {Thing()!r} at 0 x")) == (
        "ValueError",
        "no <a.a object at 0x...> and no <a.a object at 0x...> at 0 x",
    )


def test_an_error_without_a_text() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("mute")

    assert told_of(Mute()) == ("Mute", "<no text: RuntimeError>")


class Silent(BaseException):
    """No `Exception`, and its text is none either."""

    def __str__(self) -> str:
        raise Silent


def test_an_error_without_a_text_that_is_no_exception() -> None:
    """It ended the process."""
    assert told_of(Silent()) == ("Silent", "<no text: Silent>")
    with pytest.raises(Outcome) as caught:
        settled(raising(Silent()))
    told = caught.value
    assert (told.name, told.text) == ("Silent", "<no text: Silent>")


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit, pytest.exit.Exception])
def test_who_wants_to_end_is_let_through_by_a_text(end: type[BaseException]) -> None:
    class Pressed(Exception):
        def __str__(self) -> str:
            raise end

    with pytest.raises(end):
        told_of(Pressed())


def test_what_an_outcome_stands_for() -> None:
    with pytest.raises(Outcome) as caught:
        settled(raising(Silent()))
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
    [(AssertionError(), True), (KeyError("a"), False), (Outcome("Exit", ""), False)],
)
def test_what_says_that_something_does_not_hold(error: Exception, said: bool) -> None:
    assert is_failed_check(error) == said


@pytest.mark.parametrize("kind", [RecursionError, MemoryError])
def test_where_the_machine_gave_up_is_no_part_of_an_outcome(
    kind: type[Exception],
) -> None:
    assert told_of(kind("while calling a Python object")) == (kind.__name__, "")
