"""(outer, length, inner) and how work along an axis is cut."""

import numpy as np

from runtime.kernels.cpu.axis import GRAIN, TILE, along, around, grain_of, result
from runtime.kernels.cpu.operand import dense
from runtime.tensors.making import from_numpy


def test_sizes_around_a_dimension() -> None:
    assert around((2, 3, 4), 0) == (1, 2, 12)
    assert around((2, 3, 4), 1) == (2, 3, 4)
    assert around((2, 3, 4), 2) == (6, 4, 1)
    assert around((), 0) == (1, 1, 1)


def test_tasks_are_rows_or_tiles_of_columns() -> None:
    assert along((2, 3, TILE + 1), 1) == (2, 3, TILE + 1, 4, grain_of(3 * TILE))
    assert along((5, 10), 1) == (5, 10, 1, 5, grain_of(10))


def test_a_thread_gets_a_grain_of_elements() -> None:
    assert grain_of(GRAIN) == 1
    assert grain_of(GRAIN - 1) == 2
    assert grain_of(0) == GRAIN


def test_dense_copies_only_what_does_not_lie_densely() -> None:
    x = np.arange(6).reshape(2, 3)
    assert np.shares_memory(dense(from_numpy(x)), x)
    turned = dense(from_numpy(x.T))
    assert turned.tolist() == [0, 3, 1, 4, 2, 5]
    assert not np.shares_memory(turned, x)
    assert np.shares_memory(result(from_numpy(x)), x)
