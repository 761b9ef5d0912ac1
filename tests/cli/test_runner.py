""" """

import os
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everyorder.harness.cli.display import Advanced, FinishedTask, LiveDisplay, Started
from everyorder.harness.cli.runner import (
    PARALLEL_OPERATIONS,
    Interrupted,
    Runner,
    outcomes_of,
    process_count,
)
from everyorder.harness.collection.tasks import ExploreOptions, Task, TaskResult
from everyorder.harness.processes.watch import Subject
from everyorder.harness.report.verdict import Report, Unexplored
from tests.cli.conftest import Project
from tests.report.samples import PROVEN

if TYPE_CHECKING:
    from rich.console import Console


def task(path: str, size: int) -> Task:
    return Task(path, "", Path("a"), size, Subject(path, "", (), (), Path()))


def tasks(*sizes: int) -> list[Task]:
    return [task("s", size) for size in sizes]


def test_how_many_processes() -> None:
    cores = os.cpu_count() or 1
    assert process_count(tasks(1, 2), None) == 1
    assert process_count(tasks(*[PARALLEL_OPERATIONS] * 99), None) == min(cores, 99)
    assert process_count(tasks(PARALLEL_OPERATIONS), None) == 1
    assert process_count(tasks(1, 2, 3), 2) == 2
    assert process_count(tasks(1), 8) == 1
    assert process_count([], None) == 1
    unknown = [replace(each, is_test=True) for each in tasks(*[0] * 8)]
    assert process_count(unknown[:7], None) == 1
    assert process_count(unknown, None) == min(cores, 8)


@pytest.mark.parametrize(
    ("jobs", "in_process"), [(1, False), (2, False), (None, False), (None, True)]
)
def test_outcomes_are_in_the_order_of_the_tasks(
    project: Project, jobs: int | None, in_process: bool, terminal: "type[Console]"
) -> None:
    console = terminal(file=StringIO())
    runner = Runner(ExploreOptions("walk:1"), jobs=jobs, in_process=in_process)
    with runner:
        listing = runner.load(())
        results = runner.explore(listing.tasks, console)
    found = outcomes_of(listing.tasks, results)
    assert [each.scenario for each in found] == list(listing.paths)
    assert all(isinstance(each, Report) for each in found)


def test_an_interrupt_has_what_is_finished(
    project: Project, terminal: "type[Console]"
) -> None:
    project.scenarios(
        "stops",
        "from everyorder.harness.scenario import Scenario, step\n"
        "def stop(registry):\n    raise KeyboardInterrupt\n"
        "stops = Scenario(step('stop()', stop), create=list, observe=repr)\n",
    )
    with Runner(ExploreOptions("walk:1"), in_process=True) as runner:
        listing = runner.load(("sound", "stops"))
        with pytest.raises(Interrupted) as stopped:
            runner.explore(listing.tasks, terminal(file=StringIO()))
    assert [
        each.scenario for each in outcomes_of(listing.tasks, stopped.value.finished)
    ] == ["scenarios/test_sound/sound"]
    assert stopped.value.planned == 2


TASKS = [
    task("scenarios/test_a/one", 1_000),
    task("scenarios/test_a/two", 3_000),
]


GONE = Unexplored("scenarios/test_a/two", "", "gone")


def shown(display: LiveDisplay, console: "Console") -> str:
    with console.capture() as capture:
        console.print(display._frame())
    return capture.get()


def test_the_display_of_a_run(terminal: "type[Console]") -> None:
    console = terminal(file=StringIO(), width=80, height=40, force_terminal=True)
    with LiveDisplay(console, TASKS) as display:
        display.show(Started(0))
        display.show(Started(1))
        display.show(Advanced(0, 500, 900))
        text = shown(display, console)
        assert "500/3900" in text.replace(" ", "")
        assert "one" in text
        assert "500/900" in text.replace(" ", "")
        assert "scenario " not in text
        display.show(FinishedTask(0, TaskResult((PROVEN,))))
        display.show(FinishedTask(1, TaskResult((GONE,), failed=True)))
        text = shown(display, console)
        assert "two_kernels" in text
        assert "628/628" in text.replace(" ", "")
        assert "FAILED" in text


def test_only_the_last_rows_fit_a_small_terminal(terminal: "type[Console]") -> None:
    console = terminal(file=StringIO(), width=80, height=10, force_terminal=True)
    tasks = [TASKS[0]] * 10
    with LiveDisplay(console, tasks) as display:
        for index in range(10):
            display.show(Started(index))
            display.show(
                FinishedTask(
                    index,
                    TaskResult((Unexplored(f"s/test_a/n{index}", "", "gone"),)),
                )
            )
        text = shown(display, console)
    assert "n7" in text
    assert "n6" not in text


def test_logs_get_no_display(terminal: "type[Console]") -> None:
    text = StringIO()
    console = terminal(file=text, width=80)
    with LiveDisplay(console, TASKS) as display:
        display.show(Started(0))
        display.show(Advanced(0, 500, 900))
        display.show(FinishedTask(0, TaskResult((PROVEN,))))
    assert text.getvalue() == ""
