"""The exploration of all scenarios of a command, in child processes, with its display.

Each child has one task at a time; the first one also collects all files through pytest
(`harness.collection`), so that a module that ends or stops its process during its
import is reported like a step that does so. A child that died or was killed loses its
task only; the next task starts in a fresh child, which collects the task's file. Small
explorations use one child, unless the user requests a number. With `in_process` there
are no children, for a debugger; then a step that ends the process ends the command.

On a terminal a live display shows the running tasks, their progress and the time left.
Sizes are computed before the first step, so the time left is that of all scenarios
together; an exploration reports a smaller size if steps fail. Output to a file or pipe
has no display.

Rules:
- a task ends exactly once: with its outcomes, or with the death of its child;
- an interrupt is raised between two polls only (`tick`), and no child is left when the
  pool is closed;
- the display is drawn at events, never by a thread: children are forked from a process
  without other threads.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Literal

import click

from everyorder.harness.base.errors import HarnessError, NotFound, ProcessError
from everyorder.harness.base.place import near
from everyorder.harness.cli.command import defer_interrupts
from everyorder.harness.cli.display import (
    Advanced,
    Event,
    FinishedTask,
    LiveDisplay,
    Started,
)
from everyorder.harness.collection.selection import queries_of
from everyorder.harness.collection.tasks import (
    ExploreOptions,
    Exploring,
    Importing,
    Listing,
    Outcome,
    Perform,
    Selection,
    Task,
    TaskResult,
)
from everyorder.harness.engine import progress
from everyorder.harness.processes.child import (
    ChildProcess,
    Parent,
    start,
    wait,
)
from everyorder.harness.processes.excerpt import Excerpt
from everyorder.harness.processes.fork import CAN_FORK
from everyorder.harness.processes.watch import (
    MOST_BETWEEN_POLLS,
    POLL_SECONDS,
    Limits,
    Subject,
    TimeWatch,
    import_death,
)
from everyorder.harness.report.verdict import Unexplored

if TYPE_CHECKING:
    from rich.console import Console


# Limit on the import of one module: importing the largest libraries from a cold disk
# takes half a minute.
IMPORT_SECONDS = 120.0


def serve(parent: Parent, effort: ExploreOptions) -> None:
    """Answer the parent's requests until the end; a child's main function."""
    with suppress(KeyboardInterrupt):  # the parent interrupts, and waits for the end
        # Only children import pytest.
        from everyorder.harness.collection import serving

        serving.serve(parent, effort)


@dataclass(slots=True)
class _Work:
    index: int
    watch: TimeWatch
    subject: Subject | None = None
    done: int = 0


def _chosen(flag: float | None, setting: float | None) -> float | None:
    """Return the limit of a flag, where 0 is none, else that of the ini file."""
    return setting if flag is None else flag or None


class ChildPool:
    """The children of one command; the end of the context ends all of them.

    `operation` and `scenario` are limits in seconds, 0 for none; without them those of
    the project's ini file hold. `tick` is called several times a second, and may raise.
    """

    def __init__(
        self,
        effort: ExploreOptions,
        operation: float | None = None,
        scenario: float | None = None,
        *,
        tick: Callable[[], None] = lambda: None,
        fork: bool = CAN_FORK,
    ) -> None:
        self._effort = effort
        self._operation, self._scenario = operation, scenario
        self._limits = Limits()
        self._tick = tick
        self._fork = fork
        self._idle: list[ChildProcess] = []
        self._busy: dict[ChildProcess, _Work] = {}
        self._collected = Selection()

    def __enter__(self) -> "ChildPool":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every child in good order, so that its fixtures are torn down.

        One that performs a task is interrupted; one that collects, and one that does
        not end in time, is killed.
        """
        performing = [each for each, work in self._busy.items() if work.index >= 0]
        try:
            for child in performing:
                child.interrupt()
            for child in (*performing, *self._idle):
                child.finish()
        finally:  # the user has no patience
            for child in (*self._busy, *self._idle):
                child.kill()
            self._busy.clear()
            self._idle.clear()

    def load(self, selection: Selection) -> Listing:
        """Collect the scenarios of a selection, and return their listing.

        Raises:
            NotFound: a path does not name anything.
            BadStrategy: the strategy is unknown.
            CannotCollect: pytest refuses to collect.
            ProcessError: a child ended before it imported a module.
        """
        deaths: dict[str, Unexplored] = {}
        while True:
            child = start(serve, self._effort, fork=self._fork)
            self._busy[child] = _Work(-1, TimeWatch(child, Limits(None, None)))
            child.send(replace(selection, deaths=deaths))
            answer = self._await_listing(child)
            del self._busy[child]
            if isinstance(answer, Listing):
                self._idle.append(child)
                self._collected = replace(selection, deaths=deaths)
                limits = answer.limits
                self._limits = Limits(
                    _chosen(self._operation, limits.operation),
                    _chosen(self._scenario, limits.scenario),
                )
                return answer
            child.kill()
            if isinstance(answer, HarnessError):
                raise answer
            file, unexplored = answer
            if file in deaths:
                reason = "it imports again what ended it"
                raise ProcessError(code="CannotLoad", reason=reason)
            deaths[file] = unexplored

    def _await_listing(
        self, child: ChildProcess
    ) -> Listing | HarnessError | tuple[str, Unexplored]:
        """Return the listing, an error, or a file whose import ended it, and why."""
        module: Importing | None = None
        last_poll, passed = monotonic(), 0.0
        while True:
            wait((child,), POLL_SECONDS)
            self._tick()
            how = child.termination()
            for message in child.read():
                if not isinstance(message, Importing):
                    assert isinstance(message, Listing | HarnessError), (
                        "no other answer"
                    )
                    return message
                module, passed = message if message.source else None, 0.0
            now = monotonic()
            last_poll, passed = now, passed + min(now - last_poll, MOST_BETWEEN_POLLS)
            if how is None and passed <= IMPORT_SECONDS:
                continue
            if module is None:
                reason = how or f"silent for {IMPORT_SECONDS:g} s"
                return ProcessError(code="CannotLoad", reason=reason)
            verdict: Literal["crashed", "hung"] = "crashed"
            if how is None:
                how, verdict = f"not over after {IMPORT_SECONDS:g} s", "hung"
            else:
                how = f"the process that imported it ended ({how})"
            file, root = module.file, module.root
            unexplored = import_death(child, module.source, file, root, how, verdict)
            return str(file), unexplored

    def explore(self, tasks: Sequence[Task], jobs: int) -> Generator[Event, None, None]:
        """Perform the tasks in at most `jobs` processes and yield the events.

        Tasks are begun in order and end in any order; each ends exactly once.
        """
        waiting = deque(range(len(tasks)))
        while waiting or self._busy:
            while waiting and len(self._busy) < jobs:
                index = waiting.popleft()
                child = self._begin(tasks[index], index)
                del child
                yield Started(index)
            wait(self._busy, POLL_SECONDS)
            self._tick()
            for child, work in list(self._busy.items()):
                result = self._poll(child, work, tasks[work.index])
                if result is not None:
                    yield FinishedTask(work.index, result)
                    continue
                cells = child.cells
                done, planned = cells[progress.DONE], cells[progress.PLANNED]
                if done != work.done:
                    work.done = done
                    yield Advanced(work.index, done, planned)

    def _begin(self, task: Task, index: int) -> ChildProcess:
        child = self._idle.pop() if self._idle else None
        if child is not None and child.termination() is not None:
            # A leftover of an earlier scenario ended the child.
            child.kill()
            child = None
        child = child or start(serve, self._effort, fork=self._fork)
        self._busy[child] = _Work(index, TimeWatch(child, self._limits))
        child.excerpt = Excerpt(MOST_PRINTED)
        child.send(Perform(task, replace(self._collected, file=task.file)))
        return child

    def _poll(self, child: ChildProcess, work: _Work, task: Task) -> TaskResult | None:
        """Return the result of a child's task, or None while it runs."""
        how = child.termination()
        for message in child.read():
            match message:
                case Exploring(subject):
                    work.subject = subject
                    work.watch = TimeWatch(child, self._limits)
                case Importing():  # the child collects the task's file
                    pass
                case TaskResult():
                    child.read()  # print what was written before the result
                    _print_omitted(child, task)
                    del self._busy[child]
                    self._idle.append(child)
                    return message
        unexplored = work.watch.failure(work.subject or task.subject, how)
        if unexplored is None:
            return None
        del self._busy[child]
        child.kill()
        _print_omitted(child, task)
        return TaskResult((unexplored,), failed=True)


