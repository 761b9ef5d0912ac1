"""Arguments beyond all use: each is refused in our words, and nothing is written."""

from collections.abc import Callable
from typing import Any

import pytest

from runtime.errors.operands import DTypeRefused, IndexOutOfRange, WrongOption
from runtime.errors.tensor import BadSize, OutOfMemory
from runtime.operators import core
from runtime.schema.codes import DType
from tests.coded import code
from tests.operators.made import tensor
from tests.operators.told import told

BOOL, UINT8 = DType.named("bool"), DType.named("uint8")
IMAGE = tensor([[[[0.0] * 4] * 4]])
KERNEL = tensor([[[[1.0]]]])
FLAGS = tensor([True, False], "bool")
WHOLE = tensor([1, 2], "int64")
REALS = tensor([1.0, 2.0])
FIRST = tensor([0], "int64")
SIZES = "one number, or two for height and width"

OPTIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "dilation": (
        lambda: core.max_pool2d(IMAGE, 1, 1, 0, 2**62),
        f"`core::max_pool2d` does not take [{2**62}, {2**62}] for `dilation`. "
        f"fits: {SIZES}, 1 and more, at most 2147483647",
    ),
    "padding": (
        lambda: core.conv2d(IMAGE, KERNEL, None, 1, 2**40),
        f"`core::conv2d` does not take [{2**40}, {2**40}] for `padding`. "
        f"fits: {SIZES}, 0 and more, at most 2147483647",
    ),
    "stride": (
        lambda: core.conv2d(IMAGE, KERNEL, None, 0),
        f"`core::conv2d` does not take [0, 0] for `stride`. fits: {SIZES}, 1 and more",
    ),
    "fill": (
        lambda: core.fill_(core.clone(FLAGS), 3j),
        "`core::fill_` does not take 3j for `value`. "
        "fits: a real number, as the elements are bool",
    ),
    "full": (
        lambda: core.full([2], 3j, dtype=BOOL),
        "`core::full` does not take 3j for `fill_value`. "
        "fits: a real number, as the elements are bool",
    ),
    "masked_fill": (
        lambda: core.masked_fill(FLAGS, FLAGS, 3j),
        "`core::masked_fill` does not take 3j for `value`. "
        "fits: a real number, as the elements are bool",
    ),
    "scatter": (
        lambda: core.scatter_value(WHOLE, 0, FIRST, float("inf")),
        "`core::scatter.value` does not take inf for `value`. "
        "fits: a finite number, as the elements are int64",
    ),
    "index_add": (
        lambda: core.index_add(WHOLE, 0, FIRST, FIRST, alpha=float("nan")),
        "`core::index_add` does not take nan for `alpha`. "
        "fits: a finite number, as the elements are int64",
    ),
    "var": (
        lambda: core.var(REALS, correction=3j),
        "`core::var` does not take 3j for `correction`. fits: a real number",
    ),
    "arange": (
        lambda: core.arange_start(0, 5, 1e-320),
        f"`core::arange.start` does not take {1e-320!r} for `step`. "
        f"fits: a number that leads there in at most {2**63 - 1} steps",
    ),
    "expand": (
        lambda: core.expand(core.view(FIRST, [1, 1]), [2**32, 2**31]),
        f"`core::expand` does not take ({2**32}, {2**31}) for `size`. "
        f"fits: sizes with a product of at most {2**63 - 1}",
    ),
    "input_strides": (
        lambda: core.as_strided_backward(REALS, [2], [1, 1], 0, [2], [1], 0),
        "`core::as_strided_backward` does not take [1, 1] for `input_strides`. "
        "fits: one stride for each of [2]",
    ),
    "strides": (
        lambda: core.as_strided_backward(REALS, [2], [1], 0, [2], [], 0),
        "`core::as_strided_backward` does not take [] for `stride`. "
        "fits: one stride for each of [2]",
    ),
    "num_weights": (
        lambda: core.embedding_backward(tensor([[1.0]]), FIRST, -3, -1),
        "`core::embedding_backward` does not take -3 for `num_weights`. "
        "fits: 0 or more, the rows of the table",
    ),
    "randperm": (
        lambda: core.randperm(257, dtype=UINT8),
        "`core::randperm` does not take 257 for `n`. "
        "fits: at most 256, as the elements are uint8",
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name: str) -> None:
    call, text = OPTIONS[name]
    with pytest.raises(WrongOption) as caught:
        call()
    assert told(caught.value) == text


def test_bool_is_not_summed_up_as_bool() -> None:
    with pytest.raises(DTypeRefused) as caught:
        core.cumsum(REALS, 0, dtype=BOOL)
    assert told(caught.value) == (
        "`core::cumsum` does not take `dtype` of dtype bool. fits: numbers, not bool"
    )


def test_all_of_a_byte_can_be_permuted() -> None:
    found = core.randperm(256, dtype=UINT8)
    assert sorted(found.tolist()) == list(range(256))


def test_more_than_the_memory() -> None:
    with pytest.raises(OutOfMemory, check=code("NotEnoughMemory")):
        core.zeros([2**62])
    with pytest.raises(OutOfMemory, check=code("NotEnoughMemory")):
        core.conv2d(IMAGE, KERNEL, None, 1, 2**30)


def test_a_window_longer_than_the_image() -> None:
    """In a moment: what lies on the padding is stepped over at once."""
    found = core.max_pool2d(IMAGE, 2**31 - 1, 1, 2**30 - 1)
    assert (found.shape, found.tolist()[0][0][0]) == (IMAGE.shape, [0] * 4)


@pytest.mark.parametrize("place", [-1, 4, 2**40])
def test_places_of_maxima_outside_of_the_image(place: int) -> None:
    image, places = tensor([[[[0.0] * 2] * 2]]), tensor([[[[place]]]], "int64")
    with pytest.raises(IndexOutOfRange) as caught:
        core.max_pool2d_backward(KERNEL, image, places)
    assert (caught.value.index, caught.value.size) == (place, 4)
    assert caught.value.operator == "core::max_pool2d_backward"


def test_more_dimensions_than_numpy_has() -> None:
    x = core.ones([1] * 65)
    with pytest.raises(BadSize, check=code("TooManyDimensions")) as caught:
        x.numpy()
    assert told(caught.value) == (
        "`numpy()` makes an array of NumPy, which has at most 64 dimensions; the "
        "tensor has 65. to do: take dimensions together first, by `.reshape(...)`"
    )
    assert repr(x) == f"tensor(..., shape={x.shape}, dtype=float32)"
    assert core.reshape(x, [1]).tolist() == [1.0]
