"""Exchange of elements with other libraries: NumPy, the array protocols, DLPack.

Only host memory is exported as a NumPy array that shares memory.  A tensor that
requires grad is exported only where nothing is recorded, as in `no_grad` and in
kernels: autograd cannot see a write to the array.  If a tensor cannot serve a protocol,
it does not have the attribute, so that callers fall back to the next protocol.

NumPy creates and reads DLPack's capsules, and its arrays share the memory; so a
capsule's owner outlives it, and its deleter is C.  NumPy does not know bfloat16: such
elements pass through it as uint16, and the type code inside the capsule is rewritten on
export and import.  Only host memory is exported; CUDA tensors have the CUDA array
interface.

Rules: a read-only array is imported with a warning (`ReadOnlyMemory`): elements of a
tensor may be written to, and nothing would stop the write.  An array that an operator
is about to write to is refused.  A capsule of the protocol before 1.0 does not say if
it is read-only: it is treated as writable, as everywhere but in NumPy.
"""

import warnings
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
    """Return True if autograd records, in this thread's state, uses of the tensor."""
    if not tensor._requires_grad:
        return False
    below = AUTOGRAD_KEYS.bits & ~LOCAL.view.excluded & ~BACKEND_BITS == 0
    records = RECORDS.answer
    return not below and (records is None or records())


def shared_array(tensor: TensorBase, operation: str) -> "np.ndarray[Any, Any]":
    """Return the elements as an array that shares memory.

    Raises:
        NoData: the tensor is on `meta`.
        NotShareable: the elements are in a device's memory, or the tensor requires
            grad.
        SubclassError: the class of the tensor has a handler.
    """
    _check_writable(tensor, operation)
    return host_array(tensor, operation)


def _check_writable(tensor: TensorBase, operation: str) -> None:
    """Refuse a tensor whose elements other code must not write to.

    Raises:
        NotShareable: autograd records uses of the tensor.
        SubclassError: the class of the tensor has a handler.
    """
    check_unhandled(tensor, operation)
    if is_recorded(tensor):
        raise NotShareable(code="NeedsDetach", asked=operation)


def forced_array(tensor: TensorBase) -> "np.ndarray[Any, Any]":
    """Return the elements as an array: shared memory on the host, a copy of a device's.

    Works for a tensor that requires grad, too; autograd does not see a write to the
    array.  There is nothing to resolve, because conjugates and negatives are computed
    eagerly.

    Raises:
        NoData: the tensor is on `meta`.
        SubclassError: the class of the tensor has a handler.
    """
    check_unhandled(tensor, "numpy(force=True)")
    return host_copy(tensor, "numpy(force=True)")


def python_numbers(tensor: TensorBase) -> Any:
    """Return the elements as nested lists, or the number of a 0-dim tensor.

    Raises:
        NoData: the tensor is on `meta`.
        SubclassError: the class of the tensor has a handler.
    """
    check_unhandled(tensor, "tolist()")
    if tensor.number is not None:
        return tensor.number
    return standard_copy(tensor, "tolist()").tolist()


def array_interface(tensor: TensorBase) -> dict[str, Any]:
    """Return NumPy's array interface, version 3.

    Raises:
        AttributeError: the elements are not in host memory, or are bfloat16, which the
            interface cannot express; other errors as in `shared_array`.
    """
    if not is_host(tensor.device.type) or tensor.dtype.name == "bfloat16":
        raise _absent(tensor, "__array_interface__")
    return shared_array(tensor, "__array_interface__").__array_interface__


def cuda_array_interface(tensor: TensorBase) -> dict[str, Any]:
    """Return the CUDA array interface, version 3 (numba's documentation of it).

    Raises:
        AttributeError: the tensor is not on a CUDA device, or is bfloat16, which the
            interface cannot express.
        NotShareable: the tensor requires grad.
        SubclassError: the class of the tensor has a handler.
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
# The name of the class of capsules, which cannot be imported.
_CAPSULE = "PyCapsule"
# DLDataTypeCode of dlpack.h.
_UNSIGNED, _BFLOAT = 1, 4
# Capsule name -> the byte offset of the element type code in its structure: after the
# tensor's data, device and ndim (20), and in the versioned structure also after
# version, context, deleter and flags (32).  From dlpack.h 1.0.
_LEGACY = b"dltensor"
_CODE_AT = {_LEGACY: 20, b"dltensor_versioned": 52}

_BFLOAT16 = DType.named("bfloat16")


def device_code(tensor: TensorBase) -> tuple[int, int]:
    """Return DLPack's device type and index.

    Raises:
        NotShareable: DLPack does not define a code for the device.
    """
    device = tensor.device
    if is_host(device.type):
        return _CPU, 0
    if device.type == "cuda":
        return _CUDA, device.index or 0
    raise _refused(f"the protocol has no code for the device `{device}`", "")


def capsule(tensor: TensorBase, **options: Any) -> Any:
    """Return a capsule that shares the tensor's memory; `options` are the protocol's.

    Raises:
        NotShareable: the tensor requires grad, or is not in host memory.
        SubclassError: the class of the tensor has a handler.
    """
    check_shareable(tensor)
    if device_code(tensor)[0] != _CPU:
        raise _refused(
            f"it is on `{tensor.device}`", "use its `__cuda_array_interface__`"
        )
    # A stream orders work on a device; the host does not have streams.
    options.pop("stream", None)
    elements = host_array(tensor, "__dlpack__()")
    if tensor.dtype is not _BFLOAT16:
        return elements.__dlpack__(**options)
    packed = elements.view("uint16").__dlpack__(**options)
    _rewrite(packed, _UNSIGNED, _BFLOAT)
    return packed


def check_shareable(tensor: TensorBase) -> None:
    """Refuse a tensor whose memory other code must not write to, on any device.

    Raises:
        NotShareable: autograd records uses of the tensor.
        SubclassError: the class of the tensor has a handler.
    """
    check_unhandled(tensor, "__dlpack__()")
    if is_recorded(tensor):
        raise _refused("it requires grad", "call `.detach()` on it first")


def dlpack_array(source: Any, copy: bool | None = None) -> "np.ndarray[Any, Any]":
    """Return the array on the memory of a capsule or an object with `__dlpack__`.

    With `copy` False, the source is asked to raise instead of making a copy.

    Raises:
        UnfitValue: `source` is neither, or is a used capsule.
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
    relay = _Relay(source, copy)
    try:
        elements = np.from_dlpack(relay)
    except BaseException:
        relay.restore_code()
        raise
    if relay.legacy:
        elements = writable(elements)
    return elements.view(numpy_dtype(_BFLOAT16)) if relay.rewritten else elements


