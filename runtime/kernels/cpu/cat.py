"""cat: tensors after each other along one dimension.

True only here: seen as (outer, width) matrices, cat writes each tensor as a column
block of `out`; along the first dimension a block is one run of memory.  Two tensors,
the commonest case, are one compiled call.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import zip_longest
from math import prod
from typing import Any

import numpy as np

from runtime.kernels.cpu.operand import (
    FORMS,
    WORDS,
    Geometry,
    Ints,
    Run,
    dense_words,
    viewer,
)
from runtime.kernels.cpu.walks import GRAIN, REMEMBERED
from runtime.kernels.jit import Family
from runtime.kernels.threads import parallel_for
from runtime.tensors.tensor import Tensor

# What one call copies: two tensors (first, second), the column where they begin, and
# their columns; of an odd one out the second has none.
Pair = tuple[int, int, int, int, int]


def _blocks(
    out: Any,
    first: Any,
    second: Any,
    pitch: int,
    at: int,
    width: int,
    other: int,
    lo: int,
    hi: int,
) -> None:
    for row in range(hi - lo):
        start = (lo + row) * pitch + at
        target = out[start : start + width]
        block = first[(lo + row) * width : (lo + row) * width + width]
        for j in range(width):
            target[j] = block[j]
        start += width
        target = out[start : start + other]
        block = second[(lo + row) * other : (lo + row) * other + other]
        for j in range(other):
            target[j] = block[j]


_BLOCKS = Family(
    "cat_blocks",
    _blocks,
    "void(T[::1], T[::1], T[::1], int64, int64, int64, int64, int64, int64)",
)


@lru_cache(maxsize=REMEMBERED)
def _pairs(
    shape: Ints, dim: int, shapes: tuple[Ints, ...]
) -> tuple[int, int, tuple[Pair, ...]]:
    """Columns of `out`, its rows, and the calls; tensors without elements take none."""
    inner, outer = prod(shape[dim + 1 :]), prod(shape[:dim])
    found = [at for at, one in enumerate(shapes) if 0 not in one]
    pairs = []
    at = 0
    for first, second in zip_longest(found[::2], found[1::2]):
        width = shapes[first][dim] * inner
        other = 0 if second is None else shapes[second][dim] * inner
        pairs.append((first, first if second is None else second, at, width, other))
        at += width + other
    return shape[dim] * inner, outer, tuple(pairs)


def cat(out: Tensor, tensors: Sequence[Tensor], dim: int) -> None:
    """Fill `out` with the tensors, which have its dtype.

    An empty tensor of one dimension fits everywhere, as NumPy's old rule has it.
    """
    sources = [dense_words(tensor) for tensor in tensors]
    shapes = tuple([tensor.shape for tensor in tensors])
    layout = _pairs(out.shape, dim, shapes)
    _join(_BLOCKS[WORDS[out.dtype]], sources, dense_words(out), *layout)


def _ready(out: Geometry, tensors: Sequence[Geometry], dim: int) -> Run:
    entry, form = _BLOCKS[WORDS[out.dtype]], FORMS[out.dtype]
    shapes = tuple([each.shape for each in tensors])
    layout = _pairs(out.shape, dim, shapes)
    views = [None if each.strides is None else viewer(each) for each in tensors]
    plain = form is None and not any(views)
    pitch, outer, pairs = layout
    if plain and len(pairs) == 1 and pitch * outer < 2 * GRAIN:
        ((i, j, at, width, other),) = pairs
        return lambda arrays, to: entry(
            to, arrays[i], arrays[j], pitch, at, width, other, 0, outer
        )

    def run(arrays: Sequence[Any], to: Any) -> None:
        if not plain:
            rows = [
                np.ascontiguousarray(view(array)).reshape(-1) if view else array
                for view, array in zip(views, arrays, strict=True)
            ]
            arrays = [each if form is None else each.view(form) for each in rows]
            to = to if form is None else to.view(form)
        _join(entry, arrays, to, *layout)

    return run


def _join(
    entry: Any,
    sources: Sequence[Any],
    target: Any,
    pitch: int,
    outer: int,
    pairs: tuple[Pair, ...],
) -> None:
    """Block beside block."""
    for i, j, at, width, other in pairs:
        first, second = sources[i], sources[j]
        if (width + other) * outer < 2 * GRAIN:
            entry(target, first, second, pitch, at, width, other, 0, outer)
        elif outer == 1:
            _share(entry, target, first, at, width)
            _share(entry, target, second, at + width, other)
        else:
            arguments = target, first, second, pitch, at, width, other
            _share_rows(entry, arguments, outer)


def _share(entry: Any, target: Any, source: Any, at: int, width: int) -> None:
    """One long row on several threads."""

    def columns(lo: int, hi: int) -> None:
        part = source[lo:hi]
        entry(target[at + lo : at + hi], part, part, 0, 0, hi - lo, 0, 0, 1)

    parallel_for(width, GRAIN, columns)


def _share_rows(entry: Any, arguments: tuple[Any, ...], outer: int) -> None:
    """Rows of two blocks on several threads."""

    def rows(lo: int, hi: int) -> None:
        entry(*arguments, lo, hi)

    width = arguments[-1] + arguments[-2]
    parallel_for(outer, max(1, GRAIN // width), rows)


KERNELS = {"cat": cat}
READY = {"cat": _ready}
