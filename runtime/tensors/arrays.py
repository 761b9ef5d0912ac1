"""Where the elements of a tensor are: its storage, its arrays, its one element.

True only here: how the two slots `_flat` and `_place` of a tensor are read and filled.
See `runtime.tensors.tensor` for what they mean.

Rules: what is computed here is remembered in the slots; nothing else of a tensor ever
changes.  Every array shares memory with the tensor.
"""

from math import prod
from typing import TYPE_CHECKING, Any

from runtime.errors.tensor import (
    NoData,
    NotAnInteger,
    NotOneElement,
    NotOnHost,
    TooManyDimensions,
)
from runtime.locks import reentered
from runtime.schema.codes import DType
from runtime.tensors.elements import itemsize, numpy_dtype
from runtime.tensors.handled import MODED, PYTHON, READERS, is_handled
from runtime.tensors.memory import Array, is_host, memory_of
from runtime.tensors.shape import contiguous_strides, is_contiguous, span
from runtime.tensors.storage import Storage

if TYPE_CHECKING:
    import numpy as np

    from runtime.tensors.tensor import Tensor

Number = bool | int | float | complex
Ints = tuple[int, ...]
# Where the elements are: storage, offset, strides.
Place = tuple[Storage, int, Ints]

# NumPy's NPY_MAXDIMS, since its version 2.
MOST_DIMENSIONS = 64

# Held while a fresh tensor gets its storage, so that it gets one only.
_CLAIMING = reentered()


def claimed(tensor: "Tensor") -> Place:
    """Where the elements of a tensor are, its storage made if there was none."""
    with _CLAIMING:
        if tensor._place is None:
            flat, shape = flat_of(tensor), tensor.shape
            storage = Storage(flat, tensor.device, tensor.dtype, prod(shape))
            place = storage, 0, contiguous_strides(shape)
            if tensor._place is None:
                tensor._place = place
        return tensor._place


def flat_of(tensor: "Tensor") -> Array | None:
    """The elements in row-major order as one 1-D array that shares memory.

    None if the tensor is not contiguous, or on `meta`.  The answer is kept.
    """
    if tensor._flat is None:
        place = tensor._place
        if place is not None:
            tensor._flat = _sliced(tensor, *place)
        elif tensor.number is not None:
            import numpy as np

            tensor._flat = np.array([tensor.number], numpy_dtype(tensor.dtype))
    return tensor._flat


def place_of(tensor: "Tensor") -> tuple[Array | None, int, Ints]:
    """The typed 1-D array that the elements lie in, the offset and the strides in it.

    For kernels that read any layout; counted in elements.  The array is None on `meta`.
    """
    place = tensor._place
    if place is None:
        return flat_of(tensor), 0, contiguous_strides(tensor.shape)
    storage, offset, strides = place
    array = storage.array
    if array is None or storage.dtype is tensor.dtype:
        return array, offset, strides
    size = itemsize(tensor.dtype)
    whole = storage.nbytes() // size * size
    return _typed(array, 0, whole, tensor.dtype), offset, strides


def array_of(tensor: "Tensor") -> "np.ndarray[Any, Any]":
    """The elements as an N-d NumPy array with the tensor's strides, sharing memory.

    For code of ours: it does not ask whether the tensor requires grad.  Raises `NoData`
    on `meta`, and `NotOnHost` for elements in a device's own memory.
    """
    return host_array(tensor, "array_of()")


def host_array(tensor: "Tensor", asked: str) -> "np.ndarray[Any, Any]":
    """As `array_of`; the errors name what was `asked`."""
    if tensor.device.type == "meta":
        raise no_data(tensor, asked)
    if not is_host(tensor.device.type):
        raise NotOnHost(asked=asked, device=str(tensor.device))
    _check_ndim(tensor, asked)
    flat = flat_of(tensor)
    if flat is not None:
        return flat.reshape(tensor.shape)  # type: ignore[no-any-return]  # the host's arrays are NumPy's
    import numpy as np

    array, offset, strides = place_of(tensor)
    assert array is not None, "only `meta` has no array"
    size, form = itemsize(tensor.dtype), numpy_dtype(tensor.dtype)
    steps = tuple(stride * size for stride in strides)
    # Bytes, because ml_dtypes' arrays are no buffers for others.
    raw = array.view(np.uint8)
    return np.ndarray(tensor.shape, form, raw, offset * size, steps)


