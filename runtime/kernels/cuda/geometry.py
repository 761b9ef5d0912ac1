"""How an index of an output becomes places in arrays: coalesced extents and strides.

True only here: the division of work with strides into launches.  Dimensions that lie
after each other in every operand are joined, those of size 1 dropped; what remains is
at most `RANK` extents for the kernel and, beyond that or beyond 32 bits of elements, a
few launches more.

Rules: pure integers, counted in elements.  Bodies find their places by `parts` and
`place`, which divide in 32 bits (64-bit division is a call on the device): a piece has
fewer than `LIMIT` elements unless it is flat, one extent only.
"""

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import numpy as np

from runtime.kernels.cuda.jit import device

Ints = tuple[int, ...]

# Extents that a kernel takes apart; after joining, more are very rare.
RANK = 4

# One below the first count whose grid strides could leave 32 bits.
LIMIT = 1 << 31

_U = np.uint32
_I = np.int64


class Piece(NamedTuple):
    """One launch: `RANK` extents, and an offset and strides for each operand."""

    size: int
    extents: Ints
    offsets: Ints
    strides: tuple[Ints, ...]


def pieces(shape: Ints, offsets: Ints, strides: tuple[Ints, ...]) -> Iterator[Piece]:
    """The launches for operands of one shape; nothing for no elements."""
    if prod(shape):
        yield from _pieces(*coalesced(shape, strides), offsets)


def coalesced(shape: Ints, strides: tuple[Ints, ...]) -> tuple[Ints, tuple[Ints, ...]]:
    """The fewest extents that read the same elements in the same order."""
    extents: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for at in range(len(shape) - 1, -1, -1):
        size = shape[at]
        if size == 1:
            continue
        if extents and all(
            own[at] == kept[-1] * extents[-1]
            for own, kept in zip(strides, steps, strict=True)
        ):
            extents[-1] *= size
            continue
        extents.append(size)
        for own, kept in zip(strides, steps, strict=True):
            kept.append(own[at])
    return tuple(reversed(extents)), tuple(tuple(reversed(kept)) for kept in steps)


def _pieces(extents: Ints, strides: tuple[Ints, ...], offsets: Ints) -> Iterator[Piece]:
    count = prod(extents)
    if len(extents) <= RANK and (count < LIMIT or len(extents) < 2):
        pad = RANK - len(extents)
        yield Piece(
            count,
            (1,) * pad + extents,
            offsets,
            tuple((0,) * pad + steps for steps in strides),
        )
        return
    if len(extents) > RANK:
        inner = tuple(steps[1:] for steps in strides)
        for at in range(extents[0]):
            yield from _pieces(extents[1:], inner, _moved(offsets, strides, at))
        return
    half = extents[0] // 2
    for start, size in ((0, half), (half, extents[0] - half)):
        rest = coalesced((size, *extents[1:]), strides)
        yield from _pieces(*rest, _moved(offsets, strides, start))


def _moved(offsets: Ints, strides: tuple[Ints, ...], at: int) -> Ints:
    return tuple(
        offset + at * steps[0] for offset, steps in zip(offsets, strides, strict=True)
    )


@device
def parts(index, extents):  # type: ignore[no-untyped-def]  # compiled for the device
    """The four indices of element `index` of the extents."""
    rest = _U(index)
    above = _U(rest // _U(extents[3]))
    third = _I(rest) - _I(above) * extents[3]
    # A row that is repeated, mostly: all threads agree, and save two divisions.
    if extents[0] * extents[1] == 1:
        return _I(0), _I(0), _I(above), third
    rest = _U(above // _U(extents[2]))
    second = _I(above) - _I(rest) * extents[2]
    above = _U(rest // _U(extents[1]))
    first = _I(rest) - _I(above) * extents[1]
    return _I(above), first, second, third


@device
def place(offset, indices, strides):  # type: ignore[no-untyped-def]  # as above
    """Where the element with these indices lies."""
    return (
        offset
        + indices[0] * strides[0]
        + indices[1] * strides[1]
        + indices[2] * strides[2]
        + indices[3] * strides[3]
    )
