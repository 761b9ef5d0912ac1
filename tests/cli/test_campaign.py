import os
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.cli.campaign import WORTHWHILE, Campaign, Interrupted, processes
from harness.cli.task import Effort, Task
from harness.outcome import Report
from tests.cli.conftest import Project

if TYPE_CHECKING:
    from rich.console import Console


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


@pytest.mark.parametrize(
    ("jobs", "in_process"), [(1, False), (2, False), (None, False), (None, True)]
)
def test_outcomes_are_in_the_order_of_the_tasks(
    project: Project, jobs: int | None, in_process: bool, terminal: "type[Console]"
) -> None:
    console = terminal(file=StringIO())
    campaign = Campaign(Effort("walk:1"), jobs=jobs, in_process=in_process)
    with campaign:
        listing = campaign.load(())
        outcomes = campaign.explore(listing.tasks, console)
    assert [each.scenario for each in outcomes] == list(listing.paths)
    assert all(isinstance(each, Report) for each in outcomes)


def test_an_interrupt_has_what_is_finished(
    project: Project, terminal: "type[Console]"
) -> None:
    project.scenarios(
        "stops",
        "from harness.scenario import Scenario, step\n"
        "def stop(registry):\n    raise KeyboardInterrupt\n"
        "stops = Scenario(step('stop()', stop), create=list, observe=repr)\n",
    )
    with Campaign(Effort("walk:1"), in_process=True) as campaign:
        listing = campaign.load(("sound", "stops"))
        with pytest.raises(Interrupted) as stopped:
            campaign.explore(listing.tasks, terminal(file=StringIO()))
    assert [each.scenario for each in stopped.value.finished] == [
        "scenarios/test_sound/sound"
    ]
    assert stopped.value.planned == 2
