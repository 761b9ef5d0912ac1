"""Construct tensors from parts: views, empty tensors, foreign arrays and numbers.

This module assigns the storage and the keys of a tensor.  `tensor`, which reads data of
any kind, is in `runtime.tensors.from_data`.

Rules:
- a view has the storage, the device and the keys of its base; a new tensor has the keys
  of its device, without those of autograd in inference mode;
- this module does not know autograd: a new view lacks a history; operators add one;
- `runtime.tensors.shape.check_bounds` checks the bounds of a shape from outside; a view
  of a checked tensor cannot leave its storage;
- an array on a CUDA device is adopted through the CUDA array interface, version 3
  (numba's documentation of it): the memory of device type `cuda` has a method
  `adopted(address, nbytes, owner, stream)`, which returns the bytes as an array and the
  index of their device; the owner lives as long as the array.
"""

from math import prod
from typing import TYPE_CHECKING, Any

from everyorder.runtime.base.hooks import TENSOR_OF_NUMBER
from everyorder.runtime.errors.tensor import (
    ArithmeticRefused,
    BadSize,
    NotShareable,
    OutOfMemory,
    UnfitValue,
)
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.tensors.dtype_info import (
    BUILTIN,
    Number,
    dtype_of,
    info,
    itemsize,
    numpy_dtype,
)
from everyorder.runtime.tensors.interop import (
    check_shareable,
    dlpack_array,
    warn_read_only,
    writable,
)
from everyorder.runtime.tensors.keys import (
    INFERRING,
    UNHANDLED,
    fresh_key_bits,
    inference,
    inference_keys_of,
    keys_of,
)
from everyorder.runtime.tensors.shape import contiguous_strides, is_contiguous, span
from everyorder.runtime.tensors.storage import (
    Storage,
    is_host,
    memory_of,
    resolve_device,
)
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import ensure_place

if TYPE_CHECKING:
    import numpy as np


Ints = tuple[int, ...]

CPU = Device("cpu")
# A Python number in place of a tensor has the widest dtype of its kind, so that no
# digit is lost.
_FLOAT64 = BUILTIN[float]
_INT64 = info(BUILTIN[int])


_new = object.__new__
_PLAIN = keys_of("cpu").bits
_INFERENCE = inference_keys_of("cpu").bits


def host_tensor(flat: Any, shape: Ints, dtype: DType) -> Tensor:
    """Return a new CPU tensor of `flat`, a fresh array that holds exactly its elements.

    Equals `Tensor(flat, shape, dtype, CPU, fresh_key_bits("cpu"))`, and is 100 ns
    faster: half of the cost of an instance is the call of its class.
    """
    tensor = _new(Tensor)
    tensor._flat = flat
    tensor._shape = shape
    tensor._dtype = dtype
    tensor._device = CPU
    tensor.key_bits = _INFERENCE if INFERRING and inference.active else _PLAIN
    tensor._place = None
    tensor._requires_grad = False
    tensor._history = None
    tensor.number = None
    return tensor


def view_of(
    base: Tensor, shape: Ints, strides: Ints, offset: int, dtype: DType | None = None
) -> Tensor:
    """Return a tensor on the storage of `base`; `offset` counts from its start.

    Strides and offset count elements of the view's own dtype.  No bounds are checked.
    """
    place = base._place or ensure_place(base)
    # Not by a call of the class, as in `host_tensor`: views are created all the time.
    view = _new(Tensor)
    view._flat = None
    view._shape = shape
    view._dtype = dtype or base._dtype
    view._device = base._device
    bits = base.key_bits
    # A view created below a handler is a plain tensor; the handler wraps it.
    view.key_bits = bits if type(base) is Tensor else bits & UNHANDLED
    view._place = place[0], offset, strides
    view._requires_grad = False
    view._history = None
    view.number = None
    return view


