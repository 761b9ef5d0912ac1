"""`explore`: a scenario becomes a system, is explored, and gets a report.

A registry with an interpreter of its own (`isolation="spawn"`) is served by
`serve_registry`, the main function of that process.  Its channel takes the place of
standard input and output: nothing is read from then on, and what is printed goes to
standard error.

Rules:
- objects in reference cycles are judged late; if something turns out to be alive only
  at the end, the scenario is explored a second time with frequent collections, which
  tells by which order it is kept;
- where that does not find it, the leak is reported without an order;
- a scenario that skips itself, by whichever of its functions, has no report.
"""

import os
import signal
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from everyorder.harness.base.errors import ExplorationRestart, NotAScenario
from everyorder.harness.engine import Budget, Exploration, Progress, System, Violation
from everyorder.harness.engine import explore as explore_system
from everyorder.harness.processes.child import end_with_parent
from everyorder.harness.processes.zygote import PipeEnd
from everyorder.harness.report.outcome import NO_EXPLORATION, Report
from everyorder.harness.scenario.scenario import Scenario
from everyorder.harness.systems.isolation import IsolatedSystem, serve_child
from everyorder.harness.systems.outcomes import ScenarioSkipped, skip_reason
from everyorder.harness.systems.registry import RegistrySystem

if TYPE_CHECKING:
    from everyorder.harness.exploration.catalogue import Entry
    from everyorder.harness.systems.dispatcher import DispatcherSystem


T = TypeVar("T")

# Violations that are told of one scenario: one fault often shows in several places,
# and what is mended is checked against all of them.
MOST_VIOLATIONS = 3

# Told with what was kept by nobody knows which order.
LEAK_WITHOUT_ORDER = "seen at the end, when all was undone; by which order is not known"

# Collecting at every step is dear, and most of what leaks does so at once.
LEAK_SECONDS = 30.0


def system_of(scenario: Scenario) -> System:
    """The scenario as the engine sees it."""
    if scenario.create is None:
        return dispatcher_of(scenario)
    if scenario.isolation is not None:
        return IsolatedSystem(scenario)
    return RegistrySystem(scenario)


def dispatcher_of(scenario: Scenario) -> "DispatcherSystem":
    """The scenario on a dispatcher; nothing else needs the runtime."""
    from everyorder.harness.systems.dispatcher import DispatcherSystem

    return DispatcherSystem(scenario)


def empty_report(scenario: Scenario) -> Report:
    """The texts of a scenario, and of its operations: a report of nothing."""
    return Report(
        scenario=scenario.path,
        steps=tuple(step.text for step in scenario.steps),
        uses=tuple(use.text for use in scenario.uses),
        order_dependent=scenario.order_dependent,
        exploration=NO_EXPLORATION,
        digest=scenario.digest,
        pairs=tuple(sorted(scenario.relations.pairs)),
        again=scenario.relations.again,
    )


@contextmanager
def closing(system: System) -> Iterator[System]:
    """Context: the system, which leaves nothing behind where it can be closed."""
    try:
        yield system
    finally:
        close = getattr(system, "close", None)
        if close is not None:
            close()


def retry(question: Callable[[], T]) -> T:
    """The answer to a question about one system, asked again where it must be.

    Raises:
        ScenarioSkipped: a function of its scenario skipped it.
    """
    while True:
        try:
            return question()
        except ExplorationRestart:
            # Each package is new once, and so is garbage of what was there before.
            continue
        except BaseException as error:
            reason = skip_reason(error)
            if reason is None:
                raise
        # Raised here: what skipped it is no context.
        raise ScenarioSkipped(reason=reason)


def explore(
    scenario: Scenario,
    strategy: str = "auto",
    *,
    budget: Budget | None = None,
    progress: Progress | None = None,
    stop_after: int = MOST_VIOLATIONS,
) -> Report:
    """Explore a scenario and report what was found.

    Args:
        scenario: what to explore.
        strategy: `auto`, or strategies joined by `+`; see `harness.engine`.
        budget: how many steps and seconds it may take.
        progress: called with (done, planned) now and then.
        stop_after: how many violations are looked for.

    Raises:
        HarnessError: the question cannot be asked (unknown strategy, no fingerprint).
        ScenarioSkipped: a step or another function of it skipped it.
    """
    dispatcher = dispatcher_of(scenario) if scenario.create is None else None
    system = system_of(scenario) if dispatcher is None else dispatcher
    pinned = scenario.order_dependent is not None

    def exploration_within(within: Budget | None, tell: Progress | None) -> Exploration:
        return retry(
            lambda: explore_system(
                system,
                strategy,
                order_dependent=pinned,
                budget=within,
                progress=tell,
                stop_after=stop_after,
            )
        )

    # A thread keeps what it is in when its system is forgotten.
    with closing(system):
        exploration = exploration_within(budget, progress)
        if dispatcher is not None and not exploration.violations:
            kept = dispatcher.remaining_leaks()
            if kept:
                dispatcher.collect_always()
                second = exploration_within(_short_budget(budget), None)
                exploration = (
                    second if second.violations else _with_leak(exploration, kept)
                )
    return replace(empty_report(scenario), exploration=exploration)


def _short_budget(budget: Budget | None) -> Budget | None:
    """The budget of a second exploration: the same steps, which decide the strategy, in
    less time."""
    if budget is None:
        return Budget(seconds=LEAK_SECONDS)
    return replace(budget, seconds=min(budget.seconds or LEAK_SECONDS, LEAK_SECONDS))


def _with_leak(exploration: Exploration, kept: Sequence[Hashable]) -> Exploration:
    """The exploration, and what was kept alive in it as a broken law."""
    violation = Violation("law", (), (), (*kept, LEAK_WITHOUT_ORDER), ())
    return replace(exploration, violations=(violation,))


def serve_registry(files: Sequence[str], digest: str, name: str, parent: int) -> None:
    """Serve the scenario of that digest from one of the files; never returns."""
    # Here alone: who explores has a scenario.
    from everyorder.harness.exploration.catalogue import imported

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(parent)
    channel = PipeEnd(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    entry = _entry_of(files, digest, name)
    if entry is not None:
        with imported(entry):
            serve_child(entry.scenario, channel)
    with suppress(EOFError, OSError):
        channel.receive()
        found = f"isolation='spawn' for a scenario that {' and '.join(files)} lacks"
        wanted = "a scenario that is a variable of its module, or 'fork'"
        channel.send(("error", NotAScenario(found=found, wanted=wanted)))


def _entry_of(files: Sequence[str], digest: str, name: str) -> "Entry | None":
    """The scenario's entry; one of that name if several have the digest."""
    from everyorder.harness.exploration.catalogue import (
        load_file,
        root_of,
    )

    entries = [
        entry
        for file in map(Path, files)
        for entry in load_file(file, root_of(file)).entries
        if entry.scenario.digest == digest and entry.scenario.isolation == "spawn"
    ]
    entries.sort(key=lambda each: each.scenario.name != name)
    return entries[0] if entries else None
