"""Order: how the dimensions of a dense tensor lie in memory, one inside of the other.

True only here: the order of new elements where it is not that of rows, and what the
names of memory formats mean.

| format              | the elements lie                                           |
|---------------------|------------------------------------------------------------|
| `preserve_format`   | as those of the tensor, without its gaps (the default)     |
| `contiguous_format` | row by row                                                 |
| `channels_last`     | (n, c, h, w) as n, h, w, c; of four dimensions only        |
| `channels_last_3d`  | (n, c, d, h, w) as n, d, h, w, c; of five dimensions only  |

A pointwise result lies as its arguments do (`memory_order`); strides of dimensions of
one element mean nothing, and are whatever comes of that.
"""

from functools import lru_cache
from math import prod

from runtime.errors.tensor import UnfitValue
from runtime.schema.codes import MemoryFormat
from runtime.tensors.shape import (
    REMEMBERED,
    Ints,
    contiguous_strides,
    is_contiguous,
)

CONTIGUOUS = MemoryFormat.named("contiguous_format")
PRESERVE = MemoryFormat.named("preserve_format")
# Format -> the dimensions, outermost first.
LAST = {
    MemoryFormat.named("channels_last"): (0, 2, 3, 1),
    MemoryFormat.named("channels_last_3d"): (0, 2, 3, 4, 1),
}


@lru_cache(maxsize=REMEMBERED)
def memory_order(shape: Ints, operands: tuple[Ints, ...]) -> Ints | None:
    """The dimensions of a pointwise result, outermost first in memory.

    `operands` are strides over `shape`, 0 where an operand is broadcast: the first one
    that tells two dimensions apart puts them in its order; sizes decide between equal
    strides.  None is row-major order.

    Source: how upstream's TensorIterator orders dimensions, an insertion sort.
    """
    order = [*reversed(range(len(shape)))]
    for last in range(1, len(order)):
        moving = last
        for at in reversed(range(last)):
            inner, outer = order[at], order[moving]
            compared = _compared(shape, operands, inner, outer)
            if compared > 0:
                order[at], order[moving] = outer, inner
                moving = at
            elif compared < 0:
                break
    found = tuple(reversed(order))
    return None if found == tuple(range(len(shape))) else found


def _compared(shape: Ints, operands: tuple[Ints, ...], inner: int, outer: int) -> int:
    """Less than 0 if `inner` is the faster of two dimensions, more if `outer` is."""
    for strides in operands:
        one, other = strides[inner], strides[outer]
        if one and other:
            if one != other:
                return one - other
            if shape[inner] > shape[outer]:
                return 1
    return 0


@lru_cache(maxsize=REMEMBERED)
def ordered_strides(shape: Ints, order: Ints) -> Ints:
    """The strides of elements without gaps whose dimensions lie in an order."""
    strides = dict(
        zip(order, contiguous_strides(tuple(shape[d] for d in order)), strict=True)
    )
    return tuple(strides[dim] for dim in range(len(shape)))


@lru_cache(maxsize=REMEMBERED)
def is_dense(shape: Ints, strides: Ints) -> bool:
    """Whether the elements lie without gaps and overlaps, in whatever order."""
    sizes = [(stride, size) for size, stride in zip(shape, strides, strict=True)]
    step = 1
    for stride, size in sorted(each for each in sizes if each[1] != 1):
        if stride != step:
            return prod(shape) == 0
        step *= size
    return True


@lru_cache(maxsize=REMEMBERED)
def preserved_strides(shape: Ints, strides: Ints) -> Ints:
    """The strides of a copy that keeps the order of elements in memory."""
    if is_dense(shape, strides):
        return strides
    order = memory_order(shape, (strides,))
    return contiguous_strides(shape) if order is None else ordered_strides(shape, order)


def lies(shape: Ints, strides: Ints, wanted: MemoryFormat) -> bool:
    """Whether elements lie in the order of a format, without gaps.

    False for a format of another number of dimensions.  Raises `UnfitValue` for the one
    that says no order.
    """
    if wanted is CONTIGUOUS:
        return is_contiguous(shape, strides)
    if wanted is PRESERVE:
        raise UnfitValue(
            asked="is_contiguous", found=str(wanted), fits="a format that says an order"
        )
    order = LAST[wanted]
    if len(shape) != len(order):
        return False
    return is_contiguous(
        tuple(shape[dim] for dim in order), tuple(strides[dim] for dim in order)
    )
