"""The negative log likelihood on the device against the CPU's."""

import numpy as np
import pytest

from runtime.errors.tensor import IndexOutOfRange
from runtime.kernels.cuda import KERNELS as CUDA
from tests.cuda.simulated.agreement import agree, empty, numbers
from tests.cuda.simulated.arrays import fresh, get, put

SHAPES = [((5, 3), (5,)), ((2, 4, 3, 2), (2, 3, 2)), ((3,), ()), ((0, 3), (0,))]


def targets(shape: tuple[int, ...], classes: int, ignored: int) -> np.ndarray:
    """Classes, every third of them ignored."""
    found = np.random.default_rng(7).integers(0, classes, shape)
    return np.where(np.arange(found.size).reshape(shape) % 3 == 1, ignored, found)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("shape", "lead"), SHAPES)
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
