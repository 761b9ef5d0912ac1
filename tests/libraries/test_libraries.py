"""Scenarios of real libraries have a verdict, and the right one.

They need the extra `libraries`, which is not part of the tools of development.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.libraries.table import LIBRARIES, LibraryScenario

ROOT = Path(__file__).parents[2]
# A right registry may be proven, or hold as far as what cannot be read.
RIGHT, FAULTY = ("proven", "holds"), ("order", "not fresh")
MOST_REMARKS = 5


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda each: each.name)
def test_a_registry_of_a_library_has_its_verdict(library: LibraryScenario) -> None:
    if not library.is_installed:
        pytest.skip(f"{library.package} is missing: install the extra `libraries`")
    command = [sys.executable, "-m", "tests.libraries", library.name]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    verdicts = RIGHT if library.right else FAULTY
    assert any(f" {verdict} " in told.stdout for verdict in verdicts), told.stdout
    remarks = int(told.stdout.split()[-2])
    assert remarks <= MOST_REMARKS


def test_each_scenario_here_is_in_the_table() -> None:
    others = {"answers", "table", "test_libraries", "__main__"}
    modules = {path.stem for path in Path(__file__).parent.glob("*.py")} - others
    assert modules == {library.module or library.name for library in LIBRARIES}


def test_there_are_forty_scenarios_of_real_libraries() -> None:
    assert len({library.name for library in LIBRARIES}) >= 40
