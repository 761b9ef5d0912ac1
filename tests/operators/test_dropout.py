"""Dropout: how much it keeps, and what it says of that."""

import numpy as np
import pytest

from runtime.errors.operands import DTypeRefused, WrongOption
from runtime.operators.call import core
from runtime.tensors import tensor
from tests.operators.told import Refused, refused


def test_dropout_keeps_the_mean_and_says_what_it_kept() -> None:
    ones = tensor(np.ones(10_000))
    out, mask = core.native_dropout(ones, 0.25, True)
    assert (out.dtype.name, mask.dtype.name) == ("float64", "bool")
    kept = mask.numpy()
    assert 0.72 < kept.mean() < 0.78
    assert out.numpy().tolist() == (kept / 0.75).tolist()
    assert 0.95 < core.dropout(ones, 0.25).numpy().mean() < 1.05


def test_dropout_of_all_of_nothing_and_in_sixteen_bits() -> None:
    line = tensor([1.0, 2.0])
    out, mask = core.native_dropout(line, 1.0, True)
    assert (out.tolist(), mask.tolist()) == ([0, 0], [False, False])
    out, mask = core.native_dropout(line, 0.5, False)
    assert (out.tolist(), mask.tolist()) == ([1, 2], [True, True])
    for same in (core.dropout(line, 0.5, False), core.dropout(line, 0.0)):
        assert same.tolist() == [1, 2]
        assert same.storage() is not line.storage()
    half, _ = core.native_dropout(tensor([1.0] * 8, dtype="bfloat16"), 0.5)
    assert half.dtype.name == "bfloat16"
    assert set(half.tolist()) <= {0.0, 2.0}
    shapes = [
        each.shape for each in core.native_dropout(tensor([1.0], device="meta"), 0.5)
    ]
    assert shapes == [(1,), (1,)]


def test_dropout_draws_from_the_generator_that_is_given() -> None:
    from runtime.tensors import Generator

    ones = tensor(np.ones(64))
    first, second = (
        core.native_dropout(ones, 0.5, generator=Generator(seed=3))[1].tolist()
        for _ in range(2)
    )
    assert first == second
    assert 0 < sum(first) < 64


WRONG: dict[str, Refused] = {
    "dropout": (
        lambda: core.dropout(tensor([1.0]), 1.5),
        WrongOption,
        "`core::dropout` does not take 1.5 for `p`. fits: 0.0 to 1.0",
    ),
    "dropout dtype": (
        lambda: core.native_dropout(tensor([1]), 0.5),
        DTypeRefused,
        "`core::native_dropout` does not take `input` of dtype int64. fits: "
        "floating-point and complex numbers",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case: str) -> None:
    refused(*WRONG[case])
