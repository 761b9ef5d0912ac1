"""Gradients that have a kernel of their own, by differences."""

from typing import Any

import numpy as np
import pytest

from runtime.operators import core
from tests.operators.made import shown, tensor

POINTS = np.array([-2.0, -0.5, 0.0, 0.75, 3.0])
STEP = 1e-6


def _slope(name: str, **options: Any) -> Any:
    """The slope of an operator by a central difference in float64."""
    up = getattr(core, name)(tensor(POINTS + STEP, "float64"), **options).numpy()
    down = getattr(core, name)(tensor(POINTS - STEP, "float64"), **options).numpy()
    return (up - down) / (2 * STEP)


@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_gradients_by_the_result(name: str) -> None:
    result = getattr(core, name)(tensor(POINTS, "float64"))
    grad = tensor([2.0] * 5, "float64")
    found = getattr(core, f"{name}_backward")(grad, result).numpy()
    np.testing.assert_allclose(found, 2 * _slope(name), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"approximate": "tanh"}])
def test_gradients_of_gelu(options: dict[str, str]) -> None:
    x, grad = tensor(POINTS, "float64"), tensor([2.0] * 5, "float64")
    found = core.gelu_backward(grad, x, **options).numpy()
    np.testing.assert_allclose(found, 2 * _slope("gelu", **options), rtol=1e-6)


def test_gradients_of_silu_and_relu() -> None:
    x, grad = tensor(POINTS, "float64"), tensor([2.0] * 5, "float64")
    found = core.silu_backward(grad, x).numpy()
    np.testing.assert_allclose(found, 2 * _slope("silu"), rtol=1e-6)
    rectified = core.relu_backward(grad, core.relu(x)).numpy()
    assert rectified.tolist() == [0.0, 0.0, 0.0, 2.0, 2.0]
    halves = core.relu_backward(tensor([2.0], "float16"), tensor([1.0], "float16"))
    assert shown(halves) == ("float16", [2.0])
