"""index and index_put on CUDA: several integer indices at once, as `x[a, :, b]`.

True only here: the indices become one list of positions in `x`, and what is left is a
walk through one index.  Where the dimensions of the result are is said by the CPU's
layout (`runtime.kernels.cpu.index`), which is about integers only.

Rules: boolean masks have been turned into integers; negative indices count from the
end.  `out` of index_put comes with a copy of self.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from runtime.kernels.cpu.index import Layout, layout_of
from runtime.kernels.cuda.adding import add_targets
from runtime.kernels.cuda.check import require_indices
from runtime.kernels.cuda.copy import fill
from runtime.kernels.cuda.jit import Body, Family
from runtime.kernels.cuda.launch import spread
from runtime.kernels.cuda.lines import Walk, read, targets, write
from runtime.kernels.cuda.operand import Source, flat, index_of, moved, source
from runtime.kernels.cuda.toolkit import cuda
from runtime.schema.codes import DType
from runtime.tensors.arrays import flat_of, place_of
from runtime.tensors.making import empty_tensor, view_of
from runtime.tensors.shape import broadcast_strides, contiguous_strides
from runtime.tensors.tensor import Tensor

Indices = Sequence[Tensor | None]

_I = np.int64
_INT64 = DType.named("int64")


def _step(kind: Any) -> Body:
    def body(total, index, size, stride, count):  # type: ignore[no-untyped-def]  # compiled for the device
        i = cuda.grid(1)
        step = cuda.gridsize(1)
        while i < count:
            at = _I(index[i])
            if at < 0:
                at += size
            total[i] += at * stride
            i += step

    return body


_STEP = Family(
    "index_step",
    _step,
    "int64[::1], T[::1], int64, int64, int64",
    ("uint8", "int8", "int16", "int32", "int64"),
)


def index(out: Tensor, x: Tensor, indices: Indices) -> None:
    """Fill `out` with `x[indices]`.

    Raises `IndexOutOfRange`, before anything is written.
    """
    words = moved(x)
    addressed = source(x, name=words)
    walk = _walk(x, addressed, indices, "core::index")
    read(walk, source(out, name=words), words)


def index_put(
    out: Tensor, indices: Indices, values: Tensor, accumulate: bool = False
) -> None:
    """Write, or add, `values` (broadcast) to the places `out[indices]`.

    Raises `IndexOutOfRange`, before anything is written.
    """
    words = moved(out)
    target = Source(flat(out, words), 0, contiguous_strides(out.shape))
    walk = _walk(out, target, indices, "core::index_put")
    count = prod(walk.shape)
    if not count:
        return
    _, offset, strides = place_of(values)
    steps = broadcast_strides(values.shape, strides, walk.shape)
    given = view_of(values, walk.shape, steps, offset)
    if accumulate:
        add_targets(out, targets(walk), given, count)
    else:
        alike = values.numel() == 1
        write(walk, source(given, name=words), words, out.numel(), alike=alike)


def _walk(x: Tensor, addressed: Source, indices: Indices, operator: str) -> Walk:
    shapes = tuple(None if one is None else one.shape for one in indices)
    layout = layout_of(x.shape, addressed.strides, shapes)
    places = flat_of(_places(layout, indices, x, operator))
    return Walk(
        layout.shape,
        Source(addressed.array, addressed.offset, layout.walk),
        Source(places, 0, layout.steps),
        1,
        index_of(x),
    )


def _places(layout: Layout, indices: Indices, x: Tensor, operator: str) -> Tensor:
    """The positions that the indices name together, less the offset of x."""
    where = index_of(x)
    total = empty_tensor(layout.common, _INT64, x.device)
    fill(total, 0)
    for dim, size, stride in layout.indexed:
        one = indices[dim]
        assert one is not None, "only dimensions with an index are listed"
        require_indices(operator, one, size, dim, wraps=True)
        _, offset, strides = place_of(one)
        steps = broadcast_strides(one.shape, strides, layout.common)
        wide = view_of(one, layout.common, steps, offset)
        count = total.numel()
        if count:
            _STEP[one.dtype.name](
                spread(count, where), flat(total), flat(wide), size, stride, count
            )
    return total


KERNELS: dict[str, Callable[..., None]] = {"index": index, "index_put": index_put}
