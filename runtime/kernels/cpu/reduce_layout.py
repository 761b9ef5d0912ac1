"""How a reduction over any axes becomes passes over (outer, reduced, inner).

True only here: axes are looked at by their strides, not by their numbers.  Axes of size
one vanish, reduced axes may change places (the operations commute), kept axes keep the
order of the output, and neighbours that lie densely in memory become one.  What is left
alternates between kept and reduced groups; each pass takes the last reduced group away,
so `sum` of NCHW over N, H, W is two passes and no copy.

Rules: a pass sees elements at `o * outer_stride + r * reduced_stride + i`, and writes
its results densely in the order (outer, inner).  With `inner == 1` the reduced elements
are neighbours.  Where the strides allow no such passes, `passes` returns None and the
caller copies to (kept axes, reduced axes), which always is one pass.  Plans depend on
integers only and are remembered.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Pass(NamedTuple):
    """One reduced group between an outer and an inner group of kept elements."""

    outer: int
    outer_stride: int
    reduced: int
    reduced_stride: int
    inner: int


class Group(NamedTuple):
    """Neighbouring axes that are one: their elements, their step, their fate."""

    size: int
    stride: int
    reduced: bool


def _groups(
    shape: Sequence[int], strides: Sequence[int], dims: frozenset[int]
) -> list[Group]:
    axes = [
        Group(n, s, d in dims)
        for d, (n, s) in enumerate(zip(shape, strides, strict=True))
        if n != 1
    ]
    kept = [axis for axis in axes if not axis.reduced]
    gone = sorted((a for a in axes if a.reduced), key=lambda a: a.stride)
    order: list[Group] = []
    for axis in kept:
        while gone and gone[-1].stride > axis.stride:
            order.append(gone.pop())
        order.append(axis)
    order += reversed(gone)
    return _merged(order)


def _merged(groups: Sequence[Group]) -> list[Group]:
    merged: list[Group] = []
    for group in groups:
        if merged and merged[-1].reduced == group.reduced:
            last = merged[-1]
            if last.stride == group.size * group.stride:
                size = last.size * group.size
                merged[-1] = Group(size, group.stride, group.reduced)
                continue
        merged.append(group)
    return merged


def _dense(groups: Sequence[Group]) -> bool:
    return all(a.stride == b.size * b.stride for a, b in pairwise(groups))


def _next(groups: list[Group], last: int) -> Pass | None:
    """The pass that takes the reduced group at `last` away, if the strides allow it."""
    before, group, after = groups[:last], groups[last], groups[last + 1 :]
    innermost = after[-1] if after else group
    if not _dense(before) or len(after) > 1 or innermost.stride != 1:
        return None
    return Pass(
        prod(g.size for g in before),
        before[-1].stride if before else 0,
        group.size,
        group.stride,
        after[0].size if after else 1,
    )


def _contiguous(groups: Sequence[Group]) -> list[Group]:
    made: list[Group] = []
    stride = 1
    for group in reversed(groups):
        made.append(Group(group.size, stride, group.reduced))
        stride *= group.size
    return _merged(made[::-1])


@lru_cache(1024)
def passes(
    shape: tuple[int, ...], strides: tuple[int, ...], dims: tuple[int, ...]
) -> tuple[Pass, ...] | None:
    """The passes that reduce `dims`, in order; None where a copy must come first.

    No axis may be empty.  There is at least one pass, of one element where nothing is
    reduced.
    """
    groups = _groups(shape, strides, frozenset(dims))
    if not any(group.reduced for group in groups):
        size = prod(group.size for group in groups)
        dense = not groups or (_dense(groups) and groups[-1].stride == 1)
        return (Pass(1, 0, 1, size, size),) if dense else None
    plan: list[Pass] = []
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
    """A flat copy of the elements in the order (kept axes, reduced axes)."""
    kept = [dim for dim in range(len(shape)) if dim not in dims]
    steps = [stride * a.itemsize for stride in strides]
    placed: Array = np.ndarray(tuple(shape), a.dtype, a, 0, steps)
    return np.ascontiguousarray(placed.transpose(*kept, *dims)).reshape(-1)
