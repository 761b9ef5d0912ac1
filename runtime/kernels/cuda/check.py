"""Checks of elements before anything is written: one flag, read back by the host.

True only here: how a kernel that must not write halfway finds out.  A checking kernel
lets the lowest position at fault win in a flag on the device; the host waits for it.

Rules: a check costs a round trip; operators whose elements cannot be at fault do not
ask for one.  Positions count in row-major order of the tensor that was checked.
"""

from typing import Any

import numpy as np

from runtime.errors.operator import IndexOutOfRange
from runtime.kernels.cuda.jit import Body, Family
from runtime.kernels.cuda.launch import spread
from runtime.kernels.cuda.memory import CudaMemory
from runtime.kernels.cuda.operand import flat, index_of
from runtime.kernels.cuda.toolkit import cuda
from runtime.tensors.tensor import Tensor

_MEMORY = CudaMemory()

# What the flag holds while nothing is at fault: above every position.
NOTHING = (1 << 63) - 1

INTEGERS = ("uint8", "int8", "int16", "int32", "int64")


def _outside(kind: Any) -> Body:
    def body(flag, x, low, high, count):  # type: ignore[no-untyped-def]  # compiled for the device
        i = cuda.grid(1)
        step = cuda.gridsize(1)
        while i < count:
            if x[i] < low or x[i] > high:
                cuda.atomic.min(flag, 0, i)
            i += step

    return body


def _equal(kind: Any) -> Body:
    zero = kind(0)

    def body(flag, x, count):  # type: ignore[no-untyped-def]  # compiled for the device
        i = cuda.grid(1)
        step = cuda.gridsize(1)
        while i < count:
            if x[i] == zero:
                cuda.atomic.min(flag, 0, i)
            i += step

    return body


_OUTSIDE = Family(
    "find_outside", _outside, "int64[::1], T[::1], int64, int64, int64", INTEGERS
)
_ZERO = Family("find_zero", _equal, "int64[::1], T[::1], int64", INTEGERS)


def first_outside(x: Tensor, low: int, high: int) -> tuple[int, int] | None:
    """Position and value of the first integer not in `low..high`, if there is one."""
    return _first(_OUTSIDE, x, low, high)


def first_zero(x: Tensor) -> tuple[int, int] | None:
    """Position (and value) of the first integer that is zero, if there is one."""
    return _first(_ZERO, x)


def require_indices(
    operator: str, index: Tensor, size: int, dim: int, *, wraps: bool = False
) -> None:
    """Refuse indices that dimension `dim` of that size lacks; `wraps`: from the end.

    Raises `IndexOutOfRange`.
    """
    found = first_outside(index, -size if wraps else 0, size - 1)
    if found is not None:
        raise IndexOutOfRange(
            operator=operator, index=found[1], size=size, dim=dim, wraps=wraps
        )


def _first(kernels: Family, x: Tensor, *bounds: int) -> tuple[int, int] | None:
    count = x.numel()
    if not count:
        return None
    at, array = index_of(x), flat(x)
    flag = _MEMORY.from_numpy(np.array([NOTHING], np.int64), at)
    kernels[x.dtype.name](spread(count, at), flag, array, *bounds, count)
    position = int(_MEMORY.to_numpy(flag)[0])
    if position == NOTHING:
        return None
    return position, int(_MEMORY.to_numpy(array[position : position + 1])[0])
