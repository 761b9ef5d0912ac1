"""Layer normalisation by hand, its gradients against torch."""

import numpy as np
import pytest

from runtime.errors.operands import DTypeRefused, ShapesDoNotFit
from runtime.operators.call import core
from runtime.tensors import tensor
from tests.operators.arrays import REASON, agree, normal
from tests.operators.told import Refused, refused


@pytest.mark.parametrize("shape", [(5,), (4, 5)], ids=str)
@pytest.mark.parametrize("affine", [True, False])
def test_layer_norm(shape: tuple[int, ...], affine: bool) -> None:
    array = normal(3, 4, 5)
    weight, bias = normal(*shape, seed=1), normal(*shape, seed=2)
    axes = tuple(range(-len(shape), 0))
    mean = array.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(array.var(axes, keepdims=True) + 1e-5)
    expected = (array - mean) * rstd
    if affine:
        expected = expected * weight + bias
    given = (tensor(weight), tensor(bias)) if affine else (None, None)
    agree(core.layer_norm(tensor(array), shape, *given), expected)
    out, means, deviations = core.native_layer_norm(tensor(array), shape, *given, 1e-5)
    agree(out, expected)
    agree(means, mean)
    agree(deviations, rstd)
    there = core.native_layer_norm(
        tensor(array, device="meta"), shape, None, None, 1e-5
    )
    assert [each.shape for each in there] == [array.shape, mean.shape, mean.shape]


@pytest.mark.torch
def test_the_gradients_of_layer_norm() -> None:
    torch = pytest.importorskip("torch", reason=REASON)
    array, grad = normal(6, 4, 5), normal(6, 4, 5, seed=1)
    weight, bias = normal(4, 5, seed=2), normal(4, 5, seed=3)
    arguments = (grad, array, (4, 5))
    theirs = [torch.tensor(each, requires_grad=True) for each in (array, weight, bias)]
    made = torch.nn.functional.layer_norm(theirs[0], (4, 5), *theirs[1:])
    made.backward(torch.tensor(grad))
    _, mean, rstd = core.native_layer_norm(
        tensor(array), (4, 5), tensor(weight), tensor(bias), 1e-5
    )
    ours = core.native_layer_norm_backward(
        *(tensor(each) for each in arguments[:2]),
        (4, 5),
        mean,
        rstd,
        tensor(weight),
        tensor(bias),
        [True, True, True],
    )
    for found, expected in zip(ours, theirs, strict=True):
        agree(found, expected.grad.numpy(), 1e-10)
    only = core.native_layer_norm_backward(
        tensor(grad), tensor(array), (4, 5), mean, rstd, None, None, [False, True, True]
    )
    assert only == (None, None, None)


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


WRONG: dict[str, Refused] = {
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
    refused(*WRONG[case])
