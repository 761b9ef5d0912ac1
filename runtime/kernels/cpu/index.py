"""index and index_put: several integer indices at once, as `x[a, :, b]`.

True only here: where the result of advanced indexing has its dimensions.  The indices
broadcast to one shape, which stands where the indices stood if these are neighbours,
and comes first if a dimension without an index lies between them (NumPy's rule).

How it works: the indices become one array of element offsets, negative values counted
from the end; what is left is a walk through one index (`runtime.kernels.cpu.lines`).
A single index is tried as it stands; a negative value in it sends it the general way.

Rules: boolean masks have been turned into integers.  `out` of index_put comes with a
copy of self; the values of equal places are met in the order of the index.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from runtime.kernels.cpu.adding import factor, summed
from runtime.kernels.cpu.bounds import refusal
from runtime.kernels.cpu.lines import ADD, READ, WRITE
from runtime.kernels.cpu.lines_plan import plan
from runtime.kernels.cpu.operand import (
    WORDS,
    Ints,
    dense,
    integers,
    lying,
    strides_of,
    words,
)
from runtime.kernels.cpu.walks import REMEMBERED, Call, Walks, ready, shared
from runtime.kernels.jit import Family
from runtime.schema.codes import DType
from runtime.tensors.arrays import array_of
from runtime.tensors.elements import compute_dtype
from runtime.tensors.shape import (
    broadcast_shapes,
    broadcast_strides,
    contiguous_strides,
)
from runtime.tensors.tensor import Tensor

Indices = Sequence[Tensor | None]


def _offsets(total: Any, index: Any, size: int, stride: int, kept: int) -> bool:
    bad = 0
    for j in range(len(total)):
        at = index[j]
        at += size if at < 0 else 0
        bad |= (at < 0) | (at >= size)
        total[j] = kept * total[j] + at * stride
    return bad != 0


_OFFSETS = Family(
    "offsets", _offsets, "boolean(int64[::1], int64[::1], int64, int64, int64)"
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the dimensions of x and of the indices are in the result."""

    shape: Ints
    # Strides of x by dimension of the result, 0 where an index decides; and of the
    # offsets, 0 where none does.
    walk: Ints
    steps: Ints
    # The shape of all indices together.
    common: Ints
    # Each dimension with an index, its size and stride.
    indexed: tuple[tuple[int, int, int], ...]


def _single(
    dtype: DType,
    shape: Ints,
    strides: Ints | None,
    dim: int,
    chosen: Ints,
    steps: Ints | None,
    out: Ints | None,
) -> Call:
    """The call for one index, whose values count places of dimension `dim`."""
    x, own = strides_of(shape, strides), strides_of(chosen, steps)
    walked = (*shape[:dim], *chosen, *shape[dim + 1 :])
    by = ((0,) * dim, own, (0,) * (len(shape) - dim - 1))
    return ready(
        READ,
        WORDS[dtype],
        walked,
        (*x[:dim], *(0,) * len(chosen), *x[dim + 1 :]),
        x[dim],
        (chosen, own, sum(by, ())),
        strides_of(walked, out),
        shape[dim],
    )


_SINGLE = Walks(_single)


def index(out: Tensor, x: Tensor, indices: Indices) -> None:
    """Fill `out` with `x[indices]`.

    Raises `IndexOutOfRange`, before anything is written.
    """
    source, a, strides = words(x)
    target, o, to = words(out)
    chosen: Tensor | None = None
    for dim, one in enumerate(indices):
        if one is not None:
            if chosen is not None:
                chosen = None
                break
            chosen, at = one, dim
    if chosen is not None:
        places, i, steps = integers(chosen)
        call = _SINGLE[x.dtype, x.shape, strides, at, chosen.shape, steps, to]
        if not call(source, places, target, a, i, o, 0):
            return
    shapes = tuple([None if one is None else one.shape for one in indices])
    layout = layout_of(x.shape, strides_of(x.shape, strides), shapes)
    offsets = _places(layout, indices, "core::index")
    linear = strides_of(layout.shape, to)
    _walk(READ, WORDS[x.dtype], layout, (source, a), offsets, (target, o, linear))


