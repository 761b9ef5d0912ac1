"""sort and topk: order, stability, NaN, dtypes; few beside a stable sort."""

import os
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from everyorder.runtime.kernels.cpu.sort import BLOCK, KERNELS, MOST, topk
from everyorder.runtime.kernels.shared.thread_pool import (
    get_num_threads,
    set_num_threads,
)
from everyorder.runtime.tensors.construction import from_numpy

Array = np.ndarray[Any, Any]
NUMBERS = np.random.default_rng(10)

compiled = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="too slow uncompiled"
)

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")


def form_of(name: str) -> Any:
    return ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)


def made(shape: tuple[int, ...], name: str) -> Array:
    low, high = (0, 2) if name == "bool" else (0, 20) if name == "uint8" else (-9, 9)
    return NUMBERS.integers(low, high, shape).astype(form_of(name))


def ordered(x: Array, dim: int, descending: bool, stable: bool) -> tuple[Array, Array]:
    values, places = np.empty(x.shape, x.dtype), np.full(x.shape, 77, np.int64)
    outs = from_numpy(values), from_numpy(places)
    KERNELS["sort"](*outs, from_numpy(x), dim, descending, stable)
    return values, places


def chosen(
    x: Array, k: int, dim: int, largest: bool = True, in_order: bool = True
) -> tuple[Array, Array]:
    shape = (*x.shape[:dim], k, *x.shape[dim + 1 :]) if x.ndim else ()
    values, places = np.empty(shape, x.dtype), np.full(shape, 77, np.int64)
    outs = from_numpy(values), from_numpy(places)
    KERNELS["topk"](*outs, from_numpy(x), k, dim, largest, in_order)
    return values, places


def wanted(x: Array, dim: int, descending: bool) -> Array:
    """The places in a stable order, by Python's own sort."""
    rows = np.moveaxis(x, dim, -1).astype(np.float64)
    flat = rows.reshape(-1, rows.shape[-1])
    places = []
    for row in flat.tolist():
        keys = [(v != v, 0.0 if v != v else v) for v in row]
        turned = [(-nan, -v) for nan, v in keys] if descending else keys
        places.append(sorted(range(len(row)), key=turned.__getitem__))
    table = np.array(places, np.int64).reshape(rows.shape)
    return np.moveaxis(table, -1, dim)


@pytest.mark.parametrize("name", FLOATS + INTEGERS)
@pytest.mark.parametrize("descending", [False, True])
def test_a_stable_order_of_every_dtype(name: str, descending: bool) -> None:
    x = made((3, 40, 4), name)
    for dim in range(3):
        values, places = ordered(x, dim, descending, True)
        expected = wanted(x, dim, descending)
        assert places.tolist() == expected.tolist()
        moved = np.take_along_axis(x, expected, dim)
        assert values.tobytes() == moved.tobytes()


@pytest.mark.parametrize("name", FLOATS + INTEGERS)
@pytest.mark.parametrize("descending", [False, True])
def test_an_order_that_need_not_be_stable(name: str, descending: bool) -> None:
    x = made((5, 33), name)
    values, places = ordered(x, 1, descending, False)
    expected = np.take_along_axis(x, wanted(x, 1, descending), 1)
    assert values.tolist() == expected.tolist()
    assert np.take_along_axis(x, places, 1).tolist() == expected.tolist()
    assert np.sort(places, 1).tolist() == [list(range(33))] * 5


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("descending", [False, True])
def test_nan_is_the_greatest_and_zeros_are_equal(name: str, descending: bool) -> None:
    row = [1, np.nan, -np.inf, 0.0, -0.0, np.inf, -np.nan, -1, 0.0]
    x = np.array([row], form_of(name))
    values, places = ordered(x, 1, descending, True)
    expected = wanted(x, 1, descending)
    assert places.tolist() == expected.tolist()
    assert values.tobytes() == x[0][expected[0]].tobytes()
    for k in (1, 2, 3, 8):
        found, places = chosen(x, k, 1, descending)
        np.testing.assert_array_equal(
            found.astype(np.float64), values[:, :k].astype(np.float64)
        )


def test_integers_of_the_whole_range() -> None:
    ends = [2**63 - 1, -(2**63), 0, -1, 2**63 - 1, 5, -(2**63)]
    x = np.array(ends, np.int64)
    for descending in (False, True):
        values, places = ordered(x, 0, descending, True)
        expected = sorted(range(7), key=lambda i: -ends[i] if descending else ends[i])
        assert places.tolist() == expected
        assert values.tolist() == sorted(ends, reverse=descending)
    assert chosen(x, 2, 0)[0].tolist() == [2**63 - 1] * 2
    near = np.array([2**62 + 3, 2**62, 2**62 + 9], np.int64)
    assert ordered(near, 0, True, False)[1].tolist() == [2, 0, 1]


