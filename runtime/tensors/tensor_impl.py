"""The parts of a tensor: its slots, and the location of its elements.

Most tensors are fresh, contiguous and never viewed.  So a tensor starts with only its
array `_flat`; the storage that views share is created at the first request.  Two slots
locate the elements:

    `_flat`   the elements in row-major order as one 1-D array, or None: not computed
              yet, not contiguous, or without elements (`meta`)
    `_place`  None: contiguous, the only tensor on all of its storage; else (storage,
              offset, strides), counted in elements

Rules:
- values computed from the two slots are cached in them; nothing else in a tensor
  changes, except through `set_`, `data`, and in-place views;
- `key_bits` is an int, set once; another key set makes another tensor on one storage;
  the dispatcher treats every object with this attribute as a tensor;
- a *wrapped number* has `number`: a Python number in place of a tensor, whose width
  does not take part in promotion; its array is created on demand;
- every array from this module shares memory with the tensor, except `host_copy` of a
  device's elements;
- the class of tensors is `runtime.tensors.tensor.Tensor`; code below it uses
  `TensorBase`, which has all parts and no operators.
"""

from collections.abc import Callable
from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

from everyorder.runtime.base.hooks import ELEMENT
from everyorder.runtime.base.locks import reentered
from everyorder.runtime.errors.tensor import (
    BadSize,
    NoData,
    NotReplaceable,
    NotShareable,
    UnfitValue,
)
from everyorder.runtime.keys import KeySet
from everyorder.runtime.schema.enums import Device, DType, MemoryFormat
from everyorder.runtime.tensors.dtype_info import Number, itemsize, numpy_dtype
from everyorder.runtime.tensors.keys import (
    HANDLED,
    MODED,
    PYTHON,
    STATE,
    handler_bits,
    is_handled,
    report_read,
)
from everyorder.runtime.tensors.shape import (
    contiguous_strides,
    is_contiguous,
    is_in_format,
    real_dim,
    span,
)
from everyorder.runtime.tensors.storage import Array, Storage, is_host, memory_of

if TYPE_CHECKING:
    import numpy as np

    from everyorder.runtime.declared import Declared
else:
    # At run time, `runtime.tensors.tensor.install` adds the methods to `Tensor`.
    Declared = object

Ints = tuple[int, ...]
# The location of elements: storage, offset, strides.
Place = tuple[Storage, int, Ints]

# NPY_MAXDIMS since NumPy 2.
MOST_DIMENSIONS = 64


def _fixed(name: str, instead: str) -> Callable[[object, object], None]:
    """Return a setter that refuses to replace an attribute of the memory."""

    def refuse(tensor: object, value: object) -> None:
        raise NotReplaceable(code="FixedAttribute", name=name, instead=instead)

    return refuse


