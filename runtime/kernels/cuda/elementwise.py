"""Elementwise kernels on CUDA: operands, pieces of work, and bodies around a function.

Operands: a kernel receives an array, an offset and strides for each tensor (`source`),
or a number.  If only the size of an element matters, `word_of` names the unsigned
integer of that size to view the array as (for 128 bits: complex128), and 16-bit floats
are always viewed so, because kernels do not support another form of them.

Pieces: dimensions that are adjacent in every operand are merged, those of size 1
removed; the result is at most `RANK` extents for the kernel and, beyond that or beyond
32 bits of elements, a few launches more.  Bodies compute positions with `parts` and
`place`, which divide in 32 bits (64-bit division is a call on the device): a piece has
fewer than `LIMIT` elements unless it is flat, one extent only.

Bodies
- a scalar function is passed as `scalar(T)`, which returns the function for the type;
- the output may have any strides; every operand is broadcast to its shape and either
  read or, if `fixed`, a number; `out` and operands may share memory if they are
  identical element by element;
- if all is flat, elements are traversed without a division; else by `parts`;
- flat loops read several elements before they write: the loads in flight on a
  multiprocessor must cover bandwidth times latency, some 25 KiB on Hopper, and its
  2,048 threads with one float32 each are 8.
"""

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from everyorder.runtime.base.codegen import block, template
from everyorder.runtime.kernels.cuda.device import cuda, current_device, spread
from everyorder.runtime.kernels.cuda.jit import (
    Body,
    Key,
    LaunchFamily,
    device,
    number_of,
    scalar_type,
)
from everyorder.runtime.kernels.cuda.memory import device_array
from everyorder.runtime.kernels.shared.operands import BY_SIZE, coalesced
from everyorder.runtime.tensors.dtype_info import itemsize
from everyorder.runtime.tensors.shape import broadcast_strides
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import place_of

Ints = tuple[int, ...]

# Extents that a kernel handles; after merging, more are very rare.
RANK = 4

# The limit below which grid strides cannot exceed 32 bits.
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
    """Yield the launches for operands of one shape; none without elements."""
    if prod(shape):
        yield from _pieces(*coalesced(shape, *strides), offsets)


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
        rest = coalesced((size, *extents[1:]), *strides)
        yield from _pieces(*rest, _moved(offsets, strides, start))


def _moved(offsets: Ints, strides: tuple[Ints, ...], at: int) -> Ints:
    return tuple(
        offset + at * steps[0] for offset, steps in zip(offsets, strides, strict=True)
    )


