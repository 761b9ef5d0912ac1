"""Softmax and the negative log likelihood on the device against the CPU's."""

import numpy as np
import pytest

from everyorder.runtime.errors.tensor import IndexOutOfRange
from everyorder.runtime.kernels.cuda import KERNELS as CUDA
from tests.cuda.simulated.agreement import agree, empty, numbers
from tests.cuda.simulated.arrays import fresh, get, put

# By rows, by columns, in the middle, one long row, a number, and nothing.
SHAPES = [((3, 9), 1), ((9, 3), 0), ((2, 5, 3), 1), ((37,), 0), ((), 0), ((0, 3), 1)]


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_forward(name: str, dtype: str, shape: tuple[int, ...], dim: int) -> None:
    agree(name, [empty(shape, dtype)], numbers(shape, dtype) * 5, dim)


@pytest.mark.parametrize("name", ["softmax_backward", "log_softmax_backward"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_backward(name: str, dtype: str, shape: tuple[int, ...], dim: int) -> None:
    grad, result = numbers(shape, dtype), numbers(shape, dtype, 2)
    agree(name, [empty(shape, dtype)], grad, result, dim)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dim", [0, 1])
def test_what_is_not_finite(name: str, dim: int) -> None:
    lines = np.array(
        [
            [1, np.nan, 2, 3],
            [np.nan, 1, 2, 3],
            [-np.inf, 0, -np.inf, 1],
            [-np.inf] * 4,
            [np.inf, 0, 1, 2],
            [1e4, -1e4, 0, 1e4],
        ],
        np.float32,
    )
    given = lines if dim else lines.T.copy()
    agree(name, [empty(given.shape, np.float32)], given, dim)


LOSSES_SHAPES = [((5, 3), (5,)), ((2, 4, 3, 2), (2, 3, 2)), ((3,), ()), ((0, 3), (0,))]


def targets(shape: tuple[int, ...], classes: int, ignored: int) -> np.ndarray:
    """Classes, every third of them ignored."""
    found = np.random.default_rng(7).integers(0, classes, shape)
    return np.where(np.arange(found.size).reshape(shape) % 3 == 1, ignored, found)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("shape", "lead"), LOSSES_SHAPES)
def test_both_ways(
    reduction: str,
    dtype: str,
    weighted: bool,
    shape: tuple[int, ...],
    lead: tuple[int, ...],
) -> None:
    classes = shape[0] if len(shape) == 1 else shape[1]
    weight = np.abs(numbers((classes,), dtype, 3)) if weighted else None
    whole = lead if reduction == "none" else ()
    for ignored in (-100, 1, 77):
        target = targets(lead, classes, ignored)
        outs = [empty(whole, dtype), empty((), dtype)]
        options = (weight, reduction, ignored)
        logp = numbers(shape, dtype)
        _, total = agree("nll_loss", outs, logp, target, *options)
        assert (total == 0) == (reduction == "none" or (target == ignored).all())
        given = (numbers(whole, dtype, 2), target, weight, total, reduction, ignored)
        agree("nll_loss_backward", [empty(shape, dtype)], *given)


def test_a_mean_of_nothing_is_not_a_number() -> None:
    outs = [empty((), "float32"), empty((), "float32")]
    target = np.full(2, -100, np.int32)
    given = numbers((2, 3), "float32")
    loss, total = agree("nll_loss", outs, given, target, None, "mean", -100)
    assert np.isnan(loss)
    assert total == 0


@pytest.mark.parametrize("ignored", [-100, 1, 77])
@pytest.mark.parametrize("bad", [3, -1])
def test_a_target_that_is_no_class_is_refused_first(ignored: int, bad: int) -> None:
    out, total, dx = put(np.ones(3)), put(np.float64(7)), put(np.full((3, 3), 7.0))
    target = put(np.array([ignored, 2, bad]))
    expected = {
        "operator": "nll_loss",
        "index": bad,
        "size": 3,
        "dim": 1,
        "wraps": False,
    }
    with pytest.raises(IndexOutOfRange) as caught:
        CUDA["nll_loss"](
            out, total, put(np.ones((3, 3))), target, None, "none", ignored
        )
    assert caught.value.fields() == expected
    given = (put(np.ones(3)), target, None, fresh((), "float64"), "none", ignored)
    with pytest.raises(IndexOutOfRange) as caught:
        CUDA["nll_loss_backward"](dx, *given)
    assert caught.value.fields() == expected
    np.testing.assert_array_equal(get(out), np.ones(3))
    np.testing.assert_array_equal(get(dx), np.full((3, 3), 7.0))
