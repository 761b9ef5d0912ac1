"""The geometry of convolution: planes, taps and blocks, as values.

True only here: how a convolution becomes sweeps over planes (see
`runtime.kernels.cpu.conv_bodies`).  A padded coordinate `y * stride + k * dilation` is
`(y + k * dilation // stride) * stride + k * dilation % stride`: the remainder names the
phase that a tap reads, the quotient is its shift inside of that phase.

- forward: one sweep over the phases of the input;
- gradient of the input: for each phase one sweep over the gradient, taps mirrored,
  whose results are the elements of that phase;
- gradient of the weights: planes of input and gradient, correlated at each tap.

Rules: dimensions come as (y, x) pairs.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

Pair = tuple[int, int]
Array = Any

# Elements of a plane in one block: long enough for the loops, short enough that the
# planes of a few dozen channels stay in a second-level cache of 1 MiB.
PLANE = 4096

# Elements of all planes of a block; more images are not added above it.
PLANES = 1 << 18

# Programs have few layers; a sweep is as large as one filter.
REMEMBERED = 256


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """How planes are read from images; each is made once, and is its own key."""

    phases: "np.ndarray[Any, Any]"
    stride: Pair
    padding: Pair


@dataclass(frozen=True, slots=True, eq=False)
class Taps:
    """For each tap of one filter, channel by channel: its plane and its shift in it.

    Each is made once, and is its own key.
    """

    planes: "np.ndarray[Any, Any]"
    down: "np.ndarray[Any, Any]"
    right: "np.ndarray[Any, Any]"
    # The largest shifts: rows and columns that planes have beyond the results.
    reach: Pair


@lru_cache(maxsize=REMEMBERED)
def offsets_of(taps: Taps, segment: int, pitch: int) -> Array:
    """The shifts as numbers of elements, planes `segment` elements apart."""
    return taps.planes * segment + taps.down * pitch + taps.right


@dataclass(frozen=True, slots=True)
class Phase:
    """The sweep that gives the gradient of one phase of the input."""

    taps: Taps
    # Which taps of a filter take part, as positions in kernel height x width.
    members: tuple[int, ...]
    # The phase itself: its first row and column.
    start: Pair


# The only phase of a batch that is read without a stride.
WHOLE = np.zeros(2, np.int64)


@dataclass(frozen=True, slots=True)
class Block:
    """Some images, or some rows (of the results) of one image."""

    image: int
    images: int
    top: int
    rows: int


@lru_cache(maxsize=REMEMBERED)
def plain(padding: Pair) -> Packing:
    """A batch read as it is, but for the padding."""
    return Packing(WHOLE, (1, 1), padding)


def _split(kernel: Pair, stride: Pair, dilation: Pair) -> list[tuple[Pair, Pair]]:
    """For each tap its phase and its shift."""
    return [
        (
            (y * dilation[0] % stride[0], x * dilation[1] % stride[1]),
            (y * dilation[0] // stride[0], x * dilation[1] // stride[1]),
        )
        for y in range(kernel[0])
        for x in range(kernel[1])
    ]


@lru_cache(maxsize=REMEMBERED)
def forward(
    channels: int, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> tuple[Packing, Taps]:
    """How the input of `channels` (of one group) is packed, and its taps."""
    split = _split(kernel, stride, dilation)
    phases = sorted({phase for phase, _ in split})
    kinds = [phases.index(phase) for phase, _ in split]
    taps = _taps(channels, len(phases), kinds, [shift for _, shift in split])
    return Packing(_array(phases), stride, padding), taps


@lru_cache(maxsize=REMEMBERED)
def backward(
    filters: int, kernel: Pair, stride: Pair, dilation: Pair
) -> tuple[Phase, ...]:
    """The sweeps over the gradient, which has `filters` channels (in one group)."""
    split = _split(kernel, stride, dilation)
    reach = max(s[0] for _, s in split), max(s[1] for _, s in split)
    found = []
    for start in sorted({phase for phase, _ in split}):
        members = [at for at, (phase, _) in enumerate(split) if phase == start]
        shifts = [
            (reach[0] - split[at][1][0], reach[1] - split[at][1][1]) for at in members
        ]
        taps = _taps(filters, 1, [0] * len(members), shifts, reach)
        found.append(Phase(taps, tuple(members), start))
    return tuple(found)


def _taps(
    channels: int,
    kinds: int,
    kind: list[int],
    shifts: list[Pair],
    reach: Pair | None = None,
) -> Taps:
    planes = np.arange(channels)[:, None] * kinds + np.array(kind)
    down, right = (np.tile([shift[at] for shift in shifts], channels) for at in (0, 1))
    return Taps(
        planes=planes.reshape(-1).astype(np.int64),
        down=down.astype(np.int64),
        right=right.astype(np.int64),
        reach=reach or (max(s[0] for s in shifts), max(s[1] for s in shifts)),
    )


def _array(pairs: list[Pair]) -> Array:
    return np.array(pairs, np.int64).reshape(-1)


def inside(phase: int, padding: int, stride: int, size: int) -> Pair:
    """The first row of a phase that lies in the image, and the first after it."""
    begin = max(-((phase - padding) // stride), 0)
    return begin, max(-((phase - padding - size) // stride), begin)


def pitch(packing: Packing, axis: int, size: int, results: int, reach: int) -> int:
    """The rows (axis 0) or columns (1) that a plane needs for one image of `size`.

    These are the results and the reach, less what one image's end can share with the
    beginning of the next: a tap that leaves a row at its end meets the padding in front
    of the next row, and that is as much zero as the padding it missed.
    """
    bounds = [
        inside(int(phase), packing.padding[axis], packing.stride[axis], size)
        for phase in packing.phases[axis::2]
    ]
    extent = results + reach
    begin = min(begin for begin, _ in bounds)
    end = min(max(end for _, end in bounds), extent)
    return max(end, extent - begin, results)


@lru_cache(maxsize=REMEMBERED)
def blocks(
    images: int, rows: int, pitch: int, below: int, planes: int, smallest: bool = False
) -> tuple[Block, ...]:
    """The work in pieces: whole small images, or bands of the rows of large ones.

    Planes of whole images have `below` rows more than the results.  `smallest` makes
    every piece one row.  The first piece is the largest.
    """
    area = (rows + below) * pitch
    if smallest or area > 2 * PLANE:
        band = 1 if smallest else max(1, PLANE // pitch)
        return tuple(
            Block(image, 1, top, min(band, rows - top))
            for image in range(images)
            for top in range(0, rows, band)
        )
    count = max(1, min(images, PLANE // area, PLANES // (area * planes)))
    return tuple(
        Block(image, min(count, images - image), 0, rows)
        for image in range(0, images, count)
    )
