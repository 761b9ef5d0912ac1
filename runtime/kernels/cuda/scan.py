"""Running sums along one dimension on CUDA.

True only here: a scan in three steps.  Runs of elements are scanned by themselves and
leave their totals; the totals are scanned in the same way; each run adds what came
before it.

Rules
- the dimension is seen as (outer, length, inner); where its elements are neighbours
  and many, a block scans a run of `RUN` of them, `BLOCK` at a time by doubling (Hillis
  and Steele, 1986); else a thread scans `TALL` elements of one column;
- sums are taken in the type of the output; integers wrap around; the order of the
  additions depends on the shape only.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.kernels.cpu.reduce_axis import around
from runtime.kernels.cuda.copy import copy
from runtime.kernels.cuda.jit import Body, Family, Key, scalar_type
from runtime.kernels.cuda.launch import rows, spread
from runtime.kernels.cuda.memory import device_array
from runtime.kernels.cuda.operand import Array, flat, index_of
from runtime.kernels.cuda.reduce import RUN, SHORT, TALL
from runtime.kernels.cuda.toolkit import BLOCK, cuda
from runtime.kernels.cuda.unary import COMPLEX, FLOATS, INTEGERS
from runtime.tensors.making import empty_tensor
from runtime.tensors.tensor import Tensor


def _rows(kind: Any, to: Any) -> Body:
    zero = to(0)

    def body(  # type: ignore[no-untyped-def]  # compiled for the device
        out, totals, x, tasks, runs, length, run
    ):
        shared = cuda.shared.array(BLOCK, to)
        thread = cuda.threadIdx.x
        task = cuda.blockIdx.x
        while task < tasks:
            row = task // runs
            first = (task - row * runs) * run
            end = min(first + run, length)
            base = row * length
            carried = zero
            while first < end:
                i = first + thread
                value = zero
                if i < end:
                    value = to(x[base + i])
                shared[thread] = value
                cuda.syncthreads()
                gap = 1
                while gap < BLOCK:
                    before = zero
                    if thread >= gap:
                        before = shared[thread - gap]
                    cuda.syncthreads()
                    shared[thread] = to(shared[thread] + before)
                    cuda.syncthreads()
                    gap = gap * 2
                if i < end:
                    out[base + i] = to(carried + shared[thread])
                carried = to(carried + shared[BLOCK - 1])
                cuda.syncthreads()
                first += BLOCK
            if thread == 0:
                totals[task] = carried
            task += cuda.gridDim.x

    return body


def _columns(kind: Any, to: Any) -> Body:
    zero = to(0)

    def body(  # type: ignore[no-untyped-def]  # compiled for the device
        out, totals, x, tasks, runs, length, run, inner
    ):
        task = cuda.grid(1)
        step = cuda.gridsize(1)
        while task < tasks:
            above = task // inner
            outer = above // runs
            i = (above - outer * runs) * run
            end = min(i + run, length)
            base = outer * length * inner + (task - above * inner)
            total = zero
            while i < end:
                total = to(total + to(x[base + i * inner]))
                out[base + i * inner] = total
                i += 1
            totals[task] = total
            task += step

    return body


def _carry(kind: Any) -> Body:
    def body(  # type: ignore[no-untyped-def]  # compiled for the device
        out, totals, count, runs, length, run, inner
    ):
        i = cuda.grid(1)
        step = cuda.gridsize(1)
        while i < count:
            line = i // inner
            outer = line // length
            before = (line - outer * length) // run - 1
            if before >= 0:
                at = (outer * runs + before) * inner + (i - line * inner)
                out[i] = kind(out[i] + totals[at])
            i += step

    return body


_NUMBERS = (*INTEGERS, *FLOATS, *COMPLEX)
# Integers are widened as they are read.
_KEYS: tuple[Key, ...] = (
    *((name, name) for name in _NUMBERS),
    *((name, "int64") for name in ("bool", *INTEGERS) if name != "int64"),
)

_ROWS = Family("cumsum_rows", _rows, "U[::1], U[::1], T[::1]" + ", int64" * 4, _KEYS)
_COLUMNS = Family(
    "cumsum_columns", _columns, "U[::1], U[::1], T[::1]" + ", int64" * 5, _KEYS
)
_CARRY = Family("cumsum_carry", _carry, "T[::1], T[::1]" + ", int64" * 5, _NUMBERS)


def running(
    key: Key, out: Array, x: Array, outer: int, length: int, inner: int, where: int
) -> None:
    """Running sums along the middle of (outer, length, inner), which has elements."""
    by_rows = inner == 1 and length >= SHORT
    run = RUN if by_rows else TALL
    runs = -(-length // run)
    tasks = outer * runs * inner
    totals = device_array(tasks, np.dtype(scalar_type(key[1])), where)
    common = (out, totals, x, tasks, runs, length, run)
    if by_rows:
        _ROWS[key](rows(tasks, where), *common)
    else:
        _COLUMNS[key](spread(tasks, where), *common, inner)
    if runs == 1:
        return
    same = (key[1], key[1])
    before = device_array(tasks, np.dtype(scalar_type(key[1])), where)
    running(same, before, totals, outer, runs, inner, where)
    count = outer * length * inner
    _CARRY[key[1]](spread(count, where), out, before, count, runs, length, run, inner)


def cumsum(out: Tensor, x: Tensor, dim: int) -> None:
    """The sum of all elements up to each, along `dim`."""
    if not out.numel():
        return
    key = (x.dtype.name, out.dtype.name)
    if key not in _KEYS:
        same = empty_tensor(x.shape, out.dtype, x.device)
        copy(same, x)
        x, key = same, (key[1], key[1])
    running(key, flat(out), flat(x), *around(x.shape, dim), index_of(x))


KERNELS: dict[str, Callable[..., None]] = {"cumsum": cumsum}
