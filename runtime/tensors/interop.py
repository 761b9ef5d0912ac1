"""Elements that leave and come: NumPy's arrays, the array protocols, DLPack.

An array that shares memory is handed out for host memory only, and of a tensor that
requires grad only where nothing is recorded, as in `no_grad` and in kernels: autograd
would not see a write to it.  A protocol that a tensor cannot serve is an attribute that
it does not have, so that others fall back to the next one.

DLPack's capsules are made and read by NumPy, whose arrays share the memory; so a
capsule's owner outlives it, and its deleter is C.  NumPy knows no bfloat16: such
elements travel through it as uint16, and the code of their type is rewritten inside of
the capsule, on the way out and in.  Only host memory is handed over; CUDA tensors have
the CUDA array interface.

Rules: a read-only array is never taken, as elements of a tensor may be written to.  A
capsule of the protocol before 1.0 does not say whether it is one: it is taken to be
writable, as everywhere but in NumPy.
"""

from typing import TYPE_CHECKING, Any

from everyorder.runtime.base.hooks import RECORDS
from everyorder.runtime.errors.tensor import NotShareable, UnfitValue
from everyorder.runtime.keys import AUTOGRAD_KEYS, BACKEND_BITS, LOCAL
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.dtype_info import itemsize, numpy_dtype
from everyorder.runtime.tensors.keys import check_unhandled
from everyorder.runtime.tensors.storage import is_host
from everyorder.runtime.tensors.tensor_impl import (
    TensorBase,
    host_array,
    host_copy,
    standard_copy,
)

if TYPE_CHECKING:
    import numpy as np


def is_recorded(tensor: TensorBase) -> bool:
    """Whether autograd records, here and now, what is computed from the tensor."""
    if not tensor._requires_grad:
        return False
    below = AUTOGRAD_KEYS.bits & ~LOCAL.view.excluded & ~BACKEND_BITS == 0
    records = RECORDS.answer
    return not below and (records is None or records())


def shared_array(tensor: TensorBase, asked: str) -> "np.ndarray[Any, Any]":
    """The elements as an array that shares memory.

    Raises `NoData` on `meta`, `NotShareable` for a device's own memory or if the tensor
    requires grad, and `SubclassError` if its class has a handler.
    """
    _check_writable(tensor, asked)
    return host_array(tensor, asked)


def _check_writable(tensor: TensorBase, asked: str) -> None:
    """Refuse a tensor to whose elements nobody else may write.

    Raises `NotShareable` and `SubclassError`.
    """
    check_unhandled(tensor, asked)
    if is_recorded(tensor):
        raise NotShareable(code="NeedsDetach", asked=asked)


def forced_array(tensor: TensorBase) -> "np.ndarray[Any, Any]":
    """The elements as an array: shared memory on the host, a copy of a device's.

    Of a tensor that requires grad, too: autograd sees no write to it.  Nothing is
    resolved first, as conjugates and negatives are computed at once here.

    Raises `NoData` on `meta`, and `SubclassError` if its class has a handler.
    """
    check_unhandled(tensor, "numpy(force=True)")
    return host_copy(tensor, "numpy(force=True)")


def python_numbers(tensor: TensorBase) -> Any:
    """The elements as nested lists; of no dimensions, the number itself.

    Raises `NoData` on `meta`, and `SubclassError` if its class has a handler.
    """
    check_unhandled(tensor, "tolist()")
    if tensor.number is not None:
        return tensor.number
    return standard_copy(tensor, "tolist()").tolist()


def array_interface(tensor: TensorBase) -> dict[str, Any]:
    """NumPy's array interface, version 3.

    Raises AttributeError for memory that is not the host's and for bfloat16, which the
    interface cannot name; else as `shared_array`.
    """
    if not is_host(tensor.device.type) or tensor.dtype.name == "bfloat16":
        raise _absent(tensor, "__array_interface__")
    return shared_array(tensor, "__array_interface__").__array_interface__


def cuda_array_interface(tensor: TensorBase) -> dict[str, Any]:
    """The CUDA array interface, version 3 (numba's documentation of it).

    Raises AttributeError for a tensor that is not on a CUDA device and for bfloat16,
    which the interface cannot name, and `NotShareable` if it requires grad.
    """
    if tensor.device.type != "cuda" or tensor.dtype.name == "bfloat16":
        raise _absent(tensor, "__cuda_array_interface__")
    _check_writable(tensor, "__cuda_array_interface__")
    size = itemsize(tensor.dtype)
    plain = tensor.is_contiguous()
    return {
        "shape": tensor.shape,
        "typestr": numpy_dtype(tensor.dtype).str,
        "data": (tensor.data_ptr(), False),
        "strides": None if plain else tuple(step * size for step in tensor.strides),
        "version": 3,
    }


def _absent(tensor: TensorBase, name: str) -> AttributeError:
    return AttributeError(
        f"a tensor of {tensor.dtype} on {tensor.device} has no {name}",
        name=name,
        obj=tensor,
    )


# DLDeviceType of dlpack.h.
_CPU, _CUDA = 1, 2
# What the class of capsules is called; it has no name to import.
_CAPSULE = "PyCapsule"
# DLDataTypeCode of dlpack.h.
_UNSIGNED, _BFLOAT = 1, 4
# Capsule name -> where in its structure the code of the element type is, in bytes:
# before it, the tensor's data, device and ndim (20), and in the versioned structure
# version, context, deleter and flags (32).  From dlpack.h 1.0.
_LEGACY = b"dltensor"
_CODE_AT = {_LEGACY: 20, b"dltensor_versioned": 52}

