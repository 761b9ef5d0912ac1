"""Along one axis on CUDA: running sums, the places of extremes; nonzero.

A dimension is seen as (outer, length, inner); where its elements are neighbours and
many, a block takes a run of `RUN` of them, else a thread takes `TALL` elements of one
column.

Running sums take three steps: runs of elements are scanned by themselves and leave
their totals (`BLOCK` elements at a time by doubling: Hillis and Steele, 1986); the
totals are scanned in the same way; each run adds what came before it.  Sums are taken
in the type of the output; integers wrap around; the order of the additions depends on
the shape only.

Extremes are trees of places instead of elements: a block keeps the place of the best of
its run; where a row has several runs, their places are the candidates of a second
launch, and so on.  Of equal elements the first wins, and NaN wins over all, the first
of them.

nonzero: marks of 1 and 0 are summed as they run; where a mark is 1, the sum says which
row of the result is that element's.  NaN is not zero, both zeros of floats are; 16-bit
floats are looked at as bits.  The number is read back by the host; that is the one
wait.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from runtime.kernels.cpu.axis import around
from runtime.kernels.cuda.copy import copy, flat
from runtime.kernels.cuda.device import BLOCK, running
from runtime.kernels.cuda.elementwise import Array, form, index_of
from runtime.kernels.cuda.jit import (
    Blocks,
    Elements,
    Key,
    Maker,
    device,
    scalar_type,
)
from runtime.kernels.cuda.memory import CudaMemory, device_array
from runtime.kernels.cuda.reduce import RUN, SHORT, TALL
from runtime.kernels.math.complex import Scalar
from runtime.kernels.math.scalars import ALL, INTEGERS, NUMBERS, ORDERED
from runtime.tensors.arrays import flat_of
from runtime.tensors.construction import empty_tensor
from runtime.tensors.tensor import Tensor


def _rows(kind: Any, to: Any) -> Scalar:
    zero = to(0)

    def sum_run(task, shared, out, totals, x, runs, length, run):  # type: ignore[no-untyped-def]  # compiled for the device
        thread = running.threadIdx.x
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
            running.syncthreads()
            gap = 1
            while gap < BLOCK:
                before = zero
                if thread >= gap:
                    before = shared[thread - gap]
                running.syncthreads()
                shared[thread] = to(shared[thread] + before)
                running.syncthreads()
                gap = gap * 2
            if i < end:
                out[base + i] = to(carried + shared[thread])
            carried = to(carried + shared[BLOCK - 1])
            running.syncthreads()
            first += BLOCK
        if thread == 0:
            totals[task] = carried

    return sum_run


def _columns(kind: Any, to: Any) -> Scalar:
    zero = to(0)

    def element(  # type: ignore[no-untyped-def]  # compiled for the device
        task, out, totals, x, runs, length, run, inner
    ):
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

    return element


def _carry(kind: Any) -> Scalar:
    def element(  # type: ignore[no-untyped-def]  # compiled for the device
        i, out, totals, runs, length, run, inner
    ):
        line = i // inner
        outer = line // length
        before = (line - outer * length) // run - 1
        if before >= 0:
            at = (outer * runs + before) * inner + (i - line * inner)
            out[i] = kind(out[i] + totals[at])

    return element


# Integers are widened as they are read.
_SUMMED: tuple[Key, ...] = (
    *((name, name) for name in NUMBERS),
    *((name, "int64") for name in ("bool", *INTEGERS) if name != "int64"),
)

_SUM_ROWS = Blocks(
    "cumsum_rows", _rows, "U[::1], U[::1], T[::1], int64, int64, int64", _SUMMED
)
_SUM_COLUMNS = Elements(
    "cumsum_columns", _columns, "U[::1], U[::1], T[::1]" + ", int64" * 4, _SUMMED
)
_CARRY = Elements("cumsum_carry", _carry, "T[::1], T[::1]" + ", int64" * 4, NUMBERS)


def cumulate(
    key: Key, out: Array, x: Array, outer: int, length: int, inner: int, where: int
) -> None:
    """Running sums along the middle of (outer, length, inner), which has elements."""
    by_rows = inner == 1 and length >= SHORT
    run = RUN if by_rows else TALL
    runs = -(-length // run)
    tasks = outer * runs * inner
    kind = np.dtype(scalar_type(key[1]))
    totals = device_array(tasks, kind, where)
    sizes = runs, length, run
    if by_rows:
        _SUM_ROWS.run(key, tasks, where, out, totals, x, *sizes)
    else:
        _SUM_COLUMNS.run(key, tasks, where, out, totals, x, *sizes, inner)
    if runs == 1:
        return
    before = device_array(tasks, kind, where)
    cumulate((key[1], key[1]), before, totals, outer, runs, inner, where)
    count = outer * length * inner
    _CARRY.run(key[1], count, where, out, before, *sizes, inner)


def cumsum(out: Tensor, x: Tensor, dim: int) -> None:
    """The sum of all elements up to each, along `dim`."""
    if not out.numel():
        return
    key = (x.dtype.name, out.dtype.name)
    if key not in _SUMMED:
        same = empty_tensor(x.shape, out.dtype, x.device)
        copy(same, x)
        x, key = same, (key[1], key[1])
    cumulate(key, flat(out), flat(x), *around(x.shape, dim), index_of(x))


def _maker(beats: Scalar) -> Maker:
    def make(kind: Any) -> Scalar:
        before = device(beats)

        @device
        def better(x, base, by, a, b):  # type: ignore[no-untyped-def]  # compiled for the device
            """Which of two places in a row holds the winner; -1 is no place."""
            if a < 0:
                return b
            if b < 0:
                return a
            one, two = x[base + a * by], x[base + b * by]
            # Only NaN differs from itself.
            if one != one or two != two:
                if two == two:
                    return a
                if one == one:
                    return b
                return min(a, b)
            if before(one, two):
                return a
            if before(two, one):
                return b
            return min(a, b)

        def search_run(  # type: ignore[no-untyped-def]  # as above
            task, shared, out, x, candidates, again, runs, length, run, reduced, inner
        ):
            thread = running.threadIdx.x
            row = task // runs
            low = (task - row * runs) * run
            high = min(low + run, length)
            outer = row // inner
            base = outer * reduced * inner + (row - outer * inner)
            best = np.int64(-1)
            i = low + thread
            while i < high:
                found = np.int64(i)
                if again:
                    found = candidates[row * length + i]
                best = better(x, base, inner, best, found)
                i += BLOCK
            shared[thread] = best
            running.syncthreads()
            half = BLOCK // 2
            while half > 0:
                if thread < half:
                    other = shared[thread + half]
                    shared[thread] = better(x, base, inner, shared[thread], other)
                running.syncthreads()
                half = half // 2
            if thread == 0:
                out[task] = shared[0]
            running.syncthreads()

        return search_run

    return make


def _search(name: str, beats: Scalar) -> Callable[[Tensor, Tensor, int | None], None]:
    signature = "int64[::1], T[::1], int64[::1]" + ", int64" * 6
    family = Blocks(name, _maker(beats), signature, ORDERED, np.int64)

    def kernel(out: Tensor, x: Tensor, dim: int | None) -> None:
        if not out.numel():
            return
        where, array = index_of(x), flat(x)
        shape = x.shape if dim is not None and x.shape else (x.numel(),)
        at = dim if dim is not None and x.shape else 0
        reduced, inner = shape[at], prod(shape[at + 1 :])
        count = prod(shape[:at]) * inner
        target = flat_of(out)
        length, candidates, again = reduced, target, 0
        while True:
            runs = -(-length // RUN)
            tasks = count * runs
            found = target
            if runs > 1:
                found = device_array(tasks, np.dtype(np.int64), where)
            sizes = runs, length, RUN, reduced, inner
            given = found, array, candidates, again, *sizes
            family.run(x.dtype.name, tasks, where, *given)
            if runs == 1:
                return
            length, candidates, again = runs, found, 1

    return kernel


_MEMORY = CudaMemory()
_COUNTED = np.dtype(np.int64)


def _counts(kind: Any) -> Scalar:
    zero = kind(0)
    if kind is not np.uint16:
        return lambda x: x != zero
    # Of the bits of 16-bit floats, all but the sign.
    bits = kind(0x7FFF)
    return lambda x: kind(x & bits) != zero


def _marks(kind: Any) -> Scalar:
    counts = device(_counts(kind))

    def element(i, marks, x):  # type: ignore[no-untyped-def]  # compiled for the device
        marks[i] = 1 if counts(x[i]) else 0

    return element


def _positions(kind: Any) -> Scalar:
    def element(  # type: ignore[no-untyped-def]  # compiled for the device
        i, out, marks, ranks, column, columns, size, inner
    ):
        if marks[i] == 1:
            line = i // inner
            out[(ranks[i] - 1) * columns + column] = line - line // size * size

    return element


_MARKS = Elements("nonzero_marks", _marks, "int64[::1], T[::1]", (*ALL, "uint16"))
_POSITIONS = Elements(
    "nonzero_positions",
    _positions,
    "T[::1], T[::1], T[::1]" + ", int64" * 4,
    ("int64",),
)


def _ranked(x: Tensor) -> tuple[Array, Array]:
    """A mark for each element, and their running sums."""
    count, where = x.numel(), index_of(x)
    marks, ranks = (device_array(count, _COUNTED, where) for _ in range(2))
    _MARKS.run(form(x), count, where, marks, flat(x))
    cumulate(("int64", "int64"), ranks, marks, 1, count, 1, where)
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
        places = flat(out), marks, ranks, column, x.ndim, size, inner
        _POSITIONS.run("int64", count, where, *places)


KERNELS: dict[str, Callable[..., Any]] = {
    "cumsum": cumsum,
    "argmax": _search("argmax", lambda a, b: a > b),
    "argmin": _search("argmin", lambda a, b: a < b),
    "nonzero": nonzero,
    "nonzero_count": nonzero_count,
}
