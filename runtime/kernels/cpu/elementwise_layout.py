"""How operands are walked over: as few dimensions as their strides allow.

True only here: the table of numbers that a strided kernel is handed.  Dimensions of
size 1 vanish, and two neighbours become one where every operand steps evenly over both;
a broadcast dimension is one with stride 0.

`plan` is a pure function of shapes and strides, and remembered: a training loop asks
the same question at every step.
"""

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from runtime.tensors.shape import broadcast_strides

Ints = tuple[int, ...]

# Layouts remembered: more than a network has; each is a few hundred bytes.
REMEMBERED = 1024


def coalesced(shape: Ints, *strides: Ints) -> tuple[Ints, tuple[Ints, ...]]:
    """The shape and strides with neighbouring dimensions merged.

    There is always at least one dimension.
    """
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for dim, size in enumerate(shape):
        if size == 1:
            continue
        here = [given[dim] for given in strides]
        if sizes and all(
            own[-1] == step * size for own, step in zip(steps, here, strict=True)
        ):
            sizes[-1] *= size
            for own, step in zip(steps, here, strict=True):
                own[-1] = step
        else:
            sizes.append(size)
            for own, step in zip(steps, here, strict=True):
                own.append(step)
    if not sizes:
        return (1,), tuple((0,) for _ in strides)
    return tuple(sizes), tuple(tuple(own) for own in steps)


@lru_cache(maxsize=REMEMBERED)
def plan(shape: Ints, *operands: tuple[Ints, Ints]) -> tuple[int, int, Any]:
    """Rows, elements of a row, and the table of a contiguous output of that shape.

    An operand is (its shape, its strides), broadcast to `shape` here.  The table is
    int64: dimensions, their sizes, then the strides of each operand.
    """
    strides = tuple(broadcast_strides(own, steps, shape) for own, steps in operands)
    # The output takes part: it is contiguous, which every merge keeps.
    sizes, steps = coalesced(shape, *strides)
    numbers = (len(sizes), *sizes, *(step for own in steps for step in own))
    table = np.array(numbers, np.int64)
    table.flags.writeable = False
    return prod(sizes[:-1]), sizes[-1], table
