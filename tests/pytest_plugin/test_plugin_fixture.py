"""The fixture `explore` inside of test functions."""

import re
import sys

import pytest

from tests.pytest_plugin.project import LAST, PAIR, Project

NAMES = """
import pytest

@pytest.mark.parametrize("end", ["a", "b/c"])
def test_steps(explore, end):
    explore(*steps(end), create=dict, observe=shown)

class TestGroup:
    def test_scenarios(self, explore):
        assert explore(pair).scenario == "test_a/TestGroup/test_scenarios"
        assert explore(pair).scenario == "test_a/TestGroup/test_scenarios-2"
        report = explore(last, name="third", strategy="walk:0")
        assert report.scenario == "test_a/TestGroup/test_scenarios/third"
        assert report.verdict == "pinned"
"""

UNCHECKED = """
from everyorder.harness.engine import Budget

def test_report(explore):
    broken = explore(*steps("a", "b"), create=dict, observe=newest, check=False)
    assert broken.verdict == "order"
    short = explore(*steps("a", "b"), create=dict, observe=shown, check=False,
        budget=Budget(steps=3), strategy="walk:1")
    assert short.verdict == "cut short"

def test_wrong(explore):
    explore(1)
"""


BROKEN = """
def test_broken(explore):
    explore(*steps("a", "b"), create=dict, observe=newest)
"""


def test_a_scenario_in_a_test_is_replayed_by_the_printed_command(
    project: Project,
) -> None:
    """A command was printed that found no scenario of that name."""
    project.module("test_a.py", BROKEN)
    text = project.run().stdout.str()
    assert "\ntest_a/test_broken: what is observed depends on the order: " in text
    assert "    pytest tests/test_a.py::test_broken\n" in text
    match = re.search(r"^    everyorder (replay .*)$", text, re.MULTILINE)
    assert match is not None
    played = project.pytester.run(sys.executable, "-m", "everyorder", *match[1].split())
    assert "test_a/test_broken: 2 operations from a fresh system" in played.outlines
    assert played.ret == 1


@pytest.mark.slow
def test_names(project: Project) -> None:
    project.module("test_a.py", PAIR, LAST, NAMES)
    assert project.run("--everyorder-update").ret == 0
    assert list(project.files()) == [
        "test_a/TestGroup/test_scenarios/third.txt",
        "test_a/TestGroup/test_scenarios-2.txt",
        "test_a/TestGroup/test_scenarios.txt",
        "test_a/last.txt",
        "test_a/pair.txt",
        "test_a/test_steps[a].txt",
        "test_a/test_steps[b%2Fc].txt",
    ]
    assert project.run().ret == 0


def test_unchecked(project: Project) -> None:
    project.module("test_a.py", UNCHECKED)
    result = project.run()
    result.assert_outcomes(passed=1, failed=1)
    wrong = "tests/test_a.py:15: a scenario cannot use 1 among the steps; expected "
    at = result.outlines.index(f"{wrong}step('how")
    assert result.outlines[at + 1 : at + 3] == [
        "  it is called', the function).",
        "    explore(1)",
    ]
    assert project.files() == {}


def test_help(project: Project) -> None:
    project.module("test_a.py", PAIR)
    text = project.run("--fixtures").stdout.str()
    assert "explore -- " in text
    assert "Explore steps in every order: `explore(define(...), impl(...)," in text