@device
def parts(index, extents):  # type: ignore[no-untyped-def]  # compiled for the device
    """Return the four indices of element `index` of the extents."""
    # A flat piece may have more elements than 32 bits count.
    if extents[0] * extents[1] * extents[2] == 1:
        return _I(0), _I(0), _I(0), _I(index)
    rest = _U(index)
    above = _U(rest // _U(extents[3]))
    third = _I(rest) - _I(above) * extents[3]
    # Typically a repeated row: all threads agree, and save two divisions.
    if extents[0] * extents[1] == 1:
        return _I(0), _I(0), _I(above), third
    rest = _U(above // _U(extents[2]))
    second = _I(above) - _I(rest) * extents[2]
    above = _U(rest // _U(extents[1]))
    first = _I(rest) - _I(above) * extents[1]
    return _I(above), first, second, third


@device
def place(offset, indices, strides):  # type: ignore[no-untyped-def]  # as above
    """Return the position of the element with these indices."""
    return (
        offset
        + indices[0] * strides[0]
        + indices[1] * strides[1]
        + indices[2] * strides[2]
        + indices[3] * strides[3]
    )


Array = Any
Number = bool | int | float | complex

# The dtypes that 16-bit floats are viewed as.
_BITS = {"float16": "uint16", "bfloat16": "uint16"}


class TensorOperand(NamedTuple):
    """A tensor as read by a body: element `offset + sum(index * stride)`."""

    array: Array
    offset: int
    strides: Ints


def index_of(tensor: Tensor) -> int:
    """Return the index of the device of a tensor."""
    index = tensor.device.index
    return current_device() if index is None else index


def as_dtype(array: Array, name: str) -> Array:
    """Return an array as elements of another dtype of the same size."""
    target = np.dtype(scalar_type(name))
    return array if array.dtype == target else array.view(target)


def form(tensor: Tensor) -> str:
    """Return the dtype of a tensor's elements in kernels."""
    name = tensor.dtype.name
    return _BITS.get(name, name)


def word_of(tensor: Tensor) -> str:
    """Return the dtype that moves elements of this size."""
    return BY_SIZE[itemsize(tensor.dtype)]


def source(
    tensor: Tensor, to: Ints | None = None, name: str | None = None
) -> TensorOperand:
    """Return a tensor in its layout, broadcast to a shape, viewed as `name`."""
    array, offset, strides = place_of(tensor)
    if to is not None and to != tensor.shape:
        strides = broadcast_strides(tensor.shape, strides, to)
    return TensorOperand(as_dtype(array, name or form(tensor)), offset, strides)


class BodyOperand(NamedTuple):
    """A tensor or a number for an elementwise body; `fixed`: it is a number."""

    array: Array
    number: Any
    fixed: int
    offset: int
    strides: Ints


def value(operand: Tensor | Number, shape: Ints, name: str, device: int) -> BodyOperand:
    """Return an elementwise operand of dtype `name`, broadcast to the output."""
    if isinstance(operand, Tensor) and operand.device.type != "cpu":
        array, offset, strides = source(operand, shape, name)
        return BodyOperand(array, number_of(0, name), 0, offset, strides)
    number = operand.item() if isinstance(operand, Tensor) else operand
    # The array is not read, but must be valid.
    array = device_array(1, np.dtype(scalar_type(name)), device)
    return BodyOperand(array, number_of(number, name), 1, 0, (0,) * len(shape))


Scalar = Callable[..., Any]
# From the scalar types of the key to the function of elements.
ScalarMaker = Callable[..., Scalar]

_OPERAND = "{0}[::1], {1}, int64, int64, int64*4, "


def family(
    name: str,
    scalar: ScalarMaker,
    keys: tuple[str | Key, ...],
    *,
    operands: str = "T",
    result: str = "T",
) -> LaunchFamily:
    """Return the kernels of `scalar`; `operands` are letters `T`, `U`, `B` (bool)."""
    wide = {"T": "W", "U": "V", "B": "int64"}
    named = {"T": "T", "U": "U", "B": "bool"}
    signature = f"{result}[::1], int64, int64*4, "
    for letter in operands:
        signature += _OPERAND.format(named[letter], wide[letter])

    def make(*scalars: Any) -> Body:
        function = device(scalar(*scalars))
        return _body(len(operands))(function, _casts(operands, scalars))

    return LaunchFamily(name, make, signature + "int64*4, int64", keys)


def run(
    kernels: LaunchFamily, key: Key, out: Tensor, *operands: tuple[Tensor | Number, str]
) -> None:
    """Launch for an output and its operands, each with the dtype to read it as."""
    at = index_of(out)
    values = tuple(value(item, out.shape, name, at) for item, name in operands)
    run_values(kernels, key, out, values)


def run_values(
    kernels: LaunchFamily,
    key: Key,
    out: Tensor,
    values: tuple[BodyOperand, ...],
    target: TensorOperand | None = None,
) -> None:
    """Launch for operands in the form of the body; `target` is the view of `out`."""
    at = index_of(out)
    target = target or source(out)
    offsets = (target.offset, *(item.offset for item in values))
    strides = (target.strides, *(item.strides for item in values))
    for piece in pieces(out.shape, offsets, strides):
        arguments: list[Any] = [target.array, piece.offsets[0], piece.strides[0]]
        for item, offset, steps in zip(
            values, piece.offsets[1:], piece.strides[1:], strict=True
        ):
            arguments += (item.array, item.number, item.fixed, offset, steps)
        kernels[key](spread(piece.size, at), *arguments, piece.extents, piece.size)


def _casts(operands: str, scalars: tuple[Any, ...]) -> tuple[Any, ...]:
    from numpy import bool_

    types = dict(zip("TU", scalars, strict=False))
    return tuple(bool_ if letter == "B" else types[letter] for letter in operands)


# Elements that a thread reads before it writes, by the number of operands.
_AT_ONCE = {1: 4, 2: 2, 3: 1}


@template("CUDA kernel", "function, casts", cuda=cuda, parts=parts, place=place)
def _body(count: int) -> list[str]:
    """Return the body around a function of `count` numbers; `casts` are their types."""
    names, many = "abc"[:count], _AT_ONCE[count]
    parameters = "".join(
        [f"{x}, {x}_number, {x}_fixed, {x}_at, {x}_by, " for x in names]
    )

    def result(n: int) -> str:
        return f"function({', '.join([f'{x}{n}' for x in names])})"

    def step(read: int) -> list[str]:
        """Return the lines that compute `read` results of a flat loop."""
        lines = []
        for x in names:
            elements = [
                f"{x}{n} = {x}[{x}_at + (i + {n} * step) * {x}_by[3]]"
                for n in range(read)
            ]
            lines += block(f"if not {x}_fixed:", elements)
        for n in range(read):
            at = f"out_at + (i + {n} * step) * out_by[3]"
            lines.append(f"out[{at}] = {result(n)}")
        return [*lines, f"i += {read} * step"]

    flat = block("while i < count:", step(1))
    if many > 1:
        flat = [*block(f"while i + {many - 1} * step < count:", step(many)), *flat]
    strided = [
        "at = parts(i, extents)",
        *[f"if not {x}_fixed: {x}0 = {x}[place({x}_at, at, {x}_by)]" for x in names],
        f"out[place(out_at, at, out_by)] = {result(0)}",
        "i += step",
    ]
    lines = [
        "i = cuda.grid(1)",
        "step = cuda.gridsize(1)",
        *[f"{x}{n} = {x}_type({x}_number)" for x in names for n in range(many)],
        *block("if extents[3] == count:", flat),
        *block("else:", block("while i < count:", strided)),
    ]
    types = [f"{x}_type = casts[{at}]" for at, x in enumerate(names)]
    head = f"def body(out, out_at, out_by, {parameters}extents, count):"
    return [*types, *block(head, lines)]
