"""nonzero on CUDA: the positions of the elements that are not zero, and their number.

True only here: marks of 1 and 0 are summed as they run; where a mark is 1, the sum says
which row of the result is that element's.

Rules: NaN is not zero, both zeros of floats are; 16-bit floats are looked at as bits.
The number is read back by the host; that is the one wait.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.kernels.cuda.jit import Body, Family, device
from runtime.kernels.cuda.launch import spread
from runtime.kernels.cuda.memory import CudaMemory, device_array
from runtime.kernels.cuda.operand import Array, flat, form, index_of
from runtime.kernels.cuda.scalars import Scalar
from runtime.kernels.cuda.scan import running
from runtime.kernels.cuda.toolkit import cuda
from runtime.kernels.cuda.unary import ALL
from runtime.tensors.tensor import Tensor

_MEMORY = CudaMemory()
_INT64 = np.dtype(np.int64)


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
    marks, ranks = (device_array(count, _INT64, where) for _ in range(2))
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
    "nonzero": nonzero,
    "nonzero_count": nonzero_count,
}
