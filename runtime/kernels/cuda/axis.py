"""Along one axis on CUDA: running sums, the places of extremes, sorting.

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

Sorting: an element becomes an int64 whose order is that of the elements, and keys are
merged together with their places.
- NaN is greater than any number, -0.0 and 0.0 are equal; a descending order is the
  ascending one of the complements, so that of equal elements the first still comes
  first: every sort here is stable, and every `topk` sorted.
- In a merge each key finds its place by itself: its own rank, and its rank in the
  neighbouring run by bisection (Cole's ranking merge, without the cascade); a sort is
  as many launches as the length has bits.
- Values are moved, never changed: NaN keep their bits, zeros their sign.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from runtime.kernels.cpu.axis import around
from runtime.kernels.cpu.operand import BY_SIZE
from runtime.kernels.cuda.copy import copy, flat
from runtime.kernels.cuda.device import BLOCK, cuda, rows, spread
from runtime.kernels.cuda.elementwise import Array, index_of, moved
from runtime.kernels.cuda.jit import Body, Family, Key, Maker, device, scalar_type
from runtime.kernels.cuda.memory import device_array
from runtime.kernels.cuda.reduce import RUN, SHORT, TALL
from runtime.kernels.cuda.scalars import from_bfloat16, from_float16
from runtime.kernels.math.complex import Scalar
from runtime.kernels.math.scalars import COMPLEXES, FLOATS, INTEGERS
from runtime.tensors.arrays import flat_of
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


_NUMBERS = (*INTEGERS, *FLOATS, *COMPLEXES)
# Integers are widened as they are read.
_SUMMED: tuple[Key, ...] = (
    *((name, name) for name in _NUMBERS),
    *((name, "int64") for name in ("bool", *INTEGERS) if name != "int64"),
)

_SUM_ROWS = Family(
    "cumsum_rows", _rows, "U[::1], U[::1], T[::1]" + ", int64" * 4, _SUMMED
)
_SUM_COLUMNS = Family(
    "cumsum_columns", _columns, "U[::1], U[::1], T[::1]" + ", int64" * 5, _SUMMED
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
        _SUM_ROWS[key](rows(tasks, where), *common)
    else:
        _SUM_COLUMNS[key](spread(tasks, where), *common, inner)
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
    if key not in _SUMMED:
        same = empty_tensor(x.shape, out.dtype, x.device)
        copy(same, x)
        x, key = same, (key[1], key[1])
    running(key, flat(out), flat(x), *around(x.shape, dim), index_of(x))


def _maker(beats: Scalar) -> Maker:
    def make(kind: Any) -> Body:
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

        def body(  # type: ignore[no-untyped-def]  # as above
            out, x, candidates, again, tasks, runs, length, run, reduced, inner
        ):
            shared = cuda.shared.array(BLOCK, np.int64)
            thread = cuda.threadIdx.x
            task = cuda.blockIdx.x
            while task < tasks:
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
                cuda.syncthreads()
                half = BLOCK // 2
                while half > 0:
                    if thread < half:
                        shared[thread] = better(
                            x, base, inner, shared[thread], shared[thread + half]
                        )
                    cuda.syncthreads()
                    half = half // 2
                if thread == 0:
                    out[task] = shared[0]
                cuda.syncthreads()
                task += cuda.gridDim.x

        return body

    return make


_SEARCH = "int64[::1], T[::1], int64[::1]" + ", int64" * 7
_SEARCHED = ("bool", *INTEGERS, *FLOATS)
_ARGMAX = Family("argmax", _maker(lambda a, b: a > b), _SEARCH, _SEARCHED)
_ARGMIN = Family("argmin", _maker(lambda a, b: a < b), _SEARCH, _SEARCHED)


def _search(kernels: Family) -> Callable[[Tensor, Tensor, int | None], None]:
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
            kernels[x.dtype.name](
                rows(tasks, where),
                *(found, array, candidates, again, tasks, runs, length, RUN),
                *(reduced, inner),
            )
            if runs == 1:
                return
            length, candidates, again = runs, found, 1

    return kernel


_I = np.int64
_W = np.int32
_F = np.float32
_D = np.float64
_GREATEST = np.int64((1 << 63) - 1)
_GREATEST_32 = np.int32((1 << 31) - 1)
_INT64 = np.dtype(np.int64)


@device
def _of_single(x):  # type: ignore[no-untyped-def]  # compiled for the device
    """The key of a float32: its bits, those of negative numbers in reverse."""
    if x != x:
        return _GREATEST
    # Adding 0.0 makes -0.0 positive.
    bits = _F(x + _F(0)).view(_W)
    return _I(_W(bits ^ _GREATEST_32)) if bits < _W(0) else _I(bits)


@device
def _of_double(x):  # type: ignore[no-untyped-def]  # as above
    """The key of a float64, likewise."""
    if x != x:
        return _GREATEST
    bits = _D(x + _D(0)).view(_I)
    return _I(bits ^ _GREATEST) if bits < _I(0) else bits


@device
def _of_float16(x):  # type: ignore[no-untyped-def]  # as above
    """The key of the bits of a float16."""
    return _of_single(from_float16(x))


@device
def _of_bfloat16(x):  # type: ignore[no-untyped-def]  # as above
    """The key of the bits of a bfloat16."""
    return _of_single(from_bfloat16(x))


@device
def _of_integer(x):  # type: ignore[no-untyped-def]  # as above
    """An integer is its own key."""
    return _I(x)


def _keys(key_of: Scalar) -> Maker:
    def make(kind: Any) -> Body:
        def body(  # type: ignore[no-untyped-def]  # as above
            keys, places, x, count, length, inner, descending
        ):
            i = cuda.grid(1)
            step = cuda.gridsize(1)
            while i < count:
                row = i // length
                place = i - row * length
                outer = row // inner
                at = (outer * length + place) * inner + (row - outer * inner)
                key = key_of(x[at])
                keys[i] = ~key if descending else key
                places[i] = place
                i += step

        return body

    return make


def _merge(kind: Any) -> Body:
    def body(  # type: ignore[no-untyped-def]  # as above
        to_keys, to_places, keys, places, count, length, width
    ):
        i = cuda.grid(1)
        step = cuda.gridsize(1)
        while i < count:
            base = i // length * length
            place = i - base
            run = place // width
            key = keys[i]
            if run % 2 == 0:
                # The elements of the next run that are less come before this one.
                low = min((run + 1) * width, length)
                high = min(low + width, length)
                to = i - low
                while low < high:
                    middle = (low + high) // 2
                    if keys[base + middle] < key:
                        low = middle + 1
                    else:
                        high = middle
            else:
                # Those of the run before that are equal do, too.
                low = (run - 1) * width
                high = low + width
                to = i - width - low
                while low < high:
                    middle = (low + high) // 2
                    if keys[base + middle] <= key:
                        low = middle + 1
                    else:
                        high = middle
            to_keys[to + low] = key
            to_places[to + low] = places[i]
            i += step

    return body


def _chosen(kind: Any) -> Body:
    def body(  # type: ignore[no-untyped-def]  # as above
        values, indices, x, places, count, length, kept, inner
    ):
        i = cuda.grid(1)
        step = cuda.gridsize(1)
        while i < count:
            line = i // inner
            outer = line // kept
            column = i - line * inner
            rank = line - outer * kept
            place = places[(outer * inner + column) * length + rank]
            indices[i] = place
            values[i] = x[(outer * length + place) * inner + column]
            i += step

    return body


_SIGNATURE = "int64[::1], int64[::1], T[::1], int64, int64, int64, int64"


def _family(name: str, key_of: Scalar, keys: tuple[str, ...]) -> dict[str, Family]:
    family = Family(f"order_{name}", _keys(key_of), _SIGNATURE, keys)
    return dict.fromkeys(keys, family)


# dtype name -> the kernels that make its keys; those of 16-bit floats read their bits.
_FAMILIES: dict[str, Family] = {
    **_family("integers", _of_integer, ("bool", *INTEGERS)),
    **_family("single", _of_single, FLOATS[:1]),
    **_family("double", _of_double, FLOATS[1:]),
    "float16": Family("order_float16", _keys(_of_float16), _SIGNATURE, ("uint16",)),
    "bfloat16": Family("order_bfloat16", _keys(_of_bfloat16), _SIGNATURE, ("uint16",)),
}
_MERGE = Family(
    "order_merge", _merge, "T[::1], T[::1], T[::1], T[::1]" + ", int64" * 3, ("int64",)
)
_CHOSEN = Family(
    "order_chosen",
    _chosen,
    "T[::1], int64[::1], T[::1], int64[::1]" + ", int64" * 4,
    tuple(BY_SIZE.values()),
)


def merged(
    keys: Array, places: Array, count: int, length: int, where: int
) -> tuple[Array, Array]:
    """Rows of `length` keys in ascending order, and their places; `count` in all.

    Stable; the arrays given are used up.
    """
    spare = tuple(device_array(count, _INT64, where) for _ in range(2))
    found = (keys, places)
    width = 1
    while width < length:
        _MERGE["int64"](spread(count, where), *spare, *found, count, length, width)
        found, spare = spare, found
        width *= 2
    return found[0], found[1]


def ordered_places(keys: Array, count: int, where: int) -> tuple[Array, Array]:
    """A list of int64 in ascending order, and where each was; `keys` stays."""
    made, places = (device_array(count, _INT64, where) for _ in range(2))
    shape = spread(count, where)
    _FAMILIES["int64"]["int64"](shape, made, places, keys, count, count, 1, 0)
    return merged(made, places, count, count, where)


def _order(
    values: Tensor, indices: Tensor, x: Tensor, dim: int, kept: int, descending: bool
) -> None:
    """Write the first `kept` along a dimension in an order, and their places."""
    if not values.numel():
        return
    where, count = index_of(x), x.numel()
    outer, length, inner = around(x.shape, dim)
    keys, places = (device_array(count, _INT64, where) for _ in range(2))
    seen = flat(x)
    name = x.dtype.name
    family = _FAMILIES[name]
    read = "uint16" if name in ("float16", "bfloat16") else name
    shape = spread(count, where)
    family[read](shape, keys, places, seen, count, length, inner, int(descending))
    _, places = merged(keys, places, count, length, where)
    words = moved(x)
    total = outer * kept * inner
    _CHOSEN[words](
        spread(total, where),
        *(flat(values, words), flat(indices), flat(x, words), places),
        *(total, length, kept, inner),
    )


def sort(
    values: Tensor,
    indices: Tensor,
    x: Tensor,
    dim: int,
    descending: bool,
    stable: bool,
) -> None:
    """The elements along `dim` in order, and their places."""
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
    """The `k` greatest, or least, elements along `dim`, and their places."""
    _order(values, indices, x, dim, k, largest)


KERNELS: dict[str, Callable[..., Any]] = {
    "cumsum": cumsum,
    "argmax": _search(_ARGMAX),
    "argmin": _search(_ARGMIN),
    "sort": sort,
    "topk": topk,
}
