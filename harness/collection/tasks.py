"""Tasks and results: the data that commands and their children exchange.

A task is an item of pytest's collection: a module-level scenario, or a test that uses
the fixture `explore`.  It is sent to another process as the file and the node id under
which pytest collects it again, never as an object; reports are returned as frozen data.
A `Listing` has the tasks that a child collected, so that only children run code of the
scenarios' files.

No import in this file loads pytest: the parent of the children does without it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from everyorder.harness.engine import DEFAULT_BUDGET, Budget
from everyorder.harness.exploration.uncollected import UncollectedScenarios
from everyorder.harness.processes.watch import Limits, Subject
from everyorder.harness.report.verdict import Report, Unexplored

if TYPE_CHECKING:
    from everyorder.harness.scenario import Scenario

Outcome = Report | Unexplored


@dataclass(frozen=True, slots=True)
class ExploreOptions:
    """Strategy and budget of every scenario of a command.

    `compares` is True if a difference from the expect files fails a test.
    """

    strategy: str = "auto"
    steps: int | None = None
    seconds: float | None = None
    compares: bool = False

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
        return (self.strategy, self.steps, self.seconds) != ("auto", None, None)


@dataclass(frozen=True, slots=True)
class Task:
    """An item of pytest; `planned` is its size in operations when no step fails.

    `path` is the scenario's path, or the beginning of the paths of the scenarios that a
    test explores, whose size is not known before.  `line` counts from 1.  Without a
    file the task is the fault of the real torch (`harness.systems.torch`).
    """

    path: str
    node: str
    file: Path | None
    planned: int
    subject: Subject
    is_test: bool = False
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """Tasks and modules; `skipped` has (source, reason) of skipped modules.

    `root` is that of pytest, `limits` are those of its ini file.  `loaded` are the
    sources of modules that were collected; `others` are the paths that scenarios of the
    other tests would have.
    """

    root: Path
    limits: Limits = field(default_factory=Limits)
    tasks: tuple[Task, ...] = ()
    broken: tuple[Unexplored, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    loaded: frozenset[str] = field(default=frozenset())
    others: tuple[str, ...] = ()
    uncollected: tuple[UncollectedScenarios, ...] = ()
    deselected: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the path of every scenario, and of every test that explores."""
        return tuple(task.path for task in self.tasks)


@dataclass(frozen=True, slots=True)
class Selection:
    """Names the files and tests that a command collects: its PATHS.

    `default` are the paths of a command without any.  Files in `deaths`, whose import
    ended a child, are not imported.  With `file`, only this one is collected; pytest
    still has the paths, by which it chooses its root and its conftest files.
    """

    paths: tuple[str, ...] = ()
    default: tuple[str, ...] = ()
    deaths: Mapping[str, Unexplored] = field(default_factory=dict)
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class Perform:
    """Requests the outcomes of a task; `selection` collects its file."""

    task: Task
    selection: Selection


Request = Selection | Perform
"""Requests of a command; a `Selection` requests its `Listing`."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The result of a task, with an outcome for each scenario that it explored.

    `failed` is pytest's word for the item.  `partial` are the scenarios of which fewer
    states may have been reached than their own strategy would reach.
    """

    outcomes: tuple[Outcome, ...] = ()
    failed: bool = False
    partial: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Importing:
    """A child is about to import this module or conftest file; "" at its end."""

    source: str
    file: Path
    root: Path


@dataclass(frozen=True, slots=True)
class Exploring:
    """A task begins to explore a scenario."""

    subject: Subject


def size_of(scenario: "Scenario", strategy: str, budget: Budget | None) -> int:
    """Return the number of operations to play if no step fails.

    Raises:
        BadStrategy: the strategy is unknown.
    """
    from everyorder.harness.engine import choose, parse

    steps, uses = len(scenario.steps), len(scenario.uses)
    ordered = scenario.order_dependent is not None
    if strategy == "auto":
        # The dispatcher exposes complete states; other registries only by
        # `fingerprint`.
        printed = scenario.create is None or scenario.fingerprint is not None
        parts, _ = choose(steps, uses, printed=printed, ordered=ordered, budget=budget)
    else:
        parts = parse(strategy)
    return sum(part.size(steps, uses, ordered=ordered) for part in parts)
