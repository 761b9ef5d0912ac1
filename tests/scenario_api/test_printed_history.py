"""A printed history, run as the Python lines that it is, shows the printed fault."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from everyorder.harness import Scenario, Step, explore, step, steps, use
from everyorder.harness.exploration.confirmation import is_shown_by_text
from everyorder.harness.exploration.explore_scenario import (
    closing,
    system_of,
)
from everyorder.harness.report import render, sections
from everyorder.harness.report.failure import UNCONFIRMED
from everyorder.harness.report.verdict import Report


class Handle:
    def __init__(self, undo: Callable[[], object]) -> None:
        self.close = undo


class Registry:
    """Stores names; each class below has one fault."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.past: list[str] = []

    def add(self, name: str) -> Handle:
        self.names.append(name)
        return Handle(lambda: self.remove(name))

    def remove(self, name: str) -> None:
        self.names.remove(name)
        self.past.append(name)

    def get(self) -> str:
        return " ".join(sorted(self.names))


class Once(Registry):
    """A name that was removed cannot be added again."""

    def add(self, name: str) -> Handle:
        if name in self.past:
            raise ValueError(f"{name} was here")
        return super().add(name)


class Wedges(Once):
    """As `Once`, and the refused name is stored."""

    def add(self, name: str) -> Handle:
        if name in self.past:
            self.names.append(name)
        return super().add(name)


class Sticks(Registry):
    """The second removal of a name raises."""

    def remove(self, name: str) -> None:
        if name in self.past:
            raise LookupError(name)
        super().remove(name)


class Limited(Registry):
    """The limit counts names that were removed."""

    def add(self, name: str) -> Handle:
        if len(self.names) + len(self.past) > 2:
            raise ValueError("full")
        return super().add(name)


class Newest(Registry):
    """The order of registration shows."""

    def get(self) -> str:
        return " ".join(self.names)


def scenario(create: type[Registry], *more: Step, names: str = "ab") -> Scenario:
    return Scenario(
        *steps("add", names, create.add),
        *more,
        create=create,
        observe=create.get,
        uses=[use("get()", create.get)],
        name=create.__name__,
    )


def run(report: Report, create: type[Registry], lines: tuple[str, ...]) -> list[str]:
    """Run printed lines as Python; return what each shows, and the final look."""
    registry = create()
    values: dict[str, Any] = {
        "add": registry.add,
        "get": registry.get,
        "observe": registry.get,
    }
    outcomes = []
    for line in lines:
        try:
            exec(line, values)
        except (ValueError, LookupError) as error:
            outcomes.append(f"{type(error).__name__}: {error}")
        else:
            outcomes.append(registry.get())
    return [*outcomes, registry.get()]


FAULTY = (Once, Wedges, Sticks, Limited, Newest)


@pytest.mark.parametrize("create", FAULTY)
def test_the_printed_lines_run_as_python_and_show_the_fault(
    create: type[Registry],
) -> None:
    report = explore(scenario(create))
    assert report.exploration.violations
    for violation in report.exploration.violations:
        lines = report.violation_lines(violation)
        # In a column of its own, or in the second one.
        texts = render(report).splitlines()
        assert [each for each in texts if each.endswith(f"   {lines[-1]}")]
        outcomes = run(report, create, lines)
        if violation.kind in ("error", "undo", "wedged"):
            text = dict(sections(violation.found))
            assert f"{text['error']}: {text['text']}" in outcomes
        else:
            assert violation.found in outcomes or violation.found == (
                ("state", outcomes[-1]),
            )


def test_a_step_that_fails_when_done_again_is_printed_as_closed_before() -> None:
    """It was printed as `add, add, add`: the step that fails in the end was undone."""
    report = explore(scenario(Once, names="a"))
    (violation, *_) = report.exploration.violations
    assert report.violation_lines(violation) == (
        "step_1 = add('a')",
        "step_1.close()",
        "step_1 = add('a')",
    )


def test_printed_lines_are_read_back_as_the_operations_that_they_show() -> None:
    report = explore(scenario(Limited))
    for violation in report.exploration.violations:
        moves = report.read_lines(report.violation_lines(violation))
        assert tuple(operation for operation, _ in moves) == violation.shown
        assert frozenset(at for at, (_, undo) in enumerate(moves) if undo) == (
            violation.undos
        )
    with pytest.raises(KeyError):
        report.read_lines(["step_9.close()"])


def test_lines_that_do_not_show_the_fault_are_not_confirmed() -> None:
    """A history with another meaning, or without the fault, is told from the right."""
    of = scenario(Once, names="a")
    report = explore(of)
    (violation, *_) = report.exploration.violations
    with closing(system_of(of)) as system:
        assert is_shown_by_text(report, system, violation)
        toggled = replace(violation, undos=frozenset())
        assert not is_shown_by_text(report, system, toggled)
        shorter = replace(violation, shortest=violation.shown[:-1])
        assert not is_shown_by_text(report, system, shorter)


def test_a_history_without_confirmation_says_so() -> None:
    report = explore(scenario(Once, names="a"))
    assert all(each.confirmed for each in report.exploration.violations)
    violations = tuple(
        replace(each, confirmed=False) for each in report.exploration.violations
    )
    found = replace(report.exploration, violations=violations)
    text = " ".join(render(replace(report, exploration=found)).split())
    assert UNCONFIRMED in text
    assert UNCONFIRMED not in " ".join(render(report).split())


def test_a_fault_of_the_fresh_system_is_printed_without_operations() -> None:
    """The empty history is the shortest one; the longer one was printed instead."""

    def check(registry: Registry) -> list[str]:
        return ["never sound"]

    of = Scenario(
        step("add('a')", lambda r: r.add("a")),
        create=Registry,
        observe=Registry.get,
        check=check,
    )
    report = explore(of)
    (violation, *_) = report.exploration.violations
    assert (violation.kind, report.violation_lines(violation)) == ("law", ())
