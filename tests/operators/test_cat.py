"""Joining along a dimension, and along a new one."""

import numpy as np
import pytest

from runtime.errors.operands import DimensionOutOfRange, ShapesDoNotFit, WrongOption
from runtime.operators.call import core
from runtime.tensors import tensor
from tests.operators.grid import MATRIX, grid, on_meta
from tests.operators.told import Refused, refused


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cat_joins_along_a_dimension(dim: int) -> None:
    first, second = grid(2, 3, 4), -grid(2, 3, 4)
    found = core.cat([tensor(first), tensor(second)], dim)
    assert found.tolist() == np.concatenate([first, second], dim).tolist()
    there = core.cat(on_meta(tensor(first), tensor(second)), dim)
    assert there.shape == found.shape


def test_cat_promotes_and_skips_what_is_empty() -> None:
    mixed = core.cat([tensor([1, 2]), tensor([0.5]), tensor([True])])
    assert (mixed.dtype.name, mixed.tolist()) == ("float32", [1, 2, 0.5, 1])
    kept = core.cat([tensor([]), tensor(grid(2, 2))])
    assert (kept.dtype.name, kept.tolist()) == ("float32", [[0, 1], [2, 3]])
    assert core.cat([tensor([]), tensor([])]).shape == (0,)
    strided = core.transpose(tensor(grid(2, 3)), 0, 1)
    assert core.cat([strided, strided], 1).tolist() == (
        np.concatenate([grid(2, 3).T] * 2, 1).tolist()
    )


def test_cat_to_a_target() -> None:
    out = tensor([0.0, 0.0, 0.0])
    assert core.cat_out([tensor([1, 2]), tensor([3])], out=out) is out
    assert out.tolist() == [1, 2, 3]


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_stack_joins_along_a_new_dimension(dim: int) -> None:
    first, second = grid(2, 3), -grid(2, 3)
    expected = np.stack([first, second], dim)
    assert (
        core.stack([tensor(first), tensor(second)], dim).tolist() == expected.tolist()
    )
    out = tensor(np.zeros(expected.shape, np.int64))
    assert core.stack_out([tensor(first), tensor(second)], dim, out=out) is out
    assert out.tolist() == expected.tolist()


WRONG: dict[str, Refused] = {
    "stack none": (
        lambda: core.stack([]),
        WrongOption,
        "`core::stack` does not take an empty list for `tensors`.\n  fits: one or more",
    ),
    "cat shapes": (
        lambda: core.cat([MATRIX, tensor(grid(2, 2))]),
        ShapesDoNotFit,
        "`core::cat` cannot work on these shapes: shapes (2, 3) and (2, 2) differ\n"
        "outside of dimension 0.\n"
        "  given: tensors[0] (2, 3), tensors[1] (2, 2)\n"
        "  fits:  tensors like the first in all but dimension 0",
    ),
    "cat numbers": (
        lambda: core.cat([tensor(1)]),
        ShapesDoNotFit,
        "`core::cat` cannot work on these shapes: a tensor without dimensions has no "
        "end\n"
        "to join at.\n"
        "  given: tensors[0] ()\n"
        "  fits:  at least one dimension; stack(...) joins along a new one",
    ),
    "cat dimension": (
        lambda: core.cat([MATRIX], 2),
        DimensionOutOfRange,
        "`core::cat` was given dimension 2 for shape (2, 3), which has no such\n"
        "dimension.\n"
        "  fits: -2 to 1, each once",
    ),
    "stack": (
        lambda: core.stack([MATRIX, tensor([1])]),
        ShapesDoNotFit,
        "`core::stack` cannot work on these shapes: they do not have one shape.\n"
        "  given: tensors[0] (2, 3), tensors[1] (1,)\n"
        "  fits:  every tensor of shape (2, 3)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case: str) -> None:
    refused(*WRONG[case])


def test_sizes_that_cannot_be_counted_are_refused() -> None:
    """Nothing is there to be copied, and the sum of the sizes is too large."""
    most = 2**63 - 1
    wide = tensor(np.zeros((0, 1), np.float32)).expand(0, most)
    for joined in ([wide, wide], [wide, tensor(np.zeros((0, 1), np.float32))]):
        with pytest.raises(WrongOption, match="at most 9223372036854775807"):
            core.cat(joined, 1)
    assert core.cat([wide], 1).shape == (0, most)
