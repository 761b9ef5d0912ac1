"""Sorting, and the greatest and least, as NumPy has them."""

import numpy as np
import pytest

from runtime.errors.operands import DTypeRefused, WrongOption
from runtime.operators.call import core
from runtime.tensors import tensor
from tests.operators.grid import MATRIX
from tests.operators.told import Refused, refused

NAN = float("nan")


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_sort_and_argsort(dim: int, descending: bool) -> None:
    array = np.random.default_rng(3).permutation(60).reshape(3, 4, 5) / 7
    values, indices = core.sort(tensor(array), dim, descending)
    order = np.argsort(-array if descending else array, axis=dim)
    assert values.tolist() == np.take_along_axis(array, order, dim).tolist()
    assert (indices.dtype.name, indices.tolist()) == ("int64", order.tolist())
    assert core.argsort(tensor(array), dim, descending).tolist() == order.tolist()


def test_nan_is_the_greatest_and_ties_stay_in_order() -> None:
    mixed = tensor([1.0, NAN, -1.0])
    assert core.argsort(mixed).tolist() == [2, 0, 1]
    assert core.argsort(mixed, -1, True).tolist() == [1, 0, 2]
    assert core.topk(mixed, 1)[1].tolist() == [1]
    ties = tensor([1, 0, 1, 0])
    assert core.sort(ties, 0, False, True)[1].tolist() == [1, 3, 0, 2]
    assert core.sort(ties, 0, True, True)[1].tolist() == [0, 2, 1, 3]


def test_topk_takes_the_greatest_or_the_least() -> None:
    array = np.random.default_rng(4).permutation(24).reshape(4, 6)
    values, indices = core.topk(tensor(array), 2)
    assert values.tolist() == np.sort(array, 1)[:, :-3:-1].tolist()
    assert indices.tolist() == np.argsort(array, 1)[:, :-3:-1].tolist()
    least, _ = core.topk(tensor(array), 3, 0, False)
    assert least.tolist() == np.sort(array, 0)[:3].tolist()
    assert core.topk(tensor(array), 0)[0].shape == (4, 0)
    one, place = core.topk(tensor(5), 1)
    assert (one.tolist(), place.tolist()) == (5, 0)
    there = core.topk(tensor(array, device="meta"), 2)
    assert [each.shape for each in there] == [(4, 2), (4, 2)]


def test_sort_of_little() -> None:
    assert [e.tolist() for e in core.sort(tensor(3))] == [3, 0]
    assert core.sort(tensor([]))[0].shape == (0,)
    assert core.sort(tensor([True, False]))[0].tolist() == [False, True]
    low = tensor([1.0, 0.5], dtype="bfloat16")
    values, _ = core.sort(low)
    assert (values.dtype.name, values.tolist()) == ("bfloat16", [0.5, 1.0])


WRONG: dict[str, Refused] = {
    "topk": (
        lambda: core.topk(MATRIX, 4),
        WrongOption,
        "`core::topk` does not take 4 for `k`.\n"
        "  fits: 0 to 3, the size of dimension 1",
    ),
    "topk none": (
        lambda: core.topk(tensor(1), 0),
        WrongOption,
        "`core::topk` does not take 0 for `k`. fits: 1 to 1, the size of dimension 0",
    ),
    "sort": (
        lambda: core.sort(tensor([1j])),
        DTypeRefused,
        "`core::sort` does not take `self` of dtype complex64.\n"
        "  fits: real numbers and bool, which have an order",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case: str) -> None:
    refused(*WRONG[case])
