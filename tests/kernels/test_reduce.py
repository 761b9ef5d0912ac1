"""sum, prod, mean, max, min, any, all over every kind of layout."""

import os
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from runtime.kernels.cpu.reduce import _ANY, GRAIN, KERNELS, REMEMBERED
from runtime.kernels.cpu.reduce_bodies import EXACT_LEAF
from runtime.kernels.threads import get_num_threads, set_num_threads
from runtime.tensors.making import from_numpy

Array = np.ndarray[Any, Any]

compiled = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="too slow uncompiled"
)

INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")


def made(shape: tuple[int, ...], form: str, seed: int = 0) -> Array:
    numbers = np.random.default_rng(seed)
    if form in COMPLEX:
        return (numbers.normal(size=shape) + 1j * numbers.normal(size=shape)).astype(
            form
        )
    if form in FLOATS:
        return numbers.normal(size=shape).astype(form)
    low, high = (0, 2) if form == "bool" else (0, 120)
    return numbers.integers(low, high, shape).astype(form)


def out_form(name: str, form: str) -> str:
    if name in ("any", "all"):
        return "bool"
    return "int64" if name in ("sum", "prod") and form in INTEGERS else form


def reduced(name: str, x: Array, dims: tuple[int, ...], out: str = "") -> Array:
    shape = tuple(n for dim, n in enumerate(x.shape) if dim not in dims)
    result = np.full(shape, 77, out or out_form(name, x.dtype.name))
    KERNELS[name](from_numpy(result), from_numpy(x), dims)
    return result


def wide(x: Array) -> Array:
    return x.astype({"f": "f8", "c": "c16"}.get(x.dtype.kind, x.dtype))


def all_dims(ndim: int) -> list[tuple[int, ...]]:
    return [dims for n in range(ndim + 1) for dims in combinations(range(ndim), n)]


LAYOUTS = {
    "rows": made((3, 4, 5, 6), "float64"),
    "turned": made((6, 5, 4, 3), "float64").transpose(3, 1, 0, 2),
    "reversed axes": made((6, 5, 4, 3), "float64").transpose(),
    "gaps": made((3, 8, 5, 12), "float64")[:, ::2, :, 1:7],
    "steps": made((3, 4, 5, 12), "float64")[..., ::2],
    "repeated": np.ndarray(
        (3, 4, 5, 6), "float64", made((4, 6), "float64"), 0, (0, 48, 0, 8)
    ),
    "ones": made((1, 4, 1, 6), "float64"),
}


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("x", LAYOUTS.values(), ids=LAYOUTS)
def test_every_set_of_axes_of_every_layout(name: str, x: Array) -> None:
    for dims in all_dims(x.ndim):
        expected = getattr(np, name)(x, axis=dims)
        np.testing.assert_allclose(reduced(name, x, dims), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["any", "all"])
@pytest.mark.parametrize("form", ["bool", "int8", "int64", "float32", "complex64"])
def test_truth(name: str, form: str) -> None:
    x = np.zeros((5, 2100), form)
    x[1] = 1
    x[2, 2050] = 3
    x[3] = 2
    x[3, 7] = 0
    for dims in [(), (0,), (1,), (0, 1)]:
        expected = getattr(np, name)(x, axis=dims)
        assert reduced(name, x, dims).tolist() == expected.tolist()


@pytest.mark.parametrize("name", ["any", "all"])
def test_not_a_number_is_true(name: str) -> None:
    x = np.full((3, 4), np.nan, np.float32)
    assert reduced(name, x, (0,)).tolist() == [True] * 4
    assert reduced(name, x, (1,)).tolist() == [True] * 3


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("form", ["bool", "uint8", "int8", "int64"])
def test_integers(name: str, form: str) -> None:
    x = made((300, 7), form)
    for dims in [(0,), (1,), (0, 1)]:
        kind = {"dtype": np.int64} if name in ("sum", "prod") else {}
        expected = getattr(np, name)(x, axis=dims, **kind)
        assert reduced(name, x, dims).tolist() == expected.tolist()


def test_sums_of_int8_do_not_wrap_before_int64() -> None:
    x = np.full((9, 9), 127, np.int8)
    assert reduced("sum", x, (0, 1)).tolist() == 127 * 81
    assert reduced("sum", x, (0,)).tolist() == [127 * 9] * 9


def test_sums_of_int64_wrap() -> None:
    x = np.full(2, 2**62, np.int64)
    assert reduced("sum", x, (0,)).tolist() == -(2**63)


