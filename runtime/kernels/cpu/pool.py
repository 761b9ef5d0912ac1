"""max_pool2d and its gradient.

True only here: the window's elements are met row by row; a greater one replaces the one
kept, and so does every NaN, so that NaN wins.  The index of the one kept is its flat
position in its height x width plane.  A window of nothing but the least value keeps its
first element that lies inside of the image.
"""

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from runtime.kernels.cpu.bounds import check_values
from runtime.kernels.cpu.operand import dense
from runtime.kernels.jit import Family
from runtime.kernels.threads import parallel_for
from runtime.tensors.arrays import flat_of
from runtime.tensors.elements import info
from runtime.tensors.tensor import Tensor

Pair = tuple[int, int]
Ints = tuple[int, ...]

# Programs have few layers; a geometry is a dozen numbers.
REMEMBERED = 256

# Comparisons for a thread: about 20 us, ten times the price of a hand-over.
GRAIN = 32768


def _pool(
    out: Any,
    indices: Any,
    x: Any,
    geometry: Any,
    least: Any,
    lo: int,
    hi: int,
) -> None:
    height, width, rows, columns = geometry[0], geometry[1], geometry[2], geometry[3]
    window_y, window_x = geometry[4], geometry[5]
    stride_y, stride_x = geometry[6], geometry[7]
    pad_y, pad_x = geometry[8], geometry[9]
    step_y, step_x = geometry[10], geometry[11]
    for plane in range(lo, hi):
        base = plane * height * width
        for row in range(rows):
            at = (plane * rows + row) * columns
            top = row * stride_y - pad_y
            bottom = min(top + (window_y - 1) * step_y + 1, height)
            # The first row on the image; in one step, for padding may be large.
            top = top if top >= 0 else top % step_y
            for j in range(columns):
                left = j * stride_x - pad_x
                end = min(left + (window_x - 1) * step_x + 1, width)
                left = left if left >= 0 else left % step_x
                best = least
                index = top * width + left
                line = top * width
                # Not `range`: its count is a division for every row of the window.
                while line < bottom * width:
                    place = line + left
                    while place < line + end:
                        value = x[np.uint64(base + place)]
                        wins = (value > best) | (value != value)
                        best = value if wins else best
                        index = place if wins else index
                        place += step_x
                    line += step_y * width
                out[np.uint64(at + j)] = best
                indices[np.uint64(at + j)] = index


def _spread(
    dx: Any, grad: Any, indices: Any, area: int, results: int, lo: int, hi: int
) -> None:
    for plane in range(lo, hi):
        for j in range(area):
            dx[np.uint64(plane * area + j)] = 0
        for j in range(results):
            at = plane * results + j
            to = plane * area + indices[np.uint64(at)]
            dx[np.uint64(to)] += grad[np.uint64(at)]


_POOL = Family(
    "max_pool", _pool, "void(T[::1], int64[::1], T[::1], int64[::1], T, int64, int64)"
)
_SPREAD = Family(
    "max_pool_spread",
    _spread,
    "void(T[::1], T[::1], int64[::1], int64, int64, int64, int64)",
)


def max_pool2d(
    out: Tensor,
    indices: Tensor,
    x: Tensor,
    kernel: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
) -> None:
    """Fill `out` and `indices` (.., H', W') from `x` (.., H, W).

    Every window reaches into the image, as the operator has made sure; the last ones
    may reach out of it (`ceil_mode`).
    """
    if 0 in out.shape:
        return
    windows = kernel, stride, padding, dilation
    geometry, planes, grain = _geometry(x.shape, out.shape, windows)
    least = -np.inf if x.dtype.is_floating else info(x.dtype).smallest
    entry = _POOL[x.dtype.name]
    target, places, source = flat_of(out), flat_of(indices), dense(x)
    if planes < 2 * grain:
        entry(target, places, source, geometry, least, 0, planes)
        return

    def run(lo: int, hi: int) -> None:
        entry(target, places, source, geometry, least, lo, hi)

    parallel_for(planes, grain, run)


@lru_cache(maxsize=REMEMBERED)
def _geometry(
    shape: Ints, out: Ints, windows: tuple[Pair, ...]
) -> tuple[Any, int, int]:
    """The sizes as the loop wants them, the planes, and how many a thread gets."""
    sizes = (*shape[-2:], *out[-2:], *sum(windows, ()))
    work = prod(out[-2:]) * prod(windows[0])
    return np.array(sizes, np.int64), prod(out[:-2]), -(-GRAIN // work)


def max_pool2d_backward(dx: Tensor, grad: Tensor, indices: Tensor) -> None:
    """Fill `dx` (.., H, W) with the gradients, each where its element came from.

    Raises `IndexOutOfRange`, before anything is written.
    """
    area, results = prod(dx.shape[-2:]), prod(grad.shape[-2:])
    entry = _SPREAD[dx.dtype.name]
    target, source, places = flat_of(dx), dense(grad), dense(indices)
    check_values(places, area, "core::max_pool2d_backward", -1)

    def run(lo: int, hi: int) -> None:
        entry(target, source, places, area, results, lo, hi)

    if area:
        parallel_for(prod(dx.shape[:-2]), -(-GRAIN // max(area, results)), run)


KERNELS = {"max_pool2d": max_pool2d, "max_pool2d_backward": max_pool2d_backward}
