"""Settings of the commands in pyproject.toml; `list` and `completion`."""

import json
import os
import subprocess
import sys

import pytest

from everyorder.harness.base.errors import BadSetting
from everyorder.harness.cli import command as exits
from everyorder.harness.cli.group import COMMANDS, CONFIGURABLE
from everyorder.harness.cli.settings import Settings, read_settings
from tests.cli.conftest import PYPROJECT, Project, unwrapped
from tests.coded import code

OTHER = """
from everyorder.harness.scenario import Scenario, step
other = Scenario(step("add", list.copy), create=list, observe=repr)


def test_it(explore):
    explore(step("add", list.copy), create=list, observe=repr)
"""


def configure(project: Project, text: str) -> None:
    project.write("pyproject.toml", PYPROJECT + text)


def test_paths_are_those_of_a_command_without_any(project: Project) -> None:
    project.write("tests/test_other.py", OTHER)
    configure(project, '[tool.everyorder]\npaths = ["tests/test_other.py"]\n')
    assert project.text("list") == (
        "test_other/other  (1 step, 0 uses)\n"
        "test_other/test_it  (a test)\n"
        "1 scenario, 1 test with the fixture explore\n"
    )
    assert "scenarios/test_sound/sound" in project.text("list", "tests/scenarios")


def test_a_setting_is_the_default_of_an_option(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(
        project,
        '[tool.everyorder]\nstrategy = "walk:1"\n'
        '[tool.everyorder.gate]\nstrategy = "sca:2"\nfail-fast = true\n',
    )
    monkeypatch.chdir(project.root / "tests")
    assert "walk:1" in project.text("run", "sound", "-v")
    assert "walk:2" in project.text("run", "sound", "-v", "--strategy", "walk:2")
    project.run("review", "--accept", "all")
    assert "guarantee: sca:2" in project.text("gate", "sound", "-v")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[tool.everyorder]\nbudgett = 3\n",
            "[tool.everyorder] has no setting 'budgett'; did you mean 'budget'?",
        ),
        (
            "[tool.everyorder.gate]\nsystem = 'torch'\n",
            "[tool.everyorder.gate] has no setting 'system'",
        ),
        (
            '[tool.everyorder.review]\naccept = ["all"]\n',
            "[tool.everyorder.review] has no setting 'accept'",
        ),
        ("[tool.everyorder]\nbudget = nan\n", "budget has to be"),
        ("[tool.everyorder]\njobs = [2]\n", "jobs has to be one value"),
        ("[tool.everyorder]\nfail-fast = 3\n", "fail-fast has to be true or false"),
        (
            "[tool.everyorder.gates]\njobs = 2\n",
            "[tool.everyorder] has no setting 'gates'; did you mean 'gate'?",
        ),
        ("[tool.everyorder]\npaths = 3\n", "paths has to be a list of texts"),
        ("[tool]\neveryorder = 3\n", "everyorder has to be a table"),
        ("[tool.everyorder\n", "cannot be parsed"),
        ("[tool.everyorder]\njobs = 'many'\n", "jobs has to be as on the command line"),
    ],
)
def test_mistakes(project: Project, text: str, message: str) -> None:
    configure(project, text)
    result = project.run("gate")
    assert result.exit_code == exits.REFUSED
    assert message in unwrapped(result)


def test_a_wrong_setting_does_not_prevent_help(project: Project) -> None:
    configure(project, "[tool.everyorder]\nbudgett = 3\n")
    assert project.run("run", "--help").exit_code == exits.OK
    configure(project, "[tool]\n")
    assert read_settings(project.root) == Settings()
    project.write("pyproject.toml", "tool = 3\n")
    assert read_settings(project.root) == Settings()


@pytest.mark.parametrize(
    ("setting", "stops"),
    [("fail-fast = true", True), ("keep-going = true", False), ("", False)],
)
def test_both_names_of_a_flag(project: Project, setting: str, stops: bool) -> None:
    project.scenarios("broken", BROKEN)
    configure(project, f"[tool.everyorder]\n{setting}\n")
    output = project.run("run", "test_broken").output
    assert ("--fail-fast left" in output) == stops


BROKEN = """
from everyorder.harness.scenario import Scenario, step


def fail(registry):
    raise ValueError


first = Scenario(step("a", fail), create=list, observe=repr)
second = Scenario(step("b", fail), create=list, observe=repr)
"""


def test_the_nearest_file_with_a_table(project: Project) -> None:
    configure(project, "[tool.everyorder]\njobs = 2\n")
    project.write("inner/pyproject.toml", "[project]\nname = 'inner'\n")
    found = read_settings(project.root / "inner")
    assert found.file == project.root / "pyproject.toml"
    assert found.options == {"jobs": 2}
    project.write("inner/pyproject.toml", "[tool.everyorder]\n")
    assert read_settings(project.root / "inner").options == {}
    with pytest.raises(BadSetting, check=code("UnknownSetting")):
        Settings(None, (), {"a": 1}).check({})


def test_every_command_that_collects_can_be_configured() -> None:
    others = {"write", "worker", "runtime", "completion"}
    assert {*COMMANDS} == {*CONFIGURABLE} | others


def test_a_list_as_json(project: Project) -> None:
    project.write("tests/test_other.py", OTHER)
    project.scenarios("broken", "1 / 0\n")
    result = project.run("list", "--json")
    assert result.exit_code == exits.FAILED
    data = json.loads(result.output)
    assert [each["node"] for each in data["scenarios"]] == [
        "tests/scenarios/test_sound.py::sound",
        "tests/scenarios/test_sound.py::newest",
        "tests/test_other.py::other",
        "tests/test_other.py::test_it",
    ]
    assert data["scenarios"][0]["uses"] == ["count()"]
    [broken] = data["broken"]
    assert broken["where"] == "tests/scenarios/test_broken.py:1"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(project: Project, shell: str) -> None:
    text = project.text("completion", shell)
    assert "_EVERYORDER_COMPLETE" in text
    # What the script of bash asks for: the commands that begin so.
    environment = {
        "_EVERYORDER_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": "everyorder re",
        "COMP_CWORD": "1" if shell != "fish" else "re",
    }
    asked = subprocess.run(
        [sys.executable, "-c", "from everyorder.harness.cli import main; "
         "main(prog_name='everyorder')"],
        env={**os.environ, **environment}, capture_output=True, text=True, check=False,
        cwd=project.root.parent,
    )  # fmt: skip
    assert "review" in asked.stdout, asked.stderr
    assert "replay" in asked.stdout
