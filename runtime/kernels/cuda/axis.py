"""Along one axis on CUDA: running sums, indices of extremes, sorting; nonzero.

A dimension is read as (outer, length, inner); if its elements are adjacent and many, a
block processes a run of `RUN` of them, else a thread processes `TALL` elements of one
column.

Running sums take three steps: runs of elements are scanned separately and store their
totals (`BLOCK` elements at a time by doubling: Hillis and Steele, 1986); the totals are
scanned in the same way; each run adds the total before it.  Sums have the type of the
output; integers wrap around; the order of the additions depends on the shape only.

Extremes are trees of indices instead of elements: a block keeps the index of the best
of its run; if a row has several runs, their indices are the candidates of a second
launch, and so on.  The first of equal elements wins, and NaN wins over all numbers, the
first NaN among several.

nonzero: marks of 1 and 0 are summed; if a mark is 1, the running sum is the row of the
result for that element.  NaN is nonzero, both zeros of floats are not; 16-bit floats
are read as bits.  The host reads the count back, which is the only wait.

Sorting: an element is converted to an int64 with the order of the elements, and keys
are merged together with their indices.  Each key computes its position independently:
its own rank, and its rank in the neighbouring run by bisection (Cole's ranking merge,
without the cascade); a sort is as many launches as the length has bits.  NaN is greater
than any number, -0.0 and 0.0 are equal; a descending order is the ascending one of the
complements, so that equal elements keep their order: every sort here is stable, and
every `topk` sorted.  Values are moved, never changed: NaN keep their bits, zeros their
sign.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from everyorder.runtime.kernels.cpu.axis import around
from everyorder.runtime.kernels.cuda.copy import copy, flat
from everyorder.runtime.kernels.cuda.device import BLOCK, running
from everyorder.runtime.kernels.cuda.elementwise import Array, form, index_of, word_of
from everyorder.runtime.kernels.cuda.jit import (
    BlockKernels,
    Elements,
    Key,
    Maker,
    device,
    from_bfloat16,
    from_float16,
    scalar_type,
)
from everyorder.runtime.kernels.cuda.memory import CudaMemory, device_array
from everyorder.runtime.kernels.cuda.reduce import RUN, SHORT, TALL
from everyorder.runtime.kernels.math.complex import Scalar
from everyorder.runtime.kernels.math.scalars import (
    ALL,
    FLOATS,
    INTEGERS,
    NUMBERS,
    ORDERED,
)
from everyorder.runtime.kernels.shared.operands import BY_SIZE
from everyorder.runtime.tensors.construction import empty_tensor
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import flat_of

_MEMORY = CudaMemory()
_INT64 = np.dtype(np.int64)


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


# Integers are widened when they are read.
_SUMMED: tuple[Key, ...] = (
    *((name, name) for name in NUMBERS),
    *((name, "int64") for name in ("bool", *INTEGERS) if name != "int64"),
)

_SUM_ROWS = BlockKernels(
    "cumsum_rows", _rows, "U[::1], U[::1], T[::1], int64, int64, int64", _SUMMED
)
_SUM_COLUMNS = Elements(
    "cumsum_columns", _columns, "U[::1], U[::1], T[::1]" + ", int64" * 4, _SUMMED
)
_CARRY = Elements("cumsum_carry", _carry, "T[::1], T[::1]" + ", int64" * 4, NUMBERS)


def cumulate(
    key: Key, out: Array, x: Array, outer: int, length: int, inner: int, where: int
) -> None:
    """Write running sums along the middle of (outer, length, inner), not empty."""
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
    """Write the sum of all elements up to each, along `dim`."""
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
            """Return the winner of two indices in a row; -1 is not an index."""
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
                candidate = np.int64(i)
                if again:
                    candidate = candidates[row * length + i]
                best = better(x, base, inner, best, candidate)
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
    family = BlockKernels(name, _maker(beats), signature, ORDERED, np.int64)

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
            winners = target
            if runs > 1:
                winners = device_array(tasks, np.dtype(np.int64), where)
            sizes = runs, length, RUN, reduced, inner
            arguments = winners, array, candidates, again, *sizes
            family.run(x.dtype.name, tasks, where, *arguments)
            if runs == 1:
                return
            length, candidates, again = runs, winners, 1

    return kernel


def _counts(kind: Any) -> Scalar:
    zero = kind(0)
    if kind is not np.uint16:
        return lambda x: x != zero
    # All bits of 16-bit floats except the sign.
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
    """Return a mark for each element, and their running sums."""
    count, where = x.numel(), index_of(x)
    marks, ranks = (device_array(count, _INT64, where) for _ in range(2))
    _MARKS.run(form(x), count, where, marks, flat(x))
    cumulate(("int64", "int64"), ranks, marks, 1, count, 1, where)
    return marks, ranks


def nonzero_count(mask: Tensor) -> int:
    """Return the number of nonzero elements."""
    count = mask.numel()
    if not count:
        return 0
    _, ranks = _ranked(mask)
    return int(_MEMORY.to_numpy(ranks[count - 1 : count])[0])


def nonzero(out: Tensor, x: Tensor) -> None:
    """Write the indices of nonzero elements, one row each in row-major order.

    `out` has `nonzero_count` rows, and a column for each dimension.
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


