"""Scenarios of our own are proven by name on a machine that ran nothing before.

The runtime tracks its locks in a weak set, which no object of a scenario leads to:
three scenarios were "holds" where nothing had been compiled or cached, as objects of
another package changed.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forking import needs_fork
from tests.stability.conditions import ROOT

SCENARIOS = (
    "tests/scenarios/test_teaching.py::one_key",
    "tests/scenarios/test_teaching.py::tables_of_chosen_keys",
    "tests/scenarios/test_rpc_larger.py::two_values",
)


def fresh_machine(folder: Path) -> dict[str, str]:
    """Return an environment without any cache: of modules, kernels and libraries."""
    caches = {
        name: str(folder / name)
        for name in (
            "EVERYORDER_CACHE_DIR",
            "HOME",
            "NUMBA_CACHE_DIR",
            "PYTHONPYCACHEPREFIX",
            "TMPDIR",
            "XDG_CACHE_HOME",
        )
    }
    for path in caches.values():
        Path(path).mkdir(mode=0o700)
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **caches}


@needs_fork
@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(each, marks=pytest.mark.nightly if at else pytest.mark.slow)
        for at, each in enumerate(SCENARIOS)
    ],
)
def test_a_scenario_is_proven_by_name_on_a_fresh_machine(
    scenario: str, tmp_path: Path
) -> None:
    environment, report = fresh_machine(tmp_path), tmp_path / "report"
    command = ["-m", "everyorder", "run", scenario, "--report", str(report)]
    ran = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    assert [*Path(environment["PYTHONPYCACHEPREFIX"]).iterdir()]
    told = json.loads((report / "report.json").read_text(encoding="utf-8"))
    (explored,) = told["scenarios"]
    assert explored["scenario"].endswith(f"/{scenario.partition('::')[2]}")
    assert (explored["verdict"], explored["proven"]) == ("proven", True), ran.stdout
    assert (explored["open"], explored["skipped"]) == ([], [])
