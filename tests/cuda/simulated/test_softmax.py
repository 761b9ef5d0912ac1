"""Softmax on the device against the CPU's."""

import numpy as np
import pytest

from tests.cuda.simulated.agreement import agree, empty, numbers

# By rows, by columns, in the middle, one long row, a number, and nothing.
SHAPES = [((3, 9), 1), ((9, 3), 0), ((2, 5, 3), 1), ((37,), 0), ((), 0), ((0, 3), 1)]


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_forward(name: str, dtype: str, shape: tuple[int, ...], dim: int) -> None:
    agree(name, [empty(shape, dtype)], numbers(shape, dtype) * 5, dim)


@pytest.mark.parametrize("name", ["softmax_backward", "log_softmax_backward"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_backward(name: str, dtype: str, shape: tuple[int, ...], dim: int) -> None:
    grad, result = numbers(shape, dtype), numbers(shape, dtype, 2)
    agree(name, [empty(shape, dtype)], grad, result, dim)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dim", [0, 1])
def test_what_is_not_finite(name: str, dim: int) -> None:
    lines = np.array(
        [
            [1, np.nan, 2, 3],
            [np.nan, 1, 2, 3],
            [-np.inf, 0, -np.inf, 1],
            [-np.inf] * 4,
            [np.inf, 0, 1, 2],
            [1e4, -1e4, 0, 1e4],
        ],
        np.float32,
    )
    given = lines if dim else lines.T.copy()
    agree(name, [empty(given.shape, np.float32)], given, dim)
