"""The exploration of all scenarios of a command, in child processes, with its display.

Each child has one task at a time; the first one also loads all files and lists their
scenarios, so that a module that ends or stops its process during its import is reported
like a step that does so. A child that died or was killed loses its task only; the next
task starts in a fresh child. Small explorations use one child, unless the user requests
a number. With `in_process` there are no children, for a debugger; then a step that ends
the process ends the command.

On a terminal a live display shows the running tasks, their progress and the time left.
Sizes are computed before the first step, so the time left is that of all scenarios
together; an exploration reports a smaller size if steps fail. Output to a file or pipe
has no display.

Rules:
- a task ends exactly once: with its outcome, or with the death of its child;
- an interrupt is raised between two polls only (`tick`), and no child is left when the
  pool is closed;
- the display is drawn at events, never by a thread: children are forked from a process
  without other threads.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import click

from everyorder.harness.base.errors import HarnessError, NotFound, ProcessError
from everyorder.harness.cli.command import defer_interrupts
from everyorder.harness.cli.display import (
    Advanced,
    Event,
    FinishedTask,
    LiveDisplay,
    Started,
)
from everyorder.harness.cli.task import (
    ExploreOptions,
    Listing,
    Outcome,
    Task,
    failure_of,
    listing_of,
    perform,
)
from everyorder.harness.engine import progress
from everyorder.harness.processes.child import (
    ChildProcess,
    Parent,
    start,
    wait,
)
from everyorder.harness.processes.fork import CAN_FORK
from everyorder.harness.processes.watch import (
    MOST_BETWEEN_POLLS,
    POLL_SECONDS,
    Limits,
    TimeWatch,
    import_death,
)
from everyorder.harness.report.verdict import Unexplored

if TYPE_CHECKING:
    from rich.console import Console

    from everyorder.harness.exploration.catalogue import Entry


# Limit on the import of one module: importing the largest libraries from a cold disk
# takes half a minute.
IMPORT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Load:
    """Requests the listing of these paths from a child.

    Modules in `deaths`, whose import ended a child, must not be imported.
    """

    paths: tuple[str, ...]
    start: Path
    deaths: dict[str, Unexplored]


@dataclass(frozen=True, slots=True)
class Importing:
    """A child is about to import this module."""

    source: str
    file: Path
    root: Path


@dataclass(slots=True)
class _Work:
    index: int
    watch: TimeWatch
    done: int = 0


class ChildPool:
    """The children of one command; the end of the context ends all of them.

    `tick` is called several times a second, and may raise.
    """

    def __init__(
        self,
        effort: ExploreOptions,
        limits: Limits | None = None,
        *,
        tick: Callable[[], None] = lambda: None,
        fork: bool = CAN_FORK,
    ) -> None:
        self._effort = effort
        self._limits = limits or Limits()
        self._tick = tick
        self._fork = fork
        self._idle: list[ChildProcess] = []
        self._busy: dict[ChildProcess, _Work] = {}

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
        """End every child: an idle one in good order, a busy one at once."""
        while self._busy:
            self._busy.popitem()[0].kill()
        while self._idle:
            self._idle.pop().finish()

    def load(self, paths: Sequence[str]) -> Listing:
        """Load the scenarios of these paths, and return their listing.

        Raises:
            NotFound: a path does not name anything.
            BadStrategy: the strategy is unknown.
            ProcessError: a child ended before it imported a module.
        """
        deaths: dict[str, Unexplored] = {}
        while True:
            child = start(serve, self._effort, fork=self._fork)
            self._busy[child] = _Work(-1, TimeWatch(child, Limits(None, None)))
            child.send(Load(tuple(paths), Path.cwd(), deaths))
            answer = self._await_listing(child)
            del self._busy[child]
            if isinstance(answer, Listing):
                self._idle.append(child)
                return answer
            child.kill()
            if isinstance(answer, HarnessError):
                raise answer
            source, unexplored = answer
            deaths[source] = unexplored

    def _await_listing(
        self, child: ChildProcess
    ) -> Listing | HarnessError | tuple[str, Unexplored]:
        """Return the listing, an error, or a module whose import failed, and why."""
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
                module, passed = message, 0.0
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
            return module.source, unexplored

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
                outcome = self._poll(child, work, tasks[work.index])
                if outcome is not None:
                    yield FinishedTask(work.index, outcome)
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
        child.send(task)
        return child

    def _poll(self, child: ChildProcess, work: _Work, task: Task) -> Outcome | None:
        """Return the outcome of a child's task, or None while it runs."""
        how = child.termination()
        for outcome in child.read():
            del self._busy[child]
            self._idle.append(child)
            assert isinstance(outcome, Outcome), "a task is answered by an outcome"
            return outcome
        unexplored = work.watch.failure(task.subject, how)
        if unexplored is not None:
            del self._busy[child]
            child.kill()
        return unexplored


def serve(parent: Parent, effort: ExploreOptions) -> None:
    """Answer the parent's requests until the end; a child's main function."""
    entries: dict[str, Entry] = {}
    while True:
        try:
            request = parent.receive()
        except EOFError:
            return
        if isinstance(request, Load):
            parent.send(_load(parent, request, effort, entries))
            continue
        with progress.watched(parent.cells) as beats:
            beats.progress(0, request.planned)
            outcome = _outcome(request, effort, entries, beats)
            beats.rest()
            _send(parent, request, outcome)