_BFLOAT16 = DType.named("bfloat16")


def device_code(tensor: TensorBase) -> tuple[int, int]:
    """DLPack's device type and index.  Raises `NotShareable` for other devices."""
    device = tensor.device
    if is_host(device.type):
        return _CPU, 0
    if device.type == "cuda":
        return _CUDA, device.index or 0
    raise _refused(f"the protocol has no code for the device `{device}`", "")


def capsule(tensor: TensorBase, **asked: Any) -> Any:
    """A capsule that shares the tensor's memory; `asked` is the protocol's.

    Raises `NotShareable` for a tensor that requires grad or is not in host memory, and
    `SubclassError` if its class has a handler.
    """
    check_shareable(tensor)
    if device_code(tensor)[0] != _CPU:
        raise _refused(
            f"it is on `{tensor.device}`", "use its `__cuda_array_interface__`"
        )
    # A stream orders work on a device; the host has none.
    asked.pop("stream", None)
    elements = host_array(tensor, "__dlpack__()")
    if tensor.dtype is not _BFLOAT16:
        return elements.__dlpack__(**asked)
    found = elements.view("uint16").__dlpack__(**asked)
    _rewrite(found, _UNSIGNED, _BFLOAT)
    return found


def check_shareable(tensor: TensorBase) -> None:
    """Whether others may write to the tensor's memory, on whichever device.

    Raises `NotShareable` for one that requires grad, and `SubclassError`.
    """
    check_unhandled(tensor, "__dlpack__()")
    if is_recorded(tensor):
        raise _refused("it requires grad", "call `.detach()` on it first")


def dlpack_array(source: Any) -> "np.ndarray[Any, Any]":
    """The array that shares the memory of an object with `__dlpack__`, or a capsule.

    Raises `UnfitValue` for anything else, and for a capsule that was used.
    """
    import numpy as np

    kind = type(source).__name__
    if kind == _CAPSULE:
        source = _CapsuleSource(source)
    elif not hasattr(source, "__dlpack__"):
        raise UnfitValue(
            asked="from_dlpack",
            found=f"a {kind}",
            fits="an object with `__dlpack__`, or a capsule",
        )
    relay = _Relay(source)
    try:
        elements = np.from_dlpack(relay)
    except BaseException:
        relay.restore_code()
        raise
    if relay.legacy:
        elements = np.asarray(_Writable(elements))
    return elements.view(numpy_dtype(_BFLOAT16)) if relay.rewritten else elements


class _Writable:
    """The elements of an array that NumPy calls read-only, as an old capsule may be."""

    def __init__(self, elements: "np.ndarray[Any, Any]") -> None:
        self._elements = elements
        told = elements.__array_interface__
        self.__array_interface__ = {**told, "data": (told["data"][0], False)}


class _CapsuleSource:
    """A capsule as an object that gives it away, once."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __dlpack__(self, **_asked: Any) -> Any:
        return self.held

    def __dlpack_device__(self) -> tuple[int, int]:
        # NumPy reads the device in the capsule, and refuses all but the host.
        return _CPU, 0


class _Relay:
    """Passes a capsule on, its bfloat16 called uint16."""

    __slots__ = ("found", "legacy", "rewritten", "source")

    def __init__(self, source: Any) -> None:
        self.source = source
        self.found: Any = None
        self.rewritten = self.legacy = False

    def __dlpack__(self, **asked: Any) -> Any:
        try:
            found = self.source.__dlpack__(**asked)
        except TypeError:
            # A source of the protocol before 1.0 takes none of the newer options.
            found = self.source.__dlpack__()
        self.legacy = _capsule_name(found) == _LEGACY
        self.rewritten = _rewrite(found, _BFLOAT, _UNSIGNED)
        self.found = found
        return found

    def restore_code(self) -> None:
        """Leave a capsule that was refused as it was."""
        if self.rewritten:
            _rewrite(self.found, _UNSIGNED, _BFLOAT)

    def __dlpack_device__(self) -> Any:
        return self.source.__dlpack_device__()


def _capsule_name(found: Any) -> bytes:
    """The name of a capsule, which tells the version of the protocol."""
    from ctypes import c_char_p, py_object, pythonapi

    name_of = pythonapi.PyCapsule_GetName
    name_of.argtypes, name_of.restype = [py_object], c_char_p
    name: bytes = name_of(found)
    return name


def _rewrite(found: Any, old: int, new: int) -> bool:
    """Change the type code inside of an unused capsule; whether it was `old`."""
    from ctypes import POINTER, c_char_p, c_uint8, c_void_p, cast, py_object, pythonapi

    pointer_of = pythonapi.PyCapsule_GetPointer
    pointer_of.argtypes, pointer_of.restype = [py_object, c_char_p], c_void_p
    name = _capsule_name(found)
    if name not in _CODE_AT:
        raise UnfitValue(
            asked="from_dlpack",
            found=f"a capsule named {name.decode()!r}",
            fits="a capsule that nobody took yet",
        )
    code = cast(pointer_of(found, name) + _CODE_AT[name], POINTER(c_uint8))
    if code[0] != old:
        return False
    code[0] = new
    return True


def _refused(reason: str, remedy: str) -> NotShareable:
    return NotShareable(
        code="NotExportable", protocol="DLPack", reason=reason, remedy=remedy
    )
