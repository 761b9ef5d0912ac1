"""Reductions on the device against those of the CPU."""

import itertools
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.kernels.cpu.kernel_table import KERNELS as CPU
from everyorder.runtime.kernels.cuda import KERNELS as CUDA
from everyorder.runtime.kernels.cuda.reduce import RUN, TALL
from tests.cuda.simulated.arrays import (
    COMPLEX,
    COMPUTED,
    FLOATS,
    INTEGERS,
    close,
    fresh,
    get,
    host,
    on_host,
    put,
    samples,
    spaced,
)

WHOLE = ("bool", *INTEGERS)


def kept(shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for at, size in enumerate(shape) if at not in dims)


def agree(
    name: str, array: np.ndarray, dims: tuple[int, ...], result: str, *extra: Any
) -> None:
    """Both backends give the same, in two layouts."""
    shape = kept(array.shape, dims)
    expected = host(shape, result)
    CPU[name](expected, on_host(array), dims, *extra)
    for layout in (put, spaced):
        out = fresh(shape, result)
        CUDA[name](out, layout(array), dims, *extra)
        close(get(out), get(expected))


def reals(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    count = int(np.prod(shape))
    if np.dtype(dtype).kind in "fc":
        rng = np.random.default_rng(7)
        array = rng.standard_normal(count).reshape(shape)
        turn = 1j if np.dtype(dtype).kind == "c" else 0
        return (array + turn).astype(dtype)
    return samples(dtype, count).reshape(shape)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all"])
def test_every_dtype(name: str) -> None:
    for dtype in COMPUTED:
        if name in ("max", "min") and dtype in COMPLEX:
            continue
        result = dtype
        if name in ("any", "all"):
            result = "bool"
        elif name in ("sum", "prod") and dtype in WHOLE:
            result = "int64"
        agree(name, reals(dtype, (3, 5)), (1,), result)


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_mean(dtype: str) -> None:
    agree("mean", reals(dtype, (3, 5)), (0,), dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("correction", [0, 1, 2.5, 5])
def test_var(dtype: str, correction: float) -> None:
    agree("var", reals(dtype, (3, 5)), (1,), dtype, correction)


def test_var_of_what_has_squares_out_of_range() -> None:
    x = np.array([[1e30, -1e30, 0.0], [3.0, 1e4, 1e4 + 1]], np.float32)
    agree("var", x, (1,), "float32", 1)
    agree("var", x, (1,), "float64", 1)


@pytest.mark.parametrize("ndim", [1, 2, 3, 4])
def test_any_axes(ndim: int) -> None:
    array = reals("float32", (2, 3, 4, 5)[:ndim])
    for size in range(1, ndim + 1):
        for dims in itertools.combinations(range(ndim), size):
            agree("sum", array, dims, "float32")


@pytest.mark.parametrize("length", [1, RUN - 1, RUN, RUN + 1, 2 * RUN + 3])
def test_runs_of_a_row(length: int) -> None:
    array = reals("float32", (2, length))
    agree("sum", array, (1,), "float32")
    agree("mean", array, (0, 1), "float32")


@pytest.mark.parametrize("length", [TALL - 1, TALL, TALL + 1, TALL * TALL + 1])
def test_runs_of_a_column(length: int) -> None:
    agree("max", reals("float64", (length, 3)), (0,), "float64")
    agree("mean", reals("float64", (length, 3)), (0,), "float64")


def test_no_dimensions() -> None:
    agree("sum", np.array(3.0), (), "float64")
    agree("var", np.array(3.0), (), "float64", 0)


@pytest.mark.parametrize(
    ("name", "nothing"),
    [("sum", 0.0), ("prod", 1.0), ("mean", np.nan), ("var", np.nan)],
)
def test_nothing(name: str, nothing: float) -> None:
    extra = (1,) if name == "var" else ()
    out = fresh((2,), "float64")
    CUDA[name](out, put(np.empty((2, 0))), (1,), *extra)
    np.testing.assert_array_equal(get(out), [nothing, nothing])
    out = fresh((0,), "float64")
    CUDA[name](out, put(np.empty((0, 2))), (1,), *extra)
    assert get(out).shape == (0,)


def test_the_mean_of_no_complex_numbers_has_two_parts_of_nan() -> None:
    CUDA["mean"](out := fresh((2,), "complex64"), put(np.empty((2, 0), "c8")), (1,))
    assert np.isnan([get(out).real, get(out).imag]).all()


def test_any_and_all_of_nothing() -> None:
    for name, nothing in (("any", False), ("all", True)):
        out = fresh((2,), "bool")
        CUDA[name](out, put(np.empty((2, 0), np.int32)), (1,))
        assert get(out).tolist() == [nothing, nothing]


@pytest.mark.parametrize("name", ["max", "min"])
def test_nan_wins(name: str) -> None:
    array = np.array([[1, np.nan, 3], [2, 1, 0]], np.float32)
    agree(name, array, (1,), "float32")


def test_integers_may_be_summed_into_others() -> None:
    out = fresh((), "int8")
    CUDA["sum"](out, put(np.full(3, 100, np.int8)), (0,))
    assert get(out).item() == 44


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64"])
def test_place(name: str, dtype: str) -> None:
    array = reals(dtype, (3, 4, 5))
    for dim in (None, 0, 1, 2):
        expected = np.asarray(getattr(np, name)(array, axis=dim))
        for layout in (put, spaced):
            out = fresh(expected.shape, "int64")
            CUDA[name](out, layout(array), dim)
            np.testing.assert_array_equal(get(out), expected)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_first_of_equals_wins_and_nan_over_all(name: str) -> None:
    array = np.zeros(3 * RUN + 1, np.float32)
    for fault in (None, 2 * RUN + 5, RUN + 5):
        if fault is not None:
            array[fault] = np.nan
        out = fresh((), "int64")
        CUDA[name](out, put(array), None)
        assert get(out).item() == (fault or 0)


def test_place_of_no_dimensions() -> None:
    out = fresh((), "int64")
    CUDA["argmax"](out, put(np.float32(3)), 0)
    assert get(out).item() == 0
