"""Random numbers on the device: those of the CPU."""

from typing import Any

import numba
import numpy as np
import pytest

from everyorder.runtime.kernels.cpu.kernel_table import KERNELS as CPU
from everyorder.runtime.kernels.cuda import KERNELS as CUDA
from everyorder.runtime.kernels.cuda.device import SIMULATED
from everyorder.runtime.tensors.generator import Generator
from tests.cuda.simulated.agreement import same
from tests.cuda.simulated.arrays import Array, fresh, get, host

# Less than a block of words, whole blocks, and more than the threads.
COUNTS = (0, 1, 2, 3, 4, 37)

# The simulator's fused steps round twice, those of a compiled CPU kernel once.
CONFIG: Any = numba.config
FUSED = SIMULATED and not CONFIG.DISABLE_JIT

# No number between the ends: half of the draws round to the greater one.
TIGHT = (1.0, 1.0 + 2.0**-52)


def drawn(name: str, dtype: str, count: int, *numbers: Any) -> tuple[Array, Array]:
    """What both backends draw second; their counters end alike."""
    made = []
    states = []
    for table, make in ((CUDA, fresh), (CPU, host)):
        generator = Generator(seed=0xFEDCBA9876543210)
        # High enough that the counter needs both of its halves.
        generator.set_state((0xFEDCBA9876543210, 2**32 - 3))
        for _ in range(2):
            out = make((count,), dtype)
            table[name](out, generator, *numbers)
        made.append(get(out))
        states.append(generator.get_state())
    assert states[0] == states[1]
    return made[0], made[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("ends", [(0.0, 1.0), (-3.0, 7.1), (2.0, 2.0), TIGHT])
def test_uniform(dtype: str, ends: tuple[float, float]) -> None:
    for count in COUNTS:
        same(*drawn("uniform", dtype, count, *ends))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(0.0, 1.0), (5.0, 0.25)])
def test_normal(dtype: str, shape: tuple[float, float]) -> None:
    for count in COUNTS:
        found, expected = drawn("normal", dtype, count, *shape)
        if FUSED:
            np.testing.assert_array_max_ulp(found, expected, maxulp=1)
        else:
            same(found, expected)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float32"])
def test_narrow_integers(dtype: str) -> None:
    for count in COUNTS:
        high = 2 if dtype == "bool" else 120
        same(*drawn("randint", dtype, count, 0, high))


@pytest.mark.parametrize(
    "ends", [(-5, 1 << 17), (-(2**63), 2**63 - 1), (7, 8), (-9, -2)]
)
def test_wide_and_negative_integers(ends: tuple[int, int]) -> None:
    for count in COUNTS:
        same(*drawn("randint", "int64", count, *ends))


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_bernoulli(p: float) -> None:
    for count in COUNTS:
        same(*drawn("bernoulli", "bool", count, p))


def test_known_words() -> None:
    """Philox 4x32-10 of zeros, as published with Random123's known answers."""
    out = fresh((4,), "int64")
    CUDA["randint"](out, Generator(seed=0), 0, 1 << 16)
    words = (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    np.testing.assert_array_equal(get(out), [word >> 16 for word in words])
