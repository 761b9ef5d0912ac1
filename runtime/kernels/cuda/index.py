"""index and index_put, and nonzero, on CUDA.

`x[a, :, b]`: the indices become one list of positions in `x`, and what is left is a
walk through one index (`runtime.kernels.cuda.gather`).  Where the dimensions of the
result are is said by the CPU's layout (`runtime.kernels.cpu.index`), which is about
integers only.  Boolean masks have been turned into integers; negative indices count
from the end.  `out` of index_put comes with a copy of self.

nonzero: marks of 1 and 0 are summed as they run; where a mark is 1, the sum says which
row of the result is that element's.  NaN is not zero, both zeros of floats are; 16-bit
floats are looked at as bits.  The number is read back by the host; that is the one
wait.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from runtime.kernels.cpu.index import Layout, layout_of
from runtime.kernels.cuda.axis import running
from runtime.kernels.cuda.copy import fill, flat, require_indices
from runtime.kernels.cuda.device import cuda, spread
from runtime.kernels.cuda.elementwise import (
    Array,
    Source,
    form,
    index_of,
    moved,
    source,
)
from runtime.kernels.cuda.gather import Walk, add_targets, read, targets, write
from runtime.kernels.cuda.jit import Body, Family, device
from runtime.kernels.cuda.memory import CudaMemory, device_array
from runtime.kernels.math.complex import Scalar
from runtime.kernels.math.scalars import ALL, INTEGERS
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
    INTEGERS,
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


_MEMORY = CudaMemory()
_COUNTED = np.dtype(np.int64)


def _counts(kind: Any) -> Scalar:
    zero = kind(0)
    if kind is not np.uint16:
        return lambda x: x != zero
    # Of the bits of 16-bit floats, all but the sign.
    bits = kind(0x7FFF)
    return lambda x: kind(x & bits) != zero


def _marks(kind: Any) -> Body:
    counts = device(_counts(kind))

    def body(marks, x, count):  # type: ignore[no-untyped-def]  # compiled for the device
        i = cuda.grid(1)
        step = cuda.gridsize(1)
        while i < count:
            marks[i] = 1 if counts(x[i]) else 0
            i += step

    return body


def _positions(kind: Any) -> Body:
    def body(  # type: ignore[no-untyped-def]  # compiled for the device
        out, marks, ranks, count, column, columns, size, inner
    ):
        i = cuda.grid(1)
        step = cuda.gridsize(1)
        while i < count:
            if marks[i] == 1:
                line = i // inner
                out[(ranks[i] - 1) * columns + column] = line - line // size * size
            i += step

    return body


_MARKS = Family("nonzero_marks", _marks, "int64[::1], T[::1], int64", (*ALL, "uint16"))
_POSITIONS = Family(
    "nonzero_positions",
    _positions,
    "T[::1], T[::1], T[::1]" + ", int64" * 5,
    ("int64",),
)


def _ranked(x: Tensor) -> tuple[Array, Array]:
    """A mark for each element, and their running sums."""
    count, where = x.numel(), index_of(x)
    marks, ranks = (device_array(count, _COUNTED, where) for _ in range(2))
    _MARKS[form(x)](spread(count, where), marks, flat(x), count)
    running(("int64", "int64"), ranks, marks, 1, count, 1, where)
    return marks, ranks


def nonzero_count(mask: Tensor) -> int:
    """The number of elements that are not zero."""
    count = mask.numel()
    if not count:
        return 0
    _, ranks = _ranked(mask)
    return int(_MEMORY.to_numpy(ranks[count - 1 : count])[0])


def nonzero(out: Tensor, x: Tensor) -> None:
    """Write the positions, one row each in row-major order.

    `out` has as many rows as `nonzero_count` said, and a column for each dimension.
    """
    if not out.numel():
        return
    marks, ranks = _ranked(x)
    count, where = x.numel(), index_of(x)
    inner = count
    for column, size in enumerate(x.shape):
        inner //= size
        _POSITIONS["int64"](
            spread(count, where),
            *(flat(out), marks, ranks, count, column, x.ndim, size, inner),
        )


KERNELS: dict[str, Callable[..., Any]] = {
    "index": index,
    "index_put": index_put,
    "nonzero": nonzero,
    "nonzero_count": nonzero_count,
}
