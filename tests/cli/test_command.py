import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from harness.cli import command
from tests.cli.conftest import Project

COMMANDS = command.COMMANDS


def test_the_commands_in_the_order_of_need(project: Project) -> None:
    text = project.run("--help").output
    listed = text.partition("Commands:\n")[2].splitlines()
    assert tuple(line.split()[0] for line in listed) == tuple(COMMANDS)
    assert not [line for line in listed if line.endswith("...")]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_tells_the_exit_codes_and_fits_80_columns(
    project: Project, name: str
) -> None:
    result = project.run(name, "-h")
    assert result.exit_code == 0
    if name != "show":
        assert "Exit codes" in result.output
    assert max(map(len, result.output.splitlines())) <= 80


def test_an_unknown_command(project: Project) -> None:
    result = project.run("rum")
    assert result.exit_code == 2
    assert "No such command 'rum'" in result.output


def test_version(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: f"of {name}")
    assert project.run("--version").output == "everyorder of everyorder\n"

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    assert project.run("--version").output == (
        "everyorder (from its source tree, not installed)\n"
    )


def test_as_a_module() -> None:
    root = Path(__file__).parents[2]
    result = subprocess.run(
        [sys.executable, "-m", "harness", "run", "--help"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.startswith("Usage: everyorder run [OPTIONS] [PATHS]...\n")
    assert result.stderr == ""