def _load(
    parent: Parent, request: Load, effort: ExploreOptions, entries: "dict[str, Entry]"
) -> Listing | HarnessError:
    from everyorder.harness.exploration.catalogue import (
        Catalogue,
        LoadFailure,
        load,
        load_file,
    )

    def read(file: Path, root: Path, source: str) -> Catalogue:
        if source in request.deaths:
            return Catalogue(root, broken=(LoadFailure(source, None, "it died"),))
        parent.send(Importing(source, file, root))
        try:
            return load_file(file, root)
        except (KeyboardInterrupt, GeneratorExit) as error:
            broken = LoadFailure(source, None, type(error).__name__)
            return Catalogue(root, broken=(broken,))

    try:
        catalogue = load(request.paths, start=request.start, read=read)
        entries.update((entry.scenario.path, entry) for entry in catalogue.entries)
        return listing_of(catalogue, effort, request.deaths)
    except HarnessError as error:
        return error


def _outcome(
    task: Task,
    effort: ExploreOptions,
    entries: "dict[str, Entry]",
    beats: progress.ProgressWriter,
) -> Outcome:
    """Return the outcome of a task, for every exception of its scenario."""
    entry = entries.get(task.path)
    try:
        return perform(task, effort, beats.progress, entry)
    except BaseException as error:  # KeyboardInterrupt, and outcomes of test runners
        if entry is not None:
            return failure_of(entry, error)
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        operation, history = task.subject.position(beats.trail())
        return Unexplored(
            task.path, task.source, reason, operation=operation, history=history
        )


def _send(parent: Parent, task: Task, outcome: Any) -> None:
    try:
        parent.send(outcome)
    except OSError:
        raise
    except Exception as error:  # what pickle and the methods it calls may raise
        reason = f"its report cannot cross to another process: {error!r}"
        with suppress(OSError):
            parent.send(Unexplored(task.path, task.source, reason))


# Below this many operations (about a second) a second process does not pay: it has to
# import the scenarios, too.
PARALLEL_OPERATIONS = 20_000


class Interrupted(KeyboardInterrupt):
    """The user stopped the exploration; `finished` are the outcomes so far."""

    def __init__(self, finished: Sequence[Outcome], planned: int) -> None:
        super().__init__()
        self.finished = tuple(finished)
        self.planned = planned


class Runner:
    """The exploration of a command; the end of the context ends its processes.

    `jobs` is the number of processes; None uses one for each core if that pays.
    """

    def __init__(
        self,
        effort: ExploreOptions,
        *,
        jobs: int | None = None,
        limits: Limits | None = None,
        in_process: bool = False,
    ) -> None:
        self.effort = effort
        self._jobs = jobs
        self._limits = limits
        self._in_process = in_process
        self._contexts = ExitStack()
        self._pool: ChildPool | None = None
        self._entries: dict[str, Entry] = {}

    def __enter__(self) -> "Runner":
        if not self._in_process:
            # Interrupts are deferred first, so that they still are while the pool is
            # closed.
            check = self._contexts.enter_context(defer_interrupts())
            pool = ChildPool(self.effort, self._limits, tick=check)
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
        """Load the scenarios of these paths.

        Raises:
            NotFound: a path does not name anything.
            BadStrategy: the strategy is unknown.
            KeyboardInterrupt: the user interrupted the loading.
        """
        if self._pool is not None:
            return self._pool.load(paths)
        from everyorder.harness.exploration.catalogue import load

        catalogue = load(paths)
        self._entries = {entry.scenario.path: entry for entry in catalogue.entries}
        return listing_of(catalogue, self.effort)

    def explore(self, tasks: Sequence[Task], console: "Console") -> list[Outcome]:
        """Return the outcome of every task, in their order.

        Raises:
            Interrupted: the user stopped the exploration; it has the finished outcomes.
        """
        outcomes: dict[int, Outcome] = {}
        try:
            with LiveDisplay(console, tasks) as display:

                def show(event: Event) -> None:
                    if isinstance(event, FinishedTask):
                        outcomes[event.index] = event.outcome
                    display.show(event)

                if self._pool is None:
                    self._explore_here(tasks, show)
                else:
                    for event in self._pool.explore(
                        tasks, process_count(tasks, self._jobs)
                    ):
                        show(event)
        except KeyboardInterrupt:
            finished = tuple(outcomes[index] for index in sorted(outcomes))
            raise Interrupted(finished, len(tasks)) from None
        return [outcomes[index] for index in range(len(tasks))]

    def _explore_here(
        self, tasks: Sequence[Task], show: Callable[[Event], None]
    ) -> None:
        for index, task in enumerate(tasks):
            show(Started(index))

            def advance(done: int, planned: int, index: int = index) -> None:
                show(Advanced(index, done, planned))

            entry = self._entries.get(task.path)
            show(FinishedTask(index, perform(task, self.effort, advance, entry)))


def load_scenarios(runner: Runner, paths: Sequence[str]) -> Listing:
    """Load the scenarios of these paths; print those that are skipped or not collected.

    Raises:
        NotFound: there are no scenarios.
    """
    listing = runner.load(paths)
    for uncollected in listing.uncollected:
        click.echo(uncollected.render())
    if not listing.tasks and not listing.broken:
        where = ", ".join(paths)
        if not where:
            from everyorder.harness.exploration.catalogue import default_folder

            folder = default_folder(listing.root).relative_to(listing.root)
            where = folder.as_posix()
        reasons = [f"{source} ({reason})" for source, reason in listing.skipped]
        if reasons:
            where += f"; skipped: {', '.join(reasons)}"
        raise NotFound(code="NoScenarios", where=where)
    for source, reason in listing.skipped:
        click.echo(f"skipped: {source}: {reason}")
    return listing


def process_count(tasks: Sequence[Task], jobs: int | None) -> int:
    """Return the number of children that explore at once."""
    if jobs is None:
        small = sum(task.planned for task in tasks) < PARALLEL_OPERATIONS
        jobs = 1 if small else (os.cpu_count() or 1)
    return max(min(jobs, len(tasks)), 1)
