"""Layouts: dimensions taken together, and the table of a walk."""

from typing import Any

import pytest

from runtime.kernels.cpu.elementwise import coalesced, plan


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((), ((),), ((1,), ((0,),))),
        ((1, 1), ((5, 1),), ((1,), ((0,),))),
        ((2, 3), ((3, 1),), ((6,), ((1,),))),
        ((2, 1, 3), ((3, 9, 1),), ((6,), ((1,),))),
        ((2, 3), ((3, 1), (0, 1)), ((2, 3), ((3, 1), (0, 1)))),
        ((4, 2, 3), ((6, 3, 1), (0, 3, 1)), ((4, 6), ((6, 1), (0, 1)))),
        ((2, 3), ((1, 2),), ((2, 3), ((1, 2),))),
    ],
)
def test_coalescing(shape: Any, strides: Any, expected: Any) -> None:
    assert coalesced(shape, *strides) == expected


def test_a_plan_is_a_table_for_rows() -> None:
    rows, inner, table = plan((2, 3), ((2, 3), (3, 1)), ((3,), (1,)))
    assert (rows, inner, table.tolist()) == (2, 3, [2, 2, 3, 3, 1, 0, 1])
    assert plan((2, 3), ((2, 3), (3, 1)), ((3,), (1,)))[2] is table
    assert not table.flags.writeable