class TensorBase(Declared):
    """The parts of a tensor and its properties; the public class is `Tensor`."""

    # With `__dict__`: programs may set attributes on any tensor.
    __slots__ = (
        "__dict__",
        "__weakref__",
        "_context",
        "_device",
        "_dtype",
        "_flat",
        "_history",
        "_place",
        "_policy",
        "_requires_grad",
        "_shape",
        "key_bits",
        "number",
    )

    # NumPy defers `array + tensor` to the tensor: its ufuncs do not accept tensors.
    __array_ufunc__ = None

    _flat: Array | None
    _shape: Ints
    _dtype: DType
    _device: Device
    _place: "Place | None"
    _requires_grad: bool
    # Set by autograd; None for a leaf without a gradient so far.
    _history: Any
    key_bits: int
    number: Number | None
    # For tensors with a handler: their context, and the metadata that the handler
    # answers.
    _context: Any
    _policy: int

    # Properties of the elements.  A getter in C costs 20 ns; a slot costs less.

    if TYPE_CHECKING:

        @property
        def shape(self) -> tuple[int, ...]:
            """Return the sizes."""

        @property
        def dtype(self) -> DType:
            """Return the dtype of the elements."""

        @property
        def device(self) -> Device:
            """Return the device of the elements."""

    else:
        shape = property(attrgetter("_shape"), _fixed("shape", "reshape(...)"))
        dtype = property(attrgetter("_dtype"), _fixed("dtype", "to(dtype)"))
        device = property(attrgetter("_device"), _fixed("device", "to(device)"))

    # Location of the elements.

    def storage(self) -> Storage:
        """Return the storage, shared by all views of it."""
        return (self._place or ensure_place(self))[0]

    @property
    def offset(self) -> int:
        """Return the number of storage elements before the tensor's first."""
        place = self._place
        return 0 if place is None else place[1]

    @property
    def strides(self) -> tuple[int, ...]:
        """Return the steps in the storage from one index to the next, in elements."""
        place = self._place
        return contiguous_strides(self._shape) if place is None else place[2]

    @property
    def _version(self) -> int:
        """Return the number of in-place writes to the elements, through any view."""
        return 0 if self._place is None else self._place[0].version

    def storage_offset(self) -> int:
        """Return the number of storage elements before the tensor's first."""
        return self.offset

    def stride(self, dim: int | None = None) -> Any:
        """Return all strides, or that of one dimension.  Raises `IndexOutOfRange`."""
        strides = self.strides
        return strides if dim is None else strides[real_dim(dim, len(strides))]

    def is_contiguous(self, memory_format: MemoryFormat | None = None) -> bool:
        """Return True if the elements are dense in an order, by default row-major.

        False for a format of another number of dimensions.

        Raises:
            UnfitValue: the format is `preserve_format`, which defines no order.
        """
        if memory_format is not None:
            return is_in_format(self.shape, self.strides, memory_format)
        place = self._place
        return place is None or is_contiguous(self.shape, place[2])

    def data_ptr(self) -> int:
        """Return the address of the first element; 0 without elements in memory."""
        place = self._place
        if place is not None:
            start = place[0].data_ptr()
            return start and start + place[1] * itemsize(self.dtype)
        flat = flat_of(self)
        if flat is None or not self.numel():
            return 0
        return memory_of(self.device.type).pointer(flat)

    # Metadata.

    @property
    def keyset(self) -> KeySet:
        """Return the dispatch keys of the tensor."""
        return KeySet.from_bits(self.key_bits)

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        """Return the size of one element in bytes."""
        return itemsize(self.dtype)

    @property
    def nbytes(self) -> int:
        """Return the bytes of all elements; shared elements count once per index."""
        return prod(self.shape) * itemsize(self.dtype)

    @property
    def is_cpu(self) -> bool:
        """Return True if the tensor is on the device type `cpu`."""
        return self.device.type == "cpu"

    @property
    def is_cuda(self) -> bool:
        """Return True if the tensor is on a CUDA device."""
        return self.device.type == "cuda"

    @property
    def is_meta(self) -> bool:
        """Return True if the tensor has a shape and a dtype, but no elements."""
        return self.device.type == "meta"

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    def numel(self) -> int:
        """Return the number of elements."""
        return prod(self.shape)

    def element_size(self) -> int:
        """Return the size of one element in bytes."""
        return itemsize(self.dtype)

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the size of one dimension.  Raises `IndexOutOfRange`."""
        report_read(self, "size()")
        shape = self.shape
        return shape if dim is None else shape[real_dim(dim, len(shape))]

    def is_floating_point(self) -> bool:
        """Return True if the elements are real floating-point numbers."""
        return self.dtype.is_floating

    def is_complex(self) -> bool:
        """Return True if the elements are complex numbers."""
        return self.dtype.is_complex


# Held during the creation of a storage, so that a fresh tensor has only one.
_PLACE_LOCK = reentered()


def ensure_place(tensor: "TensorBase") -> Place:
    """Return the location of a tensor's elements; create a missing storage."""
    with _PLACE_LOCK:
        if tensor._place is None:
            flat, shape = flat_of(tensor), tensor.shape
            storage = Storage(flat, tensor.device, tensor.dtype, prod(shape))
            place = storage, 0, contiguous_strides(shape)
            if tensor._place is None:
                tensor._place = place
        return tensor._place


