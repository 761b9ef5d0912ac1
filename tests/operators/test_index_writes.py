"""Writing by index: combined or replaced elements, windows, random integers."""

from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime import Tensor
from everyorder.runtime.errors.tensor import (
    DTypeRefused,
    IndexOutOfRange,
    ShapesDoNotFit,
    TargetRefused,
    WrongOption,
)
from everyorder.runtime.operators import core
from tests.operators.refusals import Refusal, assert_refused
from tests.operators.tensors import tensor


def whole(*values: Any) -> Tensor:
    return tensor(values, "int64")


def slope(leaf: Tensor) -> Tensor:
    """The gradient of a leaf."""
    assert leaf.grad is not None
    return leaf.grad


LINE, MASK = tensor([1.0, 2.0, 3.0]), tensor([True, False, True], "bool")


@pytest.mark.parametrize(
    ("how", "include_self", "wanted"),
    [
        ("sum", True, [10, 2, 12]),
        ("sum", False, [9, 2, 9]),
        ("prod", True, [20, 2, 27]),
        ("mean", False, [4.5, 2, 9]),
        ("mean", True, [10 / 3, 2, 6]),
        ("amax", True, [5, 2, 9]),
        ("amin", True, [1, 2, 3]),
        ("amin", False, [4, 2, 9]),
    ],
)
def test_sources_are_combined_with_the_places_they_share(
    how: str, include_self: bool, wanted: list[float]
) -> None:
    x, index, src = tensor([1.0, 2.0, 3.0]), whole(0, 0, 2), tensor([4.0, 5.0, 9.0])
    found = x.scatter_reduce(0, index, src, how, include_self=include_self)
    assert found.tolist() == pytest.approx(wanted)
    assert x.scatter_reduce_(0, index, src, how, include_self=include_self) is x
    assert x.tolist() == pytest.approx(wanted)


def test_the_mean_of_integers_is_rounded_down() -> None:
    x = tensor([-1, 0, 5], "int64")
    found = x.scatter_reduce(0, whole(0, 0, 2), whole(-2, -2, 6), "mean")
    assert found.tolist() == [-2, 0, 5]


def test_sums_of_halves_are_rounded_once() -> None:
    x, ones = tensor([2048.0], "float16"), runtime.ones(64, dtype="float16")
    index = runtime.zeros(64, dtype="int64")
    assert x.scatter_reduce(0, index, ones, "sum").tolist() == [2112]
    assert ones.scatter_reduce(0, index, ones, "mean").tolist()[0] == 1


@pytest.mark.parametrize("how", ["amax", "amin"])
def test_the_gradient_of_an_extreme_is_shared_by_those_that_took_part(how: str) -> None:
    x = tensor([5.0, 1.0]).requires_grad_()
    src = tensor([5.0, 5.0, 1.0]).requires_grad_()
    index = whole(0, 0, 1)
    core.scatter_reduce(x, 0, index, src, how, include_self=False).sum().backward()
    assert (slope(x).tolist(), slope(src).tolist()) == ([0, 0], [0.5, 0.5, 1])
    x.grad = src.grad = None
    core.scatter_reduce(x, 0, index, src, how).sum().backward()
    assert slope(x).tolist() == pytest.approx([1 / 3, 0.5])
    assert slope(src).tolist() == pytest.approx([1 / 3, 1 / 3, 0.5])


def test_the_gradient_of_a_source_beyond_its_index_is_zero() -> None:
    for how in ("sum", "prod", "mean", "amax"):
        x, src = tensor([1.0, 2.0]), tensor([3.0, 4.0, 5.0]).requires_grad_()
        x.scatter_reduce(0, whole(1), src, how, include_self=False).sum().backward()
        assert slope(src).tolist() == [1, 0, 0]


