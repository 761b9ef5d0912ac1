"""The parts of a tensor: its slots, and where its elements are.

Most tensors are fresh, contiguous and never viewed, so that a tensor starts with
nothing but its array `_flat`; the storage that views share is made when it is first
asked for. Two slots say where the elements are:

    `_flat`   the elements in row-major order as one 1-D array, or None: not computed
              yet, not contiguous, or without elements (`meta`)
    `_place`  None: contiguous, alone on all of its storage; else (storage, offset,
              strides), counted in elements

Rules:
- what is computed of the two is remembered in them; nothing else of a tensor ever
  changes, but by `set_`, `data`, and in-place views;
- `key_bits` is an int, set once; another key set makes another tensor on one storage;
  to the dispatcher a tensor is whatever has it;
- a *wrapped number* has `number`: a Python number that stands where a tensor does, and
  takes no part in promotion by its width; its array is made when it is asked for;
- every array that is had here shares memory with the tensor, except `host_copy` of a
  device's;
- the class of tensors is `runtime.tensors.tensor.Tensor`; code below it is for
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
    tell,
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
    # At run time the methods are put on `Tensor` by `runtime.tensors.tensor.install`.
    Declared = object

Ints = tuple[int, ...]
# Where the elements are: storage, offset, strides.
Place = tuple[Storage, int, Ints]

# NumPy's NPY_MAXDIMS, since its version 2.
MOST_DIMENSIONS = 64


def _fixed(name: str, instead: str) -> Callable[[object, object], None]:
    """The setter of an attribute of the memory, which refuses."""

    def refuse(tensor: object, value: object) -> None:
        raise NotReplaceable(code="FixedAttribute", name=name, instead=instead)

    return refuse


class TensorBase(Declared):
    """The parts of a tensor, and what it says of them; its class is `Tensor`."""

    # With `__dict__`: attributes may be set on any tensor.
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

    # NumPy leaves `array + tensor` to the tensor: its ufuncs take no tensors.
    __array_ufunc__ = None

    _flat: Array | None
    _shape: Ints
    _dtype: DType
    _device: Device
    _place: "Place | None"
    _requires_grad: bool
    # Autograd's; None is that of a leaf that has no gradient yet.
    _history: Any
    key_bits: int
    number: Number | None
    # Of tensors with a handler: their context, and what of the metadata it tells.
    _context: Any
    _policy: int

    # What the elements are.  A getter in C costs 20 ns; a slot costs less.

    if TYPE_CHECKING:

        @property
        def shape(self) -> tuple[int, ...]:
            """The sizes."""

        @property
        def dtype(self) -> DType:
            """The kind of the elements."""

        @property
        def device(self) -> Device:
            """Where the elements are."""

    else:
        shape = property(attrgetter("_shape"), _fixed("shape", "reshape(...)"))
        dtype = property(attrgetter("_dtype"), _fixed("dtype", "to(dtype)"))
        device = property(attrgetter("_device"), _fixed("device", "to(device)"))

    # Where the elements are.

    def storage(self) -> Storage:
        """The storage, shared by all views of it."""
        return (self._place or ensure_place(self))[0]

    @property
    def offset(self) -> int:
        """The elements of the storage before the first one of the tensor."""
        place = self._place
        return 0 if place is None else place[1]

    @property
    def strides(self) -> tuple[int, ...]:
        """The steps in the storage from one index to the next, in elements."""
        place = self._place
        return contiguous_strides(self._shape) if place is None else place[2]

    @property
    def _version(self) -> int:
        """How often the elements were written to in place, by whichever view."""
        return 0 if self._place is None else self._place[0].version

    def storage_offset(self) -> int:
        """The elements of the storage before the first one of the tensor."""
        return self.offset

    def stride(self, dim: int | None = None) -> Any:
        """All strides, or that of one dimension.  Raises `IndexOutOfRange`."""
        strides = self.strides
        return strides if dim is None else strides[real_dim(dim, len(strides))]

    def is_contiguous(self, memory_format: MemoryFormat | None = None) -> bool:
        """Whether the elements lie without gaps in an order: row by row, if not said.

        False for a format of another number of dimensions.  Raises `UnfitValue` for the
        format that says no order.
        """
        if memory_format is not None:
            return is_in_format(self.shape, self.strides, memory_format)
        place = self._place
        return place is None or is_contiguous(self.shape, place[2])

    def data_ptr(self) -> int:
        """The address of the first element; 0 without elements in memory."""
        place = self._place
        if place is not None:
            start = place[0].data_ptr()
            return start and start + place[1] * itemsize(self.dtype)
        flat = flat_of(self)
        if flat is None or not self.numel():
            return 0
        return memory_of(self.device.type).pointer(flat)

    # What it is.

    @property
    def keyset(self) -> KeySet:
        """The dispatch keys of the tensor."""
        return KeySet.from_bits(self.key_bits)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return itemsize(self.dtype)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements, shared ones counted as often as they are read."""
        return prod(self.shape) * itemsize(self.dtype)

    @property
    def is_cpu(self) -> bool:
        """Whether the tensor is on the device type `cpu`."""
        return self.device.type == "cpu"

    @property
    def is_cuda(self) -> bool:
        """Whether the tensor is on a CUDA device."""
        return self.device.type == "cuda"

    @property
    def is_meta(self) -> bool:
        """Whether the tensor has a shape and a dtype, but no elements."""
        return self.device.type == "meta"

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def numel(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def element_size(self) -> int:
        """The bytes of one element."""
        return itemsize(self.dtype)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one dimension.  Raises `IndexOutOfRange`."""
        tell(self, "size()")
        shape = self.shape
        return shape if dim is None else shape[real_dim(dim, len(shape))]

    def is_floating_point(self) -> bool:
        """Whether the elements are real floating-point numbers."""
        return self.dtype.is_floating

    def is_complex(self) -> bool:
        """Whether the elements are complex numbers."""
        return self.dtype.is_complex


# Held while a fresh tensor gets its storage, so that it gets one only.
_PLACE_LOCK = reentered()


def ensure_place(tensor: "TensorBase") -> Place:
    """Where the elements of a tensor are, its storage made if there was none."""
    with _PLACE_LOCK:
        if tensor._place is None:
            flat, shape = flat_of(tensor), tensor.shape
            storage = Storage(flat, tensor.device, tensor.dtype, prod(shape))
            place = storage, 0, contiguous_strides(shape)
            if tensor._place is None:
                tensor._place = place
        return tensor._place


def flat_of(tensor: "TensorBase") -> Array | None:
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


def place_of(tensor: "TensorBase") -> tuple[Array | None, int, Ints]:
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


def array_of(tensor: "TensorBase") -> "np.ndarray[Any, Any]":
    """The elements as an N-d NumPy array with the tensor's strides, sharing memory.

    For code of ours: it does not ask whether the tensor requires grad.  Raises `NoData`
    on `meta`, and `NotShareable` for elements in a device's own memory.
    """
    return host_array(tensor, "array_of()")


def host_array(tensor: "TensorBase", asked: str) -> "np.ndarray[Any, Any]":
    """As `array_of`; the errors name what was `asked`."""
    if tensor.device.type == "meta":
        raise no_data(tensor, asked)
    if not is_host(tensor.device.type):
        raise NotShareable(code="NotOnHost", asked=asked, device=str(tensor.device))
    _check_ndim(tensor, asked)
    flat = flat_of(tensor)
    if flat is not None:
        return flat.reshape(tensor.shape)  # type: ignore[no-any-return]  # the host's arrays are NumPy's
    array, offset, strides = place_of(tensor)
    assert array is not None, "only `meta` has no array"
    return strided(array, tensor.dtype, tensor.shape, strides, offset)


def host_copy(tensor: "TensorBase", asked: str) -> "np.ndarray[Any, Any]":
    """The elements as an N-d NumPy array, wherever they are: read it, never write it.

    Shares memory where the host holds the elements.  Raises `NoData` on `meta`.
    """
    if tensor.device.type == "meta" or is_host(tensor.device.type):
        return host_array(tensor, asked)
    import numpy as np

    _check_ndim(tensor, asked)
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
    """Elements of a dtype in an array of NumPy's, at places counted in such elements.

    The memory is shared, whatever the dtype of the array.
    """
    import numpy as np

    size = itemsize(dtype)
    steps = tuple(stride * size for stride in strides)
    # Bytes, because ml_dtypes' arrays are no buffers for others.
    raw = array.view(np.uint8)
    return np.ndarray(shape, numpy_dtype(dtype), raw, offset * size, steps)


def standard_copy(tensor: "TensorBase", asked: str) -> "np.ndarray[Any, Any]":
    """As `host_copy`, of a dtype that NumPy itself has: bfloat16 as float32."""
    elements = host_copy(tensor, asked)
    return elements.astype("float32") if tensor.dtype.name == "bfloat16" else elements


def _check_ndim(tensor: "TensorBase", asked: str) -> None:
    if len(tensor.shape) > MOST_DIMENSIONS:
        raise BadSize(
            code="TooManyDimensions",
            asked=asked,
            ndim=len(tensor.shape),
            most=MOST_DIMENSIONS,
        )


def element(tensor: "TensorBase", asked: str) -> Number:
    """The one element as a Python number.

    Raises `NoData` on `meta`, and `BadSize` for another number of elements.
    """
    if (tensor.key_bits & PYTHON or MODED) and is_handled(tensor):
        return ELEMENT.get()(tensor)  # type: ignore[no-any-return]  # an operator's result
    if tensor.number is not None:
        return tensor.number
    if tensor.device.type == "meta":
        raise no_data(tensor, asked)
    count = prod(tensor.shape)
    if count != 1:
        raise BadSize(
            code="NotOneElement", shape=tensor.shape, elements=count, asked=asked
        )
    array, offset, _ = place_of(tensor)
    assert array is not None, "only `meta` has no array"
    one = memory_of(tensor.device.type).to_numpy(array[offset : offset + 1])
    if tensor.dtype.name == "bfloat16":
        return float(one.view(numpy_dtype(tensor.dtype))[0])
    number: Number = one.item()
    return number


def whole_number(tensor: "TensorBase") -> int:
    """The one element, an integer.  Raises `UnfitValue`."""
    number = element(tensor, "index()") if prod(tensor.shape) == 1 else None
    if not isinstance(number, int):
        raise UnfitValue(
            code="NotAnInteger", dtype=str(tensor.dtype), shape=tensor.shape
        )
    return int(number)


def contains(tensor: "TensorBase", wanted: Any) -> bool:
    """Whether an element equals a number, or the element of another tensor."""
    if tensor.key_bits & PYTHON:
        return bool((tensor == wanted).any())
    number = wanted.item() if hasattr(wanted, "key_bits") else wanted
    return bool((host_copy(tensor, "in") == number).any())


def no_data(tensor: "TensorBase", asked: str) -> NoData:
    """The error that a tensor on `meta` has no elements."""
    return NoData(
        device=str(tensor.device),
        dtype=str(tensor.dtype),
        shape=tensor.shape,
        asked=asked,
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
    """The bytes from `start` to `end` as elements of another dtype."""
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
    """A tensor of class `kind` at a place, without history; nothing is checked.

    `key_bits` are those of a tensor without a handler.
    """
    made: Any = object.__new__(kind)
    made._flat = None
    made._shape = shape
    made._dtype = dtype
    made._device = device
    made.key_bits = (key_bits & ~HANDLED) | handler_bits(kind)
    made._place = place
    made._requires_grad = False
    made._history = None
    made.number = None
    if made.key_bits & PYTHON:
        made._policy = 0
        made._context = context = STATE.context
        if context.noted.get(id(kind)) is not ref(kind):
            context.note(kind)
    return made  # type: ignore[no-any-return]  # it is one now