_I = np.int64
_W = np.int32
_F = np.float32
_D = np.float64
_GREATEST = np.int64((1 << 63) - 1)
_GREATEST_32 = np.int32((1 << 31) - 1)


@device
def _of_single(x):  # type: ignore[no-untyped-def]  # compiled for the device
    """Return the key of a float32: its bits, reversed for negative numbers."""
    if x != x:
        return _GREATEST
    # Adding 0.0 makes -0.0 positive.
    bits = _F(x + _F(0)).view(_W)
    return _I(_W(bits ^ _GREATEST_32)) if bits < _W(0) else _I(bits)


@device
def _of_double(x):  # type: ignore[no-untyped-def]  # as above
    """Return the key of a float64: its bits, reversed for negative numbers."""
    if x != x:
        return _GREATEST
    bits = _D(x + _D(0)).view(_I)
    return _I(bits ^ _GREATEST) if bits < _I(0) else bits


def _of_bits(widen: Scalar) -> Scalar:
    """Return the key function for the bits of a 16-bit float."""
    return device(lambda x: _of_single(widen(x)))


@device
def _of_integer(x):  # type: ignore[no-untyped-def]  # as above
    """Return an integer as its own key."""
    return _I(x)


def _keys(key_of: Scalar) -> Maker:
    def element(  # type: ignore[no-untyped-def]  # as above
        i, keys, places, x, length, inner, descending
    ):
        row = i // length
        place = i - row * length
        outer = row // inner
        at = (outer * length + place) * inner + (row - outer * inner)
        key = key_of(x[at])
        keys[i] = ~key if descending else key
        places[i] = place

    return lambda kind: element


def _merge(i, to_keys, to_places, keys, places, length, width):  # type: ignore[no-untyped-def]  # as above
    """Merge a key into the run that its own and the neighbouring one form."""
    base = i // length * length
    run = (i - base) // width
    key = keys[i]
    first = run % 2 == 0
    # In the next run, lesser keys precede it; in the one before, equal keys do as well.
    low = min((run + 1) * width, length) if first else (run - 1) * width
    high = min(low + width, length)
    to = i - low if first else i - width - low
    while low < high:
        middle = (low + high) // 2
        other = keys[base + middle]
        if other < key or (other == key and not first):
            low = middle + 1
        else:
            high = middle
    to_keys[to + low] = key
    to_places[to + low] = places[i]


def _choose(  # type: ignore[no-untyped-def]  # as above
    i, values, indices, x, places, length, selected, inner
):
    """Write the element with a rank in its line, and its index."""
    line = i // inner
    outer = line // selected
    column = i - line * inner
    rank = line - outer * selected
    place = places[(outer * inner + column) * length + rank]
    indices[i] = place
    values[i] = x[(outer * length + place) * inner + column]


