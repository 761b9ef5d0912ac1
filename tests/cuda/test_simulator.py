"""The simulated leg, in a process of its own: the simulator patches everything."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    find_spec("numba_cuda") is None, reason="needs the extra `cuda`: numba-cuda"
)

ROOT = Path(__file__).resolve().parents[2]
SIMULATED = Path(__file__).parent / "simulated"


def test_kernels_in_the_simulator() -> None:
    """Every kernel against the CPU's, whose bodies run uncompiled here, too."""
    variables = {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}
    command = (sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider")
    done = subprocess.run(
        [*command, str(SIMULATED)],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=290,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_shared_arrays_are_made_once() -> None:
    """The mended table tells one thread alone that an array is missing."""
    import threading

    from everyorder.runtime.kernels.cuda.device import SharedArrays

    table, told, found = SharedArrays(), [], []
    start = threading.Barrier(4)

    def ask() -> None:
        start.wait()
        array = table.get("line")
        if array is None:
            told.append(1)
            array = object()
            table["line"] = array
        found.append(array)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [1]
    assert len(set(map(id, found))) == 1
