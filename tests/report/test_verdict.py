"""The outcome: verdicts by severity, and histories as runnable lines."""

from dataclasses import replace

import pytest

from everyorder.harness.engine import Counts, Exploration, Violation
from everyorder.harness.engine.result import Kind
from everyorder.harness.report.verdict import VERDICTS, Report, Verdict

HELD = Exploration(
    strategy="walk:1",
    guarantee="walk:1: all of it",
    assumptions=(),
    skipped=(),
    states={(): "nothing", (0,): "one"},
    failures={},
    executed=Counts(transitions=12345),
    planned=12345,
    violations=(),
    complete=True,
    seconds=1.5,
)
REPORT = Report(
    scenario="scenarios/test_a/two",
    steps=('impl("a::b", one)', 'impl("a::b", two)'),
    uses=('call("a::b", "cpu")',),
    order_dependent=None,
    exploration=HELD,
    digest="0123456789ab",
)


def violated(*kinds: Kind) -> tuple[Violation, ...]:
    return tuple(Violation(kind, (0,), "this", "that", (0, 1, 0)) for kind in kinds)


@pytest.mark.parametrize(
    ("kinds", "verdict"),
    [
        (("order", "law", "nondeterminism"), "law"),
        (("use", "law"), "law"),
        (("order",), "order"),
        (("wedged",), "order"),
        (("error",), "order"),
        (("undo",), "order"),
        (("leak",), "order"),
        (("use",), "order"),
        (("cold",), "order"),
    ],
)
def test_verdict_of_violations(kinds: tuple[Kind, ...], verdict: Verdict) -> None:
    found = replace(HELD, violations=violated(*kinds), complete=False)
    report = replace(REPORT, exploration=found, order_dependent="newest wins")
    assert report.verdict == verdict
    assert not report.passed


@pytest.mark.parametrize(
    ("report", "verdict", "passed"),
    [
        (REPORT, "holds", True),
        (
            replace(REPORT, exploration=replace(HELD, strategy="graph", proven=True)),
            "proven",
            True,
        ),
        (replace(REPORT, order_dependent="newest wins"), "pinned", True),
        (
            replace(REPORT, exploration=replace(HELD, complete=False)),
            "cut short",
            False,
        ),
    ],
)
def test_verdict_without_violations(
    report: Report, verdict: Verdict, passed: bool
) -> None:
    assert report.verdict == verdict
    assert report.passed is passed
    assert verdict in VERDICTS


def test_lines_of_a_history() -> None:
    assert REPORT.lines((0, 1, 2, 0, 3, 0)) == (
        'step_1 = impl("a::b", one)',
        'step_2 = impl("a::b", two)',
        'call("a::b", "cpu")',
        "step_1.close()",
        "observe()",
        'step_1 = impl("a::b", one)',
    )


def test_state_names() -> None:
    assert REPORT.state_name(()) == "{}"
    assert REPORT.state_name((0, 1)) == "{1 2}"
    pinned = replace(REPORT, order_dependent="newest wins")
    assert pinned.state_name((1, 0)) == "2 then 1"


def test_replay_id_is_of_the_shortest_history() -> None:
    (long,) = violated("order")
    short = replace(long, shortest=(1,))
    assert REPORT.replay_id(short) != REPORT.replay_id(long)
    assert REPORT.replay_id(short) == REPORT.replay_id(replace(long, history=(1,)))
    assert len(REPORT.replay_id(long)) <= 24


def test_summary() -> None:
    assert REPORT.summary() == (
        "scenarios/test_a/two: holds (walk:1; 2 states, 12,345 transitions, 1.50 s)"
    )


def test_a_report_names_its_scenario_and_verdict() -> None:
    """The failure of a test that compares reports printed pages."""
    assert repr(REPORT) == "<Report of scenarios/test_a/two: holds>"
