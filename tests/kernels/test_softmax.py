"""softmax, log_softmax and their gradients along every dimension."""

import os
from typing import Any

import numpy as np
import pytest

from runtime.kernels.cpu.axis import TILE
from runtime.kernels.cpu.reduce_bodies import LEAF
from runtime.kernels.cpu.softmax import KERNELS
from runtime.kernels.threads import get_num_threads, set_num_threads
from runtime.tensors.making import from_numpy

Array = np.ndarray[Any, Any]

compiled = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="too slow uncompiled"
)
NUMBERS = np.random.default_rng(6)
FORMS = {"float32": 4e-7, "float64": 2e-15}


def made(name: str, dim: int, *inputs: Array) -> Array:
    out = np.full(inputs[0].shape, 77, inputs[0].dtype)
    KERNELS[name](from_numpy(out), *map(from_numpy, inputs), dim)
    return out


def expected(name: str, dim: int, x: Array, y: Array | None = None) -> Array:
    x = x.astype(np.float64)
    if y is not None:
        y = y.astype(np.float64)
        if name == "softmax_backward":
            return np.asarray((x - (x * y).sum(dim, keepdims=True)) * y)
        return np.asarray(x - np.exp(y) * x.sum(dim, keepdims=True))
    e = np.exp(x - x.max(dim, keepdims=True))
    total = e.sum(dim, keepdims=True)
    if name == "softmax":
        return np.asarray(e / total)
    return np.asarray(x - x.max(dim, keepdims=True) - np.log(total))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "shape", [(4, 5, 6), (1, 130, 4), (2, 1, LEAF + 30), (2, 3, TILE + 3)]
)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_forward_and_backward(name: str, shape: tuple[int, ...], form: str) -> None:
    x = (NUMBERS.normal(size=shape) * 3).astype(form)
    grad = NUMBERS.normal(size=shape).astype(form)
    for dim in range(3):
        wanted = expected(name, dim, x)
        found = made(name, dim, x)
        close: dict[str, Any] = {"rtol": FORMS[form] * 4, "atol": FORMS[form] * 4}
        np.testing.assert_allclose(found, wanted, **close)
        back = name + "_backward"
        wanted = expected(back, dim, grad, found)
        close = {"rtol": FORMS[form] * 10, "atol": FORMS[form] * abs(wanted).max() * 10}
        np.testing.assert_allclose(made(back, dim, grad, found), wanted, **close)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_other_layouts_are_read(name: str) -> None:
    x = NUMBERS.normal(size=(6, 5, 4)).transpose(2, 0, 1)
    for dim in range(3):
        wanted = expected(name, dim, x)
        np.testing.assert_allclose(made(name, dim, x), wanted, rtol=1e-13)


ROWS = {
    "large": [1e30, 1e30, -1e30],
    "infinite": [1.0, np.inf, 0.0],
    "two infinite": [np.inf, np.inf, 0.0],
    "minus infinity": [1.0, -np.inf, 0.0],
    "only minus infinity": [-np.inf] * 3,
    "nan": [1.0, np.nan, 2.0],
    "negative nan": [1.0, -np.nan, 2.0],
    "nan among negatives": [-1.0, np.nan, -2.0],
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_numbers_out_of_range(name: str, row: list[float]) -> None:
    x = np.array([row], np.float32)
    with np.errstate(all="ignore"):
        wanted = expected(name, 1, x).astype(np.float32)
    np.testing.assert_allclose(made(name, 1, x), wanted, rtol=1e-6)
    columns = np.ascontiguousarray(np.repeat(x.T, 2, 1))
    found = made(name, 0, columns)
    np.testing.assert_allclose(found, np.repeat(wanted.T, 2, 1), rtol=1e-6)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_nothing_and_a_number(name: str) -> None:
    for shape, dim in [((0, 3), 0), ((0, 3), 1), ((3, 0), 0), ((3, 0), 1)]:
        x = np.empty(shape)
        assert made(name, dim, x).shape == shape
        assert made(name + "_backward", dim, x, x).shape == shape
    assert made(name, 0, np.array(3.0)) == (1.0 if name == "softmax" else 0.0)


@compiled
@pytest.mark.parametrize("shape", [(40, 4000), (400, 1100)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_threads_change_nothing(name: str, shape: tuple[int, int]) -> None:
    x, grad = NUMBERS.normal(size=(2, *shape)).astype(np.float32)
    before = get_num_threads()
    results = []
    try:
        for threads in (1, 3):
            set_num_threads(threads)
            for dim in (0, 1):
                found = made(name, dim, x)
                back = made(name + "_backward", dim, grad, found)
                results.append((found.tobytes(), back.tobytes()))
    finally:
        set_num_threads(before)
    assert results[:2] == results[2:]
