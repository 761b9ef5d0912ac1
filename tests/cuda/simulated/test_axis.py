"""Running sums and nonzero on the device against the CPU's."""

import numpy as np
import pytest

from everyorder.runtime.kernels.cpu.kernel_table import KERNELS as CPU
from everyorder.runtime.kernels.cuda import KERNELS as CUDA
from tests.cuda.simulated.agreement import agree, empty, numbers, same
from tests.cuda.simulated.arrays import STORED, Array, on_host, put, samples, spaced

# Rows, columns, more than one run of either, runs of runs, a number, nothing.
SHAPES = [
    ((3, 9), 1),
    ((9, 3), 0),
    ((2, 5, 3), 1),
    ((2, 300), 1),
    ((40, 3), 0),
    ((2, 70, 2), 1),
    ((1,), 0),
    ((), 0),
    ((2, 0), 1),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64"])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_of_the_same_dtype(dtype: str, shape: tuple[int, ...], dim: int) -> None:
    agree("cumsum", [empty(shape, dtype)], numbers(shape, dtype), dim)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int32"])
def test_integers_are_widened(dtype: str) -> None:
    for shape, dim in (((3, 40), 1), ((40, 3), 0)):
        agree("cumsum", [empty(shape, np.int64)], numbers(shape, dtype), dim)


def test_another_output_is_converted_to_first() -> None:
    agree("cumsum", [empty((5,), np.float64)], numbers((5,), np.int32), 0)


def test_runs_of_runs() -> None:
    count = 17 * 16 * 16 + 5
    given = numbers((2, count), np.int64)
    agree("cumsum", [empty((count, 2), np.int64)], given.T.copy(), 0)


def test_not_a_number_goes_on() -> None:
    given = np.array([1, np.nan, 2, np.inf, -np.inf, 1], np.float32)
    agree("cumsum", [empty((6,), np.float32)], given, 0)


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
