"""conv2d, max_pool2d, and their gradients: windows over images.

A convolution is a sum of shifted planes, for every stride and group; there is no column
matrix.  Where im2col copies each element once for each tap, a tap is read here as a
shift of one padded copy of the input, which stays in the cache; depthwise filters,
filters of one element, strides and dilations are the same loops.  Images that need no
padding are read in place.  `runtime.kernels.cpu.conv_plan` describes the three
gradients.

Measured on one thread, the sweeps run at 50e9 to 85e9 multiplications a second, a
product of matrices by NumPy's BLAS at 48e9; so BLAS is not used.

Rules: floating-point dtypes only; sums have the dtype of the elements, in an order that
does not depend on the number of threads.  Zeros of the padding are multiplied like
others: an infinite weight makes NaN of them.

Pooling reads a window's elements row by row; a greater one replaces the current
maximum, and so does every NaN, so that NaN propagates.  The index of the maximum is its
flat position in its height x width plane.  A window that contains only the least value
keeps its first element inside of the image.
"""

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from everyorder.runtime.kernels.compile.jit import Family
from everyorder.runtime.kernels.cpu.conv_bodies import (
    CHANNEL_SUMS,
    CORRELATE,
    SWEEP,
    UNPACK,
)
from everyorder.runtime.kernels.cpu.conv_plan import (
    NAMES,
    Images,
    Packing,
    Pair,
    PlaneReader,
    Taps,
    backward,
    forward,
    images_of,
    inside,
    offsets_of,
    plain,
    reader_of,
)
from everyorder.runtime.kernels.cpu.index_loops import check_values
from everyorder.runtime.kernels.shared.operands import dense
from everyorder.runtime.kernels.shared.thread_pool import get_num_threads, parallel_for
from everyorder.runtime.tensors.dtype_info import info
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import flat_of

Array = Any

# Multiplications per thread: about 20 us, ten times the cost of a hand-over.
GRAIN = 1_000_000

# Partial sums of the gradient of the weights, whatever the number of threads: more
# would cost memory, fewer would leave threads idle.
STRIPS = 8

# Elements of all these partial sums together.
STRIP_ELEMENTS = 1 << 22

# The least number of filters in a piece of work if one image's filters are divided.
FILTERS = 16