def _print_omitted(child: ChildProcess, task: Task) -> None:
    """Print how many lines of a task's output were left out."""
    if child.excerpt is not None and child.excerpt.omitted:
        click.echo(
            f"... {child.excerpt.omitted:,} more lines printed by {task.path}; "
            "--in-process prints all",
            err=True,
        )
    child.excerpt = None


# Lines that are printed of the output of one task.
MOST_PRINTED = 20


# Below this many operations (about a second) a second process does not pay: it has to
# import the scenarios, too.
PARALLEL_OPERATIONS = 20_000

# A proof of two or three steps takes 2,000 to 4,000; what a test explores is not known.
OPERATIONS_OF_TEST = 2_500


class Interrupted(KeyboardInterrupt):
    """The user stopped the exploration; `finished` are the results so far."""

    def __init__(self, finished: Mapping[int, TaskResult], planned: int) -> None:
        super().__init__()
        self.finished = finished
        self.planned = planned


class Runner:
    """The exploration of a command; the end of the context ends its processes.

    `jobs` is the number of processes; None uses one for each core if that pays.
    `operation` and `scenario` are limits as for `ChildPool`. `default` are the paths of
    a command without any; `fail_fast` ends the exploration at the first failing task.
    """

    def __init__(
        self,
        effort: ExploreOptions,
        *,
        jobs: int | None = None,
        operation: float | None = None,
        scenario: float | None = None,
        in_process: bool = False,
        default: tuple[str, ...] = (),
        fail_fast: bool = False,
    ) -> None:
        self.effort = effort
        self._jobs = jobs
        self._operation, self._scenario = operation, scenario
        self._in_process = in_process
        self._default = default
        self._fail_fast = fail_fast
        self._contexts = ExitStack()
        self._pool: ChildPool | None = None
        self._selection = Selection()

    def __enter__(self) -> "Runner":
        if not self._in_process:
            # Interrupts are deferred first, so that they still are while the pool is
            # closed.
            check = self._contexts.enter_context(defer_interrupts())
            limits = self._operation, self._scenario
            pool = ChildPool(self.effort, *limits, tick=check)
            self._pool = self._contexts.enter_context(pool)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._contexts.__exit__(kind, error, traceback)

    def load(self, paths: Sequence[str]) -> Listing:
        """Collect the scenarios of these paths.

        Raises:
            NotFound: a path does not name anything.
            BadStrategy: the strategy is unknown.
            CannotCollect: pytest refuses to collect.
            KeyboardInterrupt: the user interrupted the loading.
        """
        queries_of(paths)  # refuse files that do not exist before anything is started
        self._selection = Selection(tuple(paths), self._default)
        if self._pool is not None:
            return self._pool.load(self._selection)
        from everyorder.harness.collection.here import listing_here

        return listing_here(self._selection, self.effort)

    def explore(
        self, tasks: Sequence[Task], console: "Console"
    ) -> dict[int, TaskResult]:
        """Return the results of the tasks, by their indices.

        With `fail_fast` no task is begun or finished after the first that fails.

        Raises:
            Interrupted: the user stopped the exploration; it has the results so far.
        """
        results: dict[int, TaskResult] = {}
        try:
            with LiveDisplay(console, tasks) as display:

                def show(event: Event) -> bool:
                    """Show an event; return True to go on."""
                    display.show(event)
                    if not isinstance(event, FinishedTask):
                        return True
                    results[event.index] = event.result
                    return not (self._fail_fast and event.result.failed)

                if self._pool is None:
                    self._explore_here(tasks, show)
                else:
                    count = process_count(tasks, self._jobs)
                    for event in self._pool.explore(tasks, count):
                        if not show(event):
                            break
        except KeyboardInterrupt:
            raise Interrupted(dict(sorted(results.items())), len(tasks)) from None
        return dict(sorted(results.items()))

    def _explore_here(
        self, tasks: Sequence[Task], show: Callable[[Event], bool]
    ) -> None:
        from everyorder.harness.collection.here import perform_here

        perform_here(
            tasks,
            self._selection,
            self.effort,
            begun=lambda index: show(Started(index)),
            advanced=lambda *counts: show(Advanced(*counts)),
            over=lambda index, result: show(FinishedTask(index, result)),
        )


