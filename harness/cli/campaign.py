"""All scenarios of a command, loaded and explored: by children, or in this process.

True only here: how many processes.  Everything is explored in children; a second one is
worth its start only if there is enough to do, unless somebody says how many to use.
With `in_process` there are none, for a debugger; then a step that ends the process ends
the command.
"""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING

from harness.cli.crew import Advanced, Crew, Finished, Started
from harness.cli.interrupt import deferred
from harness.cli.task import Effort, Listing, Outcome, Task, explored, listed
from harness.watch import Limits

if TYPE_CHECKING:
    from rich.console import Console

    from harness.catalogue import Entry
    from harness.cli.display import Display

# Below this many operations (about a second) a second process does not pay: it has to
# import what it explores.
WORTHWHILE = 20_000


class Interrupted(KeyboardInterrupt):
    """Somebody stopped it by Ctrl-C; `finished` are the outcomes that there are."""

    def __init__(self, finished: Sequence[Outcome], planned: int) -> None:
        super().__init__()
        self.finished = tuple(finished)
        self.planned = planned


class Campaign:
    """What a command explores; a context that leaves no process behind.

    `jobs` is the number of processes; None takes one for each core where that pays.
    """

    def __init__(
        self,
        effort: Effort,
        *,
        jobs: int | None = None,
        limits: Limits | None = None,
        in_process: bool = False,
    ) -> None:
        self._effort = effort
        self._jobs = jobs
        self._limits = limits
        self._in_process = in_process
        self._contexts = ExitStack()
        self._crew: Crew | None = None
        self._entries: dict[str, Entry] = {}

    def __enter__(self) -> "Campaign":
        if not self._in_process:
            # Interrupts are deferred last, so that they are while the crew is closed.
            check = self._contexts.enter_context(deferred())
            crew = Crew(self._effort, self._limits, tick=check)
            self._crew = self._contexts.enter_context(crew)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._contexts.__exit__(kind, error, traceback)

    def load(self, paths: Sequence[str]) -> Listing:
        """Load what the paths name.

        Raises `NothingThere`, `UnknownStrategy`, and KeyboardInterrupt.
        """
        if self._crew is not None:
            return self._crew.load(paths)
        from harness.catalogue import load

        catalogue = load(paths)
        self._entries = {entry.scenario.path: entry for entry in catalogue.entries}
        return listed(catalogue, self._effort)

    def explore(self, tasks: Sequence[Task], console: "Console") -> list[Outcome]:
        """The outcome of every task, in their order.

        Raises `Interrupted` with what is finished.
        """
        from harness.cli.display import Display

        outcomes: dict[int, Outcome] = {}
        try:
            with Display(console, tasks) as display:
                if self._crew is None:
                    self._explore_here(tasks, display, outcomes)
                else:
                    self._explore(self._crew, tasks, display, outcomes)
        except KeyboardInterrupt:
            finished = tuple(outcomes[index] for index in sorted(outcomes))
            raise Interrupted(finished, len(tasks)) from None
        return [outcomes[index] for index in range(len(tasks))]

    def _explore(
        self,
        crew: Crew,
        tasks: Sequence[Task],
        display: "Display",
        outcomes: dict[int, Outcome],
    ) -> None:
        for event in crew.explore(tasks, processes(tasks, self._jobs)):
            match event:
                case Started(index):
                    display.started(index)
                case Advanced(index, done, planned):
                    display.advanced(index, done, planned)
                case Finished(index, outcome):
                    outcomes[index] = outcome
                    display.finished(index, outcome)

    def _explore_here(
        self, tasks: Sequence[Task], display: "Display", outcomes: dict[int, Outcome]
    ) -> None:
        for index, task in enumerate(tasks):
            display.started(index)

            def tell(done: int, planned: int, index: int = index) -> None:
                display.advanced(index, done, planned)

            entry = self._entries.get(task.path)
            if entry is None:
                from harness.cli.torch_subject import explore_torch

                outcomes[index] = explore_torch(
                    self._effort.strategy, self._effort.budget
                )
            else:
                outcomes[index] = explored(entry, self._effort, tell)
            display.finished(index, outcomes[index])


def processes(tasks: Sequence[Task], jobs: int | None) -> int:
    """How many children explore at once."""
    if jobs is None:
        small = sum(task.planned for task in tasks) < WORTHWHILE
        jobs = 1 if small else (os.cpu_count() or 1)
    return max(min(jobs, len(tasks)), 1)
