"""var over every kind of layout."""

import os
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from runtime.kernels.cpu.reduce import GRAIN, REMEMBERED, VARIANCES, var
from runtime.kernels.threads import get_num_threads, set_num_threads
from runtime.tensors.making import from_numpy

Array = np.ndarray[Any, Any]

compiled = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="too slow uncompiled"
)
NUMBERS = np.random.default_rng(3)


def varied(x: Array, dims: tuple[int, ...], correction: float = 1) -> Array:
    shape = tuple(n for dim, n in enumerate(x.shape) if dim not in dims)
    out = np.full(shape, 77, x.dtype)
    var(from_numpy(out), from_numpy(x), dims, correction)
    return out


LAYOUTS = {
    "rows": NUMBERS.normal(size=(4, 5, 6)),
    "turned": NUMBERS.normal(size=(6, 5, 4)).transpose(2, 0, 1),
    "steps": NUMBERS.normal(size=(4, 5, 12))[..., ::2],
    "long": NUMBERS.normal(size=(2, 3, 2500)),
    "deep": NUMBERS.normal(size=(300, 2, 3)),
}


@pytest.mark.parametrize("x", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("correction", [0, 1, 0.5])
def test_every_set_of_axes(x: Array, correction: float) -> None:
    for n in (1, 2, 3):
        for dims in combinations(range(3), n):
            expected = x.var(axis=dims, ddof=correction)
            np.testing.assert_allclose(
                varied(x, dims, correction), expected, rtol=1e-12
            )


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
def test_a_large_mean_costs_no_digits(dims: tuple[int, ...]) -> None:
    x = (NUMBERS.normal(size=(200, 300)) + 1000).astype(np.float32)
    expected = x.astype(np.float64).var(axis=dims, ddof=1)
    np.testing.assert_allclose(varied(x, dims), expected, rtol=1e-5)


@pytest.mark.parametrize("shape", [(3,), (2, 1500), (1500, 2), (2, 3, 4, 5)])
def test_single_precision_is_summed_in_double(shape: tuple[int, ...]) -> None:
    """As exact as its own rounding, beyond the roots of its range as well."""
    x = (NUMBERS.normal(size=shape) + 1e4).astype(np.float32)
    dims = tuple(range(0, len(shape), 2))
    expected = x.astype(np.float64).var(axis=dims, ddof=1)
    np.testing.assert_allclose(varied(x, dims), expected, rtol=6e-8)
    wide = np.empty(expected.shape)
    var(from_numpy(wide), from_numpy(x * np.float32(1e25)), dims, 1)
    np.testing.assert_allclose(
        wide, (x * np.float32(1e25)).astype(np.float64).var(axis=dims, ddof=1), 1e-12
    )


def test_nothing_over_nothing_is_nan() -> None:
    assert np.isnan(varied(np.array([3.0]), (0,)))
    assert np.isnan(varied(np.array([3.0]), (0,), 5))
    assert np.isnan(varied(np.empty((2, 0)), (1,))).tolist() == [True, True]
    assert np.isinf(varied(np.array([3.0, 4.0]), (0,), 2))


def test_nan_and_infinity_give_nan() -> None:
    x = np.array([[1.0, np.nan], [1.0, np.inf], [1.0, 2.0]], np.float32)
    np.testing.assert_array_equal(
        varied(x, (1,)), np.array([np.nan, np.nan, 0.5], "float32")
    )


@compiled
@pytest.mark.parametrize("shape", [(3, GRAIN), (GRAIN, 3)])
def test_threads_change_nothing(shape: tuple[int, int]) -> None:
    x = NUMBERS.normal(size=shape).astype(np.float32)
    before = get_num_threads()
    results = []
    try:
        for threads in (1, 3):
            set_num_threads(threads)
            results.append([varied(x, dims).tobytes() for dims in [(0,), (1,), (0, 1)]])
    finally:
        set_num_threads(before)
    assert results[0] == results[1]


def test_geometries_are_forgotten_before_they_are_many() -> None:
    for n in range(REMEMBERED + 2):
        varied(np.zeros((0, n)), (0,))
    assert 0 < len(VARIANCES) <= REMEMBERED
