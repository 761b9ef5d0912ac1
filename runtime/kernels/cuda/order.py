"""Sorting on CUDA, and the k most extreme elements.

An element becomes an int64 whose order is that of the elements, and keys are merged
together with their places.

Rules:
- NaN is greater than any number, -0.0 and 0.0 are equal; a descending order is the
  ascending one of the complements, so that of equal elements the first still comes
  first: every sort here is stable, and every `topk` sorted;
- in a merge each key finds its place by itself: its own rank, and its rank in the
  neighbouring run by bisection (Cole's ranking merge, without the cascade); a sort is
  as many launches as the length has bits;
- values are moved, never changed: NaN keep their bits, zeros their sign.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.kernels.cpu.axis import around
from runtime.kernels.cpu.operand import BY_SIZE
from runtime.kernels.cuda.copy import flat
from runtime.kernels.cuda.elementwise import Array, form, index_of, word_of
from runtime.kernels.cuda.jit import (
    Elements,
    Maker,
    device,
    from_bfloat16,
    from_float16,
)
from runtime.kernels.cuda.memory import device_array
from runtime.kernels.math.complex import Scalar
from runtime.kernels.math.scalars import FLOATS, INTEGERS
from runtime.tensors.tensor import Tensor

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
    """The place of a key in the run that its own and the neighbouring one become."""
    base = i // length * length
    run = (i - base) // width
    key = keys[i]
    first = run % 2 == 0
    # Of the next run the keys that are less come before it, of the one before also
    # those that are equal.
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
    i, values, indices, x, places, length, kept, inner
):
    """The element that has a rank in its line, and its place."""
    line = i // inner
    outer = line // kept
    column = i - line * inner
    rank = line - outer * kept
    place = places[(outer * inner + column) * length + rank]
    indices[i] = place
    values[i] = x[(outer * length + place) * inner + column]


_SIGNATURE = "int64[::1], int64[::1], T[::1], int64, int64, int64"

# dtype name -> the kernels that make its keys; those of 16-bit floats read their bits.
_FAMILIES = {
    dtype: family
    for name, key_of, dtypes, read in (
        ("integers", _of_integer, ("bool", *INTEGERS), ("bool", *INTEGERS)),
        ("single", _of_single, FLOATS[:1], FLOATS[:1]),
        ("double", _of_double, FLOATS[1:], FLOATS[1:]),
        ("float16", _of_float16, ("float16",), ("uint16",)),
        ("bfloat16", _of_bfloat16, ("bfloat16",), ("uint16",)),
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
    """Rows of `length` keys in ascending order, and their places; `count` in all.

    Stable; the arrays given are used up.
    """
    spare = tuple(device_array(count, _INT64, where) for _ in range(2))
    found = (keys, places)
    width = 1
    while width < length:
        _MERGE.run("int64", count, where, *spare, *found, length, width)
        found, spare = spare, found
        width *= 2
    return found[0], found[1]


def ordered_places(keys: Array, count: int, where: int) -> tuple[Array, Array]:
    """A list of int64 in ascending order, and where each was; `keys` stays."""
    made, places = (device_array(count, _INT64, where) for _ in range(2))
    _FAMILIES["int64"].run("int64", count, where, made, places, keys, count, 1, 0)
    return merge_sort(made, places, count, count, where)


def _order(
    values: Tensor, indices: Tensor, x: Tensor, dim: int, kept: int, descending: bool
) -> None:
    """Write the first `kept` along a dimension in an order, and their places."""
    if not values.numel():
        return
    where, count = index_of(x), x.numel()
    outer, length, inner = around(x.shape, dim)
    keys, places = (device_array(count, _INT64, where) for _ in range(2))
    given = keys, places, flat(x), length, inner, int(descending)
    _FAMILIES[x.dtype.name].run(form(x), count, where, *given)
    _, places = merge_sort(keys, places, count, length, where)
    words = word_of(x)
    arrays = flat(values, words), flat(indices), flat(x, words), places
    total = outer * kept * inner
    _CHOSEN.run(words, total, where, *arrays, length, kept, inner)


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


KERNELS: dict[str, Callable[..., Any]] = {"sort": sort, "topk": topk}
