"""index and index_put on the device against the CPU's."""

from typing import Any

import numpy as np
import pytest

from runtime.errors.tensor import IndexOutOfRange
from runtime.kernels.cuda import KERNELS as CUDA
from tests.cuda.simulated.agreement import agree, empty, same
from tests.cuda.simulated.arrays import STORED, form, get, put, samples

# What stands in the brackets of a tensor of shape (2, 3, 4).
BRACKETS: list[Any] = [
    [np.array([1, 0, -1])],
    [None, np.array([[2, 0], [-3, 1]], np.int32)],
    [None, np.array([2, 0], np.uint8), np.array([[1], [-1]])],
    [np.array([1, 0]), None, np.array([3, -4])],
    [np.array(1), np.array([0, 2]), np.array([[3], [0]])],
    [np.zeros((0,), np.int64)],
    [None, None, np.array(2)],
]


def shape_of(brackets: Any) -> tuple[int, ...]:
    """The shape of the result, by NumPy."""
    places = tuple(slice(None) if one is None else one for one in brackets)
    return np.zeros((2, 3, 4))[places].shape


@pytest.mark.parametrize("brackets", BRACKETS)
def test_index(brackets: Any) -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    agree("index", [empty(shape_of(brackets), float)], x, brackets, compare=same)


@pytest.mark.parametrize("dtype", STORED)
def test_of_every_dtype(dtype: str) -> None:
    x, brackets = samples(dtype).reshape(2, 3, 4), BRACKETS[1]
    shape = shape_of(brackets)
    agree("index", [empty(shape, form(dtype))], x, brackets, compare=same)
    values = np.resize(samples(dtype)[::-1], shape)
    for adds in (False, True):
        agree("index_put", [x], brackets, values, adds, compare=same)


@pytest.mark.parametrize("brackets", BRACKETS)
@pytest.mark.parametrize("adds", [False, True])
def test_index_put(brackets: Any, adds: bool) -> None:
    start, shape = np.zeros((2, 3, 4)), shape_of(brackets)
    values = np.arange(float(np.prod(shape))).reshape(shape)
    agree("index_put", [start], brackets, values, adds, compare=same)
    agree("index_put", [start], brackets, np.array(5.0), adds, compare=same)


@pytest.mark.parametrize("bad", [3, -4])
def test_an_index_outside_is_refused_first(bad: int) -> None:
    brackets = [None, put(np.array([0, bad]))]
    expected = {"index": bad, "size": 3, "dim": 1, "wraps": True}
    out = put(np.full((2, 3), 7.0))
    with pytest.raises(IndexOutOfRange) as caught:
        CUDA["index_put"](out, brackets, put(np.ones((2, 2))), False)
    assert caught.value.fields() == {"operator": "core::index_put", **expected}
    with pytest.raises(IndexOutOfRange) as caught:
        CUDA["index"](out, put(np.ones((2, 3))), brackets)
    assert caught.value.fields() == {"operator": "core::index", **expected}
    np.testing.assert_array_equal(get(out), np.full((2, 3), 7.0))
