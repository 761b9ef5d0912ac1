"""Scenarios of the runtime, generated: no order matters in any of them."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from everyorder import Scenario, define, impl
from everyorder.harness.scenario.step import Step
from everyorder.harness.strategies import check
from everyorder.harness.strategies.dispatcher import (
    dispatcher_scenarios,
    first_kernel,
    registrations,
    second_kernel,
    share_a_place,
    typed_kernel,
)

# Scenarios of `make test`; of `make test-whole`, in so many shares; `make test-long`
# explores the first share.
FEW, MANY, SHARES = 150, 10_000, 20
SEED = 36
QUIET = settings(
    database=None,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


def explored(count: int, start: int = SEED) -> Counter[str]:
    """Explore so many scenarios; return how many had what."""
    counts: Counter[str] = Counter()

    @seed(start)
    @settings(QUIET, max_examples=count)
    @given(dispatcher_scenarios())
    def no_order_matters(scenario: Scenario) -> None:
        report = check(scenario)
        counts["scenarios"] += 1
        counts["transitions"] += report.exploration.executed.transitions
        counts["with refused steps"] += bool(report.exploration.failures)
        counts["with an order that may show"] += bool(scenario.ordered)
        counts[f"of {len(scenario.steps)} steps"] += 1

    no_order_matters()
    print(f"generated scenarios: {counts}")
    return counts


def test_no_order_matters_in_generated_scenarios() -> None:
    counts = explored(FEW)
    assert counts["scenarios"] >= FEW
    assert min(counts[f"of {n} steps"] for n in (1, 2, 3)) >= FEW // 20, counts
    assert counts["with refused steps"] >= FEW // 20, counts


@pytest.mark.parametrize(
    "share",
    [
        pytest.param(share, marks=pytest.mark.nightly if share else pytest.mark.slow)
        for share in range(SHARES)
    ],
)
def test_no_order_matters_in_ten_thousand_generated_scenarios(share: int) -> None:
    counts = explored(MANY // SHARES, SEED + 1 + share)
    assert counts["scenarios"] >= MANY // SHARES
    assert counts["with an order that may show"] >= MANY // SHARES // 50, counts


@settings(QUIET, max_examples=50)
@given(dispatcher_scenarios())
def test_a_generated_scenario_is_the_same_as_its_code(scenario: Scenario) -> None:
    built: dict[str, Scenario] = {}
    exec(scenario.as_code(), built)
    again = built["scenario"]
    assert again.digest == scenario.digest
    assert again.relations == scenario.relations
    assert again.as_code() == scenario.as_code()


def test_a_planted_fault_shrinks_to_two_kernels() -> None:
    """Undeclared, the rule that the newest kernel wins is found as a fault."""

    @seed(SEED)
    @settings(QUIET, max_examples=2_000)
    @given(dispatcher_scenarios())
    def undeclared(scenario: Scenario) -> None:
        check(Scenario(*scenario.steps, uses=scenario.uses, probes=("cpu",)))

    with pytest.raises(AssertionError) as caught:
        undeclared()
    _, _, code = str(caught.value).partition("the scenario as code:\n\n")
    built: dict[str, Scenario] = {}
    exec(code.partition("\n\npin it:")[0], built)
    scenario = built["scenario"]
    assert (len(scenario.steps), len(scenario.uses)) == (2, 0)
    with pytest.raises(AssertionError) as again:
        check(scenario)
    assert str(again.value) == str(caught.value)


def test_places_of_kernels() -> None:
    defined = define("t::f(int n) -> int", kernel=typed_kernel)
    at_cpu = impl("t::f", first_kernel, ["CPU", "CUDA"])
    assert share_a_place(defined, impl("t::f", second_kernel))
    assert share_a_place(at_cpu, impl("t::f", second_kernel, "CUDA"))
    assert not share_a_place(at_cpu, impl("u::g", second_kernel, "CUDA"))
    assert not share_a_place(at_cpu, defined)


@settings(QUIET, max_examples=50)
@given(registrations(("x::y",), ("Meta",)))
def test_registrations_are_of_the_operators_and_keys(step: Step) -> None:
    assert {*step.operators} <= {"x::y"}
    assert "CPU" not in step.text
