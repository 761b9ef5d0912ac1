"""The strategies agree: for a small scenario they come to the same verdict.

`full`, which does what upstream's exhaustive test does, is the oracle.  It takes
2n(n!)^2 operations, so it plays five-step scenarios without probes: their calls are
most of the cost.  The other strategies play everything.
"""

from collections.abc import Sequence
from copy import copy
from functools import cache
from pathlib import Path

from everyorder.harness import Scenario, explore
from tests.scenarios.of_files import scenarios_of

HERE = Path(__file__).resolve().parent
# Their states are found by following objects, among all that the process has loaded:
# they are explored in processes that have loaded nothing else.
FOLLOWED = ("test_extension_points.py", "test_registries.py", "test_teaching.py")
# 5 steps are 144,000 operations in `full`: seconds each; 6 would be minutes.
MOST_STEPS = 5
STRATEGIES = ("graph", "walk:0", "walk:1", "walk:2", "stale", "histories:2", "full")


def others() -> tuple[str, ...]:
    """The files of this folder that are not `FOLLOWED`."""
    names = (path.name for path in HERE.glob("test_*.py"))
    return tuple(sorted(name for name in names if name not in FOLLOWED))


@cache
def small(files: Sequence[str]) -> dict[str, Scenario]:
    """The scenarios of few steps in these files of this folder, by their paths."""
    found = scenarios_of(HERE / file for file in files)
    return {p: s for p, s in found.items() if len(s.steps) <= MOST_STEPS}


def agree(scenario: Scenario) -> None:
    """Explore it by every strategy; fail where one of them says another thing."""
    pinned = scenario.order_dependent is not None
    for strategy in STRATEGIES:
        if strategy == "full" and scenario.relations.lasting:
            continue
        five = strategy == "full" and len(scenario.steps) == MOST_STEPS
        report = explore(_without_probes(scenario) if five else scenario, strategy)
        expected = "pinned" if pinned else "holds"
        # What shows no complete state cannot be proven, and says why.
        if strategy == "graph" and not pinned and not report.bounds:
            expected = "proven"
        assert (strategy, report.verdict) == (strategy, expected), report.summary()


def _without_probes(scenario: Scenario) -> Scenario:
    twin = copy(scenario)
    object.__setattr__(twin, "probes", ())
    return twin
