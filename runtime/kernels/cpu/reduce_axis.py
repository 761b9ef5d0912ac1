"""Kernels along one axis see (outer, length, inner), densely.

True only here: the shape that softmax, scans and searches for extremes share.  With
`inner == 1` the axis is innermost and a kernel works row by row; otherwise it works on
tiles of columns, `inner` apart, so that memory is read in its own order either way.

Rules: an input that is not contiguous is copied first; everything here is row-major.
"""

from functools import lru_cache
from math import prod

import numpy as np

from runtime.kernels.cpu.reduce_layout import Array
from runtime.tensors.arrays import array_of, flat_of
from runtime.tensors.tensor import Tensor

# Columns of one task: with three rows of float64 in use, 12 KiB of a small L1 cache.
TILE = 512

# Elements for a thread: 10 us and more of any kernel along an axis.
GRAIN = 1 << 15

# Geometries of each kernel; programs see few.
REMEMBERED = 1024


def dense(x: Tensor) -> Array:
    """The elements in row-major order; a copy if they do not lie so."""
    flat: Array | None = flat_of(x)
    return np.ascontiguousarray(array_of(x)).reshape(-1) if flat is None else flat


def result(out: Tensor) -> Array:
    """The flat array of an output."""
    flat: Array | None = flat_of(out)
    assert flat is not None, "outputs are contiguous and have elements in memory"
    return flat


def around(shape: tuple[int, ...], dim: int) -> tuple[int, int, int]:
    """(outer, length, inner) of a dimension; a tensor without any is one row of one."""
    if not shape:
        return 1, 1, 1
    return prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :])


@lru_cache(REMEMBERED)
def along(shape: tuple[int, ...], dim: int) -> tuple[int, int, int, int, int]:
    """(outer, length, inner, tasks, grain): `around`, and how the work is cut.

    A task is a row, or a tile of columns; a thread gets at least `grain` of them.
    """
    outer, length, inner = around(shape, dim)
    tasks = outer * -(-inner // TILE)
    return outer, length, inner, tasks, grain_of(length * min(inner, TILE))


def grain_of(work: int) -> int:
    """How many tasks of so many elements a thread gets at least."""
    return -(-GRAIN // max(work, 1))
