"""The few most extreme elements: against a stable sort."""

from typing import Any

import numpy as np
import pytest

from runtime.kernels.cpu.order import BLOCK, MOST, topk
from runtime.tensors.making import from_numpy

Array = np.ndarray[Any, Any]
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