def place_on(
    storage: Storage,
    shape: Ints,
    strides: Ints,
    offset: int,
    dtype: DType | None = None,
    key_bits: int | None = None,
) -> Tensor:
    """Return a tensor on `storage`.

    `key_bits` defaults to the keys of the storage's device, `dtype` to its dtype.
    """
    device = storage.device
    bits = fresh_key_bits(device.type) if key_bits is None else key_bits
    tensor = Tensor(None, shape, dtype or storage.dtype, device, bits)
    tensor._place = storage, offset, strides
    return tensor


def empty_tensor(shape: Ints, dtype: DType, device: Device = CPU) -> Tensor:
    """Return a contiguous tensor with uninitialized elements.

    Raises:
        BadSize: a size is negative, or the strides of the sizes exceed 64 bits.
        UnfitValue: tensors do not support the dtype.
        DeviceUnavailable: the device cannot be used here.
        OutOfMemory: the device cannot hold the elements.
    """
    count = prod(shape)
    if shape and min(shape) < 0:
        raise BadSize(asked=shape, elements=count)
    if not count:
        contiguous_strides(shape)
    form = numpy_dtype(dtype)
    if device.type == "meta":
        flat = None
    else:
        if device is not CPU:
            device = resolve_device(device)
        try:
            flat = memory_of(device.type).empty(count, form, device.index)
        except (MemoryError, ValueError, OverflowError) as error:
            raise no_memory(shape, dtype, device) from error
    return Tensor(flat, shape, dtype, device, fresh_key_bits(device.type))


def no_memory(shape: Ints, dtype: DType, device: Device) -> OutOfMemory:
    """Return the error for a tensor that does not fit the memory of its device."""
    return OutOfMemory(
        code="NotEnoughMemory",
        shape=shape,
        dtype=str(dtype),
        device=str(device),
        needed=prod(shape) * itemsize(dtype),
    )


def empty_strided(
    shape: Ints, strides: Ints, dtype: DType, device: Device = CPU
) -> Tensor:
    """Return an uninitialized tensor with `strides`, on the smallest storage."""
    if is_contiguous(shape, strides):
        return empty_tensor(shape, dtype, device)
    base = empty_tensor((span(shape, strides),), dtype, device)
    return view_of(base, shape, strides, 0)


def empty_like_spec(
    like: Tensor,
    shape: Ints | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
) -> Tensor:
    """Return an uninitialized contiguous tensor, by default as `like`."""
    return empty_tensor(
        like.shape if shape is None else shape,
        like.dtype if dtype is None else dtype,
        like.device if device is None else device,
    )


def from_numpy(array: "np.ndarray[Any, Any]") -> Tensor:
    """Return a CPU tensor that shares the memory of a NumPy array of any strides.

    A read-only array is shared with a warning, `ReadOnlyMemory`.

    Raises:
        NotShareable: the array has negative strides or strides that are not whole
            elements, or is not in this machine's byte order.
        UnfitValue: `array` is not a NumPy array, or tensors do not support its dtype.
    """
    shared = share_array(array, read_only=True)
    if not array.flags.writeable:
        warn_read_only("from_numpy", stacklevel=2)
    return shared


