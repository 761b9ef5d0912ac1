"""The negative log likelihood of classes, and its gradient."""

from typing import Any

import numpy as np
import pytest

from runtime.errors.tensor import IndexOutOfRange
from runtime.kernels.cpu.softmax import nll_loss, nll_loss_backward
from runtime.tensors.making import from_numpy

Array = np.ndarray[Any, Any]
NUMBERS = np.random.default_rng(8)
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
    logp = NUMBERS.normal(size=shape).astype(form)
    places = shape[:1] + shape[2:] if len(shape) > 1 else ()
    target = np.array(NUMBERS.integers(0, 4, places))
    target.reshape(-1)[1:2] = IGNORED
    weight = NUMBERS.uniform(0.5, 2, 4).astype(form) if weighted else None
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

    grad = np.asarray(NUMBERS.normal(size=out.shape), form)
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
    logp = NUMBERS.normal(size=(4, 6)).T
    target = NUMBERS.integers(0, 4, 12)[::2].astype(np.uint8)
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
