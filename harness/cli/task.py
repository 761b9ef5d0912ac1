"""One scenario to explore, as data that another process can act on.

True only here: a scenario crosses to another process as the file and path that it can
be loaded from again, never as an object; its report comes back as frozen data.

Rules: whatever goes wrong with one scenario becomes an `Unexplored`, so that the others
are explored all the same; only the question as a whole (an unknown strategy) is raised.
"""

from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb

from harness.catalogue import Entry, load_file
from harness.engine import DEFAULT_BUDGET, Budget, Progress, choose, parse
from harness.errors import HarnessError
from harness.exploring import explore
from harness.outcome import Report
from harness.report import Unexplored
from harness.scenario import Scenario

Outcome = Report | Unexplored


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to look, the same for every scenario of a command."""

    strategy: str = "auto"
    steps: int | None = None
    seconds: float | None = None

    @property
    def budget(self) -> Budget | None:
        """The engine's budget; seconds alone leave "auto" its usual choice."""
        if self.steps is None and self.seconds is None:
            return None
        steps = self.steps
        if steps is None and self.strategy == "auto":
            steps = DEFAULT_BUDGET.steps
        return Budget(steps=steps, seconds=self.seconds)

    @property
    def by_hand(self) -> bool:
        """Whether somebody chose it, so that its size is nothing to expect."""
        return self != Effort()


@dataclass(frozen=True, slots=True)
class Task:
    """A scenario of a file; `planned` is its size in letters when no step fails."""

    path: str
    file: Path
    root: Path
    planned: int


def task_of(entry: Entry, effort: Effort) -> Task:
    """The task of a scenario.  Raises `UnknownStrategy`."""
    size = planned(entry.scenario, effort)
    return Task(entry.scenario.path, entry.file, entry.root, size)


def planned(scenario: Scenario, effort: Effort) -> int:
    """Letters that will be played when no step fails.  Raises `UnknownStrategy`."""
    steps, uses = len(scenario.steps), len(scenario.uses)
    ordered = scenario.order_dependent is not None
    if effort.strategy == "auto":
        # Our dispatcher shows complete states; other registries where they say so.
        printed = scenario.create is None or scenario.fingerprint is not None
        parts, _ = choose(
            steps, uses, printed=printed, ordered=ordered, budget=effort.budget
        )
    else:
        parts = parse(effort.strategy)
    return sum(part.size(steps, uses, ordered=ordered) for part in parts)


def perform(task: Task, effort: Effort, progress: Progress | None = None) -> Outcome:
    """Load the scenario and explore it."""
    loaded = load_file(task.file, task.root)
    for entry in loaded.entries:
        if entry.scenario.path == task.path:
            return explored(entry, effort, progress)
    broken = loaded.broken[0] if loaded.broken else None
    where = str(task.file.name) if broken is None else broken.where
    reason = "it is gone" if broken is None else broken.reason
    return Unexplored(task.path, where, f"the second time it was loaded: {reason}")


def explored(entry: Entry, effort: Effort, progress: Progress | None = None) -> Outcome:
    """Explore a loaded scenario."""
    try:
        return explore(
            entry.scenario, effort.strategy, budget=effort.budget, progress=progress
        )
    except HarnessError as error:
        return Unexplored(entry.scenario.path, entry.scenario.source, str(error))
    except (Exception, SystemExit) as error:
        where = entry.scenario.source
        for frame in extract_tb(error.__traceback__):
            if frame.filename == str(entry.file):
                where = f"{entry.scenario.source}:{frame.lineno}"
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        return Unexplored(entry.scenario.path, where, reason)
