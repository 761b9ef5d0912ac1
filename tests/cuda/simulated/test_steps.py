"""Numbers at even steps on the device against those of the CPU."""

import numpy as np
import pytest

from runtime.kernels.cpu.table import KERNELS as CPU
from runtime.kernels.cuda import KERNELS as CUDA
from tests.cuda.simulated.arrays import STORED, fresh, get, host


@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize(("start", "step"), [(0, 1), (5, -2), (0.5, 0.25)])
def test_steps(name: str, start: float, step: float) -> None:
    count = 2 if name == "bool" else 3
    if name == "uint8" and step < 0:
        count = 2
    expected, found = host((count,), name), fresh((count,), name)
    CPU["arange"](expected, start, step)
    CUDA["arange"](found, start, step)
    np.testing.assert_array_equal(get(found), get(expected))


def test_no_steps() -> None:
    out = fresh((0,), "int64")
    CUDA["arange"](out, 0, 1)
    assert get(out).shape == (0,)
