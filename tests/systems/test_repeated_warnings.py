"""A warning of a registry is printed once, in however many processes it was issued."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.forking import needs_fork

# A registry that warns at each step, in this process, in forked ones, and with a memo
# that is filled once per process, which makes the warm-up fork processes.
SCENARIOS = """
import warnings
from everyorder import Scenario, steps

MEMO = {}

def add(registry, name):
    warnings.warn("add is slow")
    warnings.warn("add is old", DeprecationWarning)
    registry.append(name)
    return lambda: registry.remove(name)

def add_and_load(registry, name):
    MEMO.setdefault("loaded", True)
    return add(registry, name)

def shown(registry):
    return " ".join(sorted(registry))

def scenario(do, **more):
    return Scenario(*steps("add", "ab", do), create=list, observe=shown, **more)

"""
ROWS = {
    "here": "scenario(add)",
    "forked": 'scenario(add, isolation="fork")',
    "cold": "scenario(add_and_load)",
}
EXPLORE = """
from everyorder import explore
from test_warning import subject

print(explore(subject).verdict)
"""
SLOW = ":8: UserWarning: add is slow\n"
OLD = ":9: DeprecationWarning: add is old\n"


def warnings_of(folder: Path, row: str, *arguments: str) -> list[str]:
    """Return the first lines of the warnings that a Python process prints."""
    text = SCENARIOS + f"subject = {ROWS[row]}\n"
    (folder / "test_warning.py").write_text(text, encoding="utf-8")
    (folder / "explore.py").write_text(EXPLORE, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "proven" in ran.stdout
    source = str(folder / "test_warning.py")
    lines = ran.stderr.splitlines(keepends=True)
    return [line.removeprefix(source) for line in lines if "Warning:" in line]


@needs_fork
@pytest.mark.parametrize("program", [("explore.py",), ("-m", "everyorder", "run", ".")])
@pytest.mark.parametrize("row", ROWS)
def test_a_warning_is_printed_once(
    tmp_path: Path, row: str, program: tuple[str, ...]
) -> None:
    """It was printed once per child: 98 times."""
    assert warnings_of(tmp_path, row, *program) == [SLOW]


@needs_fork
@pytest.mark.parametrize("row", ROWS)
def test_a_warning_that_is_asked_for_is_printed_once(tmp_path: Path, row: str) -> None:
    command = ("-W", "default", "explore.py")
    assert warnings_of(tmp_path, row, *command) == [SLOW, OLD]
