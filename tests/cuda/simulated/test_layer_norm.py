"""Layer normalisation on the device against the CPU's."""

import numpy as np
import pytest

from tests.cuda.simulated.agreement import agree, empty, numbers
from tests.cuda.simulated.arrays import Array


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("affine", ["neither", "weight", "bias", "both"])
@pytest.mark.parametrize(("rows", "inner"), [(5, 7), (3, 1), (0, 4), (1, 23)])
def test_forward(dtype: str, affine: str, rows: int, inner: int) -> None:
    weight = numbers((inner,), dtype, 2) if affine in ("weight", "both") else None
    bias = numbers((inner,), dtype, 3) if affine in ("bias", "both") else None
    outs = [empty((rows, inner), dtype), empty((rows,), dtype), empty((rows,), dtype)]
    agree("layer_norm", outs, numbers((rows, inner), dtype), inner, weight, bias, 1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("rows", "inner"), [(5, 7), (35, 3), (0, 4), (1, 9), (3, 0)])
@pytest.mark.parametrize("asked", [(1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
def test_backward(
    dtype: str, weighted: bool, rows: int, inner: int, asked: tuple[int, ...]
) -> None:
    shapes = ((rows, inner), (inner,), (inner,))
    outs = [
        empty(shape, dtype) if wanted else None
        for shape, wanted in zip(shapes, asked, strict=True)
    ]
    weight = numbers((inner,), dtype, 2) if weighted else None
    x = numbers((rows, inner), dtype, 4)
    mean = x.mean(1) if inner else numbers((rows,), dtype)
    rstd = np.abs(numbers((rows,), dtype, 5)) + np.dtype(dtype).type(1)
    grad = numbers((rows, inner), dtype, 6)
    agree("layer_norm_backward", outs, grad, x, mean, rstd, weight, inner)


def test_nothing_to_normalise() -> None:
    outs = [empty((2, 0), "float32"), empty((2,), "float32"), empty((2,), "float32")]
    given = numbers((2, 0), "float32")
    found = agree("layer_norm", outs, given, 0, None, None, 1e-5)
    assert np.isnan(found[1]).all()


def test_a_far_mean_costs_no_digits() -> None:
    given = numbers((2, 40), np.float64) + 1e8
    outs = [empty((2, 40), "float64"), empty((2,), "float64"), empty((2,), "float64")]

    def near(found: Array, expected: Array) -> None:
        # The mean itself has 8 digits after the point; squares of 1e8 would have none.
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)

    agree("layer_norm", outs, given, 40, None, None, 0.0, compare=near)
