"""All scenarios of a command explored, in this process or in several.

True only here: how many processes.  Starting one costs half a second of imports, so a
few thousand steps are explored here, unless somebody says how many processes to use.
"""

import os
from collections.abc import Sequence
from contextlib import closing

from rich.console import Console

from harness.catalogue import Catalogue, Entry
from harness.cli.display import Display
from harness.cli.task import Effort, Outcome, Task, explored, task_of
from harness.cli.worker import Advanced, Finished, Started, explore_all
from harness.report import Unexplored

# Below this many letters (about a second) a second process does not pay.
WORTHWHILE = 20_000


class Interrupted(KeyboardInterrupt):
    """Somebody stopped it by Ctrl-C; `finished` are the outcomes that there are."""

    def __init__(self, finished: Sequence[Outcome], planned: int) -> None:
        super().__init__()
        self.finished = tuple(finished)
        self.planned = planned


def explore_entries(
    entries: Sequence[Entry], effort: Effort, jobs: int | None, console: Console
) -> list[Outcome]:
    """The outcome of every entry, in their order.

    `jobs` is the number of processes; None takes one for each core, or none besides
    this one where that is faster.  Raises `UnknownStrategy`, and `Interrupted` with
    what is finished.
    """
    tasks = [task_of(entry, effort) for entry in entries]
    jobs = processes(tasks, jobs)
    outcomes: dict[int, Outcome] = {}
    try:
        _explore(entries, tasks, effort, jobs, console, outcomes)
    except KeyboardInterrupt:
        finished = tuple(outcomes[index] for index in sorted(outcomes))
        raise Interrupted(finished, len(entries)) from None
    return [outcomes[index] for index in range(len(entries))]


def _explore(
    entries: Sequence[Entry],
    tasks: Sequence[Task],
    effort: Effort,
    jobs: int,
    console: Console,
    outcomes: dict[int, Outcome],
) -> None:
    with Display(console, tasks) as display:
        if jobs == 1:
            for index, entry in enumerate(entries):
                display.started(index)

                def tell(done: int, planned: int, index: int = index) -> None:
                    display.advanced(index, done, planned)

                outcomes[index] = explored(entry, effort, tell)
                display.finished(index, outcomes[index])
        else:
            with closing(explore_all(tasks, effort, jobs)) as events:
                for event in events:
                    match event:
                        case Started(index):
                            display.started(index)
                        case Advanced(index, done, planned):
                            display.advanced(index, done, planned)
                        case Finished(index, outcome):
                            outcomes[index] = outcome
                            display.finished(index, outcome)


def processes(tasks: Sequence[Task], jobs: int | None) -> int:
    """How many processes to use; 1 means this one."""
    if jobs is None:
        small = sum(task.planned for task in tasks) < WORTHWHILE
        jobs = 1 if small else (os.cpu_count() or 1)
    return max(min(jobs, len(tasks)), 1)


def not_loaded(catalogue: Catalogue) -> tuple[Unexplored, ...]:
    """The modules and scenarios that could not be loaded, as outcomes."""
    return tuple(
        Unexplored(
            broken.scenario or broken.source.removeprefix("tests/"),
            broken.where,
            broken.reason,
        )
        for broken in catalogue.broken
    )