class ReadOnlyMemory(UserWarning):
    """A tensor shares memory that is marked read-only: do not write to the tensor.

    `runtime.tensor(array)` makes a copy, which can be written to.
    """


def warn_read_only(asked: str, *, stacklevel: int) -> None:
    """Warn that a tensor shares read-only memory; `stacklevel` as in `warnings`."""
    warnings.warn(
        f"`{asked}` shares the memory of a read-only array, and tensors are writable: "
        "a write to the tensor changes the array. "
        "to do: do not write to it, or copy the array: `runtime.tensor(array)`",
        ReadOnlyMemory,
        stacklevel=stacklevel + 1,
    )


def writable(elements: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return a writable view of an array that NumPy marks read-only."""
    import numpy as np

    # The interface has no name for dtypes that are not NumPy's own.
    return np.asarray(_Writable(elements)).view(elements.dtype)


class _Writable:
    """Offers the memory of an array, which it keeps alive, as writable."""

    def __init__(self, elements: "np.ndarray[Any, Any]") -> None:
        self._elements = elements
        interface = elements.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


class _CapsuleSource:
    """A capsule as a DLPack source, usable once."""

    __slots__ = ("capsule",)

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_asked: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        # NumPy reads the device in the capsule, and refuses all but the host.
        return _CPU, 0


class _Relay:
    """A DLPack source that passes a capsule on, with bfloat16 renamed to uint16."""

    __slots__ = ("capsule", "legacy", "options", "rewritten", "source")

    def __init__(self, source: Any, copy: bool | None) -> None:
        self.source = source
        self.options = {} if copy is not False else {"copy": False}
        self.capsule: Any = None
        self.rewritten = self.legacy = False

    def __dlpack__(self, **options: Any) -> Any:
        try:
            capsule = self.source.__dlpack__(**{**options, **self.options})
        except TypeError:
            # A source of the protocol before 1.0 has none of the newer options.
            capsule = self.source.__dlpack__()
        self.legacy = _capsule_name(capsule) == _LEGACY
        self.rewritten = _rewrite(capsule, _BFLOAT, _UNSIGNED)
        self.capsule = capsule
        return capsule

    def restore_code(self) -> None:
        """Restore the type code of a capsule that NumPy refused."""
        if self.rewritten:
            _rewrite(self.capsule, _UNSIGNED, _BFLOAT)

    def __dlpack_device__(self) -> Any:
        return self.source.__dlpack_device__()


def _capsule_name(capsule: Any) -> bytes:
    """Return the name of a capsule, which identifies the version of the protocol."""
    from ctypes import c_char_p, py_object, pythonapi

    name_of = pythonapi.PyCapsule_GetName
    name_of.argtypes, name_of.restype = [py_object], c_char_p
    name: bytes = name_of(capsule)
    return name


def _rewrite(capsule: Any, old: int, new: int) -> bool:
    """Change the type code in an unused capsule; return True if it was `old`."""
    from ctypes import POINTER, c_char_p, c_uint8, c_void_p, cast, py_object, pythonapi

    pointer_of = pythonapi.PyCapsule_GetPointer
    pointer_of.argtypes, pointer_of.restype = [py_object, c_char_p], c_void_p
    name = _capsule_name(capsule)
    if name not in _CODE_AT:
        raise UnfitValue(
            asked="from_dlpack",
            found=f"a capsule named {name.decode()!r}",
            fits="an unused capsule",
        )
    code = cast(pointer_of(capsule, name) + _CODE_AT[name], POINTER(c_uint8))
    if code[0] != old:
        return False
    code[0] = new
    return True


def _refused(reason: str, remedy: str) -> NotShareable:
    return NotShareable(
        code="NotExportable", protocol="DLPack", reason=reason, remedy=remedy
    )
