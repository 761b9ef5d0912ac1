"""Pooling and its gradient, against torch and by hand."""

from typing import Any

import numpy as np
import pytest

from runtime.errors.operands import ShapesDoNotFit, WrongOption
from runtime.operators.call import core
from runtime.tensors import tensor
from tests.operators.arrays import REASON, agree, normal
from tests.operators.told import Refused, refused

# shape, kernel, stride, padding, dilation, ceil
POOLS: tuple[tuple[Any, ...], ...] = (
    ((2, 3, 6, 7), [2], [], [0], [1], False),
    ((2, 3, 6, 7), [3, 2], [2, 1], [1, 1], [1], False),
    ((2, 3, 7, 7), [2], [2], [0], [1], True),
    ((2, 3, 7, 7), [3], [2], [1], [2], True),
    ((1, 1, 5, 5), [2], [3], [1], [1], True),
    ((3, 6, 7), [2, 3], [], [1], [1], False),
    ((0, 3, 6, 7), [2], [], [0], [1], False),
)


@pytest.mark.torch
@pytest.mark.parametrize("case", POOLS, ids=str)
def test_max_pool2d_and_its_gradient(case: tuple[Any, ...]) -> None:
    torch = pytest.importorskip("torch", reason=REASON)
    shape, kernel, stride, padding, dilation, ceil = case
    array = np.random.default_rng(1).permutation(int(np.prod(shape)) or 1)
    array = array[: int(np.prod(shape))].reshape(shape).astype(np.float64)
    theirs = torch.tensor(array, requires_grad=True)
    expected, places = torch.nn.functional.max_pool2d(
        theirs, kernel, stride or None, padding, dilation, ceil, True
    )
    options = (kernel, stride, padding, dilation, ceil)
    found, indices = core.max_pool2d_with_indices(tensor(array), *options)
    agree(found, expected.detach().numpy())
    assert indices.tolist() == places.tolist()
    agree(core.max_pool2d(tensor(array), *options), expected.detach().numpy())
    grad = normal(*found.shape)
    expected.backward(torch.tensor(grad))
    agree(
        core.max_pool2d_backward(tensor(grad), tensor(array), indices),
        theirs.grad.numpy(),
    )
    there = core.max_pool2d_with_indices(tensor(array, device="meta"), *options)
    assert [each.shape for each in there] == [found.shape, found.shape]


def test_max_pool2d_by_hand() -> None:
    image = tensor([[[1.0, 2.0, 0.0], [3.0, float("nan"), 0.0], [0.0, 0.0, 9.0]]])
    maxima, places = core.max_pool2d_with_indices(image, 2, 1)
    assert np.isnan(maxima.numpy()).all()
    assert places.tolist() == [[[4, 4], [4, 4]]]
    whole = core.max_pool2d(tensor([[[1, 5], [3, 2]]]), 2)
    assert (whole.dtype.name, whole.tolist()) == ("int64", [[[5]]])


WRONG: dict[str, Refused] = {
    "pool padding": (
        lambda: core.max_pool2d(tensor(normal(1, 4, 4)), 2, padding=2),
        WrongOption,
        "`core::max_pool2d` does not take [2, 2] for `padding`. fits: at "
        "most half of kernel_size (2, 2)",
    ),
    "pool window": (
        lambda: core.max_pool2d(tensor(normal(1, 2, 2)), 3),
        ShapesDoNotFit,
        "`core::max_pool2d` cannot work on these shapes: a window of (3, "
        "3) is larger than the padded image. given: self (1, 2, 2) fits: a kernel_size "
        "of at most the image plus twice the padding",
    ),
    "pool gradient": (
        lambda: core.max_pool2d_backward(
            tensor(normal(1, 2, 2)),
            tensor(normal(2, 4, 4)),
            tensor(np.zeros((1, 2, 2), np.int64)),
        ),
        ShapesDoNotFit,
        "`core::max_pool2d_backward` cannot work on these shapes: they are not the "
        "same "
        "images. given: grad (1, 2, 2), self (2, 4, 4) fits: grad of shape (2,) and "
        "the "
        "size of the maxima",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case: str) -> None:
    refused(*WRONG[case])
