"""Progress on a terminal: what runs, how far it is, when it will be over.

True only here: the live picture.  Sizes are known before the first step, so the bar and
the time left are those of all scenarios together; where a size was too large because
steps fail, the exploration says so and the bar is corrected.

Rules:
- on anything but a terminal there is no picture at all, so logs stay plain;
- the picture is gone when it is over, and what it showed is printed for good;
- it is drawn by who tells what happens, never by a thread: children are forked from a
  process that has none.
"""

from collections.abc import Sequence
from time import monotonic
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from harness.cli.task import Outcome, Task
from harness.outcome import Report, Unexplored
from harness.report import overview

# Lines that stay free for the progress of scenarios that run, and for the totals.
RESERVED = 14

# Ten pictures a second look alive; more only cost time.
DRAW_EVERY = 0.1


class Display:
    """The live picture; a context that shows nothing where there is no terminal."""

    def __init__(self, console: Console, tasks: Sequence[Task]) -> None:
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
        self._live: Live | None = None
        if console.is_terminal:
            self._live = Live(
                get_renderable=self._picture,
                console=console,
                auto_refresh=False,
                transient=True,
            )

    def __enter__(self) -> "Display":
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

    def started(self, index: int) -> None:
        """A scenario is being explored from now on."""
        name = self._tasks[index].path.rpartition("/")[2]
        self._rows[index] = self._bars.add_task(name, total=self._planned[index])
        self._update()

    def advanced(self, index: int, done: int, planned: int) -> None:
        """So many of its operations are played."""
        self._planned[index] = planned
        self._done[index] = done
        self._bars.update(self._rows[index], completed=done, total=planned)
        self._update()

    def finished(self, index: int, outcome: Outcome) -> None:
        """It is over; nothing more of its plan will be played."""
        row = self._rows.pop(index)
        self._bars.remove_task(row)
        if isinstance(outcome, Report):
            self._done[index] = outcome.exploration.executed.transitions
        self._planned[index] = self._done[index]
        self._finished.append(outcome)
        self._update()

    def _update(self) -> None:
        self._bars.update(
            self._whole, completed=sum(self._done), total=sum(self._planned)
        )
        if self._live is not None and monotonic() - self._drawn > DRAW_EVERY:
            self._live.refresh()
            self._drawn = monotonic()

    def _picture(self) -> RenderableType:
        room = max(self._console.height - RESERVED, 3)
        shown = self._finished[-room:]
        reports = [each for each in shown if isinstance(each, Report)]
        others = [each for each in shown if isinstance(each, Unexplored)]
        if not shown:
            return self._bars
        width = min(self._console.width, 100)
        return Group(overview(reports, others, width=width), self._bars)
