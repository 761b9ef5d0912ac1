"""`asarray` and `frombuffer`: tensors on memory of others, or with a copy of it.

| `asarray` of                    | shares memory         | without `copy`            |
|---------------------------------|-----------------------|---------------------------|
| a tensor                        | returned itself       | converted if it has to be |
| an array, an object of DLPack   | if no element changes | converted if it has to be |
| bytes, a bytearray, a memoryview| read as the dtype     | shared                    |
| of bytes                        |                       |                           |
| numbers and lists               | never                 | copied                    |

Rules:
- `copy=True` always copies, `copy=False` shares or raises, None copies if needed;
- a tensor keeps its history;
- bytes are uint8 without a dtype, and are never converted: `frombuffer` reads them;
- a memoryview of other elements than bytes is an array of these;
- memory that is read-only is shared with a warning, `ReadOnlyMemory`.
"""

from typing import Any

from everyorder.runtime.errors.tensor import NotShareable, UnfitValue
from everyorder.runtime.schema.call_errors import checked
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.tensors.construction import (
    check_copy,
    share_array,
    share_dlpack,
)
from everyorder.runtime.tensors.dtype_info import NUMBERS, numpy_dtype, parse_dtype
from everyorder.runtime.tensors.from_data import shared_or_copied, tensor
from everyorder.runtime.tensors.interop import warn_read_only
from everyorder.runtime.tensors.storage import resolve_device
from everyorder.runtime.tensors.tensor import Tensor

# What is always copied.
_COPIED = (*NUMBERS, list, tuple)
# Formats of a memoryview whose elements are bytes.
_BYTES = ("B", "c")
_UINT8 = DType.named("uint8")


