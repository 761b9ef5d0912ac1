"""Convolution and its gradients, against torch and by hand."""

from typing import Any

import numpy as np
import pytest

from runtime.errors.operands import DTypeRefused, ShapesDoNotFit, WrongOption
from runtime.operators.call import core
from runtime.tensors import tensor
from tests.operators.arrays import REASON, agree, normal
from tests.operators.told import Refused, refused

# input, weight, stride, padding, dilation, groups
CONVOLUTIONS: tuple[tuple[Any, ...], ...] = (
    ((2, 3, 6, 7), (4, 3, 3, 2), (1, 1), (0, 0), (1, 1), 1),
    ((2, 3, 6, 7), (4, 3, 3, 3), (2, 1), (1, 2), (1, 1), 1),
    ((2, 3, 8, 8), (4, 3, 3, 3), (1, 2), (2, 2), (2, 1), 1),
    ((2, 4, 5, 5), (6, 2, 2, 2), (1, 1), (0, 0), (1, 1), 2),
    ((2, 4, 5, 5), (4, 1, 3, 3), (1, 1), (1, 1), (1, 1), 4),
    ((2, 4, 5, 5), (3, 4, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((3, 6, 7), (4, 3, 3, 2), (1, 1), (1, 0), (1, 1), 1),
    ((0, 3, 6, 7), (4, 3, 3, 2), (1, 1), (0, 0), (1, 1), 1),
)


@pytest.mark.torch
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_conv2d_and_its_gradients(case: tuple[Any, ...]) -> None:
    torch = pytest.importorskip("torch", reason=REASON)
    shape, kernel, *options = case
    arrays = normal(*shape), normal(*kernel, seed=1), normal(kernel[0], seed=2)
    theirs = [torch.tensor(each, requires_grad=True) for each in arrays]
    expected = torch.nn.functional.conv2d(*theirs, *options)
    found = core.conv2d(*map(tensor, arrays), *options)
    agree(found, expected.detach().numpy())
    grad = normal(*found.shape, seed=3)
    expected.backward(torch.tensor(grad))
    x, weight, _ = map(tensor, arrays)
    gradients = core.conv2d_backward(
        tensor(grad), x, weight, True, *options, [True, True, True]
    )
    for ours, each in zip(gradients, theirs, strict=True):
        agree(ours, each.grad.numpy())
    there = core.conv2d(*(tensor(each, device="meta") for each in arrays), *options)
    assert there.shape == found.shape


def test_conv2d_by_hand() -> None:
    image = tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    weight = tensor([[[[1.0, 0.0], [0.0, 1.0]]]])
    assert core.conv2d(image, weight).tolist() == [[[[5.0]]]]
    biased = core.conv2d(image, weight, tensor([0.5]), padding=1)
    assert biased.tolist() == [[[[1.5, 2.5, 0.5], [3.5, 5.5, 2.5], [0.5, 3.5, 4.5]]]]
    half = core.conv2d(
        core._to_copy(image, dtype=tensor(0, dtype="float16").dtype),
        core._to_copy(weight, dtype=tensor(0, dtype="float16").dtype),
    )
    assert (half.dtype.name, half.tolist()) == ("float16", [[[[5.0]]]])


def test_gradients_that_are_not_wanted_are_none() -> None:
    x, weight = tensor(normal(1, 1, 3, 3)), tensor(normal(1, 1, 2, 2))
    grad = tensor(normal(1, 1, 2, 2))
    options = ([1], [0], [1], 1)
    none = core.conv2d_backward(grad, x, weight, False, *options, [False, False, True])
    assert none == (None, None, None)
    _, to_weight, _ = core.conv2d_backward(
        grad, x, weight, False, *options, [False, True, False]
    )
    assert to_weight.shape == (1, 1, 2, 2)


WRONG: dict[str, Refused] = {
    "channels": (
        lambda: core.conv2d(tensor(normal(1, 3, 5, 5)), tensor(normal(2, 2, 3, 3))),
        ShapesDoNotFit,
        "`core::conv2d` cannot work on these shapes: input has 3 channels, and weight "
        "takes 2 for each of 1 group(s). given: input (1, 3, 5, 5), weight (2, 2, 3, "
        "3) "
        "fits: input of 2 channels",
    ),
    "groups": (
        lambda: core.conv2d(
            tensor(normal(1, 4, 5, 5)), tensor(normal(3, 2, 3, 3)), groups=2
        ),
        ShapesDoNotFit,
        "`core::conv2d` cannot work on these shapes: 3 channels cannot be made by 2 "
        "groups alike. given: input (1, 4, 5, 5), weight (3, 2, 3, 3) fits: a weight "
        "whose first size is a multiple of 2",
    ),
    "kernel": (
        lambda: core.conv2d(tensor(normal(1, 2, 2, 5)), tensor(normal(2, 2, 3, 3))),
        ShapesDoNotFit,
        "`core::conv2d` cannot work on these shapes: the weight is larger than the "
        "padded input. given: input (1, 2, 2, 5), weight (2, 2, 3, 3) fits: a kernel "
        "of "
        "at least 1 by 1, and at most the input plus twice (0, 0)",
    ),
    "dimensions": (
        lambda: core.conv2d(tensor(normal(2, 5)), tensor(normal(2, 2, 3, 3))),
        ShapesDoNotFit,
        "`core::conv2d` cannot work on these shapes: input has 2 dimensions. given: "
        "input (2, 5) fits: 3 or 4 dimensions",
    ),
    "no groups": (
        lambda: core.conv2d(
            tensor(normal(1, 2, 5, 5)), tensor(normal(2, 2, 3, 3)), groups=0
        ),
        WrongOption,
        "`core::conv2d` does not take 0 for `groups`. fits: 1 and more",
    ),
    "stride": (
        lambda: core.conv2d(
            tensor(normal(1, 2, 5, 5)), tensor(normal(2, 2, 3, 3)), stride=[1, 0]
        ),
        WrongOption,
        "`core::conv2d` does not take [1, 0] for `stride`. fits: one number, or two "
        "for "
        "height and width, 1 and more",
    ),
    "dtype": (
        lambda: core.conv2d(tensor(np.ones((1, 1, 2, 2), int)), tensor([[[[1]]]])),
        DTypeRefused,
        "`core::conv2d` does not take `input` of dtype int64. fits: floating-point "
        "and complex numbers",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case: str) -> None:
    refused(*WRONG[case])
