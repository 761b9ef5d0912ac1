"""What a kernel is handed for a tensor: its array, its offset, its strides.

True only here: how tensors and numbers become arguments of a launch.

Rules: `flat` is for kernels that walk over elements in order; it copies what is not
contiguous.  `source` is for kernels that read through strides.  Where only the size
of an element matters, `form` shows the array as unsigned integers of that size (of 128
bits: as complex128), and 16-bit floats are shown so always, because kernels know no
other form of them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from runtime.kernels.cuda.device import current_device
from runtime.kernels.cuda.jit import number_of, scalar_type
from runtime.kernels.cuda.memory import device_array
from runtime.tensors.arrays import flat_of, place_of
from runtime.tensors.elements import itemsize
from runtime.tensors.shape import broadcast_strides
from runtime.tensors.tensor import Tensor

Array = Any
Ints = tuple[int, ...]
Number = bool | int | float | complex

# Bytes of an element -> the dtype that moves it.
MOVED = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}

# What 16-bit floats are shown as.
_BITS = {"float16": "uint16", "bfloat16": "uint16"}


class Source(NamedTuple):
    """A tensor, as a body reads it: element `offset + sum(index * stride)`."""

    array: Array
    offset: int
    strides: Ints


def index_of(tensor: Tensor) -> int:
    """The index of the device that a tensor lies on."""
    index = tensor.device.index
    return current_device() if index is None else index


def shown(array: Array, name: str) -> Array:
    """An array as elements of another dtype of the same size."""
    wanted = np.dtype(scalar_type(name))
    return array if array.dtype == wanted else array.view(wanted)


def form(tensor: Tensor) -> str:
    """The dtype under which a kernel sees the elements of a tensor."""
    name = tensor.dtype.name
    return _BITS.get(name, name)


def moved(tensor: Tensor) -> str:
    """The dtype under which elements of this size are moved about."""
    return MOVED[itemsize(tensor.dtype)]


def source(tensor: Tensor, to: Ints | None = None, name: str | None = None) -> Source:
    """A tensor as it lies, broadcast to a shape, its elements shown as `name`."""
    array, offset, strides = place_of(tensor)
    if to is not None and to != tensor.shape:
        strides = broadcast_strides(tensor.shape, strides, to)
    return Source(shown(array, name or form(tensor)), offset, strides)


def flat(tensor: Tensor, name: str | None = None) -> Array:
    """The elements in order, shown as `name`; a copy where they do not lie so."""
    array = flat_of(tensor)
    if array is None:
        array = flat_of(_PACKING[0](tensor))
    return shown(array, name or form(tensor))


# What copies a tensor into order: brought by `copy`, which needs this module itself.
_PACKING: list[Callable[[Tensor], Tensor]] = []


def install_packing(packing: Callable[[Tensor], Tensor]) -> None:
    """Say how a tensor whose elements do not lie in order is copied."""
    _PACKING[:] = [packing]


class Value(NamedTuple):
    """A tensor or a number for an elementwise body; `fixed`: it is a number."""

    array: Array
    number: Any
    fixed: int
    offset: int
    strides: Ints


def value(given: Tensor | Number, shape: Ints, name: str, device: int) -> Value:
    """An elementwise operand of dtype `name`, broadcast to the shape of the output."""
    if isinstance(given, Tensor) and given.device.type != "cpu":
        array, offset, strides = source(given, shape, name)
        return Value(array, number_of(0, name), 0, offset, strides)
    number = given.item() if isinstance(given, Tensor) else given
    # The array is not read, but has to be one.
    array = device_array(1, np.dtype(scalar_type(name)), device)
    return Value(array, number_of(number, name), 1, 0, (0,) * len(shape))
