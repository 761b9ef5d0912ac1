"""Elements and slices picked and put by number: one element, nothing, and refusals."""

import numpy as np
import pytest

from everyorder.runtime.errors.tensor import (
    DTypeRefused,
    IndexOutOfRange,
    ShapesDoNotFit,
    WrongOption,
)
from everyorder.runtime.operators import core
from everyorder.runtime.tensors import tensor
from tests.coded import coded
from tests.operators.refusals import Refusal, assert_refused
from tests.operators.tensors import MATRIX, grid, normal


def test_gather_of_one_element() -> None:
    assert core.gather(tensor(7), 0, tensor(0)).tolist() == 7
    assert core.gather(tensor([5, 6]), 0, tensor(1)).tolist() == 6
    assert core.gather(tensor(7), 0, tensor([0, 0])).tolist() == [7, 7]
    none = tensor(np.zeros((2, 0), np.int64))
    assert core.gather(tensor(grid(2, 3)), 1, none).shape == (2, 0)


WRONG: dict[str, Refusal] = {
    "gather dtype": (
        lambda: core.gather(MATRIX, 0, tensor([[1.0]])),
        DTypeRefused,
        "`core::gather` does not take `index` of dtype float32.\n  fits: int32, int64",
    ),
    "gather dimensions": (
        lambda: core.gather(MATRIX, 0, tensor([1])),
        ShapesDoNotFit,
        "`core::gather` cannot work on these shapes: index does not have as many "
        "dimensions as self.\n"
        "  given: index (1,), self (2, 3)\n"
        "  fits:  2 dimensions for index",
    ),
    "gather size": (
        lambda: core.gather(MATRIX, 1, tensor(np.zeros((3, 1), np.int64))),
        ShapesDoNotFit,
        "`core::gather` cannot work on these shapes: index is longer than self in\n"
        "dimension 0.\n"
        "  given: index (3, 1), self (2, 3)\n"
        "  fits:  at most 2 there; dimension 1 is free",
    ),
    "gather value": (
        lambda: core.gather(MATRIX, 1, tensor([[3]])),
        IndexOutOfRange,
        "`core::gather` was given index 3 for dimension 1, which has size 3.\n"
        "  fits:  0 to 2\n"
        "  state: nothing was written",
    ),
    "index_select": (
        lambda: core.index_select(MATRIX, 1, tensor([[0]])),
        ShapesDoNotFit,
        "`core::index_select` cannot work on these shapes: index has 2 dimensions.\n"
        "  given: index (1, 1)\n"
        "  fits:  0 or 1 dimensions",
    ),
    "index_select one": (
        lambda: core.index_select(tensor(1), 0, tensor([0, 0])),
        ShapesDoNotFit,
        "`core::index_select` cannot work on these shapes: self has one element and "
        "zero\n"
        "dimensions.\n"
        "  given: self (), index (2,)\n"
        "  fits:  an index of one number",
    ),
    "scatter source": (
        lambda: core.scatter(MATRIX, 1, tensor([[0, 1]]), tensor([[1]])),
        ShapesDoNotFit,
        "`core::scatter` cannot work on these shapes: index is longer than src in\n"
        "dimension 1.\n"
        "  given: index (1, 2), src (1, 1)\n"
        "  fits:  at most 1 there",
    ),
    "scatter dtype": (
        lambda: core.scatter(MATRIX, 1, tensor([[0]]), tensor([[1.0]])),
        DTypeRefused,
        "`core::scatter` does not take `src` of dtype float32.\n"
        "  fits: int64, the dtype of self",
    ),
    "index_add": (
        lambda: core.index_add(MATRIX, 1, tensor([0, 1]), MATRIX),
        ShapesDoNotFit,
        "`core::index_add` cannot work on these shapes: source does not have one "
        "slice for each number in index.\n"
        "  given: self (2, 3), index (2,), source (2, 3)\n"
        "  fits:  source of shape (2, 2)",
    ),
    "embedding": (
        lambda: core.embedding(tensor(normal(4, 2)), tensor([[0], [4]])),
        IndexOutOfRange,
        "`core::embedding` was given index 4 for dimension 0, which has size 4. fits: "
        "0 "
        "to 3 state: nothing was written",
    ),
    "embedding dtype": (
        lambda: core.embedding(tensor(normal(4, 2)), tensor([0.0])),
        DTypeRefused,
        "`core::embedding` does not take `indices` of dtype float32. fits: int64 or "
        "int32",
    ),
    "embedding padding": (
        lambda: core.embedding(tensor(normal(4, 2)), tensor([0]), 4),
        coded(WrongOption, "WrongOption"),
        "`core::embedding` does not take 4 for `padding_idx`. fits: -1 for none, or a "
        "row, 0 to 3",
    ),
    "embedding gradient": (
        lambda: core.embedding_backward(tensor(normal(3, 2)), tensor([0]), 4, -1),
        ShapesDoNotFit,
        "`core::embedding_backward` cannot work on these shapes: grad does not have "
        "one row for each index. given: grad (3, 2), indices (1,) fits: grad "
        "of shape (1, d)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case: str) -> None:
    assert_refused(*WRONG[case])


@pytest.mark.parametrize("number", [-1, 4, 2**62])
def test_numbers_are_looked_at_where_there_is_nothing_to_pick(number: int) -> None:
    nothing = tensor(np.zeros((0, 4), np.float32))
    with pytest.raises(IndexOutOfRange) as caught:
        core.index_select(nothing, 1, tensor([0, number]))
    error = caught.value
    assert (error.operator, error.index, error.size, error.dim) == (
        *("core::index_select", number, 4, 1),
    )
    assert core.index_select(nothing, 1, tensor([3, 0, 3])).shape == (0, 3)
    with pytest.raises(IndexOutOfRange) as caught:
        core.embedding(core.t(nothing), tensor([number]))
    assert (caught.value.operator, caught.value.index) == ("core::embedding", number)
    assert core.embedding(core.t(nothing), tensor([[3]])).shape == (1, 1, 0)


def test_a_complex_number_is_not_put_among_real_ones() -> None:
    base, index = tensor([[1.0, 2.0], [3.0, 4.0]]), tensor([[1], [0]])
    with pytest.raises(DTypeRefused):
        core.scatter_value(base, 1, index, 1j)


def test_sums_at_one_place_are_rounded_once() -> None:
    base = tensor([1.0, 1.0, 1.0])
    assert core.index_add_(base, 0, tensor(1), tensor([5.0])) is base
    assert base.tolist() == [1, 6, 1]
    half = core.scatter_add(
        tensor([0.0], dtype="float16"),
        0,
        tensor([0] * 5),
        tensor([2048.0, 1.0, 1.0, 1.0, 1.0], dtype="float16"),
    )
    # Added one by one in float16, 2048 would stay 2048.
    assert half.tolist() == [2052]
