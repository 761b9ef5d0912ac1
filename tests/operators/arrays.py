"""Arrays for tests: numbers to compute with, and what is near enough."""

from typing import Any

import numpy as np

from runtime.tensors import tensor
from runtime.tensors.tensor import Tensor

Array = np.ndarray[Any, Any]

# Why a comparison is skipped.
REASON = "torch is not installed"


def normal(*shape: int, seed: int = 0) -> Array:
    """Normal numbers, the same for one seed."""
    found: Array = np.random.default_rng(seed).standard_normal(shape)
    return found


def softmax(array: Array, axis: int) -> Array:
    """What softmax is."""
    powers = np.exp(array - array.max(axis, keepdims=True))
    found: Array = powers / powers.sum(axis, keepdims=True)
    return found


def agree(ours: Tensor, expected: Any, rtol: float = 1e-12) -> None:
    """Make sure of the shape, and of the elements but for rounding."""
    array = np.asarray(expected)
    assert ours.shape == array.shape
    np.testing.assert_allclose(ours.numpy(), array, rtol=rtol, atol=rtol)


def zeros(*shape: int, dtype: str = "float64") -> Tensor:
    """Zeros on the CPU."""
    return tensor(np.zeros(shape), dtype=dtype)


def on_meta(*shape: int) -> Tensor:
    """A shape without elements, of float64."""
    return tensor(np.zeros(shape), device="meta")
