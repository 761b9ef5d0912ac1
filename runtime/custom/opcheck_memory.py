"""Memory: which tensors share it, and which bytes of it a tensor shows.

True only here: two tensors share memory if they are one object, are on one storage, or
if their storages overlap in host memory, as those of two NumPy views do.  Whether they
show common elements does not matter: what is on a storage may be moved on it.
"""

from typing import TYPE_CHECKING, Any

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
    if one is other:
        return "they are one object"
    left, right = claimed(one)[0], claimed(other)[0]
    if left is right:
        return "they are on one storage"
    return "their memory overlaps" if _overlap(left, right) else ""


def _overlap(left: Storage, right: Storage) -> bool:
    one, other = left.data_ptr(), right.data_ptr()
    if not one or not other or left.device != right.device:
        return False
    return one < other + right.nbytes and other < one + left.nbytes


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
