"""What is stale, and what is one decision."""

from dataclasses import replace

from harness.catalogue import load
from harness.cli.command import CHANGED, OK
from harness.cli.review import (
    Change,
    Judgement,
    Part,
    changes,
    documents,
    stale_files,
)
from harness.cli.task import Effort, listing_of
from harness.expectations import Document, Key, Store, compare, document_of
from harness.outcome import Report
from tests.cli.conftest import SOUND, Project
from tests.report.samples import PROVEN

TESTS = """

def test_function(explore): ...


class TestClass: ...
"""


def expect(project: Project, *names: str) -> None:
    for name in names:
        project.write(f"expect/{name}.txt", "")


def found(project: Project) -> tuple[str, ...]:
    return stale_files(Store(project.root), listing_of(load(), Effort()))


def test_what_no_scenario_stands_behind(project: Project) -> None:
    expect(
        project,
        "scenarios/test_sound/sound",
        "scenarios/test_sound/gone",
        "scenarios/test_gone/sound",
    )
    assert found(project) == ("scenarios/test_gone/sound", "scenarios/test_sound/gone")


def test_what_a_test_function_may_explore_is_spared(project: Project) -> None:
    project.scenarios("sound", SOUND + TESTS)
    expect(
        project,
        "scenarios/test_sound/test_function",
        "scenarios/test_sound/test_function-2",
        "scenarios/test_sound/test_function[a]",
        "scenarios/test_sound/TestClass/test_method",
        "scenarios/test_sound/test_functional",
    )
    assert found(project) == ("scenarios/test_sound/test_functional",)


def test_a_scenario_elsewhere_is_spared_while_its_variable_stands(
    project: Project,
) -> None:
    project.write("tests/other/test_far.py", "far = made = 1\nnear: int = hidden\n")
    expect(
        project,
        "other/test_far/far",
        "other/test_far/near",
        "other/test_far/hidden",
        "scenarios/test_sound/count",
        "scenarios/test_sound/made",
    )
    assert found(project) == ("other/test_far/hidden", "scenarios/test_sound/made")


def test_what_cannot_be_known_is_spared(project: Project) -> None:
    project.scenarios("broken", "import nothing_like_this\n")
    project.scenarios(
        "skips", "import pytest\npytest.skip('no', allow_module_level=True)"
    )
    project.write("tests/test_half.py", "def half(:")
    expect(
        project,
        "scenarios/test_broken/some",
        "scenarios/test_skips/some",
        "test_half/some",
        "scenarios/test_sound",
    )
    assert found(project) == ()


OLD = document_of(PROVEN)
FIRST, SECOND = (), (0,)


def changed(name: str, *states: tuple[int, ...]) -> Report:
    seen = dict(PROVEN.exploration.states)
    for state in states:
        seen[state] = (("state", "another\n"),)
    exploration = replace(PROVEN.exploration, states=seen)
    return replace(PROVEN, scenario=name, exploration=exploration)


def judged(report: Report, expected: Document | None) -> Judgement:
    if expected is not None:
        expected = replace(expected, scenario=report.scenario)
    return Judgement(report.scenario, OK, "", compare(expected, report))


def test_nothing_to_decide() -> None:
    assert changes([judged(PROVEN, OLD), Judgement("s/a", OK)], ()) == []


def test_equal_differences_are_one_decision() -> None:
    found = changes(
        [
            judged(changed("s/a", FIRST, SECOND), OLD),
            judged(changed("s/b", FIRST), OLD),
        ],
        (),
    )
    assert [
        (change.verdict, [(part.scenario, part.keys) for part in change.parts])
        for change in found
    ] == [
        ("changed", [("s/a", (Key(FIRST),)), ("s/b", (Key(FIRST),))]),
        ("changed", [("s/a", (Key(SECOND),))]),
    ]
    assert found[0].headline() == "changed: 2 entries of s/a, s/b"
    assert found[1].headline() == "changed: 1 entry of s/a"
    assert not found[0].only_new
    assert "+  another" in "\n".join(found[0].lines).replace("+    ", "+  ")


def test_accepting_one_of_two_decisions() -> None:
    report = changed("s/a", FIRST, SECOND)
    first, second = changes([judged(report, OLD)], ())
    new = dict(document_of(report).entries)
    old = dict(OLD.entries)
    [(name, document)] = documents([first]).items()
    assert name == "s/a"
    assert document is not None
    taken = dict(document.entries)
    assert taken[Key(FIRST)] == new[Key(FIRST)]
    assert taken[Key(SECOND)] == old[Key(SECOND)]
    assert documents([first, second]) == {"s/a": document_of(report)}


def test_new_scenarios_are_one_decision() -> None:
    reports = [replace(PROVEN, scenario=f"s/{name}") for name in "abcde"]
    [change] = changes([judged(report, None) for report in reports], ())
    assert change.headline() == "new, 5 scenarios: s/a, s/b, s/c and 2 more"
    assert change.only_new
    assert documents([change]) == {
        report.scenario: document_of(report) for report in reports
    }


def test_a_damaged_file_is_a_decision_of_its_own() -> None:
    report = replace(PROVEN, scenario="s/a")
    damage = "expect/s/a.txt:1: a merge conflict is not resolved"
    found = Judgement("s/a", CHANGED, "", compare(None, report), damage)
    new = judged(replace(PROVEN, scenario="s/b"), None)
    change, other = changes([found, new], ())
    assert change.headline() == "damaged file: s/a"
    assert (change.lines, change.only_new) == ((damage,), False)
    assert other.headline() == "new, 1 scenario: s/b"
    assert documents([change]) == {"s/a": document_of(report)}


def test_a_part_of_a_change() -> None:
    reports = [replace(PROVEN, scenario=f"s/{name}") for name in "abc"]
    [change] = changes([judged(report, None) for report in reports], ())
    assert change.restricted_to(("s/b", "s/x")).scenarios == ("s/b",)
    assert documents([change.restricted_to(("s/b",))]) == {
        "s/b": document_of(reports[1])
    }
    assert change.restricted_to(()).parts == ()


def test_another_scenario_is_taken_as_a_whole() -> None:
    report = replace(PROVEN, scenario="s/a", steps=("x", *PROVEN.steps[1:]))
    [change] = changes([judged(report, OLD)], ())
    assert change.verdict == "another scenario"
    assert change.lines[0] == "steps:"
    assert change.lines[1:3] == (
        '-define("demo::add(Tensor x, Tensor y) -> Tensor")',
        "+x",
    )
    assert documents([change]) == {"s/a": document_of(report)}


def test_a_header_alone_is_a_decision() -> None:
    exploration = replace(PROVEN.exploration, strategy="graph", guarantee="graph: all")
    report = replace(PROVEN, scenario="s/a", exploration=exploration)
    [change] = changes([judged(report, OLD)], ())
    assert change.headline() == "changed header: s/a"
    assert documents([change]) == {"s/a": document_of(report)}


def test_stale_files_are_one_decision() -> None:
    [change] = changes([], ("s/a", "s/b"))
    assert change == Change(
        "stale, no scenario",
        (Part("s/a", None, None), Part("s/b", None, None)),
        (),
        False,
    )
    assert documents([change]) == {"s/a": None, "s/b": None}
