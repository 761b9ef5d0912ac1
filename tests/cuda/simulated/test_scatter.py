"""scatter, scatter_add and index_add on the device against the CPU's."""

from typing import Any

import numpy as np
import pytest

from runtime.errors.tensor import IndexOutOfRange
from runtime.kernels.cuda import KERNELS as CUDA
from tests.cuda.simulated.agreement import agree, same
from tests.cuda.simulated.arrays import STORED, get, put, samples
from tests.cuda.simulated.test_gather import indices


@pytest.mark.parametrize("dtype", STORED)
@pytest.mark.parametrize("name", ["scatter", "scatter_add"])
def test_of_every_dtype(name: str, dtype: str) -> None:
    start = samples(dtype).reshape(2, 3, 4)
    src = samples(dtype)[::-1].reshape(4, 3, 2).copy()
    for dim in range(3):
        shape = tuple(3 if at == dim else 2 for at in range(3))
        index = indices(shape, start.shape[dim], "int16" if dim == 1 else "int64")
        given = src if dim == 0 else src.reshape(2, 3, 4)
        given = given[:3, :3, :2] if dim == 0 else given[:2, :3, :3]
        agree(name, [start], dim, index, given.copy(), compare=same)


@pytest.mark.parametrize("dtype", ["int32", "float16", "bool", "complex128"])
def test_one_number_everywhere(dtype: str) -> None:
    start = samples(dtype).reshape(4, 6)
    agree("scatter", [start], 1, indices((4, 3), 6), 1, compare=same)


def test_the_last_of_several_stays() -> None:
    start, src = np.zeros(3), np.arange(40.0)
    index = np.arange(40) % 2
    found = agree("scatter", [start], 0, index, src, compare=same)
    np.testing.assert_array_equal(found[0], [38.0, 39.0, 0.0])


def test_many_dimensions_and_the_last_of_several() -> None:
    start, src = np.zeros((2,) * 6), np.arange(2.0**6).reshape((2,) * 6)
    index = indices((2,) * 6, 2)
    for name in ("scatter", "scatter_add"):
        agree(name, [start], 3, index.transpose(5, 1, 2, 3, 4, 0), src, compare=same)


@pytest.mark.parametrize("dtype", STORED)
def test_index_add(dtype: str) -> None:
    start = samples(dtype).reshape(2, 3, 4)
    for dim in range(3):
        shape = tuple(5 if at == dim else n for at, n in enumerate(start.shape))
        src = np.resize(samples(dtype)[::-1], shape)
        index = indices((5,), start.shape[dim])
        agree("index_add", [start], dim, index, src, 1, compare=same)
        agree("index_add", [start], dim, index, src, 2, compare=same)


def test_sums_follow_the_order_of_the_index() -> None:
    src = np.array([1e8, 1, 1, -1e8, 1, 3], np.float32)
    agree(
        "scatter_add", [np.zeros(1, np.float32)], 0, np.zeros(6, int), src, compare=same
    )
    halves = np.full(40, 0.5, np.float16)
    start = np.full(1, 2048, np.float16)
    found = agree("scatter_add", [start], 0, np.zeros(40, int), halves, compare=same)
    assert found[0][0] == 2068


def test_numbers_and_nothing() -> None:
    number, index = np.array(3.5), np.array(0)
    for name in ("scatter", "scatter_add"):
        agree(name, [number], 0, index, np.array(2.0), compare=same)
        agree(name, [np.ones(3)], 0, np.zeros(0, int), np.ones(0), compare=same)
    agree("index_add", [number], 0, index, np.array(2.0), 3, compare=same)
    agree("index_add", [np.ones(3)], 0, np.zeros(0, int), np.ones(0), 1, compare=same)


@pytest.mark.parametrize("name", ["scatter", "scatter_add", "index_add"])
def test_an_index_outside_is_refused_first(name: str) -> None:
    extra: tuple[Any, ...] = (1,) if name == "index_add" else ()
    out = put(np.full(4, 7.0))
    with pytest.raises(IndexOutOfRange) as caught:
        CUDA[name](out, 0, put(np.array([0, 9, -3])), put(np.ones(3)), *extra)
    assert caught.value.fields() == {
        "operator": f"core::{name}",
        "index": 9,
        "size": 4,
        "dim": 0,
        "wraps": False,
    }
    np.testing.assert_array_equal(get(out), np.full(4, 7.0))
