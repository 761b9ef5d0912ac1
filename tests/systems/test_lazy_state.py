"""What the first performances fill is no leftover, unless it changes an answer.

Where no process can be forked, what was filled is named, and nothing is proven.
"""

import operator
from types import FunctionType
from typing import Any

import pytest

from everyorder.harness import Budget, Scenario, explore
from everyorder.harness.engine import explore as explore_system
from everyorder.harness.report.verdict import Report
from everyorder.harness.scenario import use
from everyorder.harness.systems.registry import RegistrySystem
from tests.forking import needs_fork
from tests.systems.lazy_registries import (
    DEEP,
    DEEP_LEAKING,
    LAZY,
    LEAKING,
    Base,
    Build,
    scenario,
)


def remarks(report: Report) -> list[str]:
    """Return the remarks of a report, without those about C functions."""
    return [
        f"{each.kind}: {each.text}"
        for each in report.exploration.caveats
        if not each.text.startswith("calls ")
    ]


@needs_fork
@pytest.mark.parametrize("build", (LAZY | DEEP).values(), ids=[*LAZY, *DEEP])
def test_what_is_filled_at_the_first_use_is_no_leftover(build: Build) -> None:
    """Each of these was UNFRESH."""
    report = explore(build())
    assert report.verdict == "proven", report.exploration.violations


@needs_fork
@pytest.mark.parametrize("build", [*LAZY.values()][::6], ids=[*LAZY][::6])
def test_the_second_time_says_the_same(build: Build) -> None:
    same = build()
    reports = [explore(same) for _ in range(2)]
    assert remarks(reports[0]) == remarks(reports[1])
    assert reports[0].verdict == reports[1].verdict


@needs_fork
@pytest.mark.parametrize(
    "build", (LEAKING | DEEP_LEAKING).values(), ids=[*LEAKING, *DEEP_LEAKING]
)
def test_a_leftover_that_shows_in_an_answer_is_not_fresh(build: Build) -> None:
    report = explore(build())
    assert report.verdict == "not fresh"
    assert all(each.paths for each in report.exploration.violations)


@needs_fork
def test_the_history_that_shows_a_leftover_is_the_first_of_a_process() -> None:
    """In this process the memo has the first answer for ever."""
    report = explore(LEAKING["a_memo_of_an_answer"]())
    (violation,) = report.exploration.violations
    assert (violation.history, str(violation.expected), str(violation.found)) == (
        *((0, 2), "(1, 1)", "(None, 1)"),
    )
    (path,) = violation.paths
    assert path.endswith("Registry.memo['a']: <absent> / None")


@needs_fork
@pytest.mark.parametrize("seconds", [1e-6, 0.05])
def test_a_warm_up_whose_time_is_spent_is_cut_short(seconds: float) -> None:
    report = explore(
        LAZY["settings_in_a_class_attribute"](), budget=Budget(seconds=seconds)
    )
    assert (report.verdict, report.exploration.proven) == ("cut short", False)


def without_processes(of: Scenario) -> tuple[bool, list[str]]:
    exploration = explore_system(RegistrySystem(of), "auto")
    return exploration.proven, [each.text for each in exploration.caveats]


def test_without_other_processes_what_is_filled_is_named() -> None:
    proven, texts = without_processes(LAZY["plugins_that_are_loaded_once"]())
    assert not proven
    assert any(
        each.startswith("first performances filled ")
        and "Plugins.loaded: None / <dict of 2>" in each
        for each in texts
    )


def test_without_other_processes_what_fills_nothing_is_proven() -> None:
    proven, texts = without_processes(scenario(Base))
    assert (proven, texts) == (True, [])


@pytest.mark.parametrize("build", DEEP_LEAKING.values(), ids=[*DEEP_LEAKING])
def test_without_other_processes_a_later_leftover_is_not_fresh(build: Build) -> None:
    exploration = explore_system(RegistrySystem(build()), "auto")
    assert [each.kind for each in exploration.violations] == ["not fresh"]


@needs_fork
@pytest.mark.parametrize(
    "name", ["a_memo_of_an_answer", "the_names_that_ever_were", "the_first_name_wins"]
)
def test_a_leftover_is_still_one_the_second_time(name: str) -> None:
    """The second time the memo was full, and the registry "proven"."""
    same = LEAKING[name]()
    words = [explore(same).verdict for _ in range(2)]
    assert words == ["not fresh", "not fresh"]


@needs_fork
def test_another_scenario_of_a_registry_with_a_leftover_is_not_proven() -> None:
    first = LEAKING["a_memo_of_an_answer"]()
    assert first.create is not None
    assert explore(first).verdict == "not fresh"
    report = explore(scenario(first.create, names="cd"))
    assert not report.exploration.proven
    assert any("another scenario of this process left" in e for e in remarks(report))


@needs_fork
def test_a_scenario_with_the_texts_of_another_one_has_its_own_verdict() -> None:
    """It had the violation of the other one, which its functions do not show."""
    first = LEAKING["a_memo_of_an_answer"]()
    assert first.create is not None
    assert explore(first).verdict == "not fresh"
    listed = operator.attrgetter("items")
    other = scenario(first.create, uses=[use(each.text, listed) for each in first.uses])
    assert other.digest == first.digest
    report = explore(other)
    assert "not fresh" not in [each.kind for each in report.exploration.violations]


@needs_fork
def test_a_scenario_made_again_by_the_same_lines_is_the_same() -> None:
    """Its functions are other objects."""
    first = LEAKING["a_memo_of_an_answer"]()

    def again() -> str:
        copies = [use(each.text, _copied(each.perform)) for each in first.uses]
        assert first.create is not None
        return explore(scenario(first.create, uses=copies)).verdict

    assert [again(), again()] == ["not fresh", "not fresh"]


def _copied(function: Any) -> Any:
    """Return another function of the same code."""
    return FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