def host_copy(tensor: "Tensor", asked: str) -> "np.ndarray[Any, Any]":
    """The elements as an N-d NumPy array, wherever they are: read it, never write it.

    Shares memory where the host holds the elements.  Raises `NoData` on `meta`.
    """
    if tensor.device.type == "meta" or is_host(tensor.device.type):
        return host_array(tensor, asked)
    import numpy as np

    _check_ndim(tensor, asked)
    array, offset, strides = place_of(tensor)
    size, form = itemsize(tensor.dtype), numpy_dtype(tensor.dtype)
    if not tensor.numel():
        return np.empty(tensor.shape, form)
    assert array is not None, "only `meta` has no array"
    touched = array[offset : offset + span(tensor.shape, strides)]
    raw = memory_of(tensor.device.type).to_numpy(touched).view(np.uint8)
    steps = tuple(stride * size for stride in strides)
    return np.ndarray(tensor.shape, form, raw, 0, steps)


def _check_ndim(tensor: "Tensor", asked: str) -> None:
    if len(tensor.shape) > MOST_DIMENSIONS:
        raise TooManyDimensions(
            asked=asked, ndim=len(tensor.shape), most=MOST_DIMENSIONS
        )


def element(tensor: "Tensor", asked: str) -> Number:
    """The one element as a Python number.

    Raises `NoData` on `meta`, and `NotOneElement` for another number of elements.
    """
    if (tensor.key_bits & PYTHON or MODED) and is_handled(tensor):
        return READERS[-1](tensor)  # type: ignore[no-any-return]  # an operator's result
    if tensor.number is not None:
        return tensor.number
    if tensor.device.type == "meta":
        raise no_data(tensor, asked)
    count = prod(tensor.shape)
    if count != 1:
        raise NotOneElement(shape=tensor.shape, elements=count, asked=asked)
    array, offset, _ = place_of(tensor)
    assert array is not None, "only `meta` has no array"
    one = memory_of(tensor.device.type).to_numpy(array[offset : offset + 1])
    if tensor.dtype.name == "bfloat16":
        return float(one.view(numpy_dtype(tensor.dtype))[0])
    number: Number = one.item()
    return number


def whole_number(tensor: "Tensor") -> int:
    """The one element, an integer.  Raises `NotAnInteger`."""
    number = element(tensor, "index()") if prod(tensor.shape) == 1 else None
    if not isinstance(number, int):
        raise NotAnInteger(dtype=str(tensor.dtype), shape=tensor.shape)
    return int(number)


def contains(tensor: "Tensor", wanted: Any) -> bool:
    """Whether an element equals a number, or the element of another tensor."""
    if tensor.key_bits & PYTHON:
        return bool((tensor == wanted).any())
    number = wanted.item() if hasattr(wanted, "key_bits") else wanted
    return bool((host_copy(tensor, "in") == number).any())


def no_data(tensor: "Tensor", asked: str) -> NoData:
    """The error that a tensor on `meta` has no elements."""
    return NoData(
        device=str(tensor.device),
        dtype=str(tensor.dtype),
        shape=tensor.shape,
        asked=asked,
    )


def _sliced(
    tensor: "Tensor", storage: Storage, offset: int, strides: Ints
) -> Array | None:
    array, shape = storage.array, tensor.shape
    if array is None or not is_contiguous(shape, strides):
        return None
    count = prod(shape)
    if storage.dtype is tensor.dtype:
        return array if count == storage.count else array[offset : offset + count]
    size = itemsize(tensor.dtype)
    return _typed(array, offset * size, (offset + count) * size, tensor.dtype)


def _typed(array: Array, start: int, end: int, dtype: DType) -> Array:
    """The bytes from `start` to `end` as elements of another dtype."""
    raw = array.view(numpy_dtype(DType.named("uint8")))
    return raw[start:end].view(numpy_dtype(dtype))