def test_a_product_with_two_zeros_has_a_second_gradient() -> None:
    src = tensor([0.0, 0.0, 3.0]).requires_grad_()
    x, index = tensor([2.0]), runtime.zeros(3, dtype="int64")
    result = x.scatter_reduce(0, index, src, "prod")
    (first,) = runtime.autograd.grad([result], [src], create_graph=True)
    assert first is not None
    assert first.tolist() == [0, 0, 0]
    (second,) = runtime.autograd.grad([first[0]], [src])
    assert second is not None
    assert second.tolist() == [0, 6, 0]


def test_slices_are_replaced_and_negative_places_only_filled() -> None:
    x = tensor(np.arange(6.0).reshape(2, 3))
    assert x.index_copy(1, whole(2, 0), x[:, :2]).tolist() == [[1, 1, 0], [4, 4, 3]]
    assert x.index_fill(1, whole(-1), 9).tolist() == [[0, 1, 9], [3, 4, 9]]
    with pytest.raises(IndexOutOfRange):
        x.index_copy(1, whole(-1), x[:, :1])
    turned = x.t()
    assert turned.index_fill(0, whole(0), 9).strides == turned.strides
    assert turned.index_copy(0, whole(0), x[:1, :2]).is_contiguous()


def test_a_tensor_fills_slices_and_has_the_sum_of_their_gradients() -> None:
    x, value = tensor([1.0, 2.0, 3.0]).requires_grad_(), tensor(7.0).requires_grad_()
    found = x.index_fill(0, whole(0, -1, 2), value)
    assert found.tolist() == [7, 2, 7]
    found.backward(tensor([1.0, 10.0, 100.0]))
    assert (slope(x).tolist(), slope(value).item()) == ([0, 10, 0], 101)
    y = tensor([1.0, 2.0])
    assert y.index_fill_(0, whole(1), tensor(5)).tolist() == [1, 5]


def test_a_mask_takes_the_elements_of_a_source_in_order() -> None:
    source = tensor([[7.0, 8.0], [9.0, 0.0]]).requires_grad_()
    x = tensor([[1.0, 2.0, 3.0]]).requires_grad_()
    found = x.masked_scatter(MASK, source)
    assert found.tolist() == [[7, 2, 8]]
    found.backward(tensor([[1.0, 10.0, 100.0]]))
    assert slope(source).tolist() == [[1, 100], [0, 0]]
    assert slope(x).tolist() == [[0, 10, 0]]
    y = tensor([1.0, 2.0, 3.0])
    assert y.masked_scatter_(MASK, tensor([5.0, 6.0])).tolist() == [5, 2, 6]
    with pytest.raises(TargetRefused):
        y.masked_scatter_(tensor([[True] * 3] * 2, "bool"), runtime.ones(6))
    assert LINE.masked_scatter(tensor([[True] * 3] * 2, "bool"), runtime.ones(6)).shape
    meta = runtime.ones(3, device="meta")
    assert meta.masked_scatter(MASK.to("meta"), meta).shape == (3,)


def test_windows_share_the_elements_of_their_tensor() -> None:
    x = tensor(np.arange(5.0))
    windows = x.unfold(0, 3, 2)
    assert windows.tolist() == [[0, 1, 2], [2, 3, 4]]
    x[2] = 9.0
    assert (windows[0, 2].item(), windows[1, 0].item()) == (9, 9)
    leaf = tensor(np.arange(5.0)).requires_grad_()
    leaf.unfold(0, 3, 2).sum().backward()
    assert slope(leaf).tolist() == [1, 1, 2, 1, 1]
    assert tensor(7.0).unfold(0, 1, 1).tolist() == [7]
    assert tensor(7.0).unfold(0, 0, 1).shape == (0,)


@pytest.mark.parametrize(
    ("dtype", "last"),
    [("bool", 1), ("uint8", 255), ("int8", 127), ("float16", 2048), ("bfloat16", 256)],
)
def test_random_integers_of_a_dtype(dtype: str, last: int) -> None:
    drawn = runtime.empty(20000, dtype=dtype).random_().to("float64")
    assert drawn.min().item() == 0
    assert drawn.max().item() == last


