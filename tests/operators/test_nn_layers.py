"""Softmax and layer normalisation: the dtype of means, and what is refused."""

import numpy as np
import pytest

from everyorder.runtime import zeros
from everyorder.runtime.errors.tensor import (
    DTypeRefused,
    IndexOutOfRange,
    ShapesDoNotFit,
)
from everyorder.runtime.operators import core
from everyorder.runtime.tensors import tensor
from tests.operators.refusals import Refusal, assert_refused
from tests.operators.tensors import normal

WRONG: dict[str, Refusal] = {
    "softmax dtype": (
        lambda: core.softmax(tensor([1]), 0),
        DTypeRefused,
        "`core::softmax` does not take `self` of dtype int64. fits: floating-point "
        "numbers; ask for one by dtype=",
    ),
    "softmax dimension": (
        lambda: core.log_softmax(tensor([1.0]), 1),
        IndexOutOfRange,
        "`core::log_softmax` was given dimension 1 for shape (1,), which has no such "
        "dimension. fits: -1 to 0, each once",
    ),
    "layer_norm": (
        lambda: core.layer_norm(tensor(normal(2, 3)), [2]),
        ShapesDoNotFit,
        "`core::layer_norm` cannot work on these shapes: input does not end in "
        "the normalised shape (2,). given: input (2, 3) fits: input of shape (..., 2)",
    ),
    "layer_norm weight": (
        lambda: core.layer_norm(tensor(normal(2, 3)), [3], tensor(normal(2))),
        ShapesDoNotFit,
        "`core::layer_norm` cannot work on these shapes: weight has another "
        "shape than asked. given: weight (2,) fits: shape (3,)",
    ),
    "layer_norm dtype": (
        lambda: core.layer_norm(tensor([1.0]), [1], tensor(normal(1))),
        DTypeRefused,
        "`core::layer_norm` does not take `weight` of dtype float64. fits: "
        "float32, the dtype of input",
    ),
    "layer_norm of nothing": (
        lambda: core.layer_norm(tensor([1.0]), []),
        ShapesDoNotFit,
        "`core::layer_norm` cannot work on these shapes: input does not end in "
        "the normalised shape (). given: input (1,) fits: a normalised shape of at "
        "least one dimension",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case: str) -> None:
    assert_refused(*WRONG[case])


def test_layer_norm_of_sixteen_bits_keeps_its_means() -> None:
    x = tensor(normal(2, 8), dtype="bfloat16")
    out, mean, rstd = core.native_layer_norm(x, [8], None, None, 1e-5)
    assert [each.dtype.name for each in (out, mean, rstd)] == [
        "bfloat16",
        "float32",
        "float32",
    ]
    weight = tensor(np.ones(8, np.float32))
    assert core.layer_norm(x, [8], weight).tolist() == out.tolist()


@pytest.mark.parametrize("shape", [(0, 3), (0, 3, 2), (2, 3, 0)])
@pytest.mark.parametrize("training", [False, True])
def test_a_batch_of_nothing_has_no_mean(shape: tuple[int, ...], training: bool) -> None:
    x = zeros(*shape, requires_grad=True)
    weight, bias = (zeros(3).requires_grad_() for _ in range(2))
    mean, variance = zeros(3), zeros(3) + 4
    result = core.batch_norm(x, mean, variance, weight, bias, training)
    result.sum().backward()
    assert result.shape == shape
    assert (mean.tolist(), variance.tolist()) == ([0, 0, 0], [4, 4, 4])
    for each in (weight, bias):
        assert each.grad is not None
        assert each.grad.tolist() == [0, 0, 0]
    assert x.grad is not None
    assert x.grad.shape == shape
