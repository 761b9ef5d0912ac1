"""Rows looked up by number, and their gradient."""

import numpy as np
import pytest

from runtime.errors.operands import (
    DTypeRefused,
    IndexOutOfRange,
    ShapesDoNotFit,
    WrongOption,
)
from runtime.operators.call import core
from runtime.tensors import tensor
from tests.operators.arrays import agree, normal
from tests.operators.told import Refused, refused


def test_embedding_looks_rows_up() -> None:
    table = normal(6, 3)
    places = np.array([[1, 5], [0, 1]])
    found = core.embedding(tensor(table), tensor(places))
    assert found.tolist() == table[places].tolist()
    assert core.embedding(tensor(table), tensor(2)).tolist() == table[2].tolist()
    none = tensor(np.zeros((0, 2), np.int64))
    assert core.embedding(tensor(table), none).shape == (0, 2, 3)
    there = core.embedding(tensor(table, device="meta"), tensor(places, device="meta"))
    assert there.shape == (2, 2, 3)


def test_the_gradient_of_embedding_adds_up_rows() -> None:
    places = np.array([[1, 5], [0, 1]])
    grad = normal(2, 2, 3)
    expected = np.zeros((6, 3))
    np.add.at(expected, places, grad)
    agree(core.embedding_backward(tensor(grad), tensor(places), 6, -1), expected)
    expected[1] = 0
    agree(core.embedding_backward(tensor(grad), tensor(places), 6, 1), expected)


WRONG: dict[str, Refused] = {
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
        WrongOption,
        "`core::embedding` does not take 4 for `padding_idx`. fits: -1 for none, or a "
        "row, 0 to 3",
    ),
    "embedding gradient": (
        lambda: core.embedding_backward(tensor(normal(3, 2)), tensor([0]), 4, -1),
        ShapesDoNotFit,
        "`core::embedding_backward` cannot work on these shapes: there is not one row "
        "of the gradient for each index. given: grad (3, 2), indices (1,) fits: grad "
        "of shape (1, d)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case: str) -> None:
    refused(*WRONG[case])
