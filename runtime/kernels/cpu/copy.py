"""Copies, fills, evenly spaced numbers, and concatenation.

Conversion: a complex number loses its imaginary part (but is true if either part is not
zero), a fraction is truncated, and an integer that does not fit wraps; all without
warnings.

NumPy copies, converts and fills at the speed of memory (1e5 float32 in 6 us; its
transposed copies take 0.6 of the time of a compiled loop over tiles).  This module adds
threads, and blocks: a large array whose sides are traversed along different dimensions
is copied block by block, so that both sides stay in the second-level cache (3162 x 3162
float32: 11 ms instead of 24).

`arange` multiplies, so that errors do not accumulate: floating-point results are
computed in double precision and rounded once.

`cat`, on (outer, width) matrices, writes each tensor as a column block of `out`; along
the first dimension a block is one run of memory.  Two tensors, the commonest case, are
one compiled call.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import zip_longest
from math import prod
from typing import Any

import numpy as np

from everyorder.runtime.kernels.compile.jit import Family
from everyorder.runtime.kernels.cpu.index_loops import GRAIN, REMEMBERED
from everyorder.runtime.kernels.math.scalars import LIGHT
from everyorder.runtime.kernels.shared.operands import (
    FORMS,
    WORDS,
    Geometry,
    Ints,
    Run,
    dense_words,
    element,
    viewer,
)
from everyorder.runtime.kernels.shared.thread_pool import parallel_for
from everyorder.runtime.tensors.construction import empty_tensor
from everyorder.runtime.tensors.dtype_info import itemsize
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import array_of, flat_of

# Below this many bytes per thread, a copy ends before a second thread has started.
COPIED_BYTES = 2 << 20

# Elements of a block's side: two blocks of 8-byte elements fill half of a second-level
# cache of 2 MiB.  Smaller ones do not recover the cost of a call.
BLOCK = 256


def copy(dst: Tensor, src: Tensor) -> None:
    """Write the elements of `src`, broadcast to its shape, into `dst`."""
    target, source = flat_of(dst), flat_of(src)
    if target is None or source is None or dst.shape != src.shape:
        target, source = array_of(dst), array_of(src)
    assign(target, source)


def contiguous(tensor: Tensor) -> Tensor:
    """Return the tensor itself if it is contiguous, else a contiguous copy of it."""
    if flat_of(tensor) is not None:
        return tensor
    result = empty_tensor(tensor.shape, tensor.dtype, tensor.device)
    copy(result, tensor)
    return result


def assign(target: Any, source: Any) -> None:
    """Write a NumPy array into another, with the conversion of this module."""
    if source.dtype is target.dtype:
        if target.nbytes < 2 * COPIED_BYTES:
            target[...] = source
        else:
            _divided(target, source)
        return
    if source.dtype.kind == "c" and target.dtype.kind not in "cb":
        source = source.real
    with np.errstate(all="ignore"):
        _divided(target, source)


def _divided(target: Any, source: Any) -> None:
    """Copy with threads, and with blocks if that keeps both sides in a cache."""
    # NumPy handles an overlap, but only within one call.
    if target.nbytes < 2 * COPIED_BYTES or np.may_share_memory(target, source):
        target[...] = source
        return
    source = np.broadcast_to(source, target.shape)
    row, column = _fastest(source), _fastest(target)
    if row == column:
        size = target.shape[column] if target.ndim == 1 else target.shape[0]
        grain = max(1, COPIED_BYTES * size // target.nbytes)

        def run(lo: int, hi: int) -> None:
            target[lo:hi] = source[lo:hi]

        parallel_for(size, grain, run)
        return
    across = -(-target.shape[column] // BLOCK)
    blocks = -(-target.shape[row] // BLOCK) * across

    def run_blocks(lo: int, hi: int) -> None:
        part = [slice(None)] * target.ndim
        for block in range(lo, hi):
            top, left = block // across * BLOCK, block % across * BLOCK
            part[row] = slice(top, top + BLOCK)
            part[column] = slice(left, left + BLOCK)
            target[tuple(part)] = source[tuple(part)]

    parallel_for(blocks, max(1, COPIED_BYTES * blocks // target.nbytes), run_blocks)


def _fastest(array: Any) -> int:
    """Return the dimension along which neighbours are nearest in memory."""
    steps = [
        (abs(step), -dim)
        for dim, (step, size) in enumerate(zip(array.strides, array.shape, strict=True))
        if size > 1 and step
    ]
    return -min(steps)[1] if steps else 0


def _copied(source: Any, target: Any) -> None:
    target[...] = source


def _assigned(source: Any, target: Any) -> None:
    assign(target, source)


def _ready_copy(dst: Geometry, src: Geometry) -> Run | None:
    if dst.shape != src.shape:
        return None
    if src.strides is None:
        small = itemsize(dst.dtype) * prod(dst.shape) < 2 * COPIED_BYTES
        return _copied if small and src.dtype is dst.dtype else _assigned
    shape, view = dst.shape, viewer(src)
    return lambda source, target: assign(target.reshape(shape), view(source))


# Below this many bytes per thread, the first one ends before a second has started.
FILLED_BYTES = 4 << 20

# Numba lacks 16-bit float scalars; a float32 is converted with NumPy's rounding.
_HALF = frozenset(("float16", "bfloat16"))


def fill(dst: Tensor, value: Any) -> None:
    """Write `value` into every element."""
    name = dst.dtype.name
    number = element("float32" if name in _HALF else name, value)
    flat = flat_of(dst)
    if flat is None:
        with np.errstate(all="ignore"):
            array_of(dst)[...] = number
        return

    def run(lo: int, hi: int) -> None:
        with np.errstate(all="ignore"):
            flat[lo:hi] = number

    parallel_for(flat.size, FILLED_BYTES // flat.itemsize, run)


def _whole_steps(start: int, step: int, first: int, out: Any) -> None:
    for i in range(out.size):
        out[i] = start + (first + i) * step


def _steps(start: float, step: float, first: int, out: Any) -> None:
    for i in range(out.size):
        out[i] = start + (first + i) * step


WHOLE = Family("arange_whole", _whole_steps, "void(int64, int64, int64, T[::1])")
REAL = Family("arange", _steps, "void(float64, float64, int64, T[::1])")


def arange(out: Tensor, start: Any, step: Any) -> None:
    """Write `start + i step` into element i."""
    flat, dtype = flat_of(out), out.dtype
    assert flat is not None, "outputs are contiguous"
    if dtype.is_complex or dtype.name in _HALF:
        with np.errstate(all="ignore"):
            flat[...] = start + np.arange(flat.size) * step
    elif dtype.is_floating or isinstance(start, float) or isinstance(step, float):
        entry = REAL[dtype.name]
        first, width = float(start), float(step)
        parallel_for(
            flat.size, LIGHT, lambda lo, hi: entry(first, width, lo, flat[lo:hi])
        )
    else:
        whole = WHOLE[dtype.name]
        parallel_for(
            flat.size, LIGHT, lambda lo, hi: whole(start, step, lo, flat[lo:hi])
        )


# The operands of one call: two tensors (first, second), their start column, and their
# columns; 0 columns for the second of an odd one.
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
    """Return columns and rows of `out`, and the calls; empty tensors have none."""
    inner, outer = prod(shape[dim + 1 :]), prod(shape[:dim])
    filled = [at for at, one in enumerate(shapes) if 0 not in one]
    pairs = []
    at = 0
    for first, second in zip_longest(filled[::2], filled[1::2]):
        width = shapes[first][dim] * inner
        other = 0 if second is None else shapes[second][dim] * inner
        pairs.append((first, first if second is None else second, at, width, other))
        at += width + other
    return shape[dim] * inner, outer, tuple(pairs)


def cat(out: Tensor, tensors: Sequence[Tensor], dim: int) -> None:
    """Fill `out` with the tensors, which have its dtype.

    An empty tensor of one dimension fits everywhere, as in NumPy's old rule.
    """
    sources = [dense_words(tensor) for tensor in tensors]
    shapes = tuple([tensor.shape for tensor in tensors])
    layout = _pairs(out.shape, dim, shapes)
    _join(_BLOCKS[WORDS[out.dtype]], sources, dense_words(out), *layout)


def _ready_cat(out: Geometry, tensors: Sequence[Geometry], dim: int) -> Run:
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
    """Copy pairs of blocks side by side."""
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
    """Copy one long row on several threads."""

    def columns(lo: int, hi: int) -> None:
        part = source[lo:hi]
        entry(target[at + lo : at + hi], part, part, 0, 0, hi - lo, 0, 0, 1)

    parallel_for(width, GRAIN, columns)


def _share_rows(entry: Any, arguments: tuple[Any, ...], outer: int) -> None:
    """Copy rows of two blocks on several threads."""

    def rows(lo: int, hi: int) -> None:
        entry(*arguments, lo, hi)

    width = arguments[-1] + arguments[-2]
    parallel_for(outer, max(1, GRAIN // width), rows)


KERNELS: dict[str, Callable[..., Any]] = {
    "copy": copy,
    "fill": fill,
    "arange": arange,
    "cat": cat,
}
READY: dict[str, Callable[..., Any]] = {
    "copy": _ready_copy,
    "cat": _ready_cat,
}
