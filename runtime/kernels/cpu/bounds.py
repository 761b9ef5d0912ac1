"""Whether the values of index tensors lie inside of what they index.

True only here: the check that every kernel with an index makes before it writes.

Rules: a whole pass over the values, before anything is written; only when it finds a
fault is the first bad value looked up, to be named.  Values that strides repeat are
read once.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from runtime.errors.operator import IndexOutOfRange
from runtime.kernels.cpu.lines import REMEMBERED, Ints, Operand
from runtime.kernels.jit import Family


def _outside(index: Any, size: int) -> bool:
    bad = 0
    for j in range(len(index)):
        bad |= (index[j] < 0) | (index[j] >= size)
    return bad != 0


_OUTSIDE = Family("outside", _outside, "boolean(int64[::1], int64)")


def check_values(index: Any, size: int, operator: str, dim: int) -> None:
    """Refuse flat int64 values that are not in `range(size)`.

    Raises `IndexOutOfRange` with the first of them.
    """
    if _OUTSIDE["int64"](index, size):
        bad = index[(index < 0) | (index >= size)]
        raise IndexOutOfRange(operator=operator, index=int(bad[0]), size=size, dim=dim)


def check_index(
    index: Operand, shape: Ints, size: int, operator: str, dim: int
) -> None:
    """As `check_values` for an index of that shape, with strides."""
    flat, offset, strides = index
    count, sizes, steps = _distinct(shape, strides)
    if sizes:
        values = np.ndarray(sizes, np.int64, flat, 8 * offset, steps).flatten()
    else:
        values = flat if count == len(flat) else flat[offset : offset + count]
    check_values(values, size, operator, dim)


@lru_cache(maxsize=REMEMBERED)
def _distinct(shape: Ints, strides: Ints) -> tuple[int, Ints, Ints]:
    """How many values differ in place; their sizes and byte steps if not in one run."""
    if 0 in shape:
        return 0, (), ()
    kept = [
        (size, step)
        for size, step in zip(shape, strides, strict=True)
        if step and size != 1
    ]
    count = 1
    for size, step in reversed(kept):
        if step != count:
            return 0, tuple(n for n, _ in kept), tuple(8 * s for _, s in kept)
        count *= size
    return count, (), ()