@pytest.mark.parametrize("form", FLOATS + COMPLEX)
@pytest.mark.parametrize("name", ["sum", "mean", "prod"])
def test_precisions(name: str, form: str) -> None:
    x = made((40, 50), form)
    x = x / abs(x) if name == "prod" else x
    tolerance = 1e-5 if form in ("float32", "complex64") else 1e-13
    for dims in [(0,), (1,), (0, 1)]:
        expected = getattr(np, name)(wide(x), axis=dims)
        scale = abs(x).max() * (40 if name == "sum" else 1)
        found = reduced(name, x.astype(form), dims)
        np.testing.assert_allclose(
            found, expected, rtol=tolerance, atol=tolerance * scale
        )


@compiled
@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("shape", [(1, 1_000_000), (1_000_000, 1), (1000, 1000)])
def test_long_sums_keep_their_digits(
    shape: tuple[int, int], dims: tuple[int, ...]
) -> None:
    x = np.full(shape, 0.1, np.float32)
    expected = x.astype(np.float64).sum(dims)
    np.testing.assert_allclose(reduced("sum", x, dims), expected, rtol=1e-6)


def test_leaves_are_combined() -> None:
    n = 2 * EXACT_LEAF + 10
    x = np.ones(n, np.float32)
    x[n - 1], x[n - 2] = 5, -5
    assert [float(reduced(name, x, (0,))) for name in ("max", "min")] == [5, -5]
    x[EXACT_LEAF + 1] = np.nan
    assert np.isnan([reduced("max", x, (0,)), reduced("min", x, (0,))]).all()
    truths = np.zeros(n, bool)
    assert not reduced("any", truths, (0,))
    truths[n - 1] = True
    assert reduced("any", truths, (0,))
    assert not reduced("all", truths, (0,))
    assert reduced("all", ~np.zeros(n, bool), (0,))
    assert reduced("sum", np.arange(n), (0,)) == n * (n - 1) // 2


@pytest.mark.parametrize("form", FLOATS)
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("bad", [np.nan, -np.nan])
@pytest.mark.parametrize("other", [np.inf, -np.inf, 1.0, -1.0, 0.0])
def test_extremes_are_nan_where_one_is(
    form: str, name: str, bad: float, other: float
) -> None:
    x = np.full((2100, 3), other, form)
    x[2070, 1] = bad
    found = reduced(name, np.ascontiguousarray(x.T), (1,))
    np.testing.assert_array_equal(found, np.array([other, np.nan, other], form))
    np.testing.assert_array_equal(reduced(name, x, (0,)), found)
    assert np.isnan(reduced(name, x, (0, 1)))


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize(
    "row", [[1, 2, 3], [-1, -2, -3], [-1, 0, 1], [-0.0, 0.0], [np.inf, 1], [-np.inf, 1]]
)
def test_extremes_of_any_signs(name: str, row: list[float]) -> None:
    x = np.array(row, np.float32)
    assert reduced(name, x, (0,)) == getattr(x, name)()


@pytest.mark.parametrize(
    ("name", "nothing"),
    [("sum", 0.0), ("prod", 1.0), ("mean", np.nan), ("any", False), ("all", True)],
)
def test_nothing(name: str, nothing: float) -> None:
    x = np.empty((2, 0, 3), np.float32)
    expected = np.full((2, 3), nothing, out_form(name, "float32"))
    np.testing.assert_array_equal(reduced(name, x, (1,)), expected)
    assert reduced(name, x, (0,)).shape == (0, 3)
    np.testing.assert_array_equal(reduced(name, x, (0, 1, 2)), expected[0, 0])


def test_the_mean_of_no_complex_numbers_has_two_parts_of_nan() -> None:
    found = reduced("mean", np.empty((2, 0), np.complex64), (1,))
    assert np.isnan([found.real, found.imag]).all()


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min"])
def test_a_number_is_its_own_reduction(name: str) -> None:
    assert reduced(name, np.array(2.5), ()) == 2.5


@compiled
@pytest.mark.parametrize("name", ["sum", "max"])
@pytest.mark.parametrize("shape", [(4 * GRAIN,), (3, GRAIN), (GRAIN, 3), (700, 5000)])
def test_threads_change_nothing(name: str, shape: tuple[int, ...]) -> None:
    x = made(shape, "float32")
    before = get_num_threads()
    results = []
    try:
        for threads in (1, 3):
            set_num_threads(threads)
            results.append([reduced(name, x, dims) for dims in all_dims(x.ndim)[1:]])
    finally:
        set_num_threads(before)
    for one, three in zip(*results, strict=True):
        assert one.tobytes() == three.tobytes()


def test_geometries_are_forgotten_before_they_are_many() -> None:
    for n in range(REMEMBERED + 2):
        assert reduced("any", np.zeros((n, 1), bool), (0,)).tolist() == [False]
    assert 0 < len(_ANY.ready) <= REMEMBERED
