"""These tests launch kernels: in the simulator, or on a device where there is one.

True only here: what they need is decided when the process starts, so that elsewhere
they are left out, and `tests/cuda/test_simulator.py` runs them in a process of theirs.
"""

import os
import sys
from importlib.util import find_spec

import pytest

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"


def launchable() -> bool:
    """Whether kernels can be launched in this process."""
    if find_spec("numba_cuda") is None:
        return False
    if SIMULATED:
        return True
    from runtime.kernels.cuda import is_available

    return is_available()


collect_ignore_glob = [] if launchable() else ["test_*.py"]

if SIMULATED:
    # Simulated threads wait for each other; by default each wait lasts 5 ms.
    sys.setswitchinterval(1e-5)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """NumPy warns of what kernels do on purpose: wrap around, divide by zero."""
    for item in items:
        item.add_marker(pytest.mark.filterwarnings("ignore::RuntimeWarning"))