def share_array(array: "np.ndarray[Any, Any]", *, read_only: bool = False) -> Tensor:
    """Return a tensor as `from_numpy` does; refuse a read-only array, or do not warn.

    Raises:
        NotShareable: the array is read-only and `read_only` is False; also as
            `from_numpy`.
        UnfitValue: as `from_numpy`.
    """
    if not hasattr(array, "flags"):
        raise UnfitValue(
            asked="from_numpy",
            found=f"a {type(array).__name__}",
            fits="a NumPy array",
            remedy="call `tensor` or `as_tensor`, which take other data",
        )
    import numpy as np

    # Not a subclass: `np.matrix` stays two-dimensional in every reshape.
    array = np.asarray(array)
    dtype = dtype_of(array.dtype.newbyteorder("="))
    if read_only and not array.flags.writeable:
        array = writable(array)
    shape, bits = array.shape, fresh_key_bits("cpu")
    reason = unshareable(array)
    if reason is not None:
        raise NotShareable(reason=reason, shape=shape, dtype=str(array.dtype))
    if array.flags.c_contiguous:
        return Tensor(array.reshape(-1), shape, dtype, CPU, bits)
    size = array.itemsize
    strides = tuple(stride // size for stride in array.strides)
    count = span(shape, strides)
    from numpy.lib.stride_tricks import as_strided

    covering = as_strided(array, (count,), (size,))
    return place_on(Storage(covering, CPU, dtype, count), shape, strides, 0)


def from_flat(flat: "np.ndarray[Any, Any]", shape: Ints, device: Device) -> Tensor:
    """Return a tensor of a 1-D host array on `device`; host devices share the memory.

    On `meta`, the tensor has only the shape and the dtype.
    """
    dtype = dtype_of(flat.dtype)
    place = resolve_device(device)
    stored = None
    if place.type != "meta":
        stored = memory_of(place.type).from_numpy(flat, place.index)
    return Tensor(stored, shape, dtype, place, fresh_key_bits(place.type))


def wrap_number(number: Number, device: Device = CPU) -> Tensor:
    """Return a 0-dim tensor for a Python number, which does not widen other dtypes.

    Raises:
        ArithmeticRefused: the number is an int outside of int64.
    """
    kind: Any = type(number)
    dtype = BUILTIN.get(kind)
    if kind is float and device is CPU:
        # The most frequent case: a float on the CPU cannot fail.
        tensor = host_tensor(None, (), _FLOAT64)
        tensor.number = number
        return tensor
    if dtype is None:
        # Subclasses, such as NumPy's float64 and enumerations.
        kind = next(base for base in BUILTIN if isinstance(number, base))
        number, dtype = kind(number), BUILTIN[kind]
    if kind is int and not _INT64.smallest <= number <= _INT64.largest:  # type: ignore[operator]  # it is an int
        raise too_large(int(number), dtype)  # type: ignore[arg-type]  # as above
    if is_host(device.type):
        tensor = Tensor(None, (), dtype, device, fresh_key_bits(device.type))
    else:
        import numpy as np

        tensor = from_flat(np.array([number], numpy_dtype(dtype)), (), device)
    tensor.number = number
    return tensor


def too_large(number: int, dtype: DType) -> ArithmeticRefused:
    """Return the error for a `number` outside of an integer dtype."""
    # Python refuses to print thousands of digits; a reader needs the magnitude only.
    text = str(number) if number.bit_length() < 512 else f"{number.bit_length()} bits"
    facts = info(dtype)
    return ArithmeticRefused(
        code="NumberTooLarge",
        value=text,
        dtype=dtype.name,
        smallest=int(facts.smallest),
        largest=int(facts.largest),
    )


def resize_empty(tensor: Tensor, shape: Ints) -> None:
    """Resize a tensor without elements, uninitialized; for `out=`.

    Raises:
        BadSize: the tensor has elements.
    """
    if tensor.numel():
        raise BadSize(code="NoElementsLeft", shape=tensor.shape, asked=shape)
    place, count = tensor._place, prod(shape)
    if place is not None and not place[0].count:
        storage = place[0]
        unit = itemsize(storage.dtype)
        storage.grow((count * itemsize(tensor.dtype) + unit - 1) // unit)
        tensor._flat, tensor._shape = None, shape
        tensor._place = place[0], 0, contiguous_strides(shape)
        return
    fresh = empty_tensor(shape, tensor.dtype, tensor.device)
    tensor._flat, tensor._shape, tensor._place = fresh._flat, shape, None


def unshareable(array: "np.ndarray[Any, Any]") -> str | None:
    """Return the reason why a tensor cannot share the memory of an array, or None."""
    if not array.flags.writeable:
        return "read-only"
    if not array.dtype.isnative:
        return "byte order"
    if array.size and min(array.strides, default=0) < 0:
        return "negative stride"
    if array.size and any(stride % array.itemsize for stride in array.strides):
        return "uneven stride"
    return None


def from_dlpack(
    source: Any,
    *,
    device: Device | str | None = None,
    copy: bool | None = None,
) -> Tensor:
    """Return a tensor on the memory of a capsule or an object with `__dlpack__`.

    The result is on the CPU, or on the device of `source` if that is a `Tensor`.
    Errors of the exporter pass through.  Read-only memory is shared with a warning,
    `ReadOnlyMemory`.

    Args:
        source: a capsule, or an object with `__dlpack__`.
        device: the device of the result; None for that of the memory.
        copy: True for a copy, False for none, None for one if the device needs it.

    Raises:
        UnfitValue: `source` is neither, or `copy` is something else.
        UnknownDevice: `device` is not a device.
        NotShareable: as in `from_numpy`, or `source` is a `Tensor` that requires grad,
            or `copy` is False and the memory is on another device.
        SubclassError: `source` is a `Tensor` whose class has a handler.
    """
    check_copy("from_dlpack", copy)
    place = None if device is None else resolve_device(device)
    shared, read_only = share_dlpack(source, copy)
    if place not in (None, shared.device):
        if copy is False:
            raise NotShareable(
                code="CopyNeeded",
                asked="from_dlpack(copy=False)",
                reason=f"it is on {shared.device}, not on {place}",
            )
        return shared.to(place)
    if copy:
        return shared.clone()
    if read_only:
        warn_read_only("from_dlpack", stacklevel=2)
    return shared


def share_dlpack(source: Any, copy: bool | None = None) -> tuple[Tensor, bool]:
    """Return a tensor as `from_dlpack`, and whether its memory is read-only."""
    if isinstance(source, Tensor):
        check_shareable(source)
        return view_of(source, source.shape, source.strides, source.offset), False
    elements = dlpack_array(source, copy)
    return share_array(elements, read_only=True), not elements.flags.writeable


def check_copy(call: str, copy: object) -> None:
    """Raise `UnfitValue` if `copy` is not True, False or None."""
    if copy is not None and not isinstance(copy, bool):
        raise UnfitValue(
            asked=f"{call}(copy=...)",
            found=repr(copy)[:60],
            fits="True, False or None",
        )


TENSOR_OF_NUMBER.set(wrap_number)


def from_cuda_array(source: Any) -> Tensor:
    """Return a CUDA tensor that shares the memory of `__cuda_array_interface__`.

    The elements are copied if they are read-only, in another byte order, or if a stride
    is negative or not a whole number of elements.  Waits for the stream of the object.

    Raises:
        NotShareable: the array has a mask.
        UnfitValue: tensors do not support the dtype.
        DeviceUnavailable: CUDA cannot be used here.
    """
    import numpy as np

    interface = source.__cuda_array_interface__
    shape, form = tuple(interface["shape"]), np.dtype(interface["typestr"])
    if interface.get("mask") is not None:
        raise NotShareable(code="MaskedArray", shape=shape)
    native = form.newbyteorder("=")
    dtype, size = dtype_of(native), form.itemsize
    memory: Any = memory_of("cuda")
    if not prod(shape):
        return empty_tensor(shape, dtype, Device("cuda"))
    steps = interface.get("strides") or tuple(
        size * n for n in contiguous_strides(shape)
    )
    reach = [step * (extent - 1) for step, extent in zip(steps, shape, strict=True)]
    before = -sum(way for way in reach if way < 0)
    nbytes = before + sum(way for way in reach if way > 0) + size
    address, fixed = interface["data"]
    raw, index = memory.adopted(
        address - before, nbytes, source, interface.get("stream")
    )
    device = Device("cuda", index)
    whole = min(steps, default=0) >= 0 and not any(step % size for step in steps)
    if whole and form.isnative and not fixed:
        storage = Storage(raw.view(form), device, dtype, nbytes // size)
        return place_on(storage, shape, tuple(step // size for step in steps), 0)
    elements = np.ndarray(shape, form, memory.to_numpy(raw), before, steps)
    return from_flat(elements.astype(native).flatten(), shape, device)