def conv2d(
    out: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> None:
    """Fill `out` (N, O, H', W') from `x` (N, C, H, W) and `weight` (O, C/groups, h, w).

    N may be absent from both.
    """
    if 0 in out.shape:
        return
    target = images_of(flat_of(out), out.shape, groups)
    added = np.zeros(out.shape[-3], target.flat.dtype) if bias is None else dense(bias)
    if 0 in weight.shape:
        target.flat.reshape(target.count, out.shape[-3], -1)[:] = added[:, None]
        return
    kernel = weight.shape[-2], weight.shape[-1]
    source = images_of(dense(x), x.shape, groups)
    packing, taps = forward(source.channels, kernel, stride, padding, dilation)
    reader = reader_of(source, packing, target.size, taps.reach)
    _sweep(reader, taps, dense(weight), added, target, (1, 1), (0, 0))


def conv2d_backward(
    dx: Tensor | None,
    dw: Tensor | None,
    db: Tensor | None,
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> None:
    """Write those gradients of `conv2d` that are not None."""
    kernel = weight.shape[-2], weight.shape[-1]
    for one in (dx, dw, db):
        if one is not None and (0 in grad.shape or 0 in weight.shape):
            flat: Array = flat_of(one)
            flat.fill(0)
    if 0 in grad.shape:
        return
    grads = images_of(dense(grad), grad.shape, groups)
    if db is not None:
        _bias_gradient(flat_of(db), grads)
    if 0 in weight.shape:
        return
    if dx is not None:
        target = images_of(flat_of(dx), dx.shape, groups)
        _input_gradient(target, grads, dense(weight), kernel, stride, padding, dilation)
    if dw is not None:
        source = images_of(dense(x), x.shape, groups)
        packing, taps = forward(source.channels, kernel, stride, padding, dilation)
        _weight_gradient(flat_of(dw), grads, source, packing, taps)


def _sweep(
    reader: PlaneReader,
    taps: Taps,
    weights: Array,
    bias: Array,
    out: Images,
    stride: Pair,
    shift: Pair,
) -> None:
    """Sweep over all blocks and groups, and write the results into `out`.

    Result (y, x) is written to row `y * stride + shift`, and to the column by the same
    rule, if `out` has them.  `weights` is flat: groups x channels of out x taps.
    """
    pieces, outputs, together = reader.blocks, out.channels, reader.together
    sets = -(-out.groups // together)
    segment, name = reader.length(pieces[0]), NAMES[out.flat.dtype]
    offsets = offsets_of(taps, reader.segment, reader.pitch)
    # Not enough blocks for the threads: divide the filters too, in fours.
    lone = together == 1 and len(pieces) * sets < get_num_threads()
    parts = max(1, min(get_num_threads(), outputs // FILTERS)) if lone else 1
    share = outputs if parts == 1 else -(-outputs // (4 * parts)) * 4

    def run(lo: int, hi: int) -> None:
        planes = reader.buffer()
        results = np.empty(together * share * segment, planes.dtype)
        for unit in range(lo, hi):
            rest, part = divmod(unit, parts)
            at, piece = divmod(rest, len(pieces))
            block, group = pieces[piece], at * together
            groups = min(together, out.groups - group)
            begin = min(part * share, outputs)
            count = min(share, outputs - begin)
            first = group * outputs + begin
            last = first + groups * count
            SWEEP[name](
                results,
                planes,
                weights[first * len(offsets) : last * len(offsets)],
                offsets,
                reader.read(planes, block, group, groups),
                groups,
                reader.group_step,
                count,
                segment,
                reader.length(block),
            )
            UNPACK[name](
                out.flat,
                results,
                bias[first:last],
                out.start(block.image, group, begin),
                out.step,
                *out.size,
                *stride,
                *shift,
                groups * count,
                block.images,
                segment,
                reader.area(block),
                block.rows,
                reader.grid[1],
                reader.pitch,
                block.top,
            )

    work = max(1, together * share * len(offsets) * segment)
    parallel_for(sets * len(pieces) * parts, -(-GRAIN // work), run)


def _bias_gradient(total: Array, grads: Images) -> None:
    channels, area = len(total), grads.size[0] * grads.size[1]
    entry = CHANNEL_SUMS[NAMES[total.dtype]]

    def run(lo: int, hi: int) -> None:
        entry(total, grads.flat, grads.count, channels, area, lo, hi)

    parallel_for(channels, -(-GRAIN // (grads.count * area)), run)


def _input_gradient(
    target: Images,
    grads: Images,
    weight: Array,
    kernel: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
) -> None:
    # Rows and columns that no tap reads keep this value.
    target.flat.fill(0)
    nothing = np.zeros(target.groups * target.channels, weight.dtype)
    shape = grads.groups, grads.channels, target.channels, kernel[0] * kernel[1]
    filters = weight.reshape(shape).transpose(0, 2, 1, 3)
    for phase in backward(grads.channels, kernel, stride, dilation):
        reach = phase.taps.reach
        # The rows and columns of this phase that are inside of the image.
        rows, columns = (
            inside(phase.start[axis], padding[axis], stride[axis], target.size[axis])
            for axis in (0, 1)
        )
        last = grads.size[0] + reach[0], grads.size[1] + reach[1]
        grid = min(rows[1], last[0]) - rows[0], min(columns[1], last[1]) - columns[0]
        if grid[0] <= 0 or grid[1] <= 0:
            continue
        spared = reach[0] - rows[0], reach[1] - columns[0]
        reader = reader_of(grads, plain(spared), grid, reach)
        members = list(phase.members)
        chosen = filters if len(members) == shape[3] else filters[..., members]
        chosen = np.ascontiguousarray(chosen).reshape(-1)
        shift = (
            rows[0] * stride[0] + phase.start[0] - padding[0],
            columns[0] * stride[1] + phase.start[1] - padding[1],
        )
        _sweep(reader, phase.taps, chosen, nothing, target, stride, shift)


def _weight_gradient(
    total: Array, grads: Images, source: Images, packing: Packing, taps: Taps
) -> None:
    """Write the gradient of the weights into `total`.

    The columns between rows hold zeros of the gradient times elements of the input. If
    the input is infinite or NaN, these would make the sum NaN.  Then, which the result
    shows, every row is summed separately.
    """
    for smallest in (False, True):
        reader = reader_of(source, packing, grads.size, taps.reach, smallest)
        _correlate(total, grads, reader, taps)
        if np.isfinite(total).all():
            return


def _correlate(total: Array, grads: Images, reader: PlaneReader, taps: Taps) -> None:
    pieces, outputs, together = reader.blocks, grads.channels, reader.together
    name = NAMES[total.dtype]
    offsets = offsets_of(taps, reader.segment, reader.pitch)
    sets = -(-grads.groups // together)
    strips = min(len(pieces), -(-STRIPS // sets), max(2, STRIP_ELEMENTS // len(total)))
    partial = np.zeros((strips, len(total)), total.dtype)
    width = outputs * len(offsets)

    def run(lo: int, hi: int) -> None:
        planes, slopes = reader.buffer(), reader.slopes(grads)
        for unit in range(lo, hi):
            at, strip = divmod(unit, strips)
            group = at * together
            groups = min(together, grads.groups - group)
            sums = partial[strip, group * width : (group + groups) * width]
            for block in pieces[strip::strips]:
                reader.read_slopes(grads, slopes, block, group, groups)
                CORRELATE[name](
                    sums,
                    slopes,
                    planes,
                    offsets,
                    reader.read(planes, block, group, groups),
                    groups,
                    reader.group_step,
                    outputs,
                    reader.room,
                    reader.length(block),
                )

    work = max(1, together * width * reader.room * len(pieces) // strips)
    parallel_for(sets * strips, -(-GRAIN // work), run)
    np.sum(partial, axis=0, out=total)


Ints = tuple[int, ...]

# Programs have few layers; a geometry is a dozen numbers.
REMEMBERED = 256

# Comparisons per thread: about 20 us, ten times the cost of a hand-over.
COMPARED = 32768


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
            # The first row inside of the image; in one step, as padding may be large.
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

    Every window overlaps the image, as the operator has checked; the last ones may
    extend beyond it (`ceil_mode`).
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
    """Return the sizes for the loop, the number of planes, and those per thread."""
    sizes = (*shape[-2:], *out[-2:], *sum(windows, ()))
    work = prod(out[-2:]) * prod(windows[0])
    return np.array(sizes, np.int64), prod(out[:-2]), -(-COMPARED // work)


def max_pool2d_backward(dx: Tensor, grad: Tensor, indices: Tensor) -> None:
    """Fill `dx` (.., H, W) with the gradients, each at the index of its element.

    Raises:
        IndexOutOfRange: an index is outside of the plane; nothing is written.
    """
    area, results = prod(dx.shape[-2:]), prod(grad.shape[-2:])
    entry = _SPREAD[dx.dtype.name]
    target, source, places = flat_of(dx), dense(grad), dense(indices)
    check_values(places, area, "core::max_pool2d_with_indices_backward", -1)

    def run(lo: int, hi: int) -> None:
        entry(target, source, places, area, results, lo, hi)

    if area:
        parallel_for(prod(dx.shape[:-2]), -(-COMPARED // max(area, results)), run)


KERNELS: dict[str, Callable[..., Any]] = {
    "conv2d": conv2d,
    "conv2d_backward": conv2d_backward,
    "max_pool2d": max_pool2d,
    "max_pool2d_backward": max_pool2d_backward,
}
