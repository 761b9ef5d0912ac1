"""A scenario that skips itself: told and counted, neither right nor wrong."""

import json

import pytest

from everyorder.harness.cli import command as exits
from tests.cli.conftest import Project, fresh_modules, unwrapped
from tests.collecting import scenarios

REASON = "no GPU here"

SKIPS = f"""
import unittest
import pytest
from tests.scenarios.test_sound import Scenario, add, shown, step, use


def skip(registry=None):
    pytest.skip({REASON!r})


def skip_as_unittest_does(registry):
    raise unittest.SkipTest({REASON!r})


def undoing(registry):
    return lambda: pytest.skip({REASON!r})


def scenario(*steps, create=list, **given):
    return Scenario(add("a"), *steps, create=create, observe=shown, **given)


by_step = scenario(step("skip()", skip))
by_unittest = scenario(step("skip()", skip_as_unittest_does))
by_undo = scenario(step("undoing()", undoing))
by_create = scenario(create=skip)
by_use = Scenario(add("a"), uses=[use("skip()", skip)], create=list, observe=shown)
by_observe = Scenario(add("a"), create=list, observe=skip)
apart_by_step = scenario(step("skip()", skip), isolation="fork")
apart_by_create = scenario(create=skip, isolation="fork")
"""

NAMES = (
    *("by_step", "by_unittest", "by_undo", "by_create", "by_use", "by_observe"),
    *("apart_by_step", "apart_by_create"),
)


@pytest.fixture
def skipping(project: Project) -> Project:
    """Scenarios that skip themselves, each by another function."""
    project.scenarios("skips", SKIPS)
    return project


@pytest.mark.parametrize("arguments", [(), ("--in-process",)], ids=["child", "here"])
def test_run(skipping: Project, arguments: tuple[str, ...]) -> None:
    result = skipping.run("run", "test_skips", *arguments)
    assert result.exit_code == exits.OK
    for name in NAMES:
        told = f"\nscenarios/test_skips/{name}: skipped\n"
        assert f"{told}tests/scenarios/test_skips.py: {REASON}\n" in result.output
    rows = [line.split() for line in result.output.splitlines()[3:11]]
    assert rows == [[name, "skipped"] for name in NAMES]
    assert result.output.endswith("8 scenarios: 8 skipped; 0 states, 0 transitions\n")


@pytest.mark.slow
def test_run_with_one_that_fails(skipping: Project) -> None:
    skipping.scenarios("faulty", "from tests.scenarios.test_sound import *\nx = 1 / 0")
    assert skipping.run("run").exit_code == exits.FAILED


def test_a_report_tells_it(skipping: Project) -> None:
    assert skipping.run("run", "by_use", "--report", "out").exit_code == exits.OK
    [told] = json.loads((skipping.root / "out/report.json").read_text())["unexplored"]
    assert (told["verdict"], told["reason"]) == ("skipped", REASON)


@pytest.mark.slow
def test_gate(skipping: Project) -> None:
    assert skipping.run("review", "--accept", "all").exit_code == exits.OK
    result = skipping.run("gate")
    assert result.exit_code == exits.OK
    told = [f"skipped: scenarios/test_skips/{name}: {REASON}" for name in NAMES]
    assert result.output.splitlines()[-9:] == [
        *told,
        "gate: 10 scenarios, 2 as expected, 8 skipped; exit code 0",
    ]


@pytest.mark.slow
def test_what_was_expected_of_it_stays(skipping: Project) -> None:
    """It may not skip itself elsewhere: its file is neither stale nor compared."""
    alone = SKIPS.partition("by_unittest = ")[0]
    whole = alone.replace('step("skip()", skip)', 'add("b")')
    skipping.scenarios("skips", whole)
    assert skipping.run("review", "by_step", "--accept", "all").exit_code == 0
    file = skipping.root / "expect/scenarios/test_skips/by_step.txt"
    text = file.read_text()
    skipping.scenarios("skips", alone)
    assert "by_step.txt" not in skipping.run("gate").output
    review = skipping.run("review", "--accept", "all")
    assert review.exit_code == exits.OK
    assert "by_step.txt" not in review.output
    assert file.read_text() == text


def test_review(skipping: Project) -> None:
    result = skipping.run("review", "by_step", "by_create")
    assert result.output == (
        f"skipped: scenarios/test_skips/by_step: {REASON}\n"
        f"skipped: scenarios/test_skips/by_create: {REASON}\n"
        "nothing to review: 0 scenarios as expected\n"
    )
    assert result.exit_code == exits.OK


@pytest.mark.parametrize("name", NAMES[:1] + NAMES[3:4] + NAMES[5:])
def test_show(skipping: Project, name: str) -> None:
    result = skipping.run("show", f"test_skips/{name}")
    assert result.exit_code == exits.REFUSED
    assert unwrapped(result).endswith(
        f"Error: scenarios/test_skips/{name} cannot be played here: it skips itself: "
        f"{REASON}"
    )


@pytest.mark.parametrize("name", NAMES)
def test_replay(skipping: Project, name: str) -> None:
    from everyorder.harness.engine import encode

    path = f"scenarios/test_skips/{name}"
    with fresh_modules(skipping.root):
        scenario = scenarios(path)[path]
    last = len(scenario.steps) + len(scenario.uses) - 1
    operations = last + 3
    history = (last, last) if name == "by_undo" else (last,)
    replay_id = encode(scenario.digest, operations, history)
    result = skipping.run("replay", replay_id, path)
    assert result.exit_code == exits.REFUSED
    assert unwrapped(result) == (
        f"Error: {path} cannot be played here: it skips itself: {REASON}"
    )
