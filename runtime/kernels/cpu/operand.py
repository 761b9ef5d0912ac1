"""How the kernels that move data read tensors: flat arrays, offsets, strides.

True only here: elements whose value does not matter are moved as words of their size,
so that one compiled kernel serves every dtype of that size.

Rules: nothing here copies, except `dense` and `integers` where they say so; strides
and offsets count elements of the tensor's own dtype.
"""

from typing import Any

import numpy as np

from runtime.kernels.cpu.lines import Operand
from runtime.schema.codes import DType
from runtime.tensors.elements import SUPPORTED, itemsize
from runtime.tensors.shape import contiguous_strides
from runtime.tensors.tensor import Tensor, array_of, flat_of, place_of

# Bytes of an element -> the dtype whose words stand for it.
_BY_SIZE = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}

# dtype -> the name of its words.
WORDS = {
    dtype: _BY_SIZE[itemsize(dtype)]
    for dtype in (DType.named(name) for name in SUPPORTED)
}
_FORMS = {dtype: np.dtype(name) for dtype, name in WORDS.items()}
_INT64 = DType.named("int64")


def words(tensor: Tensor) -> Operand:
    """Where a tensor lies, its elements as words of their size."""
    array: Any
    array, offset, strides = place_of(tensor)
    return array.view(_FORMS[tensor.dtype]), offset, strides


def dense_words(tensor: Tensor) -> Any:
    """The elements in row-major order as words; copied if they do not lie so."""
    return dense(tensor).view(_FORMS[tensor.dtype])


def dense(tensor: Tensor) -> Any:
    """The elements in row-major order, flat; copied if they do not lie so."""
    flat = flat_of(tensor)
    return np.ascontiguousarray(array_of(tensor)).reshape(-1) if flat is None else flat


def integers(tensor: Tensor) -> Operand:
    """Where an index tensor lies; copied to int64 from another integer dtype."""
    if tensor.dtype is _INT64:
        return place_of(tensor)
    return dense(tensor).astype(np.int64), 0, contiguous_strides(tensor.shape)