@pytest.mark.parametrize("name", ["float32", "float64", "int16", "bfloat16", "bool"])
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("in_order", [False, True])
def test_topk(name: str, largest: bool, in_order: bool) -> None:
    x = made((4, 50, 3), name)
    for k in (0, 1, 7, 50):
        values, places = chosen(x, k, 1, largest, in_order)
        expected = np.take_along_axis(x, wanted(x, 1, largest)[:, :k], 1)
        taken = np.take_along_axis(x, places, 1)
        assert values.tobytes() == taken.tobytes()
        found = values.astype(np.float64)
        found = found if in_order else np.sort(found, 1)
        expected = expected.astype(np.float64)
        expected = expected if in_order else np.sort(expected, 1)
        assert found.tolist() == expected.tolist()
        for column in places.swapaxes(1, 2).reshape(12, k).tolist():
            assert len(set(column)) == k


def test_other_layouts_a_number_and_nothing() -> None:
    x = made((5, 4), "float64").T
    assert ordered(x, 1, False, True)[1].tolist() == wanted(x, 1, False).tolist()
    values, places = ordered(np.array(3.0), 0, False, False)
    assert (values.tolist(), places.tolist()) == (3.0, 0)
    values, places = chosen(np.array(3.0), 1, 0)
    assert (values.tolist(), places.tolist()) == (3.0, 0)
    assert ordered(np.empty((0, 3)), 1, False, False)[0].shape == (0, 3)
    assert ordered(np.empty((3, 0)), 1, False, False)[0].shape == (3, 0)


@compiled
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_threads_change_nothing(name: str) -> None:
    x = made((64, 3000), name)
    before = get_num_threads()
    results = []
    try:
        for threads in (1, 3):
            set_num_threads(threads)
            values, places = ordered(x, 1, True, True)
            results.append((values.tobytes(), places.tobytes()))
    finally:
        set_num_threads(before)
    assert results[0] == results[1]


NAN, INF = np.nan, np.inf


def taken(x: Array, k: int, largest: bool, ordered: bool = True) -> tuple[Array, Array]:
    shape = (*x.shape[:-1], k)
    values, places = np.zeros(shape, x.dtype), np.full(shape, -1)
    topk(
        from_numpy(values),
        from_numpy(places),
        from_numpy(x),
        k,
        x.ndim - 1,
        largest,
        ordered,
    )
    return values, places


def reference(x: Array, k: int, largest: bool) -> Array:
    """Places by NumPy's stable sort, in which NaN is last."""
    if not largest:
        rising: Array = x.argsort(-1, kind="stable")
        return rising[..., :k]
    last = x.shape[-1] - 1
    turned: Array = x[..., ::-1].argsort(-1, kind="stable")
    falling: Array = last - turned[..., ::-1]
    return falling[..., :k]


@pytest.mark.parametrize("form", ["float16", "float32", "float64", "int8", "int64"])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("k", [1, 2, 7, MOST, MOST + 1])
def test_the_first_of_equals_come_first(form: str, largest: bool, k: int) -> None:
    x = np.random.default_rng(k).integers(0, 50, (3, 300)).astype(form)
    values, places = taken(x, k, largest)
    wanted = np.take_along_axis(x, reference(x, k, largest), -1)
    assert np.array_equal(values, wanted)
    assert np.array_equal(np.take_along_axis(x, places, -1), wanted)
    if k <= MOST:
        assert np.array_equal(places, reference(x, k, largest))


@pytest.mark.parametrize("form", ["float32", "float64"])
@pytest.mark.parametrize("largest", [True, False])
def test_nan_is_above_all_and_zeros_are_equal(form: str, largest: bool) -> None:
    x = np.array([0.0, -0.0, NAN, -INF, INF, 1, -NAN, -1, 0.0, -0.0], form)
    order = [2, 6, 4, 5, 0, 1, 8, 9, 7] if largest else [3, 7, 0, 1, 8, 9, 5, 4, 2]
    values, places = taken(x, 9, largest)
    assert places.tolist() == order
    assert values.tobytes() == x[order].tobytes()


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("length", [BLOCK, BLOCK + 1, 10 * BLOCK + 3])
def test_rising_and_falling_rows(order: int, length: int) -> None:
    x = np.arange(float(length))[::order].copy()
    values, places = taken(x, 5, True)
    assert values.tolist() == [length - 1.0 - j for j in range(5)]
    assert np.array_equal(x[places], values)


def test_without_an_order_the_same_are_taken() -> None:
    x = np.random.default_rng(3).standard_normal((4, 200))
    values, places = taken(x, 6, False, ordered=False)
    assert np.array_equal(np.sort(values), np.sort(x)[:, :6])
    assert np.array_equal(np.take_along_axis(x, places, -1), values)


def test_extreme_integers() -> None:
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    x = np.array([0, high, low, -1, high, low])
    assert taken(x, 3, True)[0].tolist() == [high, high, 0]
    assert taken(x, 3, False)[1].tolist() == [2, 5, 3]
