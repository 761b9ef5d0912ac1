"""What is collected beside tests that explore is small."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("tests/processes", "tests/cli", "tests/pytest_plugin")
LARGE = (
    "everyorder.invariants",
    "everyorder.runtime",
    "numba",
    "numpy",
    "torch",
    "zmq",
)

SCRIPT = """
import sys
from importlib import import_module

for name in sys.argv[2:]:
    import_module(name)
    print(*(f"{name}: {each}" for each in sys.argv[1].split() if each in sys.modules))
"""


def test_no_test_module_loads_what_is_large() -> None:
    """Each exploration looks through it: with the runtime it took two and a half times
    as long.  A test that needs it is elsewhere, or imports it and comes last.
    """
    files = [file for folder in FOLDERS for file in (ROOT / folder).glob("*.py")]
    names = [
        ".".join(file.relative_to(ROOT).with_suffix("").parts) for file in sorted(files)
    ]
    assert "tests.cli.test_run" in names
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT, " ".join(LARGE), *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == []
