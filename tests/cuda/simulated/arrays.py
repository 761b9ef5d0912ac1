"""Tensors on the device out of NumPy's arrays, and back."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.tensors.construction import (
    empty_tensor,
    from_flat,
    from_numpy,
    view_of,
)
from everyorder.runtime.tensors.dtype_info import numpy_dtype
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import host_copy

DEVICE = Device("cuda", 0)
Array = np.ndarray[Any, Any]

INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
COMPUTED = ("bool", *INTEGERS, *FLOATS, *COMPLEX)
STORED = (*COMPUTED, "float16", "bfloat16")


def form(name: str) -> "np.dtype[Any]":
    """NumPy's form of a dtype."""
    return numpy_dtype(DType.named(name))


def put(array: Any) -> Tensor:
    """A contiguous tensor on the device."""
    whole = np.asarray(array)
    return from_flat(np.ascontiguousarray(whole).reshape(-1), whole.shape, DEVICE)


def spaced(array: Array) -> Tensor:
    """A tensor on the device whose elements lie backwards in order and with gaps."""
    whole = np.zeros((*array.shape[::-1], 2), array.dtype)
    whole[..., 1] = array.T
    base = put(whole)
    strides = tuple(reversed(base.strides[:-1]))
    return view_of(base, array.shape, strides, 1)


def fresh(shape: Sequence[int], name: str) -> Tensor:
    """An output on the device."""
    return empty_tensor(tuple(shape), DType.named(name), DEVICE)


def on_host(array: Any) -> Tensor:
    """A tensor on the CPU."""
    return from_numpy(np.array(array, order="C"))


def host(shape: Sequence[int], name: str) -> Tensor:
    """An output on the CPU."""
    return empty_tensor(tuple(shape), DType.named(name))


def get(tensor: Tensor) -> Array:
    """The elements of a tensor, wherever it is."""
    return np.array(host_copy(tensor, "get()"))


def samples(name: str, count: int = 24) -> Array:
    """Elements of a dtype: around zero, the borders, and what is not a number."""
    rng = np.random.default_rng(3)
    kind = form(name)
    if kind.kind == "b":
        return rng.integers(0, 2, count).astype(kind)
    if kind.kind in "iu":
        facts = np.iinfo(kind)
        found = rng.integers(-9 if kind.kind == "i" else 0, 10, count).astype(kind)
        found[:3] = facts.min, facts.max, 0
        return found
    real = rng.standard_normal(count) * 3
    if kind.kind == "c":
        real = real + 1j * rng.standard_normal(count)
    else:
        real[:6] = 0.0, -0.0, np.inf, -np.inf, np.nan, 0.5
    return real.astype(kind)


def close(found: Array, expected: Array) -> None:
    """Equal in shape and dtype, and in value within what the device promises."""
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if found.dtype.kind in "fc":
        single = found.dtype in (np.float32, np.complex64)
        near = 2e-5 if single else 1e-11
        np.testing.assert_allclose(found, expected, rtol=near, atol=near)
    else:
        np.testing.assert_array_equal(found, expected)
