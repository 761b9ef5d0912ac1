"""Softmax and its logarithm, and their gradients, by hand."""

import numpy as np
import pytest

from runtime.errors.operands import DimensionOutOfRange, DTypeRefused
from runtime.operators.call import core
from runtime.tensors import tensor
from tests.operators.arrays import agree, normal, softmax
from tests.operators.told import Refused, refused


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax_and_its_logarithm(dim: int) -> None:
    array = normal(3, 4, 5)
    expected = softmax(array, dim)
    agree(core.softmax(tensor(array), dim), expected)
    agree(core.log_softmax(tensor(array), dim), np.log(expected))
    turned = core.permute(tensor(array), [2, 0, 1])
    agree(core.softmax(turned, dim), softmax(array.transpose(2, 0, 1), dim))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_the_gradients_of_softmax(dim: int) -> None:
    array, grad = normal(3, 4, 5), normal(3, 4, 5, seed=1)
    result = softmax(array, dim)
    inner = (grad * result).sum(dim, keepdims=True)
    agree(
        core.softmax_backward(tensor(grad), tensor(result), dim),
        result * (grad - inner),
    )
    agree(
        core.log_softmax_backward(tensor(grad), tensor(np.log(result)), dim),
        grad - result * grad.sum(dim, keepdims=True),
    )


def test_softmax_of_little_and_in_other_dtypes() -> None:
    assert core.softmax(tensor(3.0), 0).tolist() == 1
    assert core.softmax(tensor(np.zeros((0, 3))), 1).shape == (0, 3)
    counted = core.softmax(tensor([0, 0]), 0, tensor(0.0).dtype)
    assert (counted.dtype.name, counted.tolist()) == ("float32", [0.5, 0.5])
    half = core.softmax(tensor([0.0, 0.0], dtype="bfloat16"), 0)
    assert (half.dtype.name, half.tolist()) == ("bfloat16", [0.5, 0.5])
    out = tensor([0.0, 0.0])
    assert core.softmax_out(tensor([1.0, 1.0]), 0, out=out) is out
    assert out.tolist() == [0.5, 0.5]
    assert core.softmax(tensor([[1.0]], device="meta"), 1).shape == (1, 1)


WRONG: dict[str, Refused] = {
    "softmax dtype": (
        lambda: core.softmax(tensor([1]), 0),
        DTypeRefused,
        "`core::softmax` does not take `self` of dtype int64. fits: floating-point "
        "numbers; ask for one by dtype=",
    ),
    "softmax dimension": (
        lambda: core.log_softmax(tensor([1.0]), 1),
        DimensionOutOfRange,
        "`core::log_softmax` was given dimension 1 for shape (1,), which has no such "
        "dimension. fits: -1 to 0, each once",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case: str) -> None:
    refused(*WRONG[case])
