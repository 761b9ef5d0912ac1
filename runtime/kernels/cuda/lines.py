"""Walks through an index on CUDA: behind gather, scatter, select and index.

True only here: three operands are walked together.  The *linear* one is met element by
element; the *index* one says where in the *addressed* one its counterpart lies: at
`walk + value * step`, where the walk has stride 0 along the indexed dimension.

Rules
- index values have been checked; elements are moved as words of their size;
- of several values for one place the last in the order of the index stays: every
  element first claims its place with its number, and the highest number writes.
"""

from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from runtime.kernels.cuda.copy import copy, fill
from runtime.kernels.cuda.geometry import Piece, parts, pieces, place
from runtime.kernels.cuda.jit import Body, Family
from runtime.kernels.cuda.launch import spread
from runtime.kernels.cuda.memory import device_array
from runtime.kernels.cuda.operand import MOVED, Array, Ints, Source, index_of, source
from runtime.kernels.cuda.toolkit import cuda
from runtime.schema.codes import DType
from runtime.schema.device import Device
from runtime.tensors.arrays import flat_of
from runtime.tensors.making import empty_tensor
from runtime.tensors.tensor import Tensor

_I = np.int64
_INT64 = DType.named("int64")


class Walk(NamedTuple):
    """A shape, the operands over it, the step of an index, and the device."""

    shape: Ints
    addressed: Source
    chosen: Source
    step: int
    where: int


def _read(kind: Any) -> Body:
    zero = _I(0)

    def body(  # type: ignore[no-untyped-def]  # compiled for the device
        out, out_at, out_by, x, x_at, x_by, index, at, by, step, extents, count
    ):
        i = cuda.grid(1)
        stride = cuda.gridsize(1)
        while i < count:
            spot = (zero, zero, zero, _I(i))
            if extents[3] != count:
                spot = parts(i, extents)
            moved = index[place(at, spot, by)] * step
            out[place(out_at, spot, out_by)] = x[place(x_at, spot, x_by) + moved]
            i += stride

    return body


def _write(kind: Any) -> Body:
    zero = _I(0)

    def body(  # type: ignore[no-untyped-def]  # compiled for the device
        x,
        x_at,
        x_by,
        source,
        source_at,
        source_by,
        index,
        at,
        by,
        claims,
        claimed,
        first,
        step,
        extents,
        count,
    ):
        i = cuda.grid(1)
        stride = cuda.gridsize(1)
        while i < count:
            spot = (zero, zero, zero, _I(i))
            if extents[3] != count:
                spot = parts(i, extents)
            to = place(x_at, spot, x_by) + index[place(at, spot, by)] * step
            if not claimed or claims[to] == first + i:
                x[to] = source[place(source_at, spot, source_by)]
            i += stride

    return body


def _targets(claims: bool) -> Any:
    def make(kind: Any) -> Body:
        zero = _I(0)

        def body(  # type: ignore[no-untyped-def]  # compiled for the device
            found, x_at, x_by, index, at, by, first, step, extents, count
        ):
            i = cuda.grid(1)
            stride = cuda.gridsize(1)
            while i < count:
                spot = (zero, zero, zero, _I(i))
                if extents[3] != count:
                    spot = parts(i, extents)
                to = place(x_at, spot, x_by) + index[place(at, spot, by)] * step
                if claims:
                    cuda.atomic.max(found, to, first + i)
                else:
                    found[first + i] = to
                i += stride

        return body

    return make


_OPERAND = "[::1], int64, int64*4, "
_WORDS = tuple(MOVED.values())
_READ = Family(
    "index_read",
    _read,
    f"T{_OPERAND}T{_OPERAND}int64{_OPERAND}int64, int64*4, int64",
    _WORDS,
)
_WRITE = Family(
    "index_write",
    _write,
    f"T{_OPERAND}T{_OPERAND}int64{_OPERAND}"
    "int64[::1], int64, int64, int64, int64*4, int64",
    _WORDS,
)
_TARGETS_OF = f"T[::1], int64, int64*4, int64{_OPERAND}int64, int64, int64*4, int64"
_CLAIM = Family("index_claim", _targets(True), _TARGETS_OF, ("int64",))
_TARGETS = Family("index_targets", _targets(False), _TARGETS_OF, ("int64",))


def integers(index: Tensor) -> Tensor:
    """An index tensor as int64."""
    if index.dtype is _INT64:
        return index
    made = empty_tensor(index.shape, _INT64, index.device)
    copy(made, index)
    return made


def along(x: Source, index: Tensor, dim: int) -> Walk:
    """The walk over the shape of an index (of int64) along a dimension of `x`."""
    chosen, where = source(index), index_of(index)
    strides, step = x.strides, 0
    if strides:
        step = strides[dim]
        strides = (*strides[:dim], 0, *strides[dim + 1 :])
    # A number is indexed like a tensor of one element.
    strides = strides or (0,) * len(index.shape)
    addressed = Source(x.array, x.offset, strides)
    return Walk(index.shape, addressed, chosen, step, where)


def read(walk: Walk, out: Source, words: str) -> None:
    """Fill `out` with what the index names."""
    for piece in _pieces(walk, out):
        _READ[words](
            spread(piece.size, walk.where),
            *(out.array, piece.offsets[2], piece.strides[2]),
            *_operands(walk, piece),
            *(walk.step, piece.extents, piece.size),
        )


def write(walk: Walk, given: Source, words: str, size: int, *, alike: bool) -> None:
    """Write what is given where the index says, in an array of `size` elements.

    `alike`: all values are one, so that it does not matter who writes.
    """
    claims = walk.chosen.array if alike else _claims(walk, size)
    first = 0
    for piece in _pieces(walk, given):
        x, x_at, x_by, *index = _operands(walk, piece)
        _WRITE[words](
            spread(piece.size, walk.where),
            *(x, x_at, x_by, given.array, piece.offsets[2], piece.strides[2]),
            *(*index, claims, int(not alike), first),
            *(walk.step, piece.extents, piece.size),
        )
        first += piece.size


def targets(walk: Walk) -> Array:
    """The position of each element's counterpart, in the order of the walk."""
    found = device_array(prod(walk.shape), np.dtype(np.int64), walk.where)
    _find(_TARGETS, walk, found)
    return found


def _claims(walk: Walk, size: int) -> Array:
    """For each position the number of the last element that goes there, or -1."""
    last = empty_tensor((size,), _INT64, Device("cuda", walk.where))
    fill(last, -1)
    found = flat_of(last)
    _find(_CLAIM, walk, found)
    return found


def _find(kernels: Family, walk: Walk, found: Array) -> None:
    first = 0
    for piece in _pieces(walk, walk.chosen):
        _, *places = _operands(walk, piece)
        kernels["int64"](
            spread(piece.size, walk.where),
            *(found, *places, first, walk.step, piece.extents, piece.size),
        )
        first += piece.size


def _pieces(walk: Walk, other: Source) -> Iterator[Piece]:
    operands = (walk.addressed, walk.chosen, other)
    offsets = tuple(operand.offset for operand in operands)
    return pieces(walk.shape, offsets, tuple(operand.strides for operand in operands))


def _operands(walk: Walk, piece: Piece) -> tuple[Any, ...]:
    """Array, offset and strides of the addressed and of the index operand."""
    return (
        *(walk.addressed.array, piece.offsets[0], piece.strides[0]),
        *(walk.chosen.array, piece.offsets[1], piece.strides[1]),
    )
