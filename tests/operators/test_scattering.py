"""Scattering elements and slices by number, as NumPy has it."""

from collections.abc import Callable

import numpy as np
import pytest

from runtime.errors.operands import DTypeRefused, IndexOutOfRange, ShapesDoNotFit
from runtime.operators.call import core
from runtime.tensors import tensor
from runtime.tensors.tensor import Tensor
from tests.coded import code
from tests.operators.grid import MATRIX
from tests.operators.told import Refused, refused


def test_scatter_of_numbers_in_place_and_to_targets() -> None:
    base = tensor([[1.0, 2.0], [3.0, 4.0]])
    index = tensor([[1], [0]])
    assert core.scatter_value(base, 1, index, 9).tolist() == [[1, 9], [9, 4]]
    assert core.scatter__value(base, 1, index, 0.5) is base
    assert base.tolist() == [[1, 0.5], [0.5, 4]]
    out = tensor(np.zeros((2, 2), np.float32))
    core.scatter_value_out(base, 1, index, -1, out=out)
    assert out.tolist() == [[1, -1], [-1, 4]]
    with pytest.raises(DTypeRefused):
        core.scatter_value(base, 1, index, 1j)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "int32", "bool"])
def test_scatter_of_every_width(name: str) -> None:
    base = tensor([0, 0, 0], dtype=name)
    found = core.scatter(base, 0, tensor([2, 0]), tensor([1, 1], dtype=name))
    assert (found.dtype.name, found.tolist()) == (name, [1, 0, 1])


def test_scatter_add_and_index_add_count_every_repetition() -> None:
    base = tensor([1.0, 1.0, 1.0])
    places = tensor([0, 2, 0, 0])
    source = tensor([1.0, 2.0, 3.0, 4.0])
    assert core.scatter_add(base, 0, places, source).tolist() == [9, 1, 3]
    assert core.index_add(base, 0, places, source, alpha=-1).tolist() == [-7, 1, -1]
    assert core.index_add_(base, 0, tensor(1), tensor([5.0])) is base
    assert base.tolist() == [1, 6, 1]
    rows = core.index_add(
        tensor(np.zeros((2, 3))), 1, tensor([2, 2]), tensor(np.ones((2, 2)))
    )
    assert rows.tolist() == [[0, 0, 2], [0, 0, 2]]
    half = core.scatter_add(
        tensor([0.0], dtype="float16"),
        0,
        tensor([0] * 5),
        tensor([2048.0, 1.0, 1.0, 1.0, 1.0], dtype="float16"),
    )
    # Added one by one in float16, 2048 would stay 2048.
    assert half.tolist() == [2052]


def test_scattering_nothing_changes_nothing() -> None:
    base, none = tensor([1, 2]), tensor(np.zeros(0, np.int64))
    assert core.scatter(base, 0, none, tensor([5])).tolist() == [1, 2]
    assert core.scatter_value(base, 0, none, 5).tolist() == [1, 2]
    assert core.scatter_add(base, 0, none, none).tolist() == [1, 2]
    assert core.scatter(tensor(3), 0, tensor(0), tensor(4)).tolist() == 4


IN_PLACE: dict[str, Callable[[Tensor], object]] = {
    "scatter_": lambda base: core.scatter_(base, 0, tensor([0, 3]), tensor([9, 9])),
    "scatter_add_": lambda base: core.scatter_add_(
        base, 0, tensor([0, -1]), tensor([9, 9])
    ),
    "index_add_": lambda base: core.index_add_(base, 0, tensor([0, 3]), tensor([9, 9])),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_wrong_number_leaves_the_target_as_it_was(name: str) -> None:
    base = tensor([1, 2, 3])
    with pytest.raises(IndexOutOfRange, check=code("IndexOutOfRange")):
        IN_PLACE[name](base)
    assert base.tolist() == [1, 2, 3]


WRONG: dict[str, Refused] = {
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
        "`core::index_add` cannot work on these shapes: source has not one slice for\n"
        "each number in index.\n"
        "  given: self (2, 3), index (2,), source (2, 3)\n"
        "  fits:  source of shape (2, 2)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case: str) -> None:
    refused(*WRONG[case])
