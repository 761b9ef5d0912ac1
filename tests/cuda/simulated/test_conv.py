"""Convolution and max pooling on the device against the CPU's."""

from typing import Any

import numpy as np
import pytest

from everyorder.runtime.errors.tensor import IndexOutOfRange
from everyorder.runtime.kernels.cuda import KERNELS as CUDA
from tests.cuda.simulated.agreement import agree, empty, numbers, same
from tests.cuda.simulated.arrays import get, put, spaced

Pair = tuple[int, int]

# Images and channels, size, filters, window, stride, padding, dilation, groups.
CASES: list[Any] = [
    ((1, 1), (4, 4), 1, (3, 3), (1, 1), (0, 0), (1, 1), 1),
    ((2, 3), (5, 4), 4, (3, 2), (1, 1), (1, 1), (1, 1), 1),
    ((2, 4), (6, 5), 2, (3, 3), (2, 1), (1, 2), (1, 1), 2),
    ((1, 2), (7, 7), 4, (2, 3), (2, 3), (2, 0), (2, 2), 2),
    ((2, 3), (5, 5), 3, (3, 3), (3, 2), (1, 1), (1, 2), 3),
    ((2, 2), (3, 3), 3, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((0, 2), (3, 3), 2, (1, 1), (1, 1), (0, 0), (1, 1), 1),
]


def result_size(size: Pair, window: Pair, case: Any) -> Pair:
    """The rows and columns of the results."""
    stride, padding, dilation = case
    rows, columns = (
        (size[at] + 2 * padding[at] - dilation[at] * (window[at] - 1) - 1) // stride[at]
        + 1
        for at in (0, 1)
    )
    return rows, columns


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_forward(case: Any, biased: bool) -> None:
    lead, size, filters, window, *steps, groups = case
    for dtype, layouts in (("float32", (put, spaced)), ("float64", (put,))):
        x = numbers((*lead, *size), dtype)
        w = numbers((filters, lead[1] // groups, *window), dtype, 2)
        bias = numbers((filters,), dtype, 3) if biased else None
        shape = (lead[0], filters, *result_size(size, window, steps))
        out = empty(shape, dtype)
        agree("conv2d", [out], x, w, bias, *steps, groups, layouts=layouts)


@pytest.mark.parametrize("asked", [(1, 1, 1), (1, 0, 0), (0, 1, 0)])
@pytest.mark.parametrize("case", CASES)
def test_backward(case: Any, asked: tuple[int, ...]) -> None:
    lead, size, filters, window, *steps, groups = case
    dtype = "float32"
    x = numbers((*lead, *size), dtype)
    w = numbers((filters, lead[1] // groups, *window), dtype, 2)
    shape = (lead[0], filters, *result_size(size, window, steps))
    grad = numbers(shape, dtype, 4)
    shapes = (x.shape, w.shape, (filters,))
    outs = [
        empty(of, dtype) if wanted else None
        for of, wanted in zip(shapes, asked, strict=True)
    ]
    agree("conv2d_backward", outs, grad, x, w, *steps, groups)


# Shape, results, window, stride, padding, dilation.
POOLS_CASES: list[Any] = [
    ((2, 3, 4, 4), (2, 2), (2, 2), (2, 2), (0, 0), (1, 1)),
    ((1, 2, 5, 6), (5, 4), (3, 3), (1, 2), (1, 1), (1, 1)),
    ((2, 5, 7), (3, 4), (2, 2), (2, 2), (1, 1), (2, 2)),
    ((1, 1, 5, 5), (3, 3), (2, 2), (2, 2), (0, 0), (1, 1)),
    ((0, 2, 4, 4), (2, 2), (2, 2), (2, 2), (0, 0), (1, 1)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("case", POOLS_CASES)
def test_forward_of_pools(dtype: str, case: Any) -> None:
    shape, results, *geometry = case
    whole = (*shape[:-2], *results)
    outs = [empty(whole, dtype), empty(whole, np.int64)]
    agree("max_pool2d", outs, numbers(shape, dtype), *geometry, compare=same)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", POOLS_CASES)
def test_backward_of_pools(dtype: str, case: Any) -> None:
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


@pytest.mark.parametrize("place", [-1, 4, 2**40])
def test_places_outside_of_the_image_are_refused(place: int) -> None:
    out = put(np.full((1, 2, 2), 7, np.float32))
    grad, places = np.ones((1, 1, 1), np.float32), np.full((1, 1, 1), place)
    with pytest.raises(IndexOutOfRange) as caught:
        CUDA["max_pool2d_backward"](out, put(grad), put(places))
    assert (caught.value.index, caught.value.size) == (place, 4)
    assert get(out).tolist() == [[[7, 7], [7, 7]]]


def test_padding_is_stepped_over_at_once() -> None:
    x, outs = numbers((1, 4, 4), np.float32), [empty((1, 4, 4), np.float32)]
    outs.append(empty((1, 4, 4), np.int64))
    wide = (2**31 - 1, 2**31 - 1), (1, 1), (2**30 - 1, 2**30 - 1), (1, 1)
    agree("max_pool2d", outs, x, *wide, compare=same)
