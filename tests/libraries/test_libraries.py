"""Scenarios of real libraries have a verdict, and the right one.

They need the extra `libraries`, which is not part of the tools of development: `make
libraries` installs it in an environment of its own and runs them.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.libraries.__main__ import Measured
from tests.libraries.table import LIBRARIES, LibraryScenario

ROOT = Path(__file__).parents[2]
# A right registry may be proven, or hold as far as what cannot be read.
RIGHT = ("proven", "holds")
MOST_REMARKS = 5


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda each: each.name)
def test_a_registry_of_a_library_has_its_verdict(library: LibraryScenario) -> None:
    if not library.is_installed:
        pytest.skip(f"{library.package} is missing: install the extra `libraries`")
    command = [sys.executable, "-m", "tests.libraries", "--json", library.name]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    result = Measured(*json.loads(told.stdout.splitlines()[-1]))
    assert result.remarks <= MOST_REMARKS
    if library.fault:
        shown = result.verdict, tuple(result.history)
        assert shown == (library.fault, library.history)
    else:
        assert result.verdict in RIGHT


def test_each_scenario_here_is_in_the_table() -> None:
    others = {"answers", "table", "test_libraries", "__main__"}
    modules = {path.stem for path in Path(__file__).parent.glob("*.py")} - others
    assert modules == {library.module or library.name for library in LIBRARIES}


def test_there_are_forty_scenarios_of_real_libraries() -> None:
    assert len({library.name for library in LIBRARIES}) >= 40


def test_each_library_has_one_version() -> None:
    """Code of a library is state: another version may have another verdict."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extra = tomllib.loads(text)["project"]["optional-dependencies"]["libraries"]
    assert [each for each in extra if "==" not in each or "*" in each] == []
    assert len(extra) == len({library.package for library in LIBRARIES})
