"""The geometry of convolution: taps, blocks of images, and the planes made from them.

A padded coordinate `y * stride + k * dilation` is `(y + k * dilation // stride) *
stride + k * dilation % stride`: the remainder is the phase that a tap reads, the
quotient is its shift inside of that phase.  So a convolution becomes sweeps over planes
(see `runtime.kernels.cpu.conv_bodies`):

- forward: one sweep over the phases of the input;
- gradient of the input: for each phase one sweep over the gradient, taps mirrored,
  whose results are the elements of that phase;
- gradient of the weights: planes of input and gradient, correlated at each tap.

Planes are packed block by block: a block is whole small images or a band of a large
one; several groups of few channels (depthwise filters) are packed together.  Images
that need neither padding nor phases are planes already.

Rules: dimensions are (y, x) pairs.  A buffer starts as zeros and serves one reader
only, because packing does not change the padding at the sides of the rows.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from everyorder.runtime.kernels.cpu.conv_bodies import PACK

Pair = tuple[int, int]
Array = Any

# Elements of a plane in one block: long enough for the loops, short enough that the
# planes of a few dozen channels fit in a second-level cache of 1 MiB.
PLANE = 4096

# Elements of all planes of a block; beyond this, no more images are added.
PLANES = 1 << 18

# Programs have few layers; a sweep is as large as one filter.
REMEMBERED = 256


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """The reading of planes from images; instances are cached, compared by identity."""

    phases: "np.ndarray[Any, Any]"
    stride: Pair
    padding: Pair


@dataclass(frozen=True, slots=True, eq=False)
class Taps:
    """For each tap of one filter, by channel: its plane and its shift in it.

    Instances are cached and compare by identity.
    """

    planes: "np.ndarray[Any, Any]"
    down: "np.ndarray[Any, Any]"
    right: "np.ndarray[Any, Any]"
    # The largest shifts: the rows and columns of planes beyond the results.
    reach: Pair


@lru_cache(maxsize=REMEMBERED)
def offsets_of(taps: Taps, segment: int, pitch: int) -> Array:
    """Return the shifts as numbers of elements, planes `segment` elements apart."""
    return taps.planes * segment + taps.down * pitch + taps.right


@dataclass(frozen=True, slots=True)
class Phase:
    """The sweep that computes the gradient of one phase of the input."""

    taps: Taps
    # The taps of a filter that take part, as positions in kernel height x width.
    members: tuple[int, ...]
    # The first row and column of the phase.
    start: Pair


# The only phase of a batch without a stride.
WHOLE = np.zeros(2, np.int64)


@dataclass(frozen=True, slots=True)
class ImageBlock:
    """Some images, or some rows (of the results) of one image."""

    image: int
    images: int
    top: int
    rows: int


@lru_cache(maxsize=REMEMBERED)
def plain(padding: Pair) -> Packing:
    """Return the packing of a batch without a stride."""
    return Packing(WHOLE, (1, 1), padding)


def _split(kernel: Pair, stride: Pair, dilation: Pair) -> list[tuple[Pair, Pair]]:
    """Return the phase and the shift of each tap."""
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
    """Return the packing of the input of `channels` (of one group), and its taps."""
    split = _split(kernel, stride, dilation)
    phases = sorted({phase for phase, _ in split})
    kinds = [phases.index(phase) for phase, _ in split]
    taps = _taps(channels, len(phases), kinds, [shift for _, shift in split])
    return Packing(_array(phases), stride, padding), taps


@lru_cache(maxsize=REMEMBERED)
def backward(
    filters: int, kernel: Pair, stride: Pair, dilation: Pair
) -> tuple[Phase, ...]:
    """Return the sweeps over the gradient with `filters` channels (in one group)."""
    split = _split(kernel, stride, dilation)
    reach = max(s[0] for _, s in split), max(s[1] for _, s in split)
    phases = []
    for start in sorted({phase for phase, _ in split}):
        members = [at for at, (phase, _) in enumerate(split) if phase == start]
        shifts = [
            (reach[0] - split[at][1][0], reach[1] - split[at][1][1]) for at in members
        ]
        taps = _taps(filters, 1, [0] * len(members), shifts, reach)
        phases.append(Phase(taps, tuple(members), start))
    return tuple(phases)


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
    """Return the first row of a phase inside of the image, and the first after it."""
    begin = max(-((phase - padding) // stride), 0)
    return begin, max(-((phase - padding - size) // stride), begin)


def pitch(packing: Packing, axis: int, size: int, results: int, reach: int) -> int:
    """Return the rows (axis 0) or columns (1) of a plane for one image of `size`.

    These are the results and the reach, less the overlap of one image's end and the
    beginning of the next: a tap beyond the end of a row reads the padding before the
    next row, which is as zero as the padding after the row.
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
) -> tuple[ImageBlock, ...]:
    """Return the work in pieces: small images, or bands of the rows of large ones.

    Planes of whole images have `below` rows more than the results.  `smallest` makes
    every piece one row.  The first piece is the largest.
    """
    area = (rows + below) * pitch
    if smallest or area > 2 * PLANE:
        band = 1 if smallest else max(1, PLANE // pitch)
        return tuple(
            ImageBlock(image, 1, top, min(band, rows - top))
            for image in range(images)
            for top in range(0, rows, band)
        )
    count = max(1, min(images, PLANE // area, PLANES // (area * planes)))
    return tuple(
        ImageBlock(image, min(count, images - image), 0, rows)
        for image in range(0, images, count)
    )


# Cached, as NumPy takes 2 us to name a dtype.
NAMES = {np.dtype(name): name for name in ("float32", "float64")}

# The least number of pieces that groups are cut into, so that threads can share them.
PIECES = 4


@dataclass(frozen=True, slots=True)
class Images:
    """A batch as one flat array: images x (groups x channels) x height x width."""

    flat: Array
    count: int
    groups: int
    channels: int
    size: Pair

    @property
    def step(self) -> int:
        """Return the number of elements of one image."""
        return self.groups * self.channels * self.size[0] * self.size[1]

    def start(self, image: int, group: int, channel: int = 0) -> int:
        """Return the position of a channel of a group of an image."""
        at = group * self.channels + channel
        return image * self.step + at * self.size[0] * self.size[1]


def images_of(flat: Array, shape: tuple[int, ...], groups: int) -> Images:
    """Return a batch (N, C, H, W), or one image (C, H, W), in groups of channels."""
    count = shape[0] if len(shape) == 4 else 1
    return Images(flat, count, groups, shape[-3] // groups, (shape[-2], shape[-1]))


class PlaneReader(NamedTuple):
    """Planes of a batch: packed, or read in place if they need no packing."""

    images: Images
    packing: Packing
    # Rows and columns of the results.
    grid: Pair
    # Additional rows of planes, and elements of one row.
    below: int
    pitch: int
    blocks: tuple[ImageBlock, ...]
    # True if the images are planes already.
    in_place: bool
    # The elements between one plane and the next, and between two groups.
    segment: int
    group_step: int
    # Groups that are packed together.
    together: int

    def buffer(self) -> Array:
        """Return a buffer for the planes of one block of the groups packed together."""
        if self.in_place:
            return self.images.flat
        # After the last row, its taps may continue into the place of a next image.
        tail = self.segment // self.blocks[0].images
        count = self.together * self.group_step + tail
        return np.zeros(count, self.images.flat.dtype)

    def read(self, planes: Array, block: ImageBlock, group: int, groups: int) -> int:
        """Pack some groups; return the position of the first plane."""
        images = self.images
        first = images.start(block.image, group)
        if self.in_place:
            return first + block.top * self.pitch
        self.pack(images, planes, self.packing, block, first, groups)
        return 0

    def slopes(self, grads: Images) -> Array:
        """Return a buffer for gradients of the results, aligned with the planes."""
        count = self.together * grads.channels * self.room
        return np.zeros(count, grads.flat.dtype)

    def read_slopes(
        self, grads: Images, slopes: Array, block: ImageBlock, group: int, groups: int
    ) -> None:
        """Pack the gradients of the results of a block, with zeros between them."""
        first = grads.start(block.image, group)
        self.pack(grads, slopes, _PLAIN, block, first, groups, self.room)

    @property
    def room(self) -> int:
        """Return the number of elements of a packed plane."""
        block = self.blocks[0]
        return block.images * (block.rows + self.below) * self.pitch

    def pack(
        self,
        images: Images,
        planes: Array,
        packing: Packing,
        block: ImageBlock,
        first: int,
        groups: int,
        segment: int = 0,
    ) -> None:
        """Fill planes with the channels of `groups` groups from position `first` on."""
        PACK[NAMES[planes.dtype]](
            planes,
            images.flat,
            packing.phases,
            first,
            images.step,
            *images.size,
            *packing.stride,
            *packing.padding,
            images.channels * groups,
            block.images,
            segment or self.segment,
            block.rows + self.below,
            self.pitch,
            block.top,
        )

    def area(self, block: ImageBlock) -> int:
        """Return the number of elements of one image in a plane."""
        return (block.rows + self.below) * self.pitch

    def length(self, block: ImageBlock) -> int:
        """Return the number of elements from first to last result of a block."""
        rows = (block.rows - 1) * self.pitch
        return (block.images - 1) * self.area(block) + rows + self.grid[1]


_PLAIN = plain((0, 0))


# The fields of a reader that do not depend on the images' elements.
Layout = tuple[int, int, tuple[ImageBlock, ...], bool, int, int, int]


def reader_of(
    images: Images, packing: Packing, grid: Pair, reach: Pair, smallest: bool = False
) -> PlaneReader:
    """Return the reader of planes for a grid of results; `smallest`: row by row."""
    shape = images.count, images.groups, images.channels, images.size
    return PlaneReader(
        images, packing, grid, *layout(*shape, packing, grid, reach, smallest)
    )


@lru_cache(maxsize=REMEMBERED)
def layout(
    count: int,
    groups: int,
    channels: int,
    size: Pair,
    packing: Packing,
    grid: Pair,
    reach: Pair,
    smallest: bool,
) -> Layout:
    """Return the fields of a reader from `below` on, for images of that geometry."""
    height, width = size
    kinds = channels * (len(packing.phases) // 2)
    columns = pitch(packing, 1, width, grid[1], reach[1])
    below = pitch(packing, 0, height, grid[0], reach[0]) - grid[0]
    pieces = blocks(count, grid[0], columns, below, kinds, smallest)
    if pieces[0].rows < grid[0]:
        below = reach[0]
    in_place = (
        packing.stride == (1, 1)
        and packing.padding == (0, 0)
        and columns == width
        # Taps that continue below the image would read the next one.
        and grid[0] + reach[0] <= height
        and pieces[0].images == 1
    )
    segment = pieces[0].images * (pieces[0].rows + below) * columns
    if in_place:
        segment = height * width
    together = max(1, min(PLANES // (kinds * segment), -(-groups // PIECES)))
    return below, columns, pieces, in_place, segment, kinds * segment, together
