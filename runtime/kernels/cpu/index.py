"""index and index_put: several integer indices at once, as `x[a, :, b]`.

True only here: where the result of advanced indexing has its dimensions.  The indices
broadcast to one shape, which stands where the indices stood if these are neighbours,
and comes first if a dimension without an index lies between them (NumPy's rule).

How it works: the indices become one array of element offsets, negative values counted
from the end; what is left is a walk through one index (`runtime.kernels.cpu.lines`).

Rules: boolean masks have been turned into integers.  `out` of index_put comes with a
copy of self; the values of equal places are met in the order of the index.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from runtime.errors.operator import IndexOutOfRange
from runtime.kernels.cpu.adding import add_lines
from runtime.kernels.cpu.lines import (
    READ,
    REMEMBERED,
    WRITE,
    Ints,
    Operand,
    run_lines,
)
from runtime.kernels.cpu.operand import WORDS, dense, words
from runtime.kernels.jit import Family
from runtime.tensors.shape import (
    broadcast_shapes,
    broadcast_strides,
    contiguous_strides,
)
from runtime.tensors.tensor import Tensor, array_of, place_of

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


def index(out: Tensor, x: Tensor, indices: Indices) -> None:
    """Fill `out` with `x[indices]`.

    Raises `IndexOutOfRange`, before anything is written.
    """
    source, start, strides = words(x)
    layout = _layout(x.shape, strides, _shapes(indices))
    places = _places(layout, indices, "core::index")
    addressed = source, start, layout.walk
    name = WORDS[x.dtype]
    run_lines(READ, name, layout.shape, addressed, -1, places, words(out))


def index_put(
    out: Tensor, indices: Indices, values: Tensor, accumulate: bool = False
) -> None:
    """Write, or add, `values` (broadcast) to the places `out[indices]`.

    Raises `IndexOutOfRange`, before anything is written.
    """
    target, start, strides = words(out)
    layout = _layout(out.shape, strides, _shapes(indices))
    places = _places(layout, indices, "core::index_put")
    where = place_of(values) if accumulate else words(values)
    steps = broadcast_strides(values.shape, where[2], layout.shape)
    linear = where[0], where[1], steps
    if accumulate:
        add_lines(out, layout.shape, layout.walk, -1, places, linear)
        return
    addressed = target, start, layout.walk
    name = WORDS[out.dtype]
    run_lines(WRITE, name, layout.shape, addressed, -1, places, linear)


@lru_cache(maxsize=REMEMBERED)
def _layout(shape: Ints, strides: Ints, given: tuple[Ints | None, ...]) -> Layout:
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


def _places(layout: Layout, indices: Indices, operator: str) -> Operand:
    """The indices as one operand that counts elements of x."""
    total = np.zeros(prod(layout.common), np.int64)
    kept = 0
    for dim, size, stride in layout.indexed:
        one = indices[dim]
        assert one is not None, "only dimensions with an index are listed"
        flat = _broadcast(one, layout.common)
        if _OFFSETS["int64"](total, flat, size, stride, kept):
            _refuse(flat, size, operator, dim)
        kept = 1
    return total, 0, layout.steps


def _shapes(indices: Indices) -> tuple[Ints | None, ...]:
    return tuple([None if one is None else one.shape for one in indices])


def _broadcast(one: Tensor, common: Ints) -> Any:
    """The values of an index in the common shape, flat, int64."""
    if one.shape == common:
        values: Any = dense(one)
    else:
        values = np.broadcast_to(array_of(one), common).reshape(-1)
    return values.astype(np.int64, copy=False)


def _refuse(values: Any, size: int, operator: str, dim: int) -> None:
    bad = values[(values < -size) | (values >= size)]
    raise IndexOutOfRange(
        operator=operator, index=int(bad[0]), size=size, dim=dim, wraps=True
    )


KERNELS = {"index": index, "index_put": index_put}
