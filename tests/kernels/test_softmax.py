"""Softmax, its logarithm, the negative log likelihood, and their gradients."""

import os
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.errors.tensor import IndexOutOfRange
from everyorder.runtime.kernels.cpu.axis import TILE
from everyorder.runtime.kernels.cpu.softmax import KERNELS, nll_loss, nll_loss_backward
from everyorder.runtime.kernels.shared.reduction_passes import LEAF
from everyorder.runtime.kernels.shared.thread_pool import (
    get_num_threads,
    set_num_threads,
)
from everyorder.runtime.tensors.construction import from_numpy

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


LOSSES_NUMBERS = np.random.default_rng(8)
IGNORED = -100


def tensor(array: Array | None) -> Any:
    return None if array is None else from_numpy(array)


def forward(
    logp: Array, target: Array, weight: Array | None, reduction: str
) -> tuple[Array, Array]:
    out = np.full(target.shape if reduction == "none" else (), 77, logp.dtype)
    total = np.full((), 77, logp.dtype)
    nll_loss(
        from_numpy(out),
        from_numpy(total),
        from_numpy(logp),
        from_numpy(target),
        tensor(weight),
        reduction,
        IGNORED,
    )
    return out, total


def backward(
    shape: tuple[int, ...],
    grad: Array,
    target: Array,
    weight: Array | None,
    total: Array,
    reduction: str,
) -> Array:
    dx = np.full(shape, 77, grad.dtype)
    nll_loss_backward(
        from_numpy(dx),
        from_numpy(grad),
        from_numpy(target),
        tensor(weight),
        from_numpy(total),
        reduction,
        IGNORED,
    )
    return dx


def wanted(
    logp: Array, target: Array, weight: Array | None
) -> tuple[Array, Array, Array]:
    """Losses, their weights, and the gradients of their sum."""
    classes = logp.shape[1] if logp.ndim > 1 else logp.shape[0]
    w = np.ones(classes) if weight is None else weight.astype(np.float64)
    weights, losses = np.zeros(target.shape), np.zeros(target.shape)
    slopes = np.zeros(logp.shape)
    for place in np.ndindex(target.shape):
        c = int(target[place])
        if c != IGNORED:
            at = (place[0], c, *place[1:]) if logp.ndim > 1 else (c,)
            weights[place] = w[c]
            losses[place] = -w[c] * logp[at]
            slopes[at] = -w[c]
    return losses, weights, slopes


SHAPES = {"pairs": (6, 4), "positions": (3, 4, 2, 5), "one": (4,), "nobody": (0, 4)}


@pytest.mark.parametrize("form", ["float32", "float64"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_and_gradients(
    weighted: bool, shape: tuple[int, ...], reduction: str, form: str
) -> None:
    logp = LOSSES_NUMBERS.normal(size=shape).astype(form)
    places = shape[:1] + shape[2:] if len(shape) > 1 else ()
    target = np.array(LOSSES_NUMBERS.integers(0, 4, places))
    target.reshape(-1)[1:2] = IGNORED
    weight = LOSSES_NUMBERS.uniform(0.5, 2, 4).astype(form) if weighted else None
    losses, weights, slopes = wanted(logp, target, weight)
    with np.errstate(invalid="ignore"):
        loss = {
            "none": losses,
            "sum": losses.sum(),
            "mean": losses.sum() / weights.sum(),
        }[reduction]
    out, total = forward(logp, target, weight, reduction)
    np.testing.assert_allclose(out, loss, rtol=1e-6)
    counted = 0 if reduction == "none" else weights.sum()
    np.testing.assert_allclose(total, counted, rtol=1e-6)

    grad = np.asarray(LOSSES_NUMBERS.normal(size=out.shape), form)
    scale: Any = grad.astype(np.float64)
    if reduction == "mean":
        scale = scale / weights.sum() if weights.sum() else 1.0
    if reduction == "none" and len(shape) > 1:
        scale = np.expand_dims(scale, 1)
    dx = backward(shape, grad, target, weight, total, reduction)
    np.testing.assert_allclose(dx, slopes * scale, rtol=1e-6)


def test_nothing_counted_is_no_number_and_no_gradient() -> None:
    target = np.full(3, IGNORED)
    out, total = forward(np.ones((3, 2)), target, None, "mean")
    assert np.isnan(out)
    assert total == 0
    dx = backward((3, 2), np.array(1.0), target, None, total, "mean")
    assert dx.tolist() == [[0, 0]] * 3


def test_other_layouts_and_integers_are_read() -> None:
    logp = LOSSES_NUMBERS.normal(size=(4, 6)).T
    target = LOSSES_NUMBERS.integers(0, 4, 12)[::2].astype(np.uint8)
    losses, _, _ = wanted(logp, target, None)
    out, _ = forward(logp, target, None, "none")
    np.testing.assert_allclose(out, losses)


@pytest.mark.parametrize("bad", [-1, 4, 99])
def test_a_target_that_is_no_class_is_refused_before_writing(bad: int) -> None:
    target = np.array([1, bad, -5])
    logp, out, total = np.zeros((3, 4)), np.full((), 7.0), np.full((), 8.0)
    a, b, x, t = (from_numpy(array) for array in (out, total, logp, target))
    with pytest.raises(IndexOutOfRange) as caught:
        nll_loss(a, b, x, t, None, "mean", IGNORED)
    fields = {
        "operator": "nll_loss",
        "index": bad,
        "size": 4,
        "dim": 1,
        "wraps": False,
    }
    assert caught.value.fields() == fields
    assert (out.tolist(), total.tolist()) == (7.0, 8.0)
    dx = np.full((3, 4), 7.0)
    with pytest.raises(IndexOutOfRange) as caught:
        nll_loss_backward(from_numpy(dx), b, t, None, b, "sum", IGNORED)
    assert caught.value.fields() == fields
    assert (dx == 7).all()
