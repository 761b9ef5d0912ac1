"""Along an axis: how work is cut, running sums, places of extremes."""

import os
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.kernels.cpu.axis import (
    GRAIN,
    KERNELS,
    PIECE,
    TILE,
    along,
    around,
    cumsum,
    grain_of,
    result,
)
from everyorder.runtime.kernels.shared.operands import dense
from everyorder.runtime.kernels.shared.thread_pool import (
    get_num_threads,
    set_num_threads,
)
from everyorder.runtime.tensors.construction import from_numpy


def test_sizes_around_a_dimension() -> None:
    assert around((2, 3, 4), 0) == (1, 2, 12)
    assert around((2, 3, 4), 1) == (2, 3, 4)
    assert around((2, 3, 4), 2) == (6, 4, 1)
    assert around((), 0) == (1, 1, 1)


def test_tasks_are_rows_or_tiles_of_columns() -> None:
    assert along((2, 3, TILE + 1), 1) == (2, 3, TILE + 1, 4, grain_of(3 * TILE))
    assert along((5, 10), 1) == (5, 10, 1, 5, grain_of(10))


def test_a_thread_gets_a_grain_of_elements() -> None:
    assert grain_of(GRAIN) == 1
    assert grain_of(GRAIN - 1) == 2
    assert grain_of(0) == GRAIN


def test_dense_copies_only_what_does_not_lie_densely() -> None:
    x = np.arange(6).reshape(2, 3)
    assert np.shares_memory(dense(from_numpy(x)), x)
    turned = dense(from_numpy(x.T))
    assert turned.tolist() == [0, 3, 1, 4, 2, 5]
    assert not np.shares_memory(turned, x)
    assert np.shares_memory(result(from_numpy(x)), x)


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


FORMS = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64")
NAMES = ("argmax", "argmin")


def found(name: str, x: Array, dim: int | None) -> Array:
    shape = () if dim is None else x.shape[:dim] + x.shape[dim + 1 :]
    out = np.full(shape, 77, np.int64)
    KERNELS[name](from_numpy(out), from_numpy(x), dim)
    return out


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMS)
def test_the_first_of_equals(name: str, form: str) -> None:
    numbers = np.random.default_rng(1).integers(0, 3, (7, 600, 5))
    x = (numbers.astype(form) - (1 if form[0] in "if" else 0)).astype(form)
    for dim in (0, 1, 2):
        expected = getattr(x, name)(dim)
        assert found(name, x, dim).tolist() == expected.tolist()
        turned = np.ascontiguousarray(x.T).T
        assert found(name, turned, dim).tolist() == expected.tolist()
    assert found(name, x, None) == getattr(x, name)()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dim", [0, 1])
def test_the_first_nan_counts(name: str, dim: int) -> None:
    x = np.array(
        [[1, np.nan, np.inf], [np.nan, np.nan, -np.inf], [2, 3, np.nan], [0, -0.0, 1]]
    )
    expected = getattr(x, name)(dim)
    assert found(name, x, dim).tolist() == expected.tolist()


@compiled
@pytest.mark.parametrize("name", NAMES)
def test_a_whole_tensor_in_pieces(name: str) -> None:
    x = np.random.default_rng(2).normal(size=3 * PIECE + 5).astype(np.float32)
    assert found(name, x, None) == getattr(x, name)()
    x[[PIECE + 3, 2 * PIECE]] = np.nan
    assert found(name, x, None) == PIECE + 3


@compiled
@pytest.mark.parametrize("shape", [(40, 9000), (9000, 40)])
def test_threads_change_nothing_of_searches(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(3).integers(0, 9, shape)
    before = get_num_threads()
    try:
        set_num_threads(3)
        for dim in (0, 1):
            assert found("argmax", x, dim).tolist() == x.argmax(dim).tolist()
    finally:
        set_num_threads(before)


def test_no_rows_and_a_number() -> None:
    assert found("argmax", np.empty((0, 3)), 1).shape == (0,)
    assert found("argmin", np.array(5.0), None) == 0
    assert found("argmin", np.array([5.0]), 0) == 0
