"""Joining tensors: promotion, what is skipped, and what is refused."""

import numpy as np
import pytest

from everyorder.runtime.errors.tensor import (
    IndexOutOfRange,
    ShapesDoNotFit,
    WrongOption,
)
from everyorder.runtime.keys import DispatchKey, KeySet
from everyorder.runtime.operators import core
from everyorder.runtime.operators.cat_and_flip import cat_anywhere
from everyorder.runtime.tensors import tensor
from tests.coded import code, coded
from tests.operators.refusals import Refusal, assert_refused
from tests.operators.tensors import MATRIX, grid, shown


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


WRONG: dict[str, Refusal] = {
    "stack none": (
        lambda: core.stack([]),
        coded(WrongOption, "WrongOption"),
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
        "`core::cat` cannot work on these shapes: a tensor without dimensions cannot "
        "be\n"
        "joined.\n"
        "  given: tensors[0] ()\n"
        "  fits:  at least one dimension; stack(...) joins along a new one",
    ),
    "cat dimension": (
        lambda: core.cat([MATRIX], 2),
        IndexOutOfRange,
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
    assert_refused(*WRONG[case])


def test_sizes_that_cannot_be_counted_are_refused() -> None:
    """Nothing is there to be copied, and the sum of the sizes is too large."""
    most = 2**63 - 1
    wide = core.expand(tensor(np.zeros((0, 1), np.float32)), [0, most])
    for joined in ([wide, wide], [wide, tensor(np.zeros((0, 1), np.float32))]):
        with pytest.raises(
            WrongOption, check=code("WrongOption"), match="at most 9223372036854775807"
        ):
            core.cat(joined, 1)
    assert core.cat([wide], 1).shape == (0, most)


def test_nothing_to_join_below_the_dispatcher() -> None:
    with pytest.raises(WrongOption, check=code("WrongOption")):
        core.cat.redispatch(KeySet([DispatchKey.CPU]), [])


def test_joining_where_no_backend_does() -> None:
    """The composite: by copies, for backends without a kernel of their own."""
    x, y = tensor([[1.0], [2.0]]), tensor([[3, 4], [5, 6]])
    assert shown(cat_anywhere([x, y], 1)) == ("float32", [[1, 3, 4], [2, 5, 6]])
    with pytest.raises(ShapesDoNotFit, check=code("ShapesDoNotFit")):
        cat_anywhere([x, y], 0)
