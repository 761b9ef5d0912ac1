"""How many blocks and threads: the shape of a launch, chosen for the device.

True only here: the arithmetic from a number of elements or rows to a grid.  All kernels
walk in strides of the whole grid, so a grid may be smaller than the work, and none is
larger than what the device runs at once a few times over.

Rules: threads of a block are always `BLOCK`, which bodies use as a constant; a kernel
that needs its grid's size gets it from `cuda.gridDim`.  The device of the launch goes
along, because the stream to launch on depends on it.
"""

from typing import NamedTuple

from runtime.kernels.cuda.device import properties
from runtime.kernels.cuda.toolkit import BLOCK, SIMULATED

# Waves of blocks: more balance the load, and each costs a start (the usual 4 to 8).
WAVES = 1 if SIMULATED else 8


class Shape(NamedTuple):
    """The shape of a launch: blocks, threads of each, and the device's index."""

    grid: int
    block: int
    device: int


def resident(device: int) -> int:
    """How many blocks of `BLOCK` threads the device runs at once."""
    of = properties(device)
    return of.multiprocessors * max(1, of.threads_per_multiprocessor // BLOCK)


def spread(count: int, device: int) -> Shape:
    """A thread for each of `count` elements, as far as the device goes."""
    wanted = -(-count // BLOCK)
    return Shape(max(1, min(wanted, WAVES * resident(device))), BLOCK, device)


def rows(count: int, device: int) -> Shape:
    """A block for each of `count` rows, as far as the device goes."""
    return Shape(max(1, min(count, WAVES * resident(device))), BLOCK, device)
