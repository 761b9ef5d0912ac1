"""Whether the values of index tensors lie inside of what they index.

True only here: the check that every kernel with an index makes before it writes, where
the loop itself does not (see `runtime.kernels.cpu.lines`), and what is said of a fault.

Rules: a whole pass over the values, before anything is written; only when it finds a
fault is the first bad value looked up, to be named.  Values that strides repeat are
read once.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from runtime.errors.operator import IndexOutOfRange
from runtime.kernels.cpu.operand import Ints, Lying, strides_of
from runtime.kernels.jit import Family

# (flat array, offset of the first element, strides)
Operand = tuple[Any, int, Ints]

# Programs see few indices; an answer is a few dozen bytes.
REMEMBERED = 4096


def _outside(index: Any, size: int) -> bool:
    # One of the two is negative where a value lies outside.
    signs = 0
    for j in range(len(index)):
        signs |= index[j] | (size - 1 - index[j])
    return signs < 0


_OUTSIDE = Family("outside", _outside, "boolean(int64[::1], int64)")


def check_values(index: Any, size: int, operator: str, dim: int) -> None:
    """Refuse flat int64 values that are not in `range(size)`.

    Raises `IndexOutOfRange` with the first of them.
    """
    if _OUTSIDE["int64"](index, size):
        raise refusal(index, size, operator, dim)


def refusal(
    index: Any, size: int, operator: str, dim: int, wraps: bool = False
) -> IndexOutOfRange:
    """The error that names the first bad one of these values.

    `wraps`: negative values down to `-size` are good.
    """
    bad = index[(index < (-size if wraps else 0)) | (index >= size)]
    # Another thread may have put it right since; what it was is not known then.
    first = int(bad[0]) if len(bad) else size
    return IndexOutOfRange(
        operator=operator, index=first, size=size, dim=dim, wraps=wraps
    )


def refused(
    index: Lying, own: Ints, shape: Ints, operator: str, dim: int
) -> IndexOutOfRange:
    """The same for an index of shape `own` that is used along `dim` of `shape`."""
    flat, offset, strides = index
    values = values_of((flat, offset, strides_of(own, strides)), own)
    return refusal(values, shape[dim] if shape else 1, operator, dim)


def outside(index: Operand, shape: Ints, size: int) -> bool:
    """Whether a value of an int64 index of that shape is not in `range(size)`."""
    return beyond(values_of(index, shape), size)


def beyond(values: Any, size: int) -> bool:
    """Whether one of these flat int64 values is not in `range(size)`."""
    found: bool = _OUTSIDE["int64"](values, size)
    return found


def values_of(index: Operand, shape: Ints) -> Any:
    """The values of an int64 index, flat; those that strides repeat stand once."""
    flat, offset, strides = index
    count, sizes, steps = _distinct(shape, strides)
    if sizes:
        return np.ndarray(sizes, np.int64, flat, 8 * offset, steps).flatten()
    return flat if count == len(flat) else flat[offset : offset + count]


def neighbours(shape: Ints, strides: Ints) -> int | None:
    """How many different places an index has, if they are one run of memory."""
    count, sizes, _ = _distinct(shape, strides)
    return None if sizes else count


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
