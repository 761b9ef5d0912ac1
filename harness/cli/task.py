"""Scenarios as tasks: data for a child process.

A scenario is sent to another process as the file and path from which it can be loaded
again, never as an object; its report is returned as frozen data. A `Listing` has the
scenarios that a child loaded, in the same form, so that only children run code of the
scenarios' files.

Rules:
- an error of one scenario becomes an `Unexplored`, so that the others are still
  explored; only an error of the whole command (an unknown strategy) is raised;
- functions that load and explore scenarios import their dependencies when called.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING

from everyorder.harness.base.errors import HarnessError
from everyorder.harness.engine import DEFAULT_BUDGET, Budget, Progress
from everyorder.harness.engine import progress as pulse
from everyorder.harness.exploration.uncollected import (
    UncollectedScenarios,
)
from everyorder.harness.processes.watch import Subject
from everyorder.harness.report.verdict import Report, Unexplored

if TYPE_CHECKING:
    from everyorder.harness.exploration.catalogue import (
        Catalogue,
        Entry,
    )
    from everyorder.harness.scenario import Scenario

Outcome = Report | Unexplored


@dataclass(frozen=True, slots=True)
class ExploreOptions:
    """Strategy and budget of every scenario of a command."""

    strategy: str = "auto"
    steps: int | None = None
    seconds: float | None = None

    @property
    def budget(self) -> Budget | None:
        """Return the engine's budget; seconds alone keep the steps of "auto"."""
        if self.steps is None and self.seconds is None:
            return None
        steps = self.steps
        if steps is None and self.strategy == "auto":
            steps = DEFAULT_BUDGET.steps
        return Budget(steps=steps, seconds=self.seconds)

    @property
    def is_custom(self) -> bool:
        """Return True if the user chose options, which may reach fewer states."""
        return self != ExploreOptions()


@dataclass(frozen=True, slots=True)
class Task:
    """A scenario of a file; `planned` is its size in operations when no step fails.

    Without a file it is the fault of the real torch (`harness.systems.torch`).
    """

    path: str
    file: Path | None
    root: Path
    planned: int
    source: str = ""
    steps: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()

    @property
    def subject(self) -> Subject:
        """Return the data of the scenario that the report of a crash or hang needs."""
        return Subject(self.path, self.source, self.steps, self.uses, self.root)


