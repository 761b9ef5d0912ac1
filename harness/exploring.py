"""`explore`: one scenario, every order, one report.

True only here: how a scenario becomes a system and its outcome a report.

Rules:
- what lies in cycles is judged late; when it turns out only at the end that something
  was kept alive, the scenario is explored again in a hurry, which tells by which order;
- where that does not find it, it is told without an order;
- a scenario that skips itself, by whichever of its functions, has no report.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from harness.engine import Budget, Exploration, Progress, System, Violation
from harness.engine import explore as explore_system
from harness.outcome import Report
from harness.scenario.scenario import Scenario
from harness.systems.audit import BeginAgain
from harness.systems.isolated import IsolatedSystem
from harness.systems.outcomes import ScenarioSkipped, skip_reason
from harness.systems.registry import RegistrySystem

if TYPE_CHECKING:
    from harness.systems.dispatcher import DispatcherSystem

T = TypeVar("T")

# Violations that are told of one scenario: one fault often shows in several places,
# and what is mended is checked against all of them.
SEVERAL = 3

# Told with what was kept by nobody knows which order.
AT_THE_END = "seen at the end, when all was undone; by which order is not known"

# Collecting at every step is dear, and most of what leaks does so at once.
SECONDS = 30.0


def system_of(scenario: Scenario) -> System:
    """The scenario as the engine sees it."""
    if scenario.create is None:
        return dispatcher_of(scenario)
    if scenario.isolation is not None:
        return IsolatedSystem(scenario)
    return RegistrySystem(scenario)


def dispatcher_of(scenario: Scenario) -> "DispatcherSystem":
    """The scenario on a dispatcher; nothing else needs the runtime."""
    from harness.systems.dispatcher import DispatcherSystem

    return DispatcherSystem(scenario)


def asked(question: Callable[[], T]) -> T:
    """The answer to a question about one system, asked again where it must be.

    Raises:
        ScenarioSkipped: a function of its scenario skipped it.
    """
    while True:
        try:
            return question()
        except BeginAgain:
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
    stop_after: int = SEVERAL,
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

    def explored(within: Budget | None, tell: Progress | None) -> Exploration:
        return asked(
            lambda: explore_system(
                system,
                strategy,
                order_dependent=pinned,
                budget=within,
                progress=tell,
                stop_after=stop_after,
            )
        )

    try:
        exploration = explored(budget, progress)
        if dispatcher is not None and not exploration.violations:
            kept = dispatcher.last()
            if kept:
                dispatcher.hurry()
                again = explored(_brief(budget), None)
                exploration = again if again.violations else _with(exploration, kept)
    finally:
        # A thread keeps what it is in when its system is forgotten.
        close = getattr(system, "close", None)
        if close is not None:
            close()
    return Report(
        scenario=scenario.path,
        steps=tuple(step.text for step in scenario.steps),
        uses=tuple(use.text for use in scenario.uses),
        order_dependent=scenario.order_dependent,
        exploration=exploration,
        digest=scenario.digest,
        pairs=tuple(sorted(system.relations.pairs)),
        again=system.relations.again,
    )


def _brief(budget: Budget | None) -> Budget | None:
    """The same steps, as they decide what is explored, but not all of the time."""
    if budget is None:
        return Budget(seconds=SECONDS)
    return replace(budget, seconds=min(budget.seconds or SECONDS, SECONDS))


def _with(exploration: Exploration, kept: Sequence[Hashable]) -> Exploration:
    """The exploration, and what was kept alive in it as a broken law."""
    violation = Violation("law", (), (), (*kept, AT_THE_END), ())
    return replace(exploration, violations=(violation,))
