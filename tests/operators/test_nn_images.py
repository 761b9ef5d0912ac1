"""Convolution and pooling, against torch and by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runtime.errors.operands import DTypeRefused, WrongOption
from runtime.errors.operator import ShapesDoNotFit
from runtime.operators.call import core
from runtime.tensors import tensor
from runtime.tensors.tensor import Tensor
from tests.operators.told import told, words

Array = np.ndarray[Any, Any]
REASON = "torch is not installed"


def normal(*shape: int, seed: int = 0) -> Array:
    found: Array = np.random.default_rng(seed).standard_normal(shape)
    return found


def agree(ours: Tensor, expected: Any, rtol: float = 1e-11) -> None:
    array = np.asarray(expected)
    assert ours.shape == array.shape
    np.testing.assert_allclose(ours.numpy(), array, rtol=rtol, atol=rtol)


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


WRONG: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
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
        "numbers",
    ),
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
    call, kind, text = WRONG[case]
    with pytest.raises(kind) as caught:
        call()
    assert told(caught.value) == words(text)
