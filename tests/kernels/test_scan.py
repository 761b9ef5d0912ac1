"""cumsum along every dimension."""

import os
from typing import Any

import numpy as np
import pytest

from runtime.kernels.cpu.axis import cumsum
from runtime.kernels.threads import get_num_threads, set_num_threads
from runtime.tensors.making import from_numpy

Array = np.ndarray[Any, Any]

compiled = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="too slow uncompiled"
)
NUMBERS = np.random.default_rng(5)


def summed(x: Array, dim: int, form: str = "") -> Array:
    out = np.full(x.shape, 77, form or x.dtype)
    cumsum(from_numpy(out), from_numpy(x), dim)
    return out


@pytest.mark.parametrize("form", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_floats(form: str, dim: int) -> None:
    x = NUMBERS.normal(size=(5, 70, 3)).astype(form)
    expected = x.astype("complex128" if form[0] == "c" else "float64").cumsum(dim)
    tolerance = 1e-6 if form in ("float32", "complex64") else 1e-14
    close: dict[str, Any] = {"rtol": tolerance, "atol": tolerance}
    np.testing.assert_allclose(summed(x, dim), expected, **close)
    turned = np.ascontiguousarray(x.T).T
    np.testing.assert_allclose(summed(turned, dim), expected, **close)


@pytest.mark.parametrize("form", ["bool", "uint8", "int32", "int64"])
def test_integers_are_summed_in_the_output(form: str) -> None:
    x = NUMBERS.integers(0, 2 if form == "bool" else 120, (30, 4)).astype(form)
    for dim in (0, 1):
        expected = x.cumsum(dim, dtype=np.int64)
        assert summed(x, dim, "int64").tolist() == expected.tolist()


def test_a_long_sum_keeps_its_digits() -> None:
    x = np.full(20_000, 0.1, np.float32)
    expected = x.astype(np.float64).cumsum()
    np.testing.assert_allclose(summed(x, 0), expected, rtol=1e-7)
    np.testing.assert_allclose(summed(x[:, None], 0)[:, 0], expected, rtol=1e-7)


def test_nan_stays() -> None:
    x = np.array([1.0, np.nan, 2.0])
    np.testing.assert_array_equal(summed(x, 0), [1.0, np.nan, np.nan])


def test_nothing_and_a_number() -> None:
    assert summed(np.empty((0, 3)), 0).shape == (0, 3)
    assert summed(np.array(4.0), 0) == 4.0


@compiled
@pytest.mark.parametrize("shape", [(40, 4000), (4000, 40), (64, 20, 600)])
def test_threads_change_nothing(shape: tuple[int, ...]) -> None:
    x = NUMBERS.integers(0, 9, shape)
    before = get_num_threads()
    try:
        set_num_threads(3)
        for dim in range(len(shape)):
            assert summed(x, dim).tolist() == x.cumsum(dim).tolist()
    finally:
        set_num_threads(before)
