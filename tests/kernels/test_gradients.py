"""Gradients of activations, by differences of the kernels themselves."""

from typing import Any

import numpy as np
import pytest

from runtime.kernels.cpu import KERNELS
from runtime.tensors.making import from_numpy
from tests.kernels.made import REAL, agree, data, empty


def _slope(name: str, x: Any, *extra: str) -> Any:
    """By differences of the kernel itself, in double precision."""
    step = 1e-6
    ends = []
    for moved in (x + step, x - step):
        out = empty(x.shape, "float64")
        KERNELS[name](out, from_numpy(moved), *extra)
        ends.append(out.numpy())
    return (ends[0] - ends[1]) / (2 * step)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize(
    ("name", "extra", "of_result"),
    [
        ("relu", (), True),
        ("sigmoid", (), True),
        ("tanh", (), True),
        ("silu", (), False),
        ("gelu", ("none",), False),
        ("gelu", ("tanh",), False),
    ],
)
def test_gradients(
    name: str, extra: tuple[str, ...], of_result: bool, dtype: str
) -> None:
    x, grad = data("float64", (4, 5)), data(dtype, (4, 5), 1)
    given = x.astype(dtype)
    if of_result:
        result = empty((4, 5), dtype)
        KERNELS[name](result, from_numpy(given), *extra)
        given = result.numpy()
    out = empty((4, 5), dtype)
    KERNELS[f"{name}_backward"](out, from_numpy(grad), from_numpy(given), *extra)
    expected = grad * _slope(name, x, *extra)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_gradients_of_complex_numbers_are_conjugate(name: str) -> None:
    result, grad = data("complex64", (5,)), data("complex64", (5,), 1)
    out = empty((5,), "complex64")
    KERNELS[f"{name}_backward"](out, from_numpy(grad), from_numpy(result))
    slope = (1 - result) * result if name == "sigmoid" else 1 - result * result
    agree(out.numpy(), grad * np.conj(slope))
