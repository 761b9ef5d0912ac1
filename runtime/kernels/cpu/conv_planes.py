"""Batches of images and the planes made from them, block by block.

True only here: how much is packed at once.  A block is whole small images or a band of
a large one; several groups of few channels (depthwise filters) are packed together.
Images that need no padding and no phases are planes as they are.

Rules: a buffer begins as zeros and is used for one reader only, because packing leaves
the padding at the sides of the rows as it is.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from runtime.kernels.cpu.conv_bodies import PACK
from runtime.kernels.cpu.conv_plan import (
    PLANES,
    REMEMBERED,
    Block,
    Packing,
    Pair,
    blocks,
    pitch,
    plain,
)

Array = Any

# NumPy's own names of its dtypes cost 2 us each time.
NAMES = {np.dtype(name): name for name in ("float32", "float64")}

# Pieces of work that groups are cut into at least, so that threads can share them.
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
        """The elements of one image."""
        return self.groups * self.channels * self.size[0] * self.size[1]

    def start(self, image: int, group: int, channel: int = 0) -> int:
        """The position of a channel of a group of an image."""
        at = group * self.channels + channel
        return image * self.step + at * self.size[0] * self.size[1]


def images_of(flat: Array, shape: tuple[int, ...], groups: int) -> Images:
    """A batch (N, C, H, W), or one image (C, H, W), seen in groups of channels."""
    count = shape[0] if len(shape) == 4 else 1
    return Images(flat, count, groups, shape[-3] // groups, (shape[-2], shape[-1]))


class Reader(NamedTuple):
    """Planes of a batch: packed, or read in place where nothing needs packing."""

    images: Images
    packing: Packing
    # Rows and columns of the results.
    grid: Pair
    # Rows that planes have more, and elements of one row.
    below: int
    pitch: int
    blocks: tuple[Block, ...]
    # Whether the images are planes as they are.
    in_place: bool
    # The elements between one plane and the next, and between two groups.
    segment: int
    group_step: int
    # Groups that are packed together.
    together: int

    def buffer(self) -> Array:
        """Room for the planes of one block of the groups packed together."""
        if self.in_place:
            return self.images.flat
        # Behind the last row its taps may go on to what would be the next image.
        tail = self.segment // self.blocks[0].images
        count = self.together * self.group_step + tail
        return np.zeros(count, self.images.flat.dtype)

    def read(self, planes: Array, block: Block, group: int, groups: int) -> int:
        """Pack some groups; the answer is where the first plane begins."""
        images = self.images
        first = images.start(block.image, group)
        if self.in_place:
            return first + block.top * self.pitch
        self.pack(images, planes, self.packing, block, first, groups)
        return 0

    def slopes(self, grads: Images) -> Array:
        """Room for gradients of the results, aligned with the planes."""
        count = self.together * grads.channels * self.room
        return np.zeros(count, grads.flat.dtype)

    def read_slopes(
        self, grads: Images, slopes: Array, block: Block, group: int, groups: int
    ) -> None:
        """Pack the gradients of the results of a block, zeros between them."""
        first = grads.start(block.image, group)
        self.pack(grads, slopes, _PLAIN, block, first, groups, self.room)

    @property
    def room(self) -> int:
        """The elements of a packed plane."""
        block = self.blocks[0]
        return block.images * (block.rows + self.below) * self.pitch

    def pack(
        self,
        images: Images,
        planes: Array,
        packing: Packing,
        block: Block,
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

    def area(self, block: Block) -> int:
        """The elements of one image in a plane."""
        return (block.rows + self.below) * self.pitch

    def length(self, block: Block) -> int:
        """The elements from the first to the last result of a block."""
        rows = (block.rows - 1) * self.pitch
        return (block.images - 1) * self.area(block) + rows + self.grid[1]


_PLAIN = plain((0, 0))


# What belongs to a reader but for the images.
Layout = tuple[int, int, tuple[Block, ...], bool, int, int, int]


def reader_of(
    images: Images, packing: Packing, grid: Pair, reach: Pair, smallest: bool = False
) -> Reader:
    """How the planes for a grid of results are read; `smallest`: row by row."""
    shape = images.count, images.groups, images.channels, images.size
    return Reader(
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
    """The fields of a reader from `below` on, for images of that geometry."""
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
        # Taps that go on below the image would read the next one.
        and grid[0] + reach[0] <= height
        and pieces[0].images == 1
    )
    segment = pieces[0].images * (pieces[0].rows + below) * columns
    if in_place:
        segment = height * width
    together = max(1, min(PLANES // (kinds * segment), -(-groups // PIECES)))
    return below, columns, pieces, in_place, segment, kinds * segment, together
