"""Checking generated scenarios, and pinning the failures.

Rules:
- a generated scenario may contain what is a mistake of one that a person wrote: a step
  that changes nothing or always fails, an order that is declared and makes no
  difference; only violations fail;
- a failure has everything that is needed to keep it: code that builds the scenario, and
  the line of an `@example`.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, islice
from typing import Any

from everyorder.harness.base.errors import CannotReplay, NotAScenario
from everyorder.harness.engine import explore as explore_system
from everyorder.harness.engine.replay_id import VERSION, decode, scenario_tag, tag_of
from everyorder.harness.exploration.confirmation import confirmed
from everyorder.harness.exploration.explore_scenario import (
    closing,
    empty_report,
    explore,
    retry,
    system_of,
)
from everyorder.harness.report.failure import render
from everyorder.harness.report.verdict import Report
from everyorder.harness.scenario.scenario import Scenario
from everyorder.harness.systems.observed import ObservedSystem

# Parts of a scenario that are looked at for a replay id: with 20 bits of each digest,
# another part has the same tag with a probability of 1 % at most.
MOST_PARTS = 10_000


def check(
    scenario: Scenario,
    strategy: str = "histories:3",
    *,
    whole_state: bool = False,
    **options: Any,
) -> Report:
    """Explore a scenario; raise an error if what it shows depends on the history.

    Args:
        scenario: the scenario.
        strategy: as for `explore`; most faults show in three operations.
        whole_state: compare the whole state of a registry, as `explore` does, which
            takes a second or more; otherwise only what is observed: answers, errors,
            `observe` and `check`. The state of a dispatcher is always compared.
        options: as for `explore`.

    Raises:
        AssertionError: there is a violation; the text has the failure, code that builds
            the scenario, and an `@example` with its replay id.
        HarnessError: the scenario cannot be explored.
    """
    if whole_state or scenario.create is None or scenario.isolation is not None:
        report = explore(scenario, strategy, **options)
    else:
        report = _observed(scenario, strategy, **options)
    violations = report.exploration.violations
    if any(each.kind != "unpinned" for each in violations):
        raise AssertionError(_failure(scenario, report))
    return report


def _observed(
    scenario: Scenario, strategy: str, *, stop_after: int = 1, **options: Any
) -> Report:
    is_pinned = scenario.order_dependent is not None
    # Raises if it needs fixtures.
    with closing(system_of(scenario)):
        pass
    with closing(ObservedSystem(scenario)) as system:
        exploration = retry(
            lambda: explore_system(
                system,
                strategy,
                order_dependent=is_pinned,
                stop_after=stop_after,
                **options,
            )
        )
        report = replace(empty_report(scenario), exploration=exploration)
        return retry(lambda: confirmed(report, system))


def _failure(scenario: Scenario, report: Report) -> str:
    replay_id = report.replay_id(report.exploration.violations[0])
    try:
        code = scenario.as_code()
        example_line = f'@example(replayed("{replay_id}", scenario))'
    except NotAScenario as error:
        code = f"# {error}"
        example_line = f"# its replay id is {replay_id}"
    # It is the value of no variable.
    report = replace(report, scenario=report.scenario or "scenario")
    parts = render(report), "the scenario as code:", code, "pin it:", example_line
    return "\n\n".join(parts)


def replayed(replay_id: str, scenario: Scenario) -> Scenario:
    """Return the scenario of a replay id, as the value for `@example(...)`.

    Args:
        replay_id: printed by a failure of `check`.
        scenario: the scenario that the failure printed as code; or the argument of
            `scenarios_within`, whose parts are then looked at, the smallest first.

    Raises:
        CannotReplay: the id is damaged, or belongs to another scenario.
    """
    tag = tag_of(replay_id)
    looked_at = 0
    damage: CannotReplay | None = None
    for part in islice(_parts(scenario), MOST_PARTS):
        looked_at += 1
        if scenario_tag(part.digest) != tag:
            continue
        try:
            decode(replay_id, empty_report(part).operations)
        except CannotReplay as error:
            damage = error
            continue
        return part
    if damage is not None:
        raise damage
    raise CannotReplay(
        code="ForeignReplayId",
        text=replay_id,
        scenario=scenario.path,
        parts=looked_at - 1,
        reason=VERSION + scenario_tag(scenario.digest),
    )


def _parts(whole: Scenario) -> Iterator[Scenario]:
    """Yield the scenario, then those with some of its operations, smallest first."""
    yield whole
    steps, uses = whole.steps, whole.uses
    least = int(whole.create is not None and whole.observe is None)
    for size in range(1, len(steps) + len(uses)):
        for n_steps in range(1, size + 1):
            n_uses = size - n_steps
            if n_uses < least or n_uses > len(uses):
                continue
            for few_steps in combinations(steps, n_steps):
                for few_uses in combinations(uses, n_uses):
                    yield whole.part(few_steps, few_uses)
