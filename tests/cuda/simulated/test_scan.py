"""Running sums on the device against the CPU's."""

import numpy as np
import pytest

from tests.cuda.simulated.agreement import agree, empty, numbers

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
