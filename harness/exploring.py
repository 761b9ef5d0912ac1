"""`explore`: one scenario, every order, one report.

True only here: how a scenario becomes a system and its outcome a report.
"""

from harness.engine import Budget, Progress, System
from harness.engine import explore as explore_system
from harness.outcome import Report
from harness.scenario.scenario import Scenario
from harness.systems.dispatcher import DispatcherSystem
from harness.systems.registry import RegistrySystem


def system_of(scenario: Scenario) -> System:
    """The scenario as the engine sees it."""
    if scenario.create is None:
        return DispatcherSystem(scenario)
    return RegistrySystem(scenario)


def explore(
    scenario: Scenario,
    strategy: str = "auto",
    *,
    budget: Budget | None = None,
    progress: Progress | None = None,
    stop_after: int = 1,
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
    """
    system = system_of(scenario)
    try:
        exploration = explore_system(
            system,
            strategy,
            order_dependent=scenario.order_dependent is not None,
            budget=budget,
            progress=progress,
            stop_after=stop_after,
        )
    finally:
        if isinstance(system, DispatcherSystem):
            # A thread keeps what it is in when its system is forgotten.
            system.close()
    return Report(
        scenario=scenario.path,
        steps=tuple(step.text for step in scenario.steps),
        uses=tuple(use.text for use in scenario.uses),
        order_dependent=scenario.order_dependent,
        exploration=exploration,
        digest=scenario.digest,
    )
