"""cat: tensors after each other along one dimension.

True only here: seen as (outer, width) matrices, cat writes each tensor as a column
block of `out`; along the first dimension a block is one run of memory.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from runtime.kernels.cpu.lines import GRAIN
from runtime.kernels.cpu.operand import WORDS, dense_words
from runtime.kernels.jit import Family
from runtime.kernels.threads import parallel_for
from runtime.tensors.tensor import Tensor


def _block(
    out: Any, source: Any, pitch: int, at: int, width: int, lo: int, hi: int
) -> None:
    for row in range(hi - lo):
        start = (lo + row) * pitch + at
        target = out[start : start + width]
        block = source[(lo + row) * width : (lo + row) * width + width]
        for j in range(width):
            target[j] = block[j]


_BLOCK = Family(
    "cat_block", _block, "void(T[::1], T[::1], int64, int64, int64, int64, int64)"
)


def cat(out: Tensor, tensors: Sequence[Tensor], dim: int) -> None:
    """Fill `out` with the tensors, which have its dtype.

    An empty tensor of one dimension fits everywhere, as NumPy's old rule has it.
    """
    entry = _BLOCK[WORDS[out.dtype]]
    target = dense_words(out)
    shape = out.shape
    inner = prod(shape[dim + 1 :])
    outer = prod(shape[:dim])
    pitch = shape[dim] * inner
    at = 0
    for tensor in tensors:
        if 0 in tensor.shape:
            continue
        source = dense_words(tensor)
        width = tensor.shape[dim] * inner
        if width * outer < 2 * GRAIN:
            entry(target, source, pitch, at, width, 0, outer)
        else:
            _share(entry, target, source, pitch, at, width, outer)
        at += width


def _share(
    entry: Any, target: Any, source: Any, pitch: int, at: int, width: int, outer: int
) -> None:
    """One block on several threads: by rows, or by columns where there is one row."""
    if outer == 1:

        def columns(lo: int, hi: int) -> None:
            entry(target[at + lo : at + hi], source[lo:hi], 0, 0, hi - lo, 0, 1)

        parallel_for(width, GRAIN, columns)
        return

    def rows(lo: int, hi: int) -> None:
        entry(target, source, pitch, at, width, lo, hi)

    parallel_for(outer, max(1, GRAIN // width), rows)


KERNELS = {"cat": cat}
