"""Faults of public reports are found, with the shortest history; mended, they are not.

`tests/libraries/reported.py` has more of them, of libraries that need not be installed.
"""

import json
import re
import subprocess
import sys
from importlib import import_module
from inspect import isfunction
from pathlib import Path

import pytest

from everyorder import Scenario
from tests.libraries.table import LIBRARIES
from tests.reported.__main__ import explored
from tests.reported.table import REPORTED, ReportedScenario

ROOT = Path(__file__).parents[2]
GLOBAL = [each for each in REPORTED if each.module == "standard_library"]
LOCAL = [each for each in REPORTED if each not in GLOBAL]
FAULTY = [each for each in LOCAL if each.report]
MENDED = [each for each in LOCAL if not each.report]


def name_of(reported: ReportedScenario) -> str:
    return reported.name


@pytest.mark.parametrize("reported", FAULTY, ids=name_of)
def test_a_fault_of_a_report_is_found(reported: ReportedScenario) -> None:
    assert explored(reported) == (reported.verdict, reported.history)


@pytest.mark.slow
@pytest.mark.parametrize("reported", MENDED, ids=name_of)
def test_without_the_fault_a_registry_is_proven(reported: ReportedScenario) -> None:
    assert explored(reported) == ("proven", ())


@pytest.mark.slow
@pytest.mark.parametrize("reported", GLOBAL, ids=name_of)
def test_a_fault_of_the_standard_library_is_found(reported: ReportedScenario) -> None:
    """Tables of the process are changed: the process is one of its own."""
    command = [sys.executable, "-m", "tests.reported", "--json", reported.name]
    output = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    )
    name, verdict, history = json.loads(output.stdout.splitlines()[-1])
    assert (name, verdict, tuple(history)) == (
        reported.name,
        reported.verdict,
        reported.history,
    )


def test_each_scenario_names_its_report() -> None:
    for reported in REPORTED:
        module = import_module(f"tests.reported.{reported.module}")
        text = str(getattr(module, reported.name).__doc__)
        named = re.findall(r"[\w.-]+/[\w.-]+#\d+", text)
        assert named == [reported.report] * bool(reported.report), reported.name


def test_each_scenario_is_in_the_table() -> None:
    defined = {
        (name, module)
        for module in {each.module for each in REPORTED}
        for name, made in vars(import_module(f"tests.reported.{module}")).items()
        if isfunction(made) and made.__annotations__ == {"return": Scenario}
    }
    assert defined == {(each.name, each.module) for each in REPORTED}


def test_each_mended_scenario_is_the_twin_of_a_faulty_one() -> None:
    faulty = {each.name for each in REPORTED if each.report}
    mended = {each.name for each in REPORTED if not each.report}
    assert {name.removesuffix("_mended") for name in mended} < faulty
    assert len(mended) >= 10


def test_there_are_two_dozen_reports() -> None:
    libraries = [each for each in LIBRARIES if each.module == "reported"]
    reports = {each.report for each in REPORTED if each.report}
    assert len(reports) + len(libraries) >= 24
    assert {each.verdict for each in REPORTED if each.report} == {"order", "hidden"}
