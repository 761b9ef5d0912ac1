"""Memory: which tensors share it, and which bytes of it a tensor shows.

True only here: storages as bytes.  Whether two tensors share memory is decided where it
is decided for every call of a custom operator (`runtime.custom.results`).
"""

from typing import TYPE_CHECKING, Any

from runtime.custom.results import shares
from runtime.tensors.arrays import claimed
from runtime.tensors.elements import itemsize, numpy_dtype
from runtime.tensors.storage import Storage
from runtime.tensors.tensor import Tensor

if TYPE_CHECKING:
    import numpy as np

    Bytes = np.ndarray[Any, np.dtype[np.uint8]]

Bounds = tuple[tuple[int, ...], tuple[int, ...], int]


def shared(one: Tensor, other: Tensor) -> str:
    """How two tensors share memory, in words; empty if they do not."""
    if not shares(one, other):
        return ""
    if one is other:
        return "they are one object"
    on_one = claimed(one)[0] is claimed(other)[0]
    return "they are on one storage" if on_one else "their memory overlaps"


def bytes_of(storage: Storage) -> "Bytes | None":
    """A copy of the bytes of a storage; None on `meta`."""
    import numpy as np

    elements = storage.numpy()
    return None if elements is None else elements.view(np.uint8).copy()


def shown_bytes(tensor: Tensor, layout: Bounds, size: int) -> "np.ndarray[Any, Any]":
    """Which of `size` bytes of its storage a tensor of that layout shows."""
    import numpy as np

    shown = np.zeros(size, np.bool_)
    shape, strides, offset = layout
    width = itemsize(tensor.dtype)
    steps = (*(stride * width for stride in strides), 1)
    if tensor.numel():
        np.ndarray((*shape, width), np.bool_, shown, offset * width, steps)[...] = True
    return shown


def elements_of(
    tensor: Tensor, layout: Bounds, held: "Bytes"
) -> "np.ndarray[Any, Any]":
    """The elements that a tensor of that layout has in those bytes of a storage."""
    import numpy as np

    shape, strides, offset = layout
    width = itemsize(tensor.dtype)
    steps = tuple(stride * width for stride in strides)
    form = numpy_dtype(tensor.dtype)
    return np.ndarray(shape, form, held, offset * width, steps)