def test_random_integers_between_limits() -> None:
    x = runtime.empty(500, dtype="int64")
    assert {*x.random_(3).tolist()} == {0, 1, 2}
    assert {*x.random_(-2, 1).tolist()} == {-2, -1, 0}
    assert {*x.random_(**{"from": 4, "to": 6}).tolist()} == {4, 5}
    assert {*x.random_(to=2).tolist()} == {0, 1}
    assert {*x.random_(4, to=6).tolist()} == {4, 5}
    assert min(x.random_(2**40, None).tolist()) >= 2**40
    for dtype in ("float16", "bfloat16", "float32", "float64", "int8", "int64"):
        y = runtime.empty(500, dtype=dtype)
        assert {*y.random_(-2, 1).tolist()} == {-2, -1, 0}, dtype
    same = [x.random_(generator=runtime.Generator().manual_seed(3)).tolist()[:3]
            for _ in range(2)]  # fmt: skip
    assert same[0] == same[1]
    turned = runtime.zeros(4, 5).t()
    assert turned.random_(5, 6) is turned
    assert {*turned.reshape(-1).tolist()} == {5}
    leaf = runtime.ones(2).requires_grad_()
    (leaf * 2).random_(4).sum().backward()
    assert slope(leaf).tolist() == [0, 0]
    assert runtime.empty(2, device="meta").random_().is_meta


WRONG: dict[str, Refusal] = {
    "reduce": (
        lambda: LINE.scatter_reduce(0, whole(0), LINE, "max"),
        WrongOption,
        "`core::scatter_reduce` does not take 'max' for `reduce`. fits: 'sum', 'mean', "
        "'prod', 'amax', 'amin'",
    ),
    "mean of bool": (
        lambda: MASK.scatter_reduce(0, whole(0), MASK, "mean"),
        DTypeRefused,
        "`core::scatter_reduce` does not take `self` of dtype bool.\n"
        "  fits: every dtype but bool for 'mean'",
    ),
    "index of int32": (
        lambda: LINE.index_fill(0, tensor([0], "int32"), 1),
        DTypeRefused,
        "`core::index_fill` does not take `index` of dtype int32.\n  fits: int64",
    ),
    "value": (
        lambda: LINE.index_fill(0, whole(0), LINE),
        ShapesDoNotFit,
        "`core::index_fill.int_Tensor` cannot work on these shapes: value has 1 "
        "dimensions.\n  given: value (3,)\n  fits:  0 dimensions",
    ),
    "slices": (
        lambda: LINE.index_copy(0, whole(0), LINE),
        ShapesDoNotFit,
        "`core::index_copy` cannot work on these shapes: source does not have one "
        "slice for\neach number in index.\n"
        "  given: self (3,), index (1,), source (3,)\n  fits:  source of shape (1,)",
    ),
    "too few": (
        lambda: LINE.masked_scatter(MASK, LINE[:1]),
        ShapesDoNotFit,
        "`core::masked_scatter` cannot work on these shapes: source has fewer elements "
        "than\nthe mask has true ones, 2.\n"
        "  given: mask (3,), source (1,)\n  fits:  a source of at least 2 elements",
    ),
    "window": (
        lambda: LINE.unfold(0, 4, 1),
        WrongOption,
        "`core::unfold` does not take 4 for `size`. fits: 0 to 3, the size of "
        "dimension 0",
    ),
    "step": (
        lambda: LINE.unfold(0, 2, 0),
        WrongOption,
        "`core::unfold` does not take 0 for `step`. fits: 1 and more",
    ),
    "no integers": (
        lambda: LINE.random_(0),
        WrongOption,
        "`core::random_.to` does not take 0 for `to`. fits: more than 0",
    ),
    "beyond a dtype": (
        lambda: runtime.empty(2, dtype="uint8").random_(300),
        WrongOption,
        "`core::random_.to` does not take 300 for `to`. fits: at most 256, as the "
        "elements are uint8",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_refused(name: str) -> None:
    assert_refused(*WRONG[name])
