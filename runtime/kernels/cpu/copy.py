"""Copying: any layout and dtype to any other.

True only here: what conversion means.  A complex number loses its imaginary part (but
is true if either part is not zero), a fraction is cut off, and an integer that does not
fit wraps; all without warnings.

Delegated to NumPy, which copies and converts at the speed of memory (1e5 float32 in
6 us; its transposed copies take 0.6 of the time of a compiled loop over tiles).  What
is added here is threads, and blocks: a large array that two sides run through along
different dimensions is copied block by block, so that both sides stay in the second
cache (3162 x 3162 float32: 11 ms instead of 24).
"""

from math import prod
from typing import Any

import numpy as np

from runtime.kernels.cpu.operand import Geometry, Run, viewer
from runtime.kernels.threads import parallel_for
from runtime.tensors.arrays import array_of, flat_of
from runtime.tensors.elements import itemsize
from runtime.tensors.making import empty_tensor
from runtime.tensors.tensor import Tensor

# Below this many bytes for a thread a copy ends before a second thread has begun.
GRAIN_BYTES = 2 << 20

# Elements of a block's side: two blocks of 8-byte elements fill half of a second cache
# of 2 MiB.  Smaller ones gain nothing over the time of a call.
BLOCK = 256


def copy(dst: Tensor, src: Tensor) -> None:
    """Write the elements of `src`, broadcast to its shape, into `dst`."""
    target, source = flat_of(dst), flat_of(src)
    if target is None or source is None or dst.shape != src.shape:
        target, source = array_of(dst), array_of(src)
    assign(target, source)


def contiguous(tensor: Tensor) -> Tensor:
    """The tensor itself if it is contiguous, else a contiguous copy of it."""
    if flat_of(tensor) is not None:
        return tensor
    made = empty_tensor(tensor.shape, tensor.dtype, tensor.device)
    copy(made, tensor)
    return made


def assign(target: Any, source: Any) -> None:
    """Write a NumPy array into another, converted as said above."""
    if source.dtype is target.dtype:
        if target.nbytes < 2 * GRAIN_BYTES:
            target[...] = source
        else:
            _divided(target, source)
        return
    if source.dtype.kind == "c" and target.dtype.kind not in "cb":
        source = source.real
    with np.errstate(all="ignore"):
        _divided(target, source)


def _divided(target: Any, source: Any) -> None:
    """The same by threads, and by blocks where that keeps both sides in a cache."""
    # NumPy minds an overlap, but only within one call.
    if target.nbytes < 2 * GRAIN_BYTES or np.may_share_memory(target, source):
        target[...] = source
        return
    source = np.broadcast_to(source, target.shape)
    row, column = _fastest(source), _fastest(target)
    if row == column:
        size = target.shape[column] if target.ndim == 1 else target.shape[0]
        grain = max(1, GRAIN_BYTES * size // target.nbytes)

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

    parallel_for(blocks, max(1, GRAIN_BYTES * blocks // target.nbytes), run_blocks)


def _fastest(array: Any) -> int:
    """The dimension along which neighbours are nearest in memory."""
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


def _ready(dst: Geometry, src: Geometry) -> Run | None:
    if dst.shape != src.shape:
        return None
    if src.strides is None:
        small = itemsize(dst.dtype) * prod(dst.shape) < 2 * GRAIN_BYTES
        return _copied if small and src.dtype is dst.dtype else _assigned
    shape, view = dst.shape, viewer(src)
    return lambda source, target: assign(target.reshape(shape), view(source))


KERNELS = {"copy": copy}
READY = {"copy": _ready}