def index_put(
    out: Tensor, indices: Indices, values: Tensor, accumulate: bool = False
) -> None:
    """Write, or add, `values` (broadcast) to the places `out[indices]`.

    Raises `IndexOutOfRange`, before anything is written.
    """
    read = lying if accumulate else words
    target, a, strides = read(out)
    source, o, by = read(values)
    shapes = tuple([None if one is None else one.shape for one in indices])
    layout = layout_of(out.shape, strides_of(out.shape, strides), shapes)
    offsets = _places(layout, indices, "core::index_put")
    stored = strides_of(values.shape, by)
    linear = broadcast_strides(values.shape, stored, layout.shape)
    if not accumulate:
        name = WORDS[out.dtype]
        _walk(WRITE, name, layout, (target, a), offsets, (source, o, linear))
        return
    name = compute_dtype(out.dtype).name

    def run(total: Any, a: int, other: Any, o: int, alpha: Any) -> bool:
        _walk(ADD, name, layout, (total, a), offsets, (other, o, linear), alpha)
        return False

    add = summed(out.dtype, out.numel(), run)
    add(target, a, source, o, factor(1, out.dtype))


def _walk(
    family: Family,
    name: str,
    layout: "Layout",
    addressed: tuple[Any, int],
    offsets: Any,
    linear: tuple[Any, int, Ints],
    alpha: Any = 0,
) -> None:
    """Walk over the result; the offsets have been checked."""
    walk = plan(layout.shape, layout.walk, 1, layout.steps, linear[2])
    share = shared(family is READ, family[name], walk)
    share((addressed[0], offsets, linear[0]), (addressed[1], 0, linear[1]), alpha)


@lru_cache(maxsize=REMEMBERED)
def layout_of(shape: Ints, strides: Ints, given: tuple[Ints | None, ...]) -> Layout:
    """The layout of the result for indices of the given shapes."""
    common = broadcast_shapes(*(one for one in given if one is not None))
    chosen = [dim for dim, one in enumerate(given) if one is not None]
    free = [dim for dim in range(len(shape)) if dim not in chosen]
    first = min(chosen, default=0)
    neighbours = max(chosen, default=-1) - first + 1 == len(chosen)
    before = sum(dim < first for dim in free) if neighbours else 0
    lead, trail = free[:before], free[before:]

    def around(outer: Ints, inner: Ints) -> Ints:
        return (*(outer[d] for d in lead), *inner, *(outer[d] for d in trail))

    return Layout(
        shape=around(shape, common),
        walk=around(strides, (0,) * len(common)),
        steps=around((0,) * len(shape), contiguous_strides(common)),
        common=common,
        indexed=tuple((dim, shape[dim], strides[dim]) for dim in chosen),
    )


def _places(layout: Layout, indices: Indices, operator: str) -> Any:
    """The indices as one flat array that counts elements of x."""
    total = np.zeros(prod(layout.common), np.int64)
    kept = 0
    for dim, size, stride in layout.indexed:
        one = indices[dim]
        assert one is not None, "only dimensions with an index are listed"
        flat = _broadcast(one, layout.common)
        if _OFFSETS["int64"](total, flat, size, stride, kept):
            raise refusal(flat, size, operator, dim, wraps=True)
        kept = 1
    return total


def _broadcast(one: Tensor, common: Ints) -> Any:
    """The values of an index in the common shape, flat and in a row, int64."""
    if one.shape == common:
        values: Any = dense(one)
    else:
        # Of one value, `reshape` alone would give a row without a step.
        wide = np.broadcast_to(array_of(one), common)
        values = np.ascontiguousarray(wide).reshape(-1)
    return values.astype(np.int64, copy=False)


KERNELS = {"index": index, "index_put": index_put}