@checked
def asarray(
    obj: Any,
    *,
    dtype: DType | str | None = None,
    device: Device | str | None = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return `obj` as a tensor: itself, on its memory, or a copy; see the module.

    Args:
        obj: a tensor, an array, an object with `__dlpack__`, bytes, or nested lists.
        dtype: the dtype of the result; None for that of the data.
        device: the device of the result; None for that of the data.
        copy: True for a copy, False for none, None for one if it is needed.
        requires_grad: make the result require grad.

    Raises:
        NotShareable: `copy` is False and the memory cannot be shared.
        UnfitValue, ArithmeticRefused, BadSize: as for `tensor`.
    """
    check_copy("asarray", copy)
    target = None if dtype is None else parse_dtype(dtype)
    place = None if device is None else resolve_device(device)
    source, shared, read_only = _source(obj, target, copy)
    result = source
    if target not in (None, result.dtype) or place not in (None, result.device):
        result = result.to(place or result.device, target or result.dtype)
        shared = False
    elif copy and shared:
        result = result.clone()
    if copy is False and not shared:
        raise NotShareable(
            code="CopyNeeded",
            asked="asarray(copy=False)",
            reason=_reason(obj, source, result),
        )
    if read_only and result is source:
        warn_read_only("asarray", stacklevel=3)
    if requires_grad and not result.requires_grad:
        result.requires_grad_()
    return result


def _source(
    obj: Any, target: DType | None, copy: bool | None
) -> tuple[Tensor, bool, bool]:
    """Return the data as a tensor; whether that shares its memory, and cannot write."""
    if isinstance(obj, Tensor):
        return obj, True, False
    if _is_bytes(obj):
        result, read_only = _on_buffer("asarray", obj, target or _UINT8, -1, 0)
        return result, True, read_only
    if isinstance(obj, _COPIED):
        return tensor(obj, dtype=target), False, False
    if hasattr(obj, "__dlpack__") and not hasattr(obj, "__array_interface__"):
        result, read_only = share_dlpack(obj, copy)
        return result, True, read_only
    import numpy as np

    if isinstance(obj, np.generic):
        return tensor(obj, dtype=target), False, False
    result, read_only = shared_or_copied(obj, None, None, share_read_only=True)
    shared = result.device.type != "cpu" or result.data_ptr() == _address(obj)
    return result, shared, read_only


def _is_bytes(obj: Any) -> bool:
    """Return True for bytes, a bytearray, or a memoryview of bytes."""
    if isinstance(obj, memoryview):
        return obj.format in _BYTES
    return isinstance(obj, (bytes, bytearray))


def _address(obj: Any) -> int:
    """Return the address of the elements of an array, 0 for one without elements."""
    import numpy as np

    elements = np.asarray(obj)
    return elements.ctypes.data if elements.size else 0


def _reason(obj: Any, source: Tensor, result: Tensor) -> str:
    """Return why `result` does not share the memory of `obj`."""
    if isinstance(obj, _COPIED):
        return "numbers and lists are copied"
    if result.dtype is not source.dtype:
        return f"its elements are {source.dtype}, not {result.dtype}"
    if result.device is not source.device:
        return f"it is on {source.device}, not on {result.device}"
    return "a tensor cannot have its form, by strides or byte order"


@checked
def frombuffer(
    buffer: Any,
    *,
    dtype: DType | str,
    count: int = -1,
    offset: int = 0,
    requires_grad: bool = False,
) -> Tensor:
    """Return a 1-D tensor on the bytes of an object with Python's buffer protocol.

    Args:
        buffer: a bytearray, bytes, an `array.array`, a memoryview, ...; memory that is
            read-only is shared with a warning.
        dtype: how the bytes are read.
        count: the number of elements; negative for all.
        offset: the number of bytes to skip.
        requires_grad: make the result require grad.

    Raises:
        UnfitValue: `buffer` is not such an object, or it does not have these elements;
            the dtype is not supported, or does not have gradients; or bytes that are
            read as bool are neither 0 nor 1.
    """
    kind = parse_dtype(dtype)
    result, read_only = _on_buffer("frombuffer", buffer, kind, count, offset)
    if read_only:
        warn_read_only("frombuffer", stacklevel=3)
    if requires_grad:
        result.requires_grad_()
    return result


def _on_buffer(
    asked: str, buffer: Any, kind: DType, count: int, offset: int
) -> tuple[Tensor, bool]:
    """Return a tensor on the bytes of a buffer, and whether these are read-only."""
    import numpy as np

    form = numpy_dtype(kind)
    try:
        view = memoryview(buffer)
        flat = np.frombuffer(view, np.uint8) if view.nbytes else np.empty(0, np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        raise UnfitValue(
            asked=asked,
            found=f"a {type(buffer).__name__}: {error}",
            fits="an object with a contiguous buffer, such as a bytearray",
        ) from None
    size, length = form.itemsize, flat.size
    if not 0 <= offset < length or not count:
        part = f"offset={offset} and count={count}, of {length} bytes"
        raise _misfit(asked, part, length, size)
    rest = length - offset
    if count < 0 and rest % size:
        part = f"{rest} bytes behind the offset, not a multiple of {size}"
        raise _misfit(asked, part, length, size)
    wanted = rest // size if count < 0 else count
    if wanted * size > rest:
        part = f"{wanted} elements of {size} bytes, of {rest} behind the offset"
        raise _misfit(asked, part, length, size)
    elements = flat[offset : offset + wanted * size].view(form)
    if kind.name == "bool" and elements.view(np.uint8).max() > 1:
        raise UnfitValue(
            asked=f"{asked}(dtype='bool')",
            found=f"the byte {elements.view(np.uint8).max()}",
            fits="bytes that are 0 or 1",
            remedy="read them as uint8, and compare with 0",
        )
    if not elements.flags.aligned:
        raise UnfitValue(
            asked=asked,
            found=f"offset={offset}",
            fits=f"an offset at which {kind} is aligned, by {size} bytes",
        )
    return share_array(elements, read_only=True), view.readonly


def _misfit(asked: str, part: str, length: int, size: int) -> UnfitValue:
    return UnfitValue(
        asked=asked,
        found=part,
        fits=f"an offset below {length} bytes, and elements of {size} bytes behind it",
    )
