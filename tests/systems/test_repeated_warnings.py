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


SHOWN = """
import contextlib, io, warnings
from everyorder import Scenario, explore, steps, use

warnings.simplefilter("always")
texts = []

def captured(registry):
    with contextlib.redirect_stderr(io.StringIO()) as stream:
        warnings.warn("old")
    return bool(stream.getvalue()) and " ".join(sorted(registry.items))

def hooked(registry):
    texts.clear()
    warnings.warn("old")
    return len(texts) and " ".join(sorted(registry.items))

class Registry:
    memo = {}

    def __init__(self):
        self.items = {}

    def add(self, name):
        self.memo.setdefault("loaded", True)
        self.items[name] = name
        return lambda: self.items.pop(name)

def explored(ask, **more):
    return explore(Scenario(
        *steps("add", "ab", Registry.add),
        uses=[use("ask", ask)],
        create=Registry,
        observe=lambda registry: " ".join(sorted(registry.items)),
        **more,
    ))
"""


@needs_fork
@pytest.mark.parametrize(
    "lines",
    [
        'print(explored(captured, isolation="fork").verdict)',
        "print(explored(captured).verdict)",
        "warnings.showwarning = lambda *shown: texts.append(shown)\n"
        "print(explored(hooked).verdict)",
    ],
    ids=["captured in children", "captured", "shown by a hook"],
)
def test_a_registry_that_sees_its_warnings_is_right(tmp_path: Path, lines: str) -> None:
    """Children swallowed them: it was not fresh, or answered in two ways."""
    (tmp_path / "seen.py").write_text(SHOWN + lines, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "seen.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stdout, ran.returncode) == ("proven\n", 0), ran.stderr
