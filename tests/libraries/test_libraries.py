"""Scenarios of real libraries have a verdict, and none is called wrong.

They need the extra `libraries`, which is not part of the tools of development.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.libraries.table import LIBRARIES, LibraryScenario

ROOT = Path(__file__).parents[2]
# A right registry may be proven, or hold as far as what cannot be read.
RIGHT = ("proven", "holds")


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda each: each.name)
def test_a_right_registry_of_a_library_is_not_refuted(library: LibraryScenario) -> None:
    if not library.is_installed:
        pytest.skip(f"{library.package} is missing: install the extra `libraries`")
    command = [sys.executable, "-m", "tests.libraries", library.name]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert any(f" {verdict} " in told.stdout for verdict in RIGHT), told.stdout


def test_each_scenario_here_is_in_the_table() -> None:
    others = {"table", "test_libraries", "__main__"}
    modules = {path.stem for path in Path(__file__).parent.glob("*.py")} - others
    assert modules == {library.name for library in LIBRARIES}
