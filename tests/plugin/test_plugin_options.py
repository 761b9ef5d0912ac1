"""Options: flags, their ini twins, and what is refused."""

import pytest

from harness.plugin_session import Options
from tests.plugin.project import FIRST, INI, LAST, PAIR, Project


@pytest.mark.parametrize(
    ("update", "only_new", "accepted"),
    [
        ("none", True, False),
        ("all", False, True),
        ("new", True, True),
        ("new", False, False),
        ("a/test_m/pair", False, True),
        ("a/*", False, True),
        ("tests/a/test_m.py::pair", False, True),
        ("b/*", True, False),
        ("pair", True, False),
    ],
)
def test_accepts(update: str, only_new: bool, accepted: bool) -> None:
    node = "tests/a/test_m.py::pair"
    options = Options(update=update)
    assert options.accepts("a/test_m/pair", node, only_new=only_new) is accepted


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ("--everyorder-update", "tests/test_a.py"),
            "--everyorder-update took 'tests/test_a.py' for its value; write "
            "'--everyorder-update=all tests/test_a.py'.",
        ),
        (
            ("--everyorder-update", "--everyorder-strategy=full"),
            "--everyorder-update writes down how much is explored, so it does not go "
            "with --everyorder-strategy or --everyorder-budget; put a lasting choice "
            "into the ini file (everyorder_strategy, everyorder_budget).",
        ),
        (
            ("-o", "everyorder_update=yes"),
            "everyorder_update in the ini file is none, new or all, not 'yes'.",
        ),
        (
            ("-o", "everyorder_budget=soon"),
            "everyorder_budget in the ini file is a number of seconds above 0, not "
            "'soon'.",
        ),
        (
            ("-o", "everyorder_budget=0"),
            "everyorder_budget in the ini file is a number of seconds above 0, not "
            "'0'.",
        ),
        (
            ("--everyorder-strategy=run:2",),
            "no strategy is called 'run:2'; there are ",
        ),
    ],
)
def test_refusals(project: Project, arguments: tuple[str, ...], text: str) -> None:
    project.module("test_a.py", PAIR)
    result = project.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.stderr.str().startswith(f"ERROR: {text}")


@pytest.mark.parametrize("budget", ["0", "-1", "nan", "soon"])
def test_a_budget_that_is_no_time(project: Project, budget: str) -> None:
    result = project.run(f"--everyorder-budget={budget}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"invalid number of seconds above 0 value: '{budget}'" in (
        result.stderr.str()
    )


def test_the_ini_file_accepts_too_but_not_under_ci(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("pytest.ini", INI + "everyorder_update = new\n")
    project.module("test_a.py", PAIR)
    monkeypatch.setenv("CI", "1")
    assert project.run().ret == 1
    assert project.files() == {}
    monkeypatch.delenv("CI")
    assert project.run().ret == 0
    assert list(project.files()) == ["test_a/pair.txt"]


@pytest.mark.long
def test_new_adds_and_replaces_nothing(project: Project) -> None:
    project.module("test_a.py", PAIR, LAST)
    project.run("--everyorder-update")
    before = project.files()
    project.module("test_a.py", PAIR.replace('"a", "b"', '"a", "b", "c"'), FIRST)
    grown = project.run("--everyorder-update=new")
    assert "2 accepted; 2 expect files written" in grown.stdout.str()
    assert "stale: expect/test_a/last.txt belongs to no scenario" in grown.outlines
    after = project.files()
    assert list(after) == ["test_a/first.txt", "test_a/last.txt", "test_a/pair.txt"]
    assert after["test_a/last.txt"] == before["test_a/last.txt"]
    project.module("test_a.py", PAIR.replace('"a", "b"', '"x", "b", "c"'), FIRST)
    project.run("--everyorder-update=new")
    assert project.files() == after


@pytest.mark.long
def test_one_scenario(project: Project) -> None:
    project.module("test_a.py", PAIR, LAST, FIRST)
    result = project.run("--everyorder-update=test_a/pair")
    result.assert_outcomes(passed=1, failed=2)
    project.run("--everyorder-update=tests/test_a.py::last")
    result = project.run("--everyorder-update=pair", "-k", "pair")
    assert result.ret == 1
    wrong = "--everyorder-update=pair: no such scenario was explored"
    assert wrong in result.outlines
    assert list(project.files()) == ["test_a/last.txt", "test_a/pair.txt"]


@pytest.mark.long
def test_strategy_and_budget_of_the_ini_file(project: Project) -> None:
    chosen = "everyorder_strategy = walk:0\neveryorder_budget = 60\n"
    project.write("pytest.ini", INI.replace("everyorder_strategy = walk:1\n", chosen))
    project.module("test_a.py", PAIR)
    assert project.run("--everyorder-update").ret == 0
    assert "\nstrategy: walk:0\n" in project.files()["test_a/pair.txt"]
    assert project.run().ret == 0
    assert project.run("--everyorder-strategy=walk:1").ret == 0
