"""Making tensors of parts: views, empty ones, others' arrays, numbers.

Here a tensor comes to its storage and its keys.  `tensor`, which reads data of any
kind, is in `runtime.tensors.from_data`.

Rules:
- a view has the storage, the device and the keys of its base; a new tensor has the keys
  of its device, less those of autograd in inference mode;
- nothing here knows autograd: a view made here has no history; operators give it one;
- bounds are checked by `runtime.tensors.shape.check_bounds`, where a shape comes from
  outside; a view of a checked tensor cannot leave its storage;
- an array on a CUDA device is taken by the CUDA array interface, version 3 (numba's
  documentation of it): the memory of device type `cuda` has a method
  `adopted(address, nbytes, owner, stream)`, which gives the bytes as an array and the
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
from everyorder.runtime.tensors.interop import check_shareable, dlpack_array
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
# A Python number that stands where a tensor does is of the widest dtype of its kind, so
# that nothing of it is lost.
_FLOAT64 = BUILTIN[float]
_INT64 = info(BUILTIN[int])


_new = Tensor.__new__
_PLAIN = keys_of("cpu").bits
_INFERENCE = inference_keys_of("cpu").bits


def host_tensor(flat: Any, shape: Ints, dtype: DType) -> Tensor:
    """A new CPU tensor of a fresh array that holds exactly its elements.

    What `Tensor(flat, shape, dtype, CPU, fresh_key_bits("cpu"))` makes, 100 ns sooner:
    half of what a class costs is to be called.
    """
    made = _new(Tensor)
    made._flat = flat
    made._shape = shape
    made._dtype = dtype
    made._device = CPU
    made.key_bits = _INFERENCE if INFERRING and inference.active else _PLAIN
    made._place = None
    made._requires_grad = False
    made._history = None
    made.number = None
    return made


def view_of(
    base: Tensor, shape: Ints, strides: Ints, offset: int, dtype: DType | None = None
) -> Tensor:
    """A tensor on the storage of `base`; `offset` counts from the storage's start.

    Strides and offset count elements of the view's own dtype.  Nothing is checked.
    """
    place = base._place or ensure_place(base)
    # As in `host_tensor`: views are made all the time.
    made = _new(Tensor)
    made._flat = None
    made._shape = shape
    made._dtype = dtype or base._dtype
    made._device = base._device
    bits = base.key_bits
    # What is made below a handler is a plain tensor; the handler makes its own of it.
    made.key_bits = bits if type(base) is Tensor else bits & UNHANDLED
    made._place = place[0], offset, strides
    made._requires_grad = False
    made._history = None
    made.number = None
    return made


def place_on(
    storage: Storage,
    shape: Ints,
    strides: Ints,
    offset: int,
    dtype: DType | None = None,
    key_bits: int | None = None,
) -> Tensor:
    """A tensor on a given storage, with the keys of its device if none are given."""
    device = storage.device
    bits = fresh_key_bits(device.type) if key_bits is None else key_bits
    made = Tensor(None, shape, dtype or storage.dtype, device, bits)
    made._place = storage, offset, strides
    return made


def empty_tensor(shape: Ints, dtype: DType, device: Device = CPU) -> Tensor:
    """A contiguous tensor whose elements have any value.

    Raises `BadSize` for a negative size, `BadSize` for sizes beside a 0 that no
    memory could have, `UnfitValue`, `DeviceUnavailable`, and `OutOfMemory`.
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
    """The error that a tensor of that shape cannot be held."""
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
    """A tensor of any values with the strides given, on a storage that just fits."""
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
    """A contiguous tensor of any values, as `like` where nothing else is said."""
    return empty_tensor(
        like.shape if shape is None else shape,
        like.dtype if dtype is None else dtype,
        like.device if device is None else device,
    )


def from_numpy(array: "np.ndarray[Any, Any]") -> Tensor:
    """A CPU tensor that shares the memory of a NumPy array, whatever its strides.

    Raises `NotShareable` for an array that is read-only, runs backwards, or is not made
    of whole elements in this machine's byte order, `UnfitValue`
    for what is no array.
    """
    if not hasattr(array, "flags"):
        raise UnfitValue(
            asked="from_numpy",
            found=f"a {type(array).__name__}",
            fits="a NumPy array",
            remedy="call `tensor` or `as_tensor`, which take other data",
        )
    import numpy as np

    # Not a subclass: a matrix has two dimensions whatever it is reshaped to.
    array = np.asarray(array)
    dtype = dtype_of(array.dtype.newbyteorder("="))
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
    """A tensor on `device` of a 1-D array of the host: shared if the host holds it.

    On `meta` only shape and dtype are kept.
    """
    dtype = dtype_of(flat.dtype)
    place = resolve_device(device)
    held = None
    if place.type != "meta":
        held = memory_of(place.type).from_numpy(flat, place.index)
    return Tensor(held, shape, dtype, place, fresh_key_bits(place.type))


