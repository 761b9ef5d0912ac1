"""Layer normalisation and its gradients."""

import os
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.kernels.cpu.layer_norm import BLOCK, KERNELS
from everyorder.runtime.kernels.shared.thread_pool import (
    get_num_threads,
    set_num_threads,
)
from everyorder.runtime.tensors.construction import from_numpy

Array = np.ndarray[Any, Any]

compiled = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="too slow uncompiled"
)
NUMBERS = np.random.default_rng(7)
EPS = 1e-5


def tensor(array: Array | None) -> Any:
    return None if array is None else from_numpy(array)


def forward(x: Array, inner: int, w: Array | None, b: Array | None) -> list[Array]:
    rows = x.size // inner if inner else x.shape[0]
    out = np.full(x.shape, 77, x.dtype)
    mean, rstd = np.full((2, rows), 77, x.dtype)
    tensors = [from_numpy(a) for a in (out, mean, rstd, x)]
    KERNELS["layer_norm"](*tensors, inner, tensor(w), tensor(b), EPS)
    return [out, mean, rstd]


def backward(
    grad: Array, x: Array, mean: Array, rstd: Array, w: Array | None, inner: int
) -> list[Array]:
    dx = np.full(x.shape, 77, x.dtype)
    dw, db = np.full((2, inner), 77, x.dtype)
    tensors = [from_numpy(a) for a in (dx, dw, db, grad, x, mean, rstd)]
    KERNELS["layer_norm_backward"](*tensors, tensor(w), inner)
    return [dx, dw, db]


def wanted_forward(x: Array, w: Array | None, b: Array | None) -> list[Array]:
    x = x.astype(np.float64)
    mean = x.mean(-1)
    rstd = 1 / np.sqrt(x.var(-1) + EPS)
    out = (x - mean[:, None]) * rstd[:, None]
    out = out * w if w is not None else out
    return [out + b if b is not None else out, mean, rstd]


def wanted_backward(grad: Array, x: Array, w: Array | None) -> list[Array]:
    g, x = grad.astype(np.float64), x.astype(np.float64)
    _, mean, rstd = wanted_forward(x, None, None)
    normal = (x - mean[:, None]) * rstd[:, None]
    scaled = g * w if w is not None else g
    along = (scaled * normal).mean(-1, keepdims=True)
    dx = (scaled - scaled.mean(-1, keepdims=True) - normal * along) * rstd[:, None]
    return [dx, (g * normal).sum(0), g.sum(0)]


def close(found: list[Array], wanted: list[Array], tolerance: float) -> None:
    for one, other in zip(found, wanted, strict=True):
        scale = max(abs(other).max(), 1) * tolerance
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=scale)


@pytest.mark.parametrize("form", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape", [(1, 7), (3, 1), (5, 33), (2 * BLOCK + 3, 10), (2, 2100)]
)
@pytest.mark.parametrize("affine", ["", "w", "b", "wb"])
def test_rows(affine: str, shape: tuple[int, int], form: str) -> None:
    x, grad = (NUMBERS.normal(size=(2, *shape)) + 2).astype(form)
    both = NUMBERS.normal(size=(2, shape[1])).astype(form)
    w = both[0] if "w" in affine else None
    b = both[1] if "b" in affine else None
    tolerance = 2e-6 if form == "float32" else 1e-14
    found = forward(x, shape[1], w, b)
    if shape[1] > 1:
        close(found, wanted_forward(x, w, b), tolerance)
        gradients = backward(grad, x, found[1], found[2], w, shape[1])
        close(gradients, wanted_backward(grad, x, w), tolerance * 10)
    else:
        assert found[0].tolist() == (np.zeros(shape) + (0 if b is None else b)).tolist()


def test_a_mean_far_from_zero_costs_no_digits() -> None:
    x = (NUMBERS.normal(size=(4, 3000)) + 1000).astype(np.float32)
    out, _, _ = forward(x, 3000, None, None)
    np.testing.assert_allclose(out, wanted_forward(x, None, None)[0], atol=5e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_with_no_number_is_none(bad: float) -> None:
    x = NUMBERS.normal(size=(3, 8)).astype(np.float32)
    x[1, 4] = bad
    out, mean, rstd = forward(x, 8, None, None)
    assert np.isnan(out).all(1).tolist() == [False, True, False]
    assert np.isfinite(mean).tolist() == [True, False, True]
    assert np.isnan(rstd).tolist() == [False, True, False]


def test_other_layouts_are_read() -> None:
    x = NUMBERS.normal(size=(9, 4)).T
    grad = NUMBERS.normal(size=(4, 18))[:, ::2]
    found = forward(x, 9, None, None)
    close(found, wanted_forward(x, None, None), 1e-13)
    gradients = backward(grad, x, found[1], found[2], None, 9)
    close(gradients, wanted_backward(grad, x, None), 1e-13)


def test_only_what_is_asked_for_is_computed() -> None:
    x, grad = NUMBERS.normal(size=(2, 3 * BLOCK, 8))
    _, mean, rstd = forward(x, 8, None, None)
    dx, dw, db = wanted_backward(grad, x, None)
    inputs = [from_numpy(a) for a in (grad, x, mean, rstd)]
    for place, wanted in enumerate((dx, dw, db)):
        out = np.full(wanted.shape, 77.0)
        outs: list[Any] = [None, None, None]
        outs[place] = from_numpy(out)
        KERNELS["layer_norm_backward"](*outs, *inputs, None, 8)
        np.testing.assert_allclose(out, wanted, rtol=1e-12, atol=1e-12)


def test_nothing() -> None:
    out, mean, rstd = forward(np.empty((0, 4)), 4, None, None)
    assert (out.shape, mean.shape, rstd.shape) == ((0, 4), (0,), (0,))
    dx, dw, db = backward(out, out, mean, rstd, None, 4)
    assert dx.shape == (0, 4)
    assert (dw.tolist(), db.tolist()) == ([0] * 4, [0] * 4)
    out, mean, rstd = forward(np.empty((3, 0)), 0, None, None)
    np.testing.assert_array_equal(mean, [np.nan] * 3)
    np.testing.assert_array_equal(rstd, [np.nan] * 3)


@compiled
def test_threads_change_nothing() -> None:
    x, grad = NUMBERS.normal(size=(2, 3000, 64)).astype(np.float32)
    w = NUMBERS.normal(size=64).astype(np.float32)
    before = get_num_threads()
    results = []
    try:
        for threads in (1, 3):
            set_num_threads(threads)
            found = forward(x, 64, w, w)
            gradients = backward(grad, x, found[1], found[2], w, 64)
            results.append([a.tobytes() for a in found + gradients])
    finally:
        set_num_threads(before)
    assert results[0] == results[1]
