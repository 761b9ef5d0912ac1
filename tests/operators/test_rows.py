"""Tensors laid out anew for kernels: views where they can be, else copies."""

import numpy as np

from runtime.operators import core
from runtime.operators.plan import FLOAT32, INT64
from runtime.operators.produce import (
    as_dtype,
    as_rows,
    expanded,
    in_order,
    shaped,
    table_of,
)
from tests.operators.grid import cube, grid

CPU = table_of("CPU")


def test_rows_are_a_view_where_they_can_be() -> None:
    base = cube()
    rows = as_rows(CPU, base)
    assert (rows.shape, rows.storage()) == ((6, 4), base.storage())
    assert shaped(CPU, base, base.shape) is base
    turned = core.permute(base, [2, 0, 1])
    copied = as_rows(CPU, turned)
    assert copied.storage() is not base.storage()
    assert copied.tolist() == grid(2, 3, 4).transpose(2, 0, 1).reshape(8, 3).tolist()


def test_contiguous_copies_and_dtypes() -> None:
    base = cube()
    assert in_order(CPU, base) is base
    assert as_dtype(CPU, base, INT64) is base
    turned = in_order(CPU, core.t(as_rows(CPU, base)))
    assert turned.is_contiguous()
    assert turned.tolist() == grid(6, 4).T.tolist()
    converted = as_dtype(CPU, base, FLOAT32)
    assert (converted.dtype, converted.tolist()) == (FLOAT32, base.tolist())


def test_dimensions_are_repeated_without_a_copy() -> None:
    base = cube()
    assert expanded(base, base.shape) is base
    row = core.slice(base, 1, 0, 1)
    wide = expanded(row, (5, 2, 3, 4))
    assert wide.storage() is base.storage()
    array = np.broadcast_to(grid(2, 3, 4)[:, :1], (5, 2, 3, 4))
    assert wide.tolist() == array.tolist()
