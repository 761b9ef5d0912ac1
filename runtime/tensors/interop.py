"""Tensors as NumPy arrays and by the array protocols.

True only here: which elements may leave as arrays.  An array that shares memory is
handed out for host memory only, and of a tensor that requires grad only where nothing
is recorded, as in `no_grad` and in kernels: autograd would not see a write to it.

Rules: a protocol that a tensor cannot serve is an attribute that it does not have, so
that others fall back to the next one.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from runtime.errors.tensor import NeedsDetach
from runtime.keys import AUTOGRAD_KEYS, BACKEND_BITS, LOCAL
from runtime.tensors.arrays import host_array, host_copy
from runtime.tensors.elements import itemsize, numpy_dtype
from runtime.tensors.handled import check_unhandled
from runtime.tensors.memory import is_host

if TYPE_CHECKING:
    import numpy as np

    from runtime.tensors.tensor import Tensor


# Whether the thread records: autograd's answer, once it is loaded.
RECORDS: list[Callable[[], bool]] = []


def is_recorded(tensor: "Tensor") -> bool:
    """Whether autograd records, here and now, what is computed from the tensor."""
    if not tensor.requires_grad:
        return False
    below = AUTOGRAD_KEYS.bits & ~LOCAL.view.excluded & ~BACKEND_BITS == 0
    return not below and (not RECORDS or RECORDS[-1]())


def shared_array(tensor: "Tensor", asked: str) -> "np.ndarray[Any, Any]":
    """The elements as an array that shares memory.

    Raises `NoData` on `meta`, `NotOnHost` for a device's own memory, `NeedsDetach` if
    the tensor requires grad, and `NotForSubclasses` if its class has a handler.
    """
    check_unhandled(tensor, asked)
    if is_recorded(tensor):
        raise NeedsDetach(asked=asked)
    return host_array(tensor, asked)


def forced_array(tensor: "Tensor") -> "np.ndarray[Any, Any]":
    """The elements as an array: shared memory on the host, a copy of a device's.

    Of a tensor that requires grad, too: autograd sees no write to it.  Nothing is
    resolved first, as conjugates and negatives are computed at once here.

    Raises `NoData` on `meta`, and `NotForSubclasses` if its class has a handler.
    """
    check_unhandled(tensor, "numpy(force=True)")
    return host_copy(tensor, "numpy(force=True)")


def python_numbers(tensor: "Tensor") -> Any:
    """The elements as nested lists; of no dimensions, the number itself.

    Raises `NoData` on `meta`, and `NotForSubclasses` if its class has a handler.
    """
    check_unhandled(tensor, "tolist()")
    if tensor.number is not None:
        return tensor.number
    elements = host_copy(tensor, "tolist()")
    if tensor.dtype.name == "bfloat16":
        elements = elements.astype("float32")
    return elements.tolist()


def array_interface(tensor: "Tensor") -> dict[str, Any]:
    """NumPy's array interface, version 3.

    Raises AttributeError for memory that is not the host's and for bfloat16, which the
    interface cannot name; else as `shared_array`.
    """
    if not is_host(tensor.device.type) or tensor.dtype.name == "bfloat16":
        raise _absent(tensor, "__array_interface__")
    found: dict[str, Any] = shared_array(
        tensor, "__array_interface__"
    ).__array_interface__
    return found


def cuda_array_interface(tensor: "Tensor") -> dict[str, Any]:
    """The CUDA array interface, version 3 (numba's documentation of it).

    Raises AttributeError for a tensor that is not on a CUDA device and for bfloat16,
    which the interface cannot name, and `NeedsDetach` if it requires grad.
    """
    if tensor.device.type != "cuda" or tensor.dtype.name == "bfloat16":
        raise _absent(tensor, "__cuda_array_interface__")
    check_unhandled(tensor, "__cuda_array_interface__")
    if is_recorded(tensor):
        raise NeedsDetach(asked="__cuda_array_interface__")
    size = itemsize(tensor.dtype)
    plain = tensor.is_contiguous()
    return {
        "shape": tensor.shape,
        "typestr": numpy_dtype(tensor.dtype).str,
        "data": (tensor.data_ptr(), False),
        "strides": None if plain else tuple(step * size for step in tensor.strides),
        "version": 3,
    }


def _absent(tensor: "Tensor", name: str) -> AttributeError:
    return AttributeError(
        f"a tensor of {tensor.dtype} on {tensor.device} has no {name}",
        name=name,
        obj=tensor,
    )
