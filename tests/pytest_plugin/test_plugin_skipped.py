"""A scenario that skips itself skips its test, wherever it is explored."""

from xml.etree import ElementTree

import pytest

from tests.pytest_plugin.project import PAIR, Project

REASON = "no GPU here"

SKIPS = f"""
import pytest
from everyorder.harness.scenario import step


def skip(registry=None):
    pytest.skip({REASON!r})


by_step = Scenario(*steps("a"), step("skip()", skip), create=dict, observe=shown)
by_create = Scenario(*steps("a"), create=skip, observe=shown)
apart = Scenario(*steps("a"), create=skip, observe=shown, isolation="fork")


def test_first(explore):
    explore(*steps("a", "b"), create=dict, observe=shown, check=False)
    explore(*steps("a"), create=dict, observe=skip, name="more")
    raise AssertionError("it was skipped")


def test_without_the_fixture():
    from everyorder.harness import explore

    explore(Scenario(*steps("a"), create=skip, observe=shown))


def test_caught(explore):
    with pytest.raises(pytest.skip.Exception, match={REASON!r}):
        explore(*steps("a"), create=skip, observe=shown)
"""

SKIPPED = {"by_step": 14, "by_create": 15, "apart": 16, "test_first": 19}


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [(), ("-n2",), ("--everyorder-in-process",)],
    ids=["child", "workers", "here"],
)
def test_the_test_is_skipped(project: Project, arguments: tuple[str, ...]) -> None:
    project.module("test_a.py", PAIR, SKIPS)
    project.run("--everyorder-update", "-k", "pair")
    result = project.run("-rs", "--junitxml=out.xml", *arguments)
    result.assert_outcomes(passed=2, skipped=5)
    assert result.ret == 0
    for line in SKIPPED.values():
        assert f"SKIPPED [1] tests/test_a.py:{line}: {REASON}" in result.outlines
    (told,) = (line for line in result.outlines if line.startswith("everyorder: "))
    assert told == (
        "everyorder: 6 scenarios, 4 states, 16 transitions: 1 as expected, 5 skipped"
    )
    tree = ElementTree.parse(project.path / "out.xml")
    found = {
        case.attrib["name"]: {
            each.attrib["name"]: each.attrib["value"] for each in case.iter("property")
        }
        for case in tree.iter("testcase")
    }
    assert found["by_step"] == {
        "scenario": "test_a/by_step",
        "verdict": "skipped",
        "skipped": REASON,
    }


@pytest.mark.slow
def test_what_was_expected_of_it_stays(project: Project) -> None:
    whole = SKIPS.replace('step("skip()", skip)', '*steps("b")')
    project.module("test_a.py", whole.partition("by_create")[0], PAIR)
    assert project.run("--everyorder-update").ret == 0
    files = project.files()
    assert list(files) == ["test_a/by_step.txt", "test_a/pair.txt"]
    project.module("test_a.py", SKIPS.partition("by_create")[0], PAIR)
    result = project.run("--everyorder-update")
    assert result.ret == 0
    assert project.files() == files
