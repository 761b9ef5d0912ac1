import pytest

from everyorder.harness.base.errors import BadStrategy
from everyorder.harness.engine import Budget
from everyorder.harness.exploration.explore_scenario import (
    explore,
    system_of,
)
from everyorder.harness.scenario import Scenario, call, define, impl, step, use
from everyorder.harness.systems.dispatcher import DispatcherSystem
from everyorder.harness.systems.registry import RegistrySystem
from tests.coded import code
from tests.scenarios.kernels import composed, composed_anew, on_cpu

_TWO = Scenario(
    define("a::flip(Tensor x) -> Tensor"),
    impl("a::flip", on_cpu, "CPU"),
    uses=[call("a::flip")],
).named("two", "tests/scenarios/test_a.py")
NEWEST = (impl("a::flip", composed), impl("a::flip", composed_anew))


def test_system_of() -> None:
    assert isinstance(system_of(_TWO), DispatcherSystem)
    registry = Scenario(step("a", lambda _: int), create=list, observe=str)
    assert isinstance(system_of(registry), RegistrySystem)


def test_a_report() -> None:
    report = explore(_TWO)
    assert (report.scenario, report.verdict) == ("scenarios/test_a/two", "proven")
    assert report.steps == (
        'define("a::flip(Tensor x) -> Tensor")',
        'impl("a::flip", on_cpu, "CPU")',
    )
    assert report.uses == ('call("a::flip", "cpu")',)
    assert report.digest == _TWO.digest
    assert report.exploration.strategy == "graph+stale+histories:3+walk:2"
    assert list(report.exploration.states) == [(), (0,), (1,), (0, 1)]


def test_a_strategy_by_name() -> None:
    report = explore(_TWO, "walk:0")
    assert (report.verdict, report.exploration.strategy) == ("holds", "walk:0")
    with pytest.raises(BadStrategy, check=code("UnknownStrategy")):
        explore(_TWO, "wander")


def test_a_budget_cuts_short_and_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    report = explore(
        _TWO,
        "walk:2",
        budget=Budget(steps=20),
        progress=lambda done, planned: told.append((done, planned)),
    )
    assert report.verdict == "cut short"
    assert told[-1][0] <= 20


def test_a_pin_is_needed_where_the_newest_wins() -> None:
    assert explore(Scenario(*NEWEST)).verdict == "order"
    pinned = explore(Scenario(*NEWEST, order_dependent="the newest wins"))
    assert pinned.verdict == "pinned"
    assert list(pinned.exploration.states) == [(), (0,), (1,), (0, 1), (1, 0)]


def test_a_pin_that_pins_nothing_is_a_fault() -> None:
    report = explore(Scenario(*_TWO.steps, order_dependent="the newest wins"))
    assert report.verdict == "unpinned"
    assert not report.passed


def test_several_violations_are_looked_for() -> None:
    report = explore(Scenario(*NEWEST, _TWO.steps[0]), "walk:1", stop_after=3)
    # All of them come down to one history.
    assert len(report.exploration.violations) == 1


def take_all(items: list[str]) -> list[str]:
    taken = items.copy()
    items.clear()
    return taken


def test_a_use_that_takes_back_what_a_lasting_step_did() -> None:
    """It was called hidden state: the step was not done from an equal state again."""
    report = explore(
        Scenario(
            step("add", lambda items: items.append("a"), undo=None),
            uses=[use("take", take_all)],
            create=list,
        )
    )
    (violation,) = report.exploration.violations
    assert (report.verdict, violation.kind, violation.shortest) == (
        "order",
        "use",
        (0, 1, 1),
    )
    assert len(report.exploration.states) == 2
