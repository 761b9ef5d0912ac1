import os
from io import StringIO
from pathlib import Path

from rich.console import Console

from harness.catalogue import Broken, Catalogue, load
from harness.cli.campaign import (
    WORTHWHILE,
    explore_entries,
    not_loaded,
    processes,
)
from harness.cli.task import Effort, Task
from harness.outcome import Report
from harness.report import Unexplored
from tests.cli.conftest import Project


def tasks(*sizes: int) -> list[Task]:
    return [Task("s", Path("a"), Path(), size) for size in sizes]


def test_how_many_processes() -> None:
    cores = os.cpu_count() or 1
    assert processes(tasks(1, 2), None) == 1
    assert processes(tasks(*[WORTHWHILE] * 99), None) == min(cores, 99)
    assert processes(tasks(WORTHWHILE), None) == 1
    assert processes(tasks(1, 2, 3), 2) == 2
    assert processes(tasks(1), 8) == 1
    assert processes([], None) == 1


def test_outcomes_are_in_the_order_of_the_entries(project: Project) -> None:
    entries = load().entries
    console = Console(file=StringIO())
    for jobs in (1, 2):
        outcomes = explore_entries(entries, Effort("walk:1"), jobs, console)
        assert [each.scenario for each in outcomes] == [
            entry.scenario.path for entry in entries
        ]
        assert all(isinstance(each, Report) for each in outcomes)


def test_what_was_not_loaded() -> None:
    broken = Broken("tests/scenarios/test_a.py", 3, "SyntaxError: x")
    assert not_loaded(Catalogue(Path(), (), (broken,))) == (
        Unexplored(
            "scenarios/test_a.py", "tests/scenarios/test_a.py:3", "SyntaxError: x"
        ),
    )
