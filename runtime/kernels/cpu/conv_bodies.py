"""The compiled loops of convolution: pack, sweep, unpack, correlate.

A *plane* is one channel of some images, padded, with rows of `pitch`
elements; images lie after each other.  A tap of the filter is a shift of the whole
plane, so that the innermost loops run over rows and images alike and vectorise however
small an image is.  What they compute between the rows is never read.

With a stride the padded image is dealt out to stride x stride planes, its *phases*
(every second row, every second column, ...), in which each tap is a shift again.

Rules: `_pack` writes the columns of the image and leaves the padding at their sides as
it is, which is zero in a new buffer and the same for every block; sums are reassociated
only across the taps of one step; positions are made unsigned where they index, so that
no sign is looked at.  See `runtime.kernels.cpu.conv` for who calls these.
"""

from typing import Any

import numpy as np

from runtime.kernels.jit import Family

# Elements of a plane that are swept at once: four results and three planes of that many
# stay in a first-level cache of 32 KiB.
SWEPT = 1024

# Elements of a plane that are correlated at once: longer, as each ends in twelve sums.
CORRELATED = 2048


def _inside(shift: int, stride: int, size: int, places: int) -> tuple[int, int]:
    """The places t, from first to end, whose `t * stride + shift` is in range(size)."""
    begin = min(max(-(shift // stride), 0), places)
    return begin, min(max(-((shift - size) // stride), begin), places)


def _unit(unit: int, swept: int, length: int) -> tuple[int, int, int]:
    """The group of a unit of work, where in a plane it begins, and its elements."""
    blocks = -(-length // swept)
    group = unit // blocks
    start = (unit - group * blocks) * swept
    return group, start, min(swept, length - start)


def _pack(
    planes: Any,
    source: Any,
    phases: Any,
    first: int,
    image_step: int,
    height: int,
    width: int,
    stride_y: int,
    stride_x: int,
    pad_y: int,
    pad_x: int,
    channels: int,
    images: int,
    segment: int,
    rows: int,
    pitch: int,
    top: int,
) -> None:
    kinds = len(phases) // 2
    for channel in range(channels):
        for kind in range(kinds):
            shift_y = phases[2 * kind] - pad_y
            shift_x = phases[2 * kind + 1] - pad_x
            begin, end = _inside(shift_x, stride_x, width, pitch)
            column = begin * stride_x + shift_x
            base = (channel * kinds + kind) * segment
            for image in range(images):
                start = first + image * image_step + channel * height * width + column
                for row in range(rows):
                    y = (top + row) * stride_y + shift_y
                    to = base + row * pitch + begin
                    at = start + y * width
                    if y < 0 or y >= height:
                        for j in range(end - begin):
                            planes[np.uint64(to + j)] = 0
                    elif stride_x == 1:
                        for j in range(end - begin):
                            planes[np.uint64(to + j)] = source[np.uint64(at + j)]
                    else:
                        for j in range(end - begin):
                            taken = source[np.uint64(at + j * stride_x)]
                            planes[np.uint64(to + j)] = taken
                base += rows * pitch


def _sweep(
    results: Any,
    planes: Any,
    weights: Any,
    offsets: Any,
    shift: int,
    groups: int,
    group_step: int,
    outputs: int,
    segment: int,
    length: int,
) -> None:
    taps = len(offsets)
    whole = taps // 3 * 3
    for unit in range(groups * -(-length // SWEPT)):
        group, start, n = _unit(unit, SWEPT, length)
        origin = shift + group * group_step + start
        into = group * outputs * segment + start
        filters = group * outputs * taps
        # Four at a time; the last four may be done twice, to the same values.
        for four in range(0, outputs if outputs >= 4 else 0, 4):
            output = min(four, outputs - 4)
            r0 = into + output * segment
            r1 = r0 + segment
            r2 = r1 + segment
            r3 = r2 + segment
            for j in range(n):
                results[np.uint64(r0 + j)] = 0
                results[np.uint64(r1 + j)] = 0
                results[np.uint64(r2 + j)] = 0
                results[np.uint64(r3 + j)] = 0
            for tap in range(0, whole, 3):
                x0 = origin + offsets[tap]
                x1 = origin + offsets[tap + 1]
                x2 = origin + offsets[tap + 2]
                at = filters + output * taps + tap
                a0 = weights[np.uint64(at)]
                a1 = weights[np.uint64(at + 1)]
                a2 = weights[np.uint64(at + 2)]
                b0 = weights[np.uint64(at + taps)]
                b1 = weights[np.uint64(at + taps + 1)]
                b2 = weights[np.uint64(at + taps + 2)]
                c0 = weights[np.uint64(at + 2 * taps)]
                c1 = weights[np.uint64(at + 2 * taps + 1)]
                c2 = weights[np.uint64(at + 2 * taps + 2)]
                d0 = weights[np.uint64(at + 3 * taps)]
                d1 = weights[np.uint64(at + 3 * taps + 1)]
                d2 = weights[np.uint64(at + 3 * taps + 2)]
                for j in range(n):
                    v0 = planes[np.uint64(x0 + j)]
                    v1 = planes[np.uint64(x1 + j)]
                    v2 = planes[np.uint64(x2 + j)]
                    results[np.uint64(r0 + j)] += a0 * v0 + a1 * v1 + a2 * v2
                    results[np.uint64(r1 + j)] += b0 * v0 + b1 * v1 + b2 * v2
                    results[np.uint64(r2 + j)] += c0 * v0 + c1 * v1 + c2 * v2
                    results[np.uint64(r3 + j)] += d0 * v0 + d1 * v1 + d2 * v2
            for tap in range(whole, taps):
                x0 = origin + offsets[tap]
                at = filters + output * taps + tap
                a0 = weights[np.uint64(at)]
                b0 = weights[np.uint64(at + taps)]
                c0 = weights[np.uint64(at + 2 * taps)]
                d0 = weights[np.uint64(at + 3 * taps)]
                for j in range(n):
                    v0 = planes[np.uint64(x0 + j)]
                    results[np.uint64(r0 + j)] += a0 * v0
                    results[np.uint64(r1 + j)] += b0 * v0
                    results[np.uint64(r2 + j)] += c0 * v0
                    results[np.uint64(r3 + j)] += d0 * v0
        for output in range(outputs if outputs < 4 else 0):
            r0 = into + output * segment
            for j in range(n):
                results[np.uint64(r0 + j)] = 0
            for tap in range(0, whole, 3):
                x0 = origin + offsets[tap]
                x1 = origin + offsets[tap + 1]
                x2 = origin + offsets[tap + 2]
                at = filters + output * taps + tap
                a0 = weights[np.uint64(at)]
                a1 = weights[np.uint64(at + 1)]
                a2 = weights[np.uint64(at + 2)]
                for j in range(n):
                    v0 = planes[np.uint64(x0 + j)]
                    v1 = planes[np.uint64(x1 + j)]
                    v2 = planes[np.uint64(x2 + j)]
                    results[np.uint64(r0 + j)] += a0 * v0 + a1 * v1 + a2 * v2
            for tap in range(whole, taps):
                x0 = origin + offsets[tap]
                a0 = weights[np.uint64(filters + output * taps + tap)]
                for j in range(n):
                    results[np.uint64(r0 + j)] += a0 * planes[np.uint64(x0 + j)]


def _unpack(
    out: Any,
    results: Any,
    bias: Any,
    first: int,
    image_step: int,
    height: int,
    width: int,
    stride_y: int,
    stride_x: int,
    shift_y: int,
    shift_x: int,
    channels: int,
    images: int,
    segment: int,
    area: int,
    rows: int,
    columns: int,
    pitch: int,
    top: int,
) -> None:
    begin, end = _inside(shift_x, stride_x, width, columns)
    column = begin * stride_x + shift_x
    for channel in range(channels):
        added = bias[channel]
        for image in range(images):
            start = first + image * image_step + channel * height * width
            base = channel * segment + image * area + begin
            for row in range(rows):
                y = (top + row) * stride_y + shift_y
                if y < 0 or y >= height:
                    continue
                line = base + row * pitch
                at = start + y * width + column
                if stride_x == 1:
                    for j in range(end - begin):
                        out[np.uint64(at + j)] = results[np.uint64(line + j)] + added
                else:
                    for j in range(end - begin):
                        value = results[np.uint64(line + j)] + added
                        out[np.uint64(at + j * stride_x)] = value


def _correlate(
    total: Any,
    grads: Any,
    planes: Any,
    offsets: Any,
    shift: int,
    groups: int,
    group_step: int,
    outputs: int,
    segment: int,
    length: int,
) -> None:
    taps = len(offsets)
    whole = taps // 3 * 3
    nothing = total.dtype.type(0)
    for unit in range(groups * -(-length // CORRELATED)):
        group, start, n = _unit(unit, CORRELATED, length)
        origin = shift + group * group_step + start
        slopes = group * outputs * segment + start
        filters = group * outputs * taps
        for output in range(0, outputs // 4 * 4, 4):
            g0 = slopes + output * segment
            g1 = g0 + segment
            g2 = g1 + segment
            g3 = g2 + segment
            for tap in range(0, whole, 3):
                x0 = origin + offsets[tap]
                x1 = origin + offsets[tap + 1]
                x2 = origin + offsets[tap + 2]
                a0 = a1 = a2 = nothing
                b0 = b1 = b2 = nothing
                c0 = c1 = c2 = nothing
                d0 = d1 = d2 = nothing
                for j in range(n):
                    v0 = planes[np.uint64(x0 + j)]
                    v1 = planes[np.uint64(x1 + j)]
                    v2 = planes[np.uint64(x2 + j)]
                    slope = grads[np.uint64(g0 + j)]
                    a0 += slope * v0
                    a1 += slope * v1
                    a2 += slope * v2
                    slope = grads[np.uint64(g1 + j)]
                    b0 += slope * v0
                    b1 += slope * v1
                    b2 += slope * v2
                    slope = grads[np.uint64(g2 + j)]
                    c0 += slope * v0
                    c1 += slope * v1
                    c2 += slope * v2
                    slope = grads[np.uint64(g3 + j)]
                    d0 += slope * v0
                    d1 += slope * v1
                    d2 += slope * v2
                at = filters + output * taps + tap
                total[np.uint64(at)] += a0
                total[np.uint64(at + 1)] += a1
                total[np.uint64(at + 2)] += a2
                total[np.uint64(at + taps)] += b0
                total[np.uint64(at + taps + 1)] += b1
                total[np.uint64(at + taps + 2)] += b2
                total[np.uint64(at + 2 * taps)] += c0
                total[np.uint64(at + 2 * taps + 1)] += c1
                total[np.uint64(at + 2 * taps + 2)] += c2
                total[np.uint64(at + 3 * taps)] += d0
                total[np.uint64(at + 3 * taps + 1)] += d1
                total[np.uint64(at + 3 * taps + 2)] += d2
        for output in range(outputs):
            g0 = slopes + output * segment
            for tap in range(whole if output < outputs // 4 * 4 else 0, taps):
                x0 = origin + offsets[tap]
                a0 = nothing
                for j in range(n):
                    a0 += grads[np.uint64(g0 + j)] * planes[np.uint64(x0 + j)]
                total[np.uint64(filters + output * taps + tap)] += a0


def _channel_sums(
    total: Any, grad: Any, images: int, channels: int, area: int, lo: int, hi: int
) -> None:
    for channel in range(hi - lo):
        total[lo + channel] = 0
        for image in range(images):
            at = (image * channels + lo + channel) * area
            line = grad[at : at + area]
            part = line[0]
            for j in range(1, area):
                part += line[j]
            total[lo + channel] += part


def _signature(arrays: str, integers: int) -> str:
    return f"void({arrays}, {', '.join(['int64'] * integers)})"


# planes <- source images
PACK = Family("conv_pack", _pack, _signature("T[::1], T[::1], int64[::1]", 14))

# results <- planes and weights
SWEEP = Family(
    "conv_sweep",
    _sweep,
    _signature("T[::1], T[::1], T[::1], int64[::1]", 6),
    fastmath=True,
)

# images <- results
UNPACK = Family("conv_unpack", _unpack, _signature("T[::1], T[::1], T[::1]", 16))

# gradient of the weights += planes of the gradient and of the input
CORRELATE = Family(
    "conv_correlate",
    _correlate,
    _signature("T[::1], T[::1], T[::1], int64[::1]", 6),
    fastmath=True,
)

# gradient of the bias
CHANNEL_SUMS = Family(
    "conv_channel_sums",
    _channel_sums,
    _signature("T[::1], T[::1]", 5),
    fastmath=True,
)
