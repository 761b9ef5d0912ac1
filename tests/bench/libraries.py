"""Rows about registries of large libraries: seconds to the first operation and verdict.

They need the extra `libraries`, and torch; what is missing is said.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions, version
from pathlib import Path

from tests.bench.row import FIXED_WORK, Row, slowness
from tests.libraries.__main__ import Measured
from tests.libraries.table import LIBRARIES, LibraryScenario

ROOT = Path(__file__).parents[2]

LARGE = (
    "sqlalchemy_events",
    "django_signals",
    "django_admin",
    "discord_commands",
    "npe2_plugins",
    "structlog_context",
    "omegaconf_resolvers",
    "pyparsing_keywords",
    "torch_library",
)

# Seconds of processor time on the machine of the targets, and lines of remarks.
FIRST, VERDICT, REMARKS = 2, 20, 5

# Seconds after which an exploration is given up.
PATIENCE = 600


def libraries() -> Iterator[Row]:
    """Three steps and two uses of each library, to the first operation and verdict."""
    for library in LIBRARIES:
        if library.name in LARGE:
            yield _row(library)


def _row(library: LibraryScenario) -> Row:
    what = f"{library.package}, three steps and two uses, CPU to the verdict"
    target = (
        f"first operation ≤ {FIRST} s, verdict ≤ {VERDICT} s, {REMARKS} remarks, where "
        f"the fixed work takes {FIXED_WORK:g} s"
    )
    if not library.is_installed:
        note = "the extra `libraries` is not installed"
        return Row(what, "not measured", target, None, note)
    what = what.replace(",", f" {_version(library.package)},", 1)
    slow = slowness()
    command = [sys.executable, "-m", "tests.libraries", "--json", library.name]
    try:
        told = subprocess.run(
            command, cwd=ROOT, capture_output=True, check=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        return Row(what, f"no verdict after {PATIENCE} s", target, False)
    result = Measured(*json.loads(told.stdout))
    slow = (slow + slowness()) / 2
    return Row(
        what,
        f"{result.verdict} in {result.seconds:.1f} s, first operation after "
        f"{result.first:.1f} s, {result.remarks} remarks; the fixed work "
        f"{FIXED_WORK * slow:.2f} s",
        target,
        result.first <= FIRST * slow
        and result.seconds <= VERDICT * slow
        and result.remarks <= REMARKS,
    )


def _version(package: str) -> str:
    names = packages_distributions().get(package.partition(".")[0], [package])
    return version(names[0])


LIBRARY_ROWS = (libraries,)