def load_scenarios(
    runner: Runner, paths: Sequence[str], *, silent: bool = False
) -> Listing:
    """Load the scenarios of these paths.

    Unless it is `silent`, it prints those that are skipped or not collected.

    Raises:
        NotFound: there are no scenarios.
    """
    listing = runner.load(paths)
    if not silent:
        for uncollected in listing.uncollected:
            click.echo(uncollected.render())
    if not listing.tasks and not listing.broken:
        here = near(listing.root)
        where = ", ".join(paths) or ("this folder" if here == "." else here)
        reasons = [f"{source} ({reason})" for source, reason in listing.skipped]
        if reasons:
            where += f"; skipped: {', '.join(reasons)}"
        raise NotFound(code="NoScenarios", where=where)
    if not silent:
        for source, reason in listing.skipped:
            click.echo(f"skipped: {source}: {reason}")
    return listing


def outcomes_of(
    tasks: Sequence[Task], results: Mapping[int, TaskResult]
) -> list[Outcome]:
    """Return all outcomes, and a failure where two tests explore one scenario."""
    outcomes: list[Outcome] = []
    nodes: dict[str, str] = {}
    for index, result in results.items():
        task = tasks[index]
        for outcome in result.outcomes:
            outcomes.append(outcome)
            other = nodes.setdefault(outcome.scenario, task.node)
            if other != task.node:
                reason = (
                    f"{other} and {task.node} both explore it; give one another name"
                )
                where = task.subject.source
                outcomes.append(Unexplored(outcome.scenario, where, reason))
    return outcomes


def process_count(tasks: Sequence[Task], jobs: int | None) -> int:
    """Return the number of children that explore at once."""
    if jobs is None:
        planned = (OPERATIONS_OF_TEST if t.is_test else t.planned for t in tasks)
        small = sum(planned) < PARALLEL_OPERATIONS
        jobs = 1 if small else (os.cpu_count() or 1)
    return max(min(jobs, len(tasks)), 1)
