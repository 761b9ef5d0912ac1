"""Max pooling on the device against the CPU's."""

from typing import Any

import numpy as np
import pytest

from tests.cuda.simulated.agreement import agree, empty, numbers, same

# Shape, results, window, stride, padding, dilation.
CASES: list[Any] = [
    ((2, 3, 4, 4), (2, 2), (2, 2), (2, 2), (0, 0), (1, 1)),
    ((1, 2, 5, 6), (5, 4), (3, 3), (1, 2), (1, 1), (1, 1)),
    ((2, 5, 7), (3, 4), (2, 2), (2, 2), (1, 1), (2, 2)),
    ((1, 1, 5, 5), (3, 3), (2, 2), (2, 2), (0, 0), (1, 1)),
    ((0, 2, 4, 4), (2, 2), (2, 2), (2, 2), (0, 0), (1, 1)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("case", CASES)
def test_forward(dtype: str, case: Any) -> None:
    shape, results, *geometry = case
    whole = (*shape[:-2], *results)
    outs = [empty(whole, dtype), empty(whole, np.int64)]
    agree("max_pool2d", outs, numbers(shape, dtype), *geometry, compare=same)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_backward(dtype: str, case: Any) -> None:
    shape, results, *geometry = case
    whole = (*shape[:-2], *results)
    outs = [empty(whole, dtype), empty(whole, np.int64)]
    _, indices = agree("max_pool2d", outs, numbers(shape, dtype), *geometry)
    grad = numbers(whole, dtype, 2)
    out = empty(shape, dtype)
    agree("max_pool2d_backward", [out], grad, indices, compare=same)


def test_the_last_not_a_number_wins_and_nothing_keeps_the_first() -> None:
    x = np.full((1, 2, 4), -np.inf, np.float32)
    x[0, 0, 1] = x[0, 1, 0] = np.nan
    outs = [empty((1, 1, 2), np.float32), empty((1, 1, 2), np.int64)]
    geometry = ((2, 2), (2, 2), (0, 0), (1, 1))
    found = agree("max_pool2d", outs, x, *geometry)
    np.testing.assert_array_equal(found[1], [[[4, 2]]])
