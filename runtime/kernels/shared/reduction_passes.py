"""The passes and the loops of reductions: the order in which elements are combined.

Passes: axes are ordered by their strides, not by their numbers.  Axes of size one are
removed, reduced axes may be reordered (the operations commute), kept axes keep the
order of the output, and neighbours that are dense in memory are merged.  The result
alternates between kept and reduced groups; each pass removes the last reduced group, so
`sum` of NCHW over N, H, W is two passes and no copy.  A pass reads elements at `o *
outer_stride + r * reduced_stride + i`, and writes its results densely in the order
(outer, inner).  If the strides do not permit such passes, `passes` returns None and the
caller copies to (kept axes, reduced axes), which always is one pass.

Loops: a row is cut into leaves of `LEAF` elements; a leaf is combined in vector lanes
(its sums may be reassociated), and leaves are rows of the next pass.  Columns are
combined in blocks of `BLOCK` rows, four rows at a time, blocks again being rows of the
next pass.  Both orders are functions of the shape alone, so results do not depend on
the number of threads, and the error of a sum grows with the logarithm of its length.
`rows` bodies fill `out[k]` with leaf `task + k`; `columns` bodies do the tasks from
`task` to `end`; both end with a division, which is omitted for a divisor of one.

The greatest and least floats are computed on their bits: as signed integers, positive
floats rise and negative ones fall, and a NaN is beyond infinity on either side, so
three integer extremes, which vectorise, determine the result and detect NaN.  (A
maximum that propagates NaN is not vectorised, and LLVM's own costs 3 times as much.)
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from everyorder.runtime.kernels.math import bits, from_bits

Array = npt.NDArray[Any]


class ReductionPass(NamedTuple):
    """One reduced group between an outer and an inner group of kept elements."""

    outer: int
    outer_stride: int
    reduced: int
    reduced_stride: int
    inner: int


class AxisGroup(NamedTuple):
    """Adjacent axes merged into one: their size and stride, and if they are reduced."""

    size: int
    stride: int
    reduced: bool


def _groups(
    shape: Sequence[int], strides: Sequence[int], dims: frozenset[int]
) -> list[AxisGroup]:
    axes = [
        AxisGroup(n, s, d in dims)
        for d, (n, s) in enumerate(zip(shape, strides, strict=True))
        if n != 1
    ]
    remaining = [axis for axis in axes if not axis.reduced]
    gone = sorted((a for a in axes if a.reduced), key=lambda a: a.stride)
    order: list[AxisGroup] = []
    for axis in remaining:
        while gone and gone[-1].stride > axis.stride:
            order.append(gone.pop())
        order.append(axis)
    order += reversed(gone)
    return _merged(order)


def _merged(groups: Sequence[AxisGroup]) -> list[AxisGroup]:
    merged: list[AxisGroup] = []
    for group in groups:
        if merged and merged[-1].reduced == group.reduced:
            last = merged[-1]
            if last.stride == group.size * group.stride:
                size = last.size * group.size
                merged[-1] = AxisGroup(size, group.stride, group.reduced)
                continue
        merged.append(group)
    return merged


def _dense(groups: Sequence[AxisGroup]) -> bool:
    return all(a.stride == b.size * b.stride for a, b in pairwise(groups))


def _next(groups: list[AxisGroup], last: int) -> ReductionPass | None:
    """Return the pass that removes the reduced group at `last`, or None."""
    before, group, after = groups[:last], groups[last], groups[last + 1 :]
    innermost = after[-1] if after else group
    if not _dense(before) or len(after) > 1 or innermost.stride != 1:
        return None
    return ReductionPass(
        prod(g.size for g in before),
        before[-1].stride if before else 0,
        group.size,
        group.stride,
        after[0].size if after else 1,
    )


def _contiguous(groups: Sequence[AxisGroup]) -> list[AxisGroup]:
    packed: list[AxisGroup] = []
    stride = 1
    for group in reversed(groups):
        packed.append(AxisGroup(group.size, stride, group.reduced))
        stride *= group.size
    return _merged(packed[::-1])


@lru_cache(1024)
def passes(
    shape: tuple[int, ...], strides: tuple[int, ...], dims: tuple[int, ...]
) -> tuple[ReductionPass, ...] | None:
    """Return the passes that reduce `dims`, in order; None if a copy must come first.

    No axis may be empty.  There is at least one pass, of one element if nothing is
    reduced.
    """
    groups = _groups(shape, strides, frozenset(dims))
    if not any(group.reduced for group in groups):
        size = prod(group.size for group in groups)
        dense = not groups or (_dense(groups) and groups[-1].stride == 1)
        return (ReductionPass(1, 0, 1, size, size),) if dense else None
    plan: list[ReductionPass] = []
    while any(group.reduced for group in groups):
        last = max(i for i, group in enumerate(groups) if group.reduced)
        step = _next(groups, last)
        if step is None:
            return None
        plan.append(step)
        groups = _contiguous(groups[:last] + groups[last + 1 :])
    return tuple(plan)


def moved_last(
    a: Array, shape: Sequence[int], strides: Sequence[int], dims: Sequence[int]
) -> Array:
    """Return a flat copy of the elements in the order (kept axes, reduced axes)."""
    remaining = [dim for dim in range(len(shape)) if dim not in dims]
    steps = [stride * a.itemsize for stride in strides]
    placed: Array = np.ndarray(tuple(shape), a.dtype, a, 0, steps)
    return np.ascontiguousarray(placed.transpose(*remaining, *dims)).reshape(-1)


Body = Callable[..., None]
Load = Callable[[Any], Any]
Step = Callable[[Any, Any], Any]

# Elements combined in lanes before the pairwise part: with 16 lanes or more, 64 steps
# in one lane, the error of torch's sums (7.7e-8 in float32).
LEAF = 1024

# The same if the order does not matter: folding the lanes of 1024 elements takes half
# as long as combining them.
EXACT_LEAF = 1 << 14

# Rows combined one after the other, four at a time, before the pairwise part.
BLOCK = 128

# Columns that are combined together: 4096 float32 are 16 KiB, half of a small L1 cache.
TILE = 4096

# a, out, first task, leaves of a row, elements and step of a row, leaf, start, divisor
ROWS = "void(T[::1], U[::1], int64, int64, int64, int64, int64, U, float64)"

# a, out, first task, end, reduced elements and their step, outer step, inner, divisor
COLUMNS = "void(T[::1], U[::1], int64, int64, int64, int64, int64, int64, float64)"


def leaf_of(a: Any, task: int, leaves: int, length: int, stride: int, leaf: int) -> Any:
    """Return the elements of one leaf of a row."""
    row = task // leaves
    first = (task - row * leaves) * leaf
    at = row * stride + first
    return a[at : at + min(leaf, length - first)]


def block_of(t: int, length: int, inner: int) -> tuple[int, int, int, int]:
    """Return the block, the outer index, the first row and column of a task."""
    blocks = (length + BLOCK - 1) // BLOCK
    tiles = (inner + TILE - 1) // TILE
    part = t // tiles
    outer = part // blocks
    return part, outer, (part - outer * blocks) * BLOCK, (t - part * tiles) * TILE


def _reassociated(product: bool) -> Body:
    """Return the body for sums, or products, of leaves of floats, divided.

    Step and loop are in one body: a called function keeps its order of sums.
    """

    def body(
        a: Any,
        out: Any,
        task: int,
        leaves: int,
        length: int,
        stride: int,
        leaf: int,
        start: Any,
        divisor: float,
    ) -> None:
        for k in range(len(out)):
            part = leaf_of(a, task + k, leaves, length, stride, leaf)
            total = start
            for i in range(len(part)):
                if product:
                    total *= part[i]
                else:
                    total += part[i]
            if divisor != 1.0:
                out[k] = total / divisor
            else:
                out[k] = total

    return body


sum_rows, product_rows = _reassociated(False), _reassociated(True)


def rows(step: Step) -> Body:
    """Return the body that combines leaves of integers or bools by `step`."""

    def body(
        a: Any,
        out: Any,
        task: int,
        leaves: int,
        length: int,
        stride: int,
        leaf: int,
        start: Any,
        divisor: float,
    ) -> None:
        for k in range(len(out)):
            part = leaf_of(a, task + k, leaves, length, stride, leaf)
            total = start
            for i in range(len(part)):
                total = step(total, part[i])
            out[k] = total

    return body


def extreme_rows(greatest: bool, signed: Load, unsigned: Load) -> Body:
    """Return the body for the greatest, or least, floats of leaves, or a NaN in them.

    `signed` and `unsigned` convert their bits to integers of the elements' width.
    Among the signed ones, `top` is the greatest number, or a NaN, if one is positive;
    `bottom` is the number nearest to zero if all have one sign; among the unsigned
    ones, `far` is the least number, or a NaN, if one is negative.
    """

    def body(
        a: Any,
        out: Any,
        task: int,
        leaves: int,
        length: int,
        stride: int,
        leaf: int,
        start: Any,
        divisor: float,
    ) -> None:
        infinity = bits(abs(start))
        minus_infinity = unsigned(bits(-abs(start)))
        for k in range(len(out)):
            part = leaf_of(a, task + k, leaves, length, stride, leaf)
            top = bits(part[0])
            bottom = top
            far = unsigned(top)
            for i in range(len(part)):
                b = bits(part[i])
                top = max(top, b)
                bottom = min(bottom, b)
                far = max(far, unsigned(b))
            if top > infinity:
                out[k] = from_bits(top)
            elif far > minus_infinity:
                out[k] = from_bits(signed(far))
            elif greatest:
                out[k] = from_bits(top if top >= 0 else bottom)
            else:
                out[k] = from_bits(signed(far) if signed(far) < 0 else bottom)

    return body


def columns(load: Load, step: Step, finish: Step) -> Body:
    """Return the body that combines blocks of rows by column, then calls `finish`.

    `load` converts an element to the type that `step` combines.
    """

    def body(
        a: Any,
        out: Any,
        task: int,
        end: int,
        length: int,
        step_of_row: int,
        stride: int,
        inner: int,
        divisor: float,
    ) -> None:
        for t in range(task, end):
            part, outer, row, column = block_of(t, length, inner)
            width = min(TILE, inner - column)
            left = min(BLOCK, length - row)
            acc = out[part * inner + column : part * inner + column + width]
            at = outer * stride + row * step_of_row + column
            first = a[at : at + width]
            for i in range(width):
                acc[i] = load(first[i])
            at += step_of_row
            left -= 1
            while left >= 4:
                p = a[at : at + width]
                at += step_of_row
                q = a[at : at + width]
                at += step_of_row
                r = a[at : at + width]
                at += step_of_row
                s = a[at : at + width]
                at += step_of_row
                for i in range(width):
                    left_two = step(load(p[i]), load(q[i]))
                    right_two = step(load(r[i]), load(s[i]))
                    acc[i] = step(acc[i], step(left_two, right_two))
                left -= 4
            while left > 0:
                p = a[at : at + width]
                at += step_of_row
                for i in range(width):
                    acc[i] = step(acc[i], load(p[i]))
                left -= 1
            if divisor != 1.0:
                for i in range(width):
                    acc[i] = finish(acc[i], divisor)

    return body


def same(element: Any) -> Any:
    """Return the element itself."""
    return element


def integer(element: Any) -> Any:
    """Return the element as an int64."""
    return np.int64(element)


def double(element: Any) -> Any:
    """Return the element as a float64."""
    return np.float64(element)


def signed32(integer: Any) -> Any:
    """Return the bits of an integer as an int32."""
    return np.int32(integer)


def unsigned32(integer: Any) -> Any:
    """Return the bits of an integer as a uint32."""
    return np.uint32(integer)


def signed64(integer: Any) -> Any:
    """Return the bits of an integer as an int64."""
    return np.int64(integer)


def unsigned64(integer: Any) -> Any:
    """Return the bits of an integer as a uint64."""
    return np.uint64(integer)


def truth(element: Any) -> Any:
    """Return True if the element is not zero; NaN is true."""
    return element != 0


def add(a: Any, b: Any) -> Any:
    """Return the sum."""
    return a + b


def multiply(a: Any, b: Any) -> Any:
    """Return the product."""
    return a * b


def greater(a: Any, b: Any) -> Any:
    """Return the greater, or the NaN."""
    return b if (b > a) | (b != b) else a


def less(a: Any, b: Any) -> Any:
    """Return the lesser, or the NaN."""
    return b if (b < a) | (b != b) else a


def either(a: Any, b: Any) -> Any:
    """Return True if either is true."""
    return a | (b != 0)


def both(a: Any, b: Any) -> Any:
    """Return True if both are true."""
    return a & (b != 0)


def divide(total: Any, divisor: Any) -> Any:
    """Return the quotient."""
    return total / divisor


def keep(total: Any, divisor: Any) -> Any:
    """Return the total itself."""
    return total
