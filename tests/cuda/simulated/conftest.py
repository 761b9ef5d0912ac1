"""These tests launch kernels: in the simulator, or on a device where there is one.

True only here: what they need is decided when the process starts, so that elsewhere
they are left out, and `tests/cuda/test_simulator.py` runs them in a process of theirs.
"""

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"


def launchable() -> bool:
    """Whether kernels can be launched in this process."""
    if find_spec("numba_cuda") is None:
        return False
    if SIMULATED:
        return True
    from everyorder.runtime.kernels.cuda import is_available

    return is_available()


collect_ignore_glob = [] if launchable() else ["test_*.py"]

if SIMULATED:
    from numba.cuda.simulator.kernel import FakeCUDAKernel

    from tests.cuda.turns import launch

    KERNEL: Any = FakeCUDAKernel
    PLAIN = KERNEL.__call__
    KERNEL.__call__ = launch


@pytest.fixture
def plain_simulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Launch as numba-cuda's simulator does by itself, with all threads at once."""
    if SIMULATED:
        monkeypatch.setattr(KERNEL, "__call__", PLAIN)
    # Its threads wait for each other; by default each wait lasts 5 ms.
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """NumPy warns of what kernels do on purpose: wrap around, divide by zero."""
    for item in items:
        item.add_marker(pytest.mark.filterwarnings("ignore::RuntimeWarning"))
