"""The events of explored scenarios, and their live display in a terminal."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING

from everyorder.harness.collection.tasks import Outcome, Task, TaskResult
from everyorder.harness.report.verdict import Report, Unexplored

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.progress import TaskID


@dataclass(frozen=True, slots=True)
class Started:
    """A task was begun."""

    index: int


@dataclass(frozen=True, slots=True)
class Advanced:
    """A task has executed some of its planned operations."""

    index: int
    done: int
    planned: int


@dataclass(frozen=True, slots=True)
class FinishedTask:
    """A task is over."""

    index: int
    result: TaskResult


Event = Started | Advanced | FinishedTask


# Lines that stay free for the progress of running scenarios, and for the totals.
RESERVED_LINES = 14


# Ten frames a second look smooth; more only cost time.
DRAW_SECONDS = 0.1


class LiveDisplay:
    """The live display; a context that shows nothing if the console is not a terminal.

    The display disappears at the end; the command then prints the results permanently.
    """

    _live: "Live | None" = None

    def __init__(self, console: "Console", tasks: Sequence[Task]) -> None:
        if not console.is_terminal:
            return
        # Imported only here: children scan all loaded modules.
        from rich.live import Live
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._console = console
        self._tasks = tasks
        self._planned = [task.planned for task in tasks]
        self._done = [0] * len(tasks)
        self._finished: list[Outcome] = []
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=18),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
        )
        self._whole = self._bars.add_task("all scenarios", total=sum(self._planned))
        self._rows: dict[int, TaskID] = {}
        self._drawn = 0.0
        self._live = Live(
            get_renderable=self._frame,
            console=console,
            auto_refresh=False,
            transient=True,
        )

    def __enter__(self) -> "LiveDisplay":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, event: Event) -> None:
        """Show the progress of a task."""
        if self._live is None:
            return
        match event:
            case Started(index):
                name = self._tasks[index].path.rpartition("/")[2]
                row = self._bars.add_task(name, total=self._planned[index])
                self._rows[index] = row
            case Advanced(index, done, planned):
                self._planned[index], self._done[index] = planned, done
                self._bars.update(self._rows[index], completed=done, total=planned)
            case FinishedTask(index, result):
                # The rest of its plan will not be played.
                self._bars.remove_task(self._rows.pop(index))
                reports = [each for each in result.outcomes if isinstance(each, Report)]
                if reports:
                    self._done[index] = sum(
                        each.exploration.executed.transitions for each in reports
                    )
                self._planned[index] = self._done[index]
                self._finished += result.outcomes
        self._bars.update(
            self._whole, completed=sum(self._done), total=sum(self._planned)
        )
        if monotonic() - self._drawn > DRAW_SECONDS:
            self._live.refresh()
            self._drawn = monotonic()

    def _frame(self) -> "RenderableType":
        from rich.console import Group

        from everyorder.harness.report import overview

        room = max(self._console.height - RESERVED_LINES, 3)
        latest = self._finished[-room:]
        if not latest:
            return self._bars
        reports = [each for each in latest if isinstance(each, Report)]
        others = [each for each in latest if isinstance(each, Unexplored)]
        width = min(self._console.width, 100)
        return Group(overview(reports, others, width=width), self._bars)