_SIGNATURE = "int64[::1], int64[::1], T[::1], int64, int64, int64"

# dtype name -> the kernels that compute its keys; those of 16-bit floats read bits.
_FAMILIES = {
    dtype: family
    for name, key_of, dtypes, read in (
        ("integers", _of_integer, ("bool", *INTEGERS), ("bool", *INTEGERS)),
        ("single", _of_single, FLOATS[:1], FLOATS[:1]),
        ("double", _of_double, FLOATS[1:], FLOATS[1:]),
        ("float16", _of_bits(from_float16), ("float16",), ("uint16",)),
        ("bfloat16", _of_bits(from_bfloat16), ("bfloat16",), ("uint16",)),
    )
    for family in (Elements(f"order_{name}", _keys(key_of), _SIGNATURE, read),)
    for dtype in dtypes
}
_MERGE = Elements(
    "order_merge",
    lambda kind: _merge,
    "T[::1], T[::1], T[::1], T[::1], int64, int64",
    ("int64",),
)
_CHOSEN = Elements(
    "order_chosen",
    lambda kind: _choose,
    "T[::1], int64[::1], T[::1], int64[::1], int64, int64, int64",
    tuple(BY_SIZE.values()),
)


def merge_sort(
    keys: Array, places: Array, count: int, length: int, where: int
) -> tuple[Array, Array]:
    """Return rows of `length` keys in ascending order, and their indices.

    Stable; overwrites its arguments.
    """
    spare = tuple(device_array(count, _INT64, where) for _ in range(2))
    sorted_pair = (keys, places)
    width = 1
    while width < length:
        _MERGE.run("int64", count, where, *spare, *sorted_pair, length, width)
        sorted_pair, spare = spare, sorted_pair
        width *= 2
    return sorted_pair[0], sorted_pair[1]


def ordered_places(keys: Array, count: int, where: int) -> tuple[Array, Array]:
    """Return a list of int64 in ascending order, and their indices; keep `keys`."""
    copies, places = (device_array(count, _INT64, where) for _ in range(2))
    _FAMILIES["int64"].run("int64", count, where, copies, places, keys, count, 1, 0)
    return merge_sort(copies, places, count, count, where)


def _order(
    values: Tensor,
    indices: Tensor,
    x: Tensor,
    dim: int,
    selected: int,
    descending: bool,
) -> None:
    """Write the first elements along a dimension in an order, and their indices."""
    if not values.numel():
        return
    where, count = index_of(x), x.numel()
    outer, length, inner = around(x.shape, dim)
    keys, places = (device_array(count, _INT64, where) for _ in range(2))
    arguments = keys, places, flat(x), length, inner, int(descending)
    _FAMILIES[x.dtype.name].run(form(x), count, where, *arguments)
    _, places = merge_sort(keys, places, count, length, where)
    words = word_of(x)
    arrays = flat(values, words), flat(indices), flat(x, words), places
    total = outer * selected * inner
    _CHOSEN.run(words, total, where, *arrays, length, selected, inner)


def sort(
    values: Tensor,
    indices: Tensor,
    x: Tensor,
    dim: int,
    descending: bool,
    stable: bool,
) -> None:
    """Write the elements along `dim` in order, and their indices."""
    _order(values, indices, x, dim, x.shape[dim] if x.shape else 1, descending)


def topk(
    values: Tensor,
    indices: Tensor,
    x: Tensor,
    k: int,
    dim: int,
    largest: bool,
    sorted: bool,  # noqa: A002  # the operator's name for it
) -> None:
    """Write the `k` greatest, or least, elements along `dim`, and their indices."""
    _order(values, indices, x, dim, k, largest)


KERNELS: dict[str, Callable[..., Any]] = {
    "cumsum": cumsum,
    "argmax": _search("argmax", lambda a, b: a > b),
    "argmin": _search("argmin", lambda a, b: a < b),
    "nonzero": nonzero,
    "nonzero_count": nonzero_count,
    "sort": sort,
    "topk": topk,
}
