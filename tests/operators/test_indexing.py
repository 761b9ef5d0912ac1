"""Indexing by operators: index, index_put, nonzero and masked_select."""

from typing import Any

import numpy as np
import pytest

from runtime.errors.operands import DTypeRefused, NoData, ShapesDoNotFit
from runtime.operators import methods  # noqa: F401  # installs the brackets
from runtime.operators.call import core
from runtime.tensors import tensor
from tests.coded import code
from tests.operators.grid import cube
from tests.operators.told import told, words

Array = np.ndarray[Any, Any]


def test_index_as_an_operator() -> None:
    base = cube()
    found = core.index(base, [None, tensor([2, 0])])
    assert found.tolist() == base.numpy()[:, [2, 0]].tolist()
    assert core.index(base, []).tolist() == base.tolist()
    with pytest.raises(DTypeRefused) as caught:
        core.index(base, [tensor([0.0])])
    assert told(caught.value) == words(
        "`core::index` does not take `indices[0]` of dtype float32.\n"
        "  fits: integers, or bool for a mask"
    )
    with pytest.raises(ShapesDoNotFit) as many:
        core.index(base, [tensor([0])] * 4)
    assert told(many.value) == words(
        "`core::index` cannot work on these shapes: there are 4 indices.\n"
        "  given: self (2, 3, 4)\n"
        "  fits:  at most 3, one for each dimension of self"
    )


def test_index_put_adds_where_it_is_told() -> None:
    base = tensor([1.0, 2.0, 3.0])
    places = [tensor([0, 0, -1])]
    added = core.index_put(base, places, tensor([10.0, 20.0, 30.0]), True)
    assert (added.tolist(), base.tolist()) == ([31, 2, 33], [1, 2, 3])
    assert core.index_put_(base, places, tensor(7.0)) is base
    assert base.tolist() == [7, 2, 7]
    assert core.index_put(base, [], tensor(1.0), True).tolist() == [8, 3, 8]
    assert core.index_put(base, [None], tensor(1.0)).tolist() == [1, 1, 1]


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (2, 0)], ids=str)
def test_nonzero_and_masked_select(shape: tuple[int, ...]) -> None:
    array = np.arange(int(np.prod(shape))).reshape(shape) % 3
    found = core.nonzero(tensor(array))
    places = np.argwhere(array)
    assert (found.shape, found.tolist()) == (places.shape, places.tolist())
    assert found.dtype.name == "int64"
    picked = core.masked_select(tensor(array), tensor(array == 1))
    assert picked.tolist() == array[array == 1].tolist()


def test_masked_select_broadcasts_both() -> None:
    column, row = tensor([[1], [2]]), tensor([True, False, True])
    assert core.masked_select(column, row).tolist() == [1, 1, 2, 2]
    assert core.masked_select(tensor([5, 6]), tensor(True)).tolist() == [5, 6]
    with pytest.raises(ShapesDoNotFit) as caught:
        core.masked_select(tensor([1, 2]), row)
    assert told(caught.value) == words(
        "`core::masked_select` cannot work on these shapes: self and mask do not\n"
        "broadcast together.\n"
        "  given: self (2,), mask (3,)\n"
        "  fits:  a mask that broadcasts with (2,)"
    )
    with pytest.raises(NoData, check=code("NoDataToRead")):
        core.nonzero(tensor([1], device="meta"))
