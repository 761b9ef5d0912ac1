"""What futures may know of, seen from a process that loads nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys
from everyorder import runtime
futures = runtime.futures
aw = futures.awaitable(lambda: 1)
future = futures.Future()
future.then(lambda f: f.wait()).add_done_callback(print)
future.set_result(aw.wait())
print(*(name for name in {unwanted} if name in sys.modules))
"""
UNWANTED = ("asyncio", "concurrent.futures", "numba", "numpy", "socket")


@pytest.mark.spec("futures 0.13", "values only")
@pytest.mark.spec("rpc 0.13", "the future of everybody, with its name and its methods")
def test_no_messages_and_no_sockets() -> None:
    """0.13: neither sockets nor arrays nor other libraries' futures are loaded."""
    # Nobody looks on: coverage loads sockets.
    alone = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE_")}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(unwanted=UNWANTED)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=alone,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("<Future: a value of type int>\n\n", "")
