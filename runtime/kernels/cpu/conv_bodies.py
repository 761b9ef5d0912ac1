"""The compiled loops of convolution: pack, sweep, unpack, correlate.

A *plane* is one channel of some images, padded, with rows of `pitch` elements; images
follow each other.  A tap of the filter is a shift of the whole plane, so that the
innermost loops cover rows and images alike and vectorise however small an image is.
Their results between the rows are never read.

With a stride, the padded image is distributed to stride x stride planes, its *phases*
(every second row, every second column, ...), in which each tap is a shift again.

Rules: `_pack` writes the columns of the image and does not change the padding at their
sides, which is zero in a new buffer and the same for every block; sums are reassociated
only across the taps of one step; positions are converted to unsigned integers where
they index, so that signs are not checked.  `runtime.kernels.cpu.conv` calls these
loops.
"""

from typing import Any

import numpy as np

from everyorder.runtime.base.codegen import block, template
from everyorder.runtime.kernels.compile.jit import Family

# Elements of a plane that are swept at once: four results and three planes of that many
# fit in a first-level cache of 32 KiB.
SWEPT = 1024

# Elements of a plane that are correlated at once: longer, as each ends in twelve sums.
CORRELATED = 2048


def _inside(shift: int, stride: int, size: int, places: int) -> tuple[int, int]:
    """Return the range of places t whose `t * stride + shift` is in range(size)."""
    begin = min(max(-(shift // stride), 0), places)
    return begin, min(max(-((shift - size) // stride), begin), places)


def _unit(unit: int, swept: int, length: int) -> tuple[int, int, int]:
    """Return the group of a unit of work, its start in a plane, and its elements."""
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
                            value = source[np.uint64(at + j * stride_x)]
                            planes[np.uint64(to + j)] = value
                base += rows * pitch


def _products(outputs: int, taps: int) -> list[str]:
    """Return the lines that add products of some taps to some outputs' results."""
    square = [(o, t) for o in range(outputs) for t in range(taps)]
    sums = [
        " + ".join([f"w{o}{t} * v{t}" for t in range(taps)]) for o in range(outputs)
    ]
    return [
        *[f"x{t} = origin + offsets[tap + {t}]" for t in range(taps)],
        "at = filters + output * taps + tap",
        *[f"w{o}{t} = weights[np.uint64(at + {o} * taps + {t})]" for o, t in square],
        *block(
            "for j in range(n):",
            [
                *[f"v{t} = planes[np.uint64(x{t} + j)]" for t in range(taps)],
                *[f"results[np.uint64(r{o} + j)] += {s}" for o, s in enumerate(sums)],
            ],
        ),
    ]


def _swept(outputs: int) -> list[str]:
    """Return the lines that compute the results of some outputs, from `output` on."""
    zeros = [f"results[np.uint64(r{o} + j)] = 0" for o in range(outputs)]
    return [
        *[f"r{o} = into + (output + {o}) * segment" for o in range(outputs)],
        *block("for j in range(n):", zeros),
        *block("for tap in range(0, whole, 3):", _products(outputs, 3)),
        *block("for tap in range(whole, taps):", _products(outputs, 1)),
    ]


@template("convolution", "", np=np, SWEPT=SWEPT, _unit=_unit)
def _sweep() -> list[str]:
    """Return the sweep over four outputs and three taps at a time.

    So a load of a plane serves four sums.  The last four outputs may be computed twice,
    with the same values.
    """
    parameters = (
        "results, planes, weights, offsets, shift, groups, group_step, outputs, "
    )
    return block(
        f"def sweep({parameters}segment, length):",
        [
            "taps = len(offsets)",
            "whole = taps // 3 * 3",
            *block(
                "for unit in range(groups * -(-length // SWEPT)):",
                [
                    "group, start, n = _unit(unit, SWEPT, length)",
                    "origin = shift + group * group_step + start",
                    "into = group * outputs * segment + start",
                    "filters = group * outputs * taps",
                    *block(
                        "for four in range(0, outputs if outputs >= 4 else 0, 4):",
                        ["output = min(four, outputs - 4)", *_swept(4)],
                    ),
                    *block(
                        "for output in range(outputs if outputs < 4 else 0):", _swept(1)
                    ),
                ],
            ),
        ],
    )


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


def _correlated(outputs: int, taps: int) -> list[str]:
    """Return the lines that correlate some outputs, from `output` on, with taps."""
    square = [(o, t) for o in range(outputs) for t in range(taps)]
    steps = [f"v{t} = planes[np.uint64(x{t} + j)]" for t in range(taps)]
    for o in range(outputs):
        steps.append(f"slope = grads[np.uint64(g{o} + j)]")
        steps += [f"s{o}{t} += slope * v{t}" for t in range(taps)]
    return [
        *[f"g{o} = slopes + (output + {o}) * segment" for o in range(outputs)],
        *[f"x{t} = origin + offsets[tap + {t}]" for t in range(taps)],
        *[f"s{o}{t} = nothing" for o, t in square],
        *block("for j in range(n):", steps),
        "at = filters + output * taps + tap",
        *[f"total[np.uint64(at + {o} * taps + {t})] += s{o}{t}" for o, t in square],
    ]


@template("convolution", "", np=np, CORRELATED=CORRELATED, _unit=_unit)
def _correlate() -> list[str]:
    """Return the correlation of four outputs with three taps, then of the others."""
    parameters = "total, grads, planes, offsets, shift, groups, group_step, outputs, "
    return block(
        f"def correlate({parameters}segment, length):",
        [
            "taps = len(offsets)",
            "fours, threes = outputs // 4 * 4, taps // 3 * 3",
            "nothing = total.dtype.type(0)",
            *block(
                "for unit in range(groups * -(-length // CORRELATED)):",
                [
                    "group, start, n = _unit(unit, CORRELATED, length)",
                    "origin = shift + group * group_step + start",
                    "slopes = group * outputs * segment + start",
                    "filters = group * outputs * taps",
                    *block(
                        "for output in range(0, fours, 4):",
                        block("for tap in range(0, threes, 3):", _correlated(4, 3)),
                    ),
                    *block(
                        "for output in range(outputs):",
                        [
                            "first = threes if output < fours else 0",
                            *block("for tap in range(first, taps):", _correlated(1, 1)),
                        ],
                    ),
                ],
            ),
        ],
    )


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
    _sweep()(),
    _signature("T[::1], T[::1], T[::1], int64[::1]", 6),
    fastmath=True,
)

# images <- results
UNPACK = Family("conv_unpack", _unpack, _signature("T[::1], T[::1], T[::1]", 16))

# gradient of the weights += planes of the gradient and of the input
CORRELATE = Family(
    "conv_correlate",
    _correlate()(),
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
