"""Sorting, and the greatest and least: what is refused."""

import pytest

from everyorder.runtime.errors.tensor import DTypeRefused, WrongOption
from everyorder.runtime.operators import core
from everyorder.runtime.tensors import tensor
from tests.coded import coded
from tests.operators.refusals import Refusal, assert_refused
from tests.operators.tensors import MATRIX

OptionRefused = coded(WrongOption, "WrongOption")

WRONG: dict[str, Refusal] = {
    "topk": (
        lambda: core.topk(MATRIX, 4),
        OptionRefused,
        "`core::topk` does not take 4 for `k`.\n"
        "  fits: 0 to 3, the size of dimension 1",
    ),
    "topk none": (
        lambda: core.topk(tensor(1), 0),
        OptionRefused,
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
    assert_refused(*WRONG[case])
