"""The strategies agree: for every small scenario they come to the same verdict.

True only here: `full`, which does what upstream's exhaustive test does, is the oracle.
It takes 2n(n!)^2 operations, so it plays five-step scenarios without probes (their
calls are most of the cost); the other strategies play everything.

Nothing is loaded when this module is imported: the command line loads it with every
other one of its folder, and would load the whole catalogue twice.
"""

import runpy
from copy import copy
from functools import cache
from pathlib import Path

import pytest

from harness import Scenario, explore
from harness.catalogue import load

HERE = Path(__file__).resolve().parent
# 5 steps are 144,000 operations in `full`: seconds each; 6 would be minutes.
MOST_STEPS = 5
STRATEGIES = ("graph", "walk:0", "walk:1", "walk:2", "stale", "histories:2", "full")


@cache
def small() -> dict[str, Scenario]:
    found = load([str(HERE)], start=HERE)
    scenarios = (entry.scenario for entry in found.entries)
    return {s.path: s for s in scenarios if len(s.steps) <= MOST_STEPS}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "path" in metafunc.fixturenames:
        metafunc.parametrize("path", small())


@pytest.mark.long
def test_strategies_agree(path: str) -> None:
    scenario = small()[path]
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


def test_loading_this_module_loads_no_catalogue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each run of the command line loads it, and took 7.6 s longer for it."""
    loaded: list[object] = []
    monkeypatch.setattr("harness.catalogue.load", lambda *at, **of: loaded.append(at))
    names = runpy.run_path(__file__)
    assert loaded == []
    # It would have been seen.
    with pytest.raises(AttributeError):
        names["small"]()
    assert len(loaded) == 1


def test_full_plays_upstreams_five_steps() -> None:
    five = {s.name for s in small().values() if len(s.steps) == MOST_STEPS}
    assert "founding_five" in five


def _without_probes(scenario: Scenario) -> Scenario:
    twin = copy(scenario)
    object.__setattr__(twin, "probes", ())
    return twin
