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
from runtime.kernels.cuda.device import cuda, spread
from runtime.kernels.cuda.elementwise import Array, index_of, word_of
from runtime.kernels.cuda.jit import (
    Body,
    Family,
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
        _MERGE["int64"](spread(count, where), *spare, *found, count, length, width)
        found, spare = spare, found
        width *= 2
    return found[0], found[1]


def ordered_places(keys: Array, count: int, where: int) -> tuple[Array, Array]:
    """A list of int64 in ascending order, and where each was; `keys` stays."""
    made, places = (device_array(count, _INT64, where) for _ in range(2))
    shape = spread(count, where)
    _FAMILIES["int64"]["int64"](shape, made, places, keys, count, count, 1, 0)
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
    seen = flat(x)
    name = x.dtype.name
    family = _FAMILIES[name]
    read = "uint16" if name in ("float16", "bfloat16") else name
    shape = spread(count, where)
    family[read](shape, keys, places, seen, count, length, inner, int(descending))
    _, places = merge_sort(keys, places, count, length, where)
    words = word_of(x)
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


KERNELS: dict[str, Callable[..., Any]] = {"sort": sort, "topk": topk}
