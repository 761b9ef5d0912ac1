"""Convolution and pooling: windows counted one by one, and what is refused."""

import numpy as np
import pytest

from everyorder.runtime.errors.tensor import DTypeRefused, ShapesDoNotFit, WrongOption
from everyorder.runtime.operators import core
from everyorder.runtime.operators.convolution import LARGEST, pair, places
from everyorder.runtime.tensors import tensor
from tests.operators.refusals import Refusal, assert_refused
from tests.operators.tensors import normal


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


WRONG: dict[str, Refusal] = {
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
        "`core::conv2d` cannot work on these shapes: 3 output channels do not divide "
        "into 2 equal groups. given: input (1, 4, 5, 5), weight (3, 2, 3, 3) fits: a "
        "weight whose first size is a multiple of 2",
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
        lambda: core.max_pool2d_with_indices_backward(
            tensor(normal(1, 2, 2)),
            tensor(normal(2, 4, 4)),
            *(2, 2, 0, 1, False),
            tensor(np.zeros((1, 2, 2), np.int64)),
        ),
        ShapesDoNotFit,
        "`core::max_pool2d_with_indices_backward` cannot work on these shapes: "
        "grad_output has another shape than asked. given: grad_output (1, 2, 2) fits: "
        "shape (2, 2, 2)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case: str) -> None:
    assert_refused(*WRONG[case])


def test_one_number_counts_for_both() -> None:
    assert pair("stride", [3], 1) == (3, 3)
    assert pair("stride", (3, 4), 1) == (3, 4)


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        ([], ", 1 and more"),
        ([1, 2, 3], ", 1 and more"),
        ([2, 0], ", 1 and more"),
        ([LARGEST + 1], f", 1 and more, at most {LARGEST}"),
    ],
)
def test_what_is_no_pair(given: list[int], fits: str) -> None:
    with pytest.raises(WrongOption) as caught:
        pair("stride", given, 1)
    assert caught.value.fields() == {
        "operator": "",
        "argument": "stride",
        "found": str(given),
        "fits": "one number, or two for height and width" + fits,
    }


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [2, 3])
@pytest.mark.parametrize("size", [5, 6, 7, 8])
def test_places_counted_one_by_one(
    size: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool
) -> None:
    reach = dilation * (kernel - 1)
    count = 0
    while True:
        begin = count * stride - padding
        inside = begin + reach < size + padding
        # With `ceil` one more, if the one before did not end at the border.
        if not inside:
            cut = ceil and begin < size and begin - stride + reach < size + padding - 1
            count += cut
            break
        count += 1
    assert places(size, kernel, stride, padding, dilation, ceil) == count
