"""Operands for the tests of kernels of the CPU, and what is near enough."""

from typing import Any

import numpy as np

from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.construction import empty_tensor, from_numpy
from everyorder.runtime.tensors.tensor import Tensor

WHOLE = ("uint8", "int8", "int64")
INEXACT = ("float32", "float64", "complex64")
REAL = ("float32", "float64")
ACCURACY = {"float32": 3e-6, "complex64": 1e-5, "float64": 1e-13, "complex128": 1e-13}


def data(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Any:
    """Numbers of both signs, or truth values, the same for one seed."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in ("uint8", "int8", "int16", "int32", "int64"):
        return rng.integers(-100, 100, shape).astype(dtype)
    numbers = 3 * rng.standard_normal(shape)
    if dtype.startswith("complex"):
        numbers = numbers + 1j * rng.standard_normal(shape)
    return numbers.astype(dtype)


def empty(shape: tuple[int, ...], dtype: str) -> Tensor:
    """An output."""
    return empty_tensor(shape, DType.named(dtype))


def operand(array: Any) -> Any:
    """A NumPy scalar as a Python number, an array as a tensor of its layout."""
    return from_numpy(array) if np.ndim(array) else array.item()


def agree(found: Any, expected: Any) -> None:
    """Make sure that an array is the expected one but for rounding."""
    expected = np.asarray(expected)
    if found.dtype.kind in "fc":
        rtol = ACCURACY[found.dtype.name]
        np.testing.assert_allclose(found, expected.astype(found.dtype), rtol, rtol)
    else:
        np.testing.assert_array_equal(found, expected.astype(found.dtype))
