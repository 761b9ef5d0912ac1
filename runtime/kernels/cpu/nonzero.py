"""nonzero: the positions of the elements that are not zero, and their number.

True only here: an element is zero if all its bits are, but for the sign bits of floats;
so one kernel for each item size does, and NaN counts as not zero.  Elements of 16 bytes
are read as two words.
"""

from typing import Any

import numpy as np

from runtime.kernels.cpu.operand import dense
from runtime.kernels.jit import Family
from runtime.tensors.arrays import flat_of
from runtime.tensors.tensor import Tensor


def _count(words: Any, mask: int, each: int) -> int:
    found = 0
    if each == 1:
        for j in range(len(words)):
            found += (words[j] & mask) != 0
    else:
        for j in range(len(words) // 2):
            found += ((words[2 * j] | words[2 * j + 1]) & mask) != 0
    return found


def _positions(
    out: Any, columns: Any, words: Any, mask: int, each: int, shape: Any
) -> None:
    ndim = len(shape)
    width = shape[ndim - 1]
    found = 0
    for row in range(len(words) // each // width):
        begin = found
        line = words[row * width * each : (row + 1) * width * each]
        # Always written, kept if it counts: no branch to guess wrong.
        for j in range(width):
            bits = line[j * each] | line[j * each + each - 1]
            columns[np.uint64(found)] = j
            found += (bits & mask) != 0
        for at in range(begin, found):
            out[np.uint64(at * ndim + ndim - 1)] = columns[np.uint64(at)]
        rest = row
        for dim in range(ndim - 2, -1, -1):
            place = rest % shape[dim]
            rest //= shape[dim]
            for at in range(begin, found):
                out[np.uint64(at * ndim + dim)] = place


def _row(out: Any, words: Any, mask: int) -> None:
    """The places in one row of one-word elements; `out` has as many as there are."""
    last = len(words)
    while last and not words[last - 1] & mask:
        last -= 1
    # Always written, kept if it counts; what follows the last one is not looked at, so
    # that there is room each time.
    line = words[:last]
    found = 0
    for j in range(len(line)):
        out[np.uint64(found)] = j
        found += (line[j] & mask) != 0


_COUNT = Family("nonzero_count", _count, "int64(T[::1], T, int64)")
_POSITIONS = Family(
    "nonzero",
    _positions,
    "void(int64[::1], int64[::1], T[::1], T, int64, int64[::1])",
)
_ROW = Family("nonzero_row", _row, "void(int64[::1], T[::1], T)")

# dtype name -> the words it is read as, the bits of a word that count, and how many
# words make up an element.
_READ_AS = {
    "bool": ("uint8", 0xFF, 1),
    "uint8": ("uint8", 0xFF, 1),
    "int8": ("uint8", 0xFF, 1),
    "int16": ("uint16", 0xFFFF, 1),
    "int32": ("uint32", 0xFFFFFFFF, 1),
    "int64": ("uint64", 0xFFFFFFFFFFFFFFFF, 1),
    "float16": ("uint16", 0x7FFF, 1),
    "bfloat16": ("uint16", 0x7FFF, 1),
    "float32": ("uint32", 0x7FFFFFFF, 1),
    "float64": ("uint64", 0x7FFFFFFFFFFFFFFF, 1),
    "complex64": ("uint64", 0x7FFFFFFF7FFFFFFF, 1),
    "complex128": ("uint64", 0x7FFFFFFFFFFFFFFF, 2),
}


def nonzero_count(mask: Tensor) -> int:
    """The number of elements that are not zero."""
    name, counted, each = _READ_AS[mask.dtype.name]
    count: int = _COUNT[name](dense(mask).view(name), counted, each)
    return int(count)


def nonzero(out: Tensor, x: Tensor) -> None:
    """Write the positions, one row each in row-major order.

    `out` has as many rows as `nonzero_count` said, and a column for each dimension.
    """
    if 0 in out.shape:
        return
    name, counted, each = _READ_AS[x.dtype.name]
    elements = dense(x).view(name)
    if len(x.shape) == 1 and each == 1:
        _ROW[name](flat_of(out), elements, counted)
        return
    shape = np.array(x.shape, np.int64)
    columns = np.empty(out.shape[0] + 1, np.int64)
    _POSITIONS[name](flat_of(out), columns, elements, counted, each, shape)


KERNELS = {"nonzero": nonzero, "nonzero_count": nonzero_count}
