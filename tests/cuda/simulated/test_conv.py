"""Convolution on the device against the CPU's."""

from typing import Any

import pytest

from tests.cuda.simulated.agreement import agree, empty, numbers
from tests.cuda.simulated.arrays import put, spaced

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
