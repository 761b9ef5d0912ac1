"""The strategies agree: for every small scenario they come to the same verdict.

True only here: `full`, which does what upstream's exhaustive test does, is the oracle.
It takes 2n(n!)^2 steps, so it plays five-step scenarios without probes (their calls are
most of the cost); the other strategies play everything.

A registry that shows no complete state cannot be proven; it skips `graph`.
"""

from pathlib import Path

import pytest

from harness import Scenario, explore
from harness.catalogue import load

HERE = Path(__file__).resolve().parent
# 5 steps are 144,000 steps in `full`: seconds each; 6 would be minutes.
MOST_STEPS = 5


def _small() -> dict[str, Scenario]:
    found = load([str(HERE)], start=HERE)
    scenarios = (entry.scenario for entry in found.entries)
    return {s.path: s for s in scenarios if len(s.steps) <= MOST_STEPS}


SMALL = _small()


def _strategies(scenario: Scenario) -> list[str]:
    strategies = ["walk:1", "words:2", "full"]
    if scenario.create is None or scenario.fingerprint is not None:
        strategies.append("graph")
    return strategies


@pytest.mark.parametrize("path", SMALL)
def test_strategies_agree(path: str) -> None:
    scenario = SMALL[path]
    wanted = "holds" if scenario.order_dependent is None else "pinned"
    for strategy in _strategies(scenario):
        five = strategy == "full" and len(scenario.steps) == MOST_STEPS
        report = explore(_without_probes(scenario) if five else scenario, strategy)
        expected = "proven" if (strategy, wanted) == ("graph", "holds") else wanted
        assert (strategy, report.verdict) == (strategy, expected), report.summary()


def test_full_plays_upstreams_five_steps() -> None:
    five = {s.name for s in SMALL.values() if len(s.steps) == MOST_STEPS}
    assert "founding_five" in five


def _without_probes(scenario: Scenario) -> Scenario:
    return Scenario(
        *scenario.steps,
        given=scenario.given,
        order_dependent=scenario.order_dependent,
        probes=(),
        name=scenario.name,
    )