def wrap_number(number: Number, device: Device = CPU) -> Tensor:
    """The 0-dim tensor that stands for a Python number and does not widen others.

    Raises `ArithmeticRefused` for an int beyond int64.
    """
    kind: Any = type(number)
    dtype = BUILTIN.get(kind)
    if kind is float and device is CPU:
        # The most frequent one: nothing can be wrong with it.
        made = host_tensor(None, (), _FLOAT64)
        made.number = number
        return made
    if dtype is None:
        # Subclasses, such as NumPy's float64 and enumerations.
        kind = next(base for base in BUILTIN if isinstance(number, base))
        number, dtype = kind(number), BUILTIN[kind]
    if kind is int and not _INT64.smallest <= number <= _INT64.largest:  # type: ignore[operator]  # it is an int
        raise too_large(int(number), dtype)  # type: ignore[arg-type]  # as above
    if is_host(device.type):
        made = Tensor(None, (), dtype, device, fresh_key_bits(device.type))
    else:
        import numpy as np

        made = from_flat(np.array([number], numpy_dtype(dtype)), (), device)
    made.number = number
    return made


def too_large(number: int, dtype: DType) -> ArithmeticRefused:
    """The error that `number` does not fit an integer dtype."""
    # Python refuses to print thousands of digits, and nobody reads a hundred.
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
    """Give a tensor without elements another shape, its values any; for `out=`.

    Raises `BadSize` if it has elements.
    """
    if tensor.numel():
        raise BadSize(code="NoElementsLeft", shape=tensor.shape, asked=shape)
    place, count = tensor._place, prod(shape)
    if place is not None and not place[0].count:
        storage = place[0]
        held = itemsize(storage.dtype)
        storage.grow((count * itemsize(tensor.dtype) + held - 1) // held)
        tensor._flat, tensor._shape = None, shape
        tensor._place = place[0], 0, contiguous_strides(shape)
        return
    made = empty_tensor(shape, tensor.dtype, tensor.device)
    tensor._flat, tensor._shape, tensor._place = made._flat, shape, None


def unshareable(array: "np.ndarray[Any, Any]") -> str | None:
    """The reason for which no tensor shares the memory of an array, or None."""
    if not array.flags.writeable:
        return "read-only"
    if not array.dtype.isnative:
        return "byte order"
    if array.size and min(array.strides, default=0) < 0:
        return "negative stride"
    if array.size and any(stride % array.itemsize for stride in array.strides):
        return "uneven stride"
    return None


def from_dlpack(source: Any) -> Tensor:
    """A tensor that shares the memory of a capsule or an object with `__dlpack__`.

    It is on the CPU, or where `source` is, if that is a tensor of ours.  Raises
    `UnfitValue` for neither, `NotShareable` as `from_numpy` does, and whatever the
    exporter raises; a tensor of ours raises `NotShareable` and `SubclassError`.
    """
    if isinstance(source, Tensor):
        check_shareable(source)
        return view_of(source, source.shape, source.strides, source.offset)
    return from_numpy(dlpack_array(source))


TENSOR_OF_NUMBER.set(wrap_number)


def from_cuda_array(source: Any) -> Tensor:
    """A CUDA tensor of an object with `__cuda_array_interface__`, sharing its memory.

    The elements are copied if they are read-only, in another byte order, or at steps
    that are negative or no whole elements.  Work that the object's stream has to do is
    waited for.  Raises `NotShareable`, `UnfitValue` and `DeviceUnavailable`.
    """
    import numpy as np

    told = source.__cuda_array_interface__
    shape, form = tuple(told["shape"]), np.dtype(told["typestr"])
    if told.get("mask") is not None:
        raise NotShareable(code="MaskedArray", shape=shape)
    native = form.newbyteorder("=")
    dtype, size = dtype_of(native), form.itemsize
    memory: Any = memory_of("cuda")
    if not prod(shape):
        return empty_tensor(shape, dtype, Device("cuda"))
    steps = told.get("strides") or tuple(size * n for n in contiguous_strides(shape))
    reach = [step * (extent - 1) for step, extent in zip(steps, shape, strict=True)]
    before = -sum(way for way in reach if way < 0)
    nbytes = before + sum(way for way in reach if way > 0) + size
    address, fixed = told["data"]
    raw, index = memory.adopted(address - before, nbytes, source, told.get("stream"))
    device = Device("cuda", index)
    whole = min(steps, default=0) >= 0 and not any(step % size for step in steps)
    if whole and form.isnative and not fixed:
        held = Storage(raw.view(form), device, dtype, nbytes // size)
        return place_on(held, shape, tuple(step // size for step in steps), 0)
    elements = np.ndarray(shape, form, memory.to_numpy(raw), before, steps)
    return from_flat(elements.astype(native).flatten(), shape, device)
