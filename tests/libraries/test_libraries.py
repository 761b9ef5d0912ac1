"""Scenarios of real libraries have a verdict, the right one, and in time.

Processor time is compared with that of a fixed work beside it, and with three times
what it was: only what became many times slower fails.

They need the extra `libraries`, which is not part of the tools of development: `make
libraries` installs it in an environment of its own and runs them.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.bench.row import FIXED_WORK, slowness
from tests.libraries.__main__ import Measured
from tests.libraries.table import CEILINGS, LIBRARIES, Ceiling, LibraryScenario

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
    slow = slowness()
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    slow = max(slow, slowness())
    result = Measured(*json.loads(told.stdout.splitlines()[-1]))
    assert result.remarks <= MOST_REMARKS
    if library.fault:
        shown = result.verdict, tuple(result.history)
        assert shown == (library.fault, library.history)
    else:
        assert result.verdict in RIGHT
    assert slower(result, library.ceiling, slow) == ""


def slower(result: Measured, ceiling: Ceiling, slow: float) -> str:
    """Return what took longer than it may on a machine that is so slow, or ""."""
    first, verdict = result.first / slow, result.seconds / slow
    if first <= ceiling.first and verdict <= ceiling.verdict:
        return ""
    return (
        f"{result.name}: the first operation after {first:.1f} s, expected at most "
        f"{ceiling.first:g} s; the verdict after {verdict:.1f} s, expected at most "
        f"{ceiling.verdict:g} s, where the fixed work takes {FIXED_WORK:g} s: look "
        "for what takes longer, or raise the ceiling in the table with its reason"
    )


def test_what_takes_longer_than_its_ceiling_is_said() -> None:
    result = Measured("books", 2.0, 30.0, "proven", 100, 0)
    assert slower(result, Ceiling(2, 30), 1) == ""
    assert slower(result, Ceiling(1, 15), 2) == ""
    assert "the first operation after 2.0 s" in slower(result, Ceiling(1, 30), 1)
    assert "the verdict after 15.0 s" in slower(result, Ceiling(1, 14), 2)


def test_each_class_of_size_has_a_scenario() -> None:
    assert {library.ceiling for library in LIBRARIES} == set(CEILINGS)


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