@dataclass(frozen=True, slots=True)
class Listing:
    """Tasks and modules; `skipped` has (source, reason) of skipped modules.

    `loaded` are the sources of modules whose scenarios are known, `unknown` those of
    all other modules.
    """

    root: Path
    tasks: tuple[Task, ...] = ()
    broken: tuple[Unexplored, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    loaded: frozenset[str] = field(default=frozenset())
    unknown: frozenset[str] = field(default=frozenset())
    uncollected: tuple[UncollectedScenarios, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the path of every scenario."""
        return tuple(task.path for task in self.tasks)


def listing_of(
    catalogue: "Catalogue",
    effort: ExploreOptions,
    deaths: Mapping[str, Unexplored] | None = None,
) -> Listing:
    """Return the catalogue as data; `deaths` has reports on unfinished imports."""
    broken = []
    for each in catalogue.broken:
        name = each.scenario or each.source.removeprefix("tests/")
        death = (deaths or {}).get(each.source)
        broken.append(death or Unexplored(name, each.where, each.reason))
    return Listing(
        catalogue.root,
        tuple(task_of(entry, effort) for entry in catalogue.entries),
        tuple(broken),
        tuple((each.source, each.reason) for each in catalogue.skipped),
        frozenset(each.scenario.source for each in catalogue.entries),
        frozenset(
            each.source
            for failures in (catalogue.broken, catalogue.skipped)
            for each in failures
        ),
        catalogue.uncollected,
    )


def task_of(entry: "Entry", effort: ExploreOptions) -> Task:
    """Return the task of a scenario.

    Raises:
        BadStrategy: the strategy is unknown.
    """
    from everyorder.harness.exploration.explore_scenario import subject_of

    scenario, subject = entry.scenario, subject_of(entry.scenario, entry.root)
    size = size_of(scenario, effort)
    texts = subject.source, subject.steps, subject.uses
    return Task(scenario.path, entry.file, entry.root, size, *texts)


def size_of(scenario: "Scenario", effort: ExploreOptions) -> int:
    """Return the number of operations to play if no step fails.

    Raises:
        BadStrategy: the strategy is unknown.
    """
    from everyorder.harness.engine import choose, parse

    steps, uses = len(scenario.steps), len(scenario.uses)
    ordered = scenario.order_dependent is not None
    if effort.strategy == "auto":
        # The dispatcher exposes complete states; other registries only by
        # `fingerprint`.
        printed = scenario.create is None or scenario.fingerprint is not None
        parts, _ = choose(
            steps, uses, printed=printed, ordered=ordered, budget=effort.budget
        )
    else:
        parts = parse(effort.strategy)
    return sum(part.size(steps, uses, ordered=ordered) for part in parts)


def perform(
    task: Task,
    effort: ExploreOptions,
    progress: Progress | None = None,
    entry: "Entry | None" = None,
) -> Outcome:
    """Explore the scenario of a task; load it unless `entry` has it already."""
    from everyorder.harness.exploration.catalogue import load_file

    if entry is not None:
        return explore_entry(entry, effort, progress)
    if task.file is None:
        from everyorder.harness.systems.torch import explore_torch

        return explore_torch(effort.strategy, effort.budget)
    loaded = load_file(task.file, task.root)
    for each in loaded.entries:
        if each.scenario.path == task.path:
            return explore_entry(each, effort, progress)
    broken = loaded.broken[0] if loaded.broken else None
    where = str(task.file.name) if broken is None else broken.where
    reason = "it no longer exists" if broken is None else broken.reason
    return Unexplored(task.path, where, f"the second time it was loaded: {reason}")


def explore_entry(
    entry: "Entry", effort: ExploreOptions, progress: Progress | None = None
) -> Outcome:
    """Explore a loaded scenario."""
    from everyorder.harness.exploration.catalogue import imported
    from everyorder.harness.exploration.explore_scenario import explore
    from everyorder.harness.systems.outcomes import ScenarioSkipped

    try:
        with imported(entry):
            return explore(
                entry.scenario, effort.strategy, budget=effort.budget, progress=progress
            )
    except ScenarioSkipped as error:
        scenario = entry.scenario
        return Unexplored(scenario.path, scenario.source, error.reason, "skipped")
    except HarnessError as error:
        return Unexplored(entry.scenario.path, _place(entry), str(error))
    except (Exception, SystemExit) as error:
        return failure_of(entry, error)


def _place(entry: "Entry") -> str:
    """Return FILE:LINE of the variable that holds a scenario, or its file."""
    from everyorder.harness.exploration.uncollected import assigned_lines

    source = entry.scenario.source
    line = assigned_lines(entry.file).get(entry.variable)
    return source if line is None else f"{source}:{line}"


def failure_of(entry: "Entry", error: BaseException) -> Unexplored:
    """Return the report on an exception that is not an outcome of a step.

    It names the last operation that had begun if the progress is recorded.
    """
    scenario, beats = entry.scenario, pulse.current()
    where = scenario.source
    for frame in extract_tb(error.__traceback__):
        if frame.filename == str(entry.file):
            where = f"{scenario.source}:{frame.lineno}"
    reason = f"{type(error).__name__}: {error}".rstrip(": ")
    operation, history = "", tuple[str, ...]()
    if beats is not None:
        from everyorder.harness.exploration.explore_scenario import subject_of

        operation, history = subject_of(scenario, entry.root).position(beats.trail())
    return Unexplored(
        scenario.path, where, reason, operation=operation, history=history
    )