def flat_of(tensor: "TensorBase") -> Array | None:
    """Return the elements in row-major order as one 1-D array that shares memory.

    None if the tensor is not contiguous, or on `meta`.  The result is cached.
    """
    if tensor._flat is None:
        place = tensor._place
        if place is not None:
            tensor._flat = _sliced(tensor, *place)
        elif tensor.number is not None:
            import numpy as np

            tensor._flat = np.array([tensor.number], numpy_dtype(tensor.dtype))
    return tensor._flat


def place_of(tensor: "TensorBase") -> tuple[Array | None, int, Ints]:
    """Return the typed 1-D array that holds the elements, the offset and the strides.

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


def array_of(tensor: "TensorBase") -> "np.ndarray[Any, Any]":
    """Return the elements as an N-d NumPy array that shares memory and strides.

    For internal code: it does not check if the tensor requires grad.

    Raises:
        NoData: the tensor is on `meta`.
        NotShareable: the elements are in a device's own memory.
        BadSize: the tensor has more than `MOST_DIMENSIONS`.
    """
    return host_array(tensor, "array_of()")


def host_array(tensor: "TensorBase", operation: str) -> "np.ndarray[Any, Any]":
    """Return `array_of(tensor)`; the errors name the `operation`."""
    if tensor.device.type == "meta":
        raise no_data(tensor, operation)
    if not is_host(tensor.device.type):
        raise NotShareable(code="NotOnHost", asked=operation, device=str(tensor.device))
    _check_ndim(tensor, operation)
    flat = flat_of(tensor)
    if flat is not None:
        return flat.reshape(tensor.shape)  # type: ignore[no-any-return]  # the host's arrays are NumPy's
    array, offset, strides = place_of(tensor)
    assert array is not None, "only `meta` has no array"
    return strided(array, tensor.dtype, tensor.shape, strides, offset)


def host_copy(tensor: "TensorBase", operation: str) -> "np.ndarray[Any, Any]":
    """Return the elements of any device as an N-d NumPy array, for reading only.

    Shares memory if the host holds the elements.

    Raises:
        NoData: the tensor is on `meta`.
        BadSize: the tensor has more than `MOST_DIMENSIONS`.
    """
    if tensor.device.type == "meta" or is_host(tensor.device.type):
        return host_array(tensor, operation)
    import numpy as np

    _check_ndim(tensor, operation)
    array, offset, strides = place_of(tensor)
    if not tensor.numel():
        return np.empty(tensor.shape, numpy_dtype(tensor.dtype))
    assert array is not None, "only `meta` has no array"
    touched = array[offset : offset + span(tensor.shape, strides)]
    copied = memory_of(tensor.device.type).to_numpy(touched)
    return strided(copied, tensor.dtype, tensor.shape, strides, 0)


def strided(
    array: "np.ndarray[Any, Any]", dtype: DType, shape: Ints, strides: Ints, offset: int
) -> "np.ndarray[Any, Any]":
    """Return elements of `dtype` in a NumPy array, with strides and offset in elements.

    The memory is shared, whatever the dtype of the array.
    """
    import numpy as np

    size = itemsize(dtype)
    steps = tuple(stride * size for stride in strides)
    # As bytes, because ml_dtypes' arrays do not export a buffer.
    raw = array.view(np.uint8)
    return np.ndarray(shape, numpy_dtype(dtype), raw, offset * size, steps)


def standard_copy(tensor: "TensorBase", operation: str) -> "np.ndarray[Any, Any]":
    """Return `host_copy` in a dtype of NumPy itself: bfloat16 as float32."""
    elements = host_copy(tensor, operation)
    return elements.astype("float32") if tensor.dtype.name == "bfloat16" else elements


def _check_ndim(tensor: "TensorBase", operation: str) -> None:
    if len(tensor.shape) > MOST_DIMENSIONS:
        raise BadSize(
            code="TooManyDimensions",
            asked=operation,
            ndim=len(tensor.shape),
            most=MOST_DIMENSIONS,
        )


def element(tensor: "TensorBase", operation: str) -> Number:
    """Return the one element as a Python number.

    Raises:
        NoData: the tensor is on `meta`.
        BadSize: the tensor does not have exactly one element.
    """
    if (tensor.key_bits & PYTHON or MODED) and is_handled(tensor):
        return ELEMENT.get()(tensor)  # type: ignore[no-any-return]  # an operator's result
    if tensor.number is not None:
        return tensor.number
    if tensor.device.type == "meta":
        raise no_data(tensor, operation)
    count = prod(tensor.shape)
    if count != 1:
        raise BadSize(
            code="NotOneElement", shape=tensor.shape, elements=count, asked=operation
        )
    array, offset, _ = place_of(tensor)
    assert array is not None, "only `meta` has no array"
    one = memory_of(tensor.device.type).to_numpy(array[offset : offset + 1])
    if tensor.dtype.name == "bfloat16":
        return float(one.view(numpy_dtype(tensor.dtype))[0])
    number: Number = one.item()
    return number


def whole_number(tensor: "TensorBase") -> int:
    """Return the one element, an integer.  Raises `UnfitValue` for another tensor."""
    number = element(tensor, "index()") if prod(tensor.shape) == 1 else None
    if not isinstance(number, int):
        raise UnfitValue(
            code="NotAnInteger", dtype=str(tensor.dtype), shape=tensor.shape
        )
    return int(number)


def contains(tensor: "TensorBase", value: Any) -> bool:
    """Return True if an element equals a number, or its place in another tensor.

    Raises:
        UnfitValue: `value` is neither a number, a tensor nor an array.
    """
    import numpy as np

    if hasattr(value, "key_bits") or isinstance(value, np.ndarray):
        return bool((tensor == value).any())
    if not isinstance(value, (int, float, complex, np.generic)):
        raise UnfitValue(
            asked="Tensor.__contains__",
            found=f"a {type(value).__name__}",
            fits="a number, a tensor or an array",
        )
    if tensor.key_bits & PYTHON:
        return bool((tensor == value).any())
    return bool((host_copy(tensor, "in") == value).any())


def no_data(tensor: "TensorBase", operation: str) -> NoData:
    """Return the error for an access to the elements of a tensor on `meta`."""
    return NoData(
        device=str(tensor.device),
        dtype=str(tensor.dtype),
        shape=tensor.shape,
        asked=operation,
    )


def _sliced(
    tensor: "TensorBase", storage: Storage, offset: int, strides: Ints
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
    """Return the bytes from `start` to `end` as elements of another dtype."""
    raw = array.view(numpy_dtype(DType.named("uint8")))
    return raw[start:end].view(numpy_dtype(dtype))


T = TypeVar("T", bound=TensorBase)


def instance_of(
    kind: type[T],
    shape: tuple[int, ...],
    dtype: DType,
    device: Device,
    key_bits: int,
    place: Place,
) -> T:
    """Return a tensor of class `kind` on `place`, without history or checks.

    `key_bits` are those of a tensor without a handler.
    """
    tensor: Any = object.__new__(kind)
    tensor._flat = None
    tensor._shape = shape
    tensor._dtype = dtype
    tensor._device = device
    tensor.key_bits = (key_bits & ~HANDLED) | handler_bits(kind)
    tensor._place = place
    tensor._requires_grad = False
    tensor._history = None
    tensor.number = None
    if tensor.key_bits & PYTHON:
        tensor._policy = 0
        tensor._context = context = STATE.context
        if context.noted.get(id(kind)) is not ref(kind):
            context.note(kind)
    return tensor  # type: ignore[no-any-return]  # an instance of `kind`
