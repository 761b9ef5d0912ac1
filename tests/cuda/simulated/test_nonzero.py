"""nonzero on the device against the CPU's."""

import numpy as np
import pytest

from runtime.kernels.cpu.table import KERNELS as CPU
from runtime.kernels.cuda import KERNELS as CUDA
from tests.cuda.simulated.agreement import agree, empty, same
from tests.cuda.simulated.arrays import STORED, Array, on_host, put, samples, spaced


def found_alike(given: Array) -> None:
    """Both backends count the same, and find the same."""
    count = CPU["nonzero_count"](on_host(given))
    assert CUDA["nonzero_count"](put(given)) == count
    assert CUDA["nonzero_count"](spaced(given)) == count
    out = empty((count, given.ndim), np.int64)
    agree("nonzero", [out], given, compare=same)


@pytest.mark.parametrize("dtype", STORED)
def test_of_every_dtype(dtype: str) -> None:
    given = samples(dtype)
    given[4:9] = 0
    found_alike(given.reshape(2, 3, 4))


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex128"])
def test_zeros_of_both_signs_and_what_is_not_a_number(dtype: str) -> None:
    found_alike(np.array([0.0, -0.0, np.nan, 1e-7, -1], dtype))


def test_numbers_and_nothing() -> None:
    found_alike(np.array(3))
    found_alike(np.array(0))
    found_alike(np.zeros((0, 3)))
    found_alike(np.zeros((2, 3)))


def test_more_than_a_run() -> None:
    found_alike(np.arange(600).reshape(20, 30) % 3)
