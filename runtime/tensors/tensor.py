"""The tensor: elements with a shape, a dtype, a device and a set of dispatch keys.

True only here: what a tensor is made of, and what it says about itself.  To the
dispatcher a tensor is whatever has `key_bits`; nothing below this file knows the class.

How it is made up: most tensors are fresh, contiguous and never viewed, so that a tensor
starts with nothing but its array `_flat`; the storage that views share is made when it
is first asked for.  Two slots say where the elements are:

    `_flat`   the elements in row-major order as one 1-D array, or None: not computed
              yet, not contiguous, or without elements (`meta`)
    `_place`  None: contiguous, alone on all of its storage; else (storage, offset,
              strides), counted in elements

Rules:
- `Tensor(flat, shape, dtype, device, key_bits)` is for code that knows the parts, on
  the path of every call: it checks nothing;  `runtime.tensors.making` has the rest;
  programs call `Tensor(data)` or `Tensor(2, 3)`, which `runtime.tensors.data` fills;
- `key_bits` is an int, set once; another key set makes another tensor on one storage;
- a *wrapped number* has `number`: a Python number that stands where a tensor does, and
  takes no part in promotion by its width; its array is made when it is asked for;
- `_history` is autograd's; None means a leaf that has no gradient yet;
- operators and autograd put their methods here by `runtime.tensors.methods`.
"""

from collections.abc import Callable, Iterator
from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from runtime.errors.tensor import FixedAttribute, NoGradient, NoLength
from runtime.keys import KeySet
from runtime.schema.codes import DType, MemoryFormat
from runtime.schema.device import Device
from runtime.schema.infer import register_annotation
from runtime.schema.types import DeviceType, ScalarTypeType, TensorType
from runtime.tensors.arrays import Number as Number
from runtime.tensors.arrays import Place, contains, element, whole_number
from runtime.tensors.arrays import array_of as array_of
from runtime.tensors.arrays import claimed as claimed
from runtime.tensors.arrays import flat_of as flat_of
from runtime.tensors.arrays import place_of as place_of
from runtime.tensors.copying import deep_copy, reduced
from runtime.tensors.display import formatted, text_of
from runtime.tensors.dlpack import capsule, device_code
from runtime.tensors.elements import itemsize
from runtime.tensors.handled import disabled, made_elsewhere
from runtime.tensors.interop import (
    array_interface,
    cuda_array_interface,
    forced_array,
    python_numbers,
    shared_array,
)
from runtime.tensors.memory import Array, memory_of
from runtime.tensors.order import lies
from runtime.tensors.shape import contiguous_strides, is_contiguous, real_dim
from runtime.tensors.storage import Storage
from runtime.tensors.surface import Surface
from runtime.tensors.traced import tell

if TYPE_CHECKING:
    import numpy as np


# Stand for arguments that were not given.
FLOAT32 = DType.named("float32")
CPU = Device("cpu")


def _fixed(name: str, instead: str) -> Callable[[object, object], None]:
    """What refuses to set an attribute that says what the memory is."""

    def refuse(tensor: object, value: object) -> None:
        raise FixedAttribute(name=name, instead=instead)

    return refuse


class Tensor(Surface):
    """A tensor; made by `tensor` and by operators."""

    # Whoever wants to may note something on a tensor.
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

    # A subclass that defines its own is asked about every operator.
    __torch_dispatch__: Any = disabled

    # NumPy's operators leave `array + tensor` to the tensor.
    __array_priority__ = 1000

    # Of tensors with a handler: their context, and what of the metadata it tells.
    _context: Any
    _policy: int

    def __init__(
        self,
        flat: Any = None,
        shape: Any = (),
        dtype: Any = FLOAT32,
        device: Any = CPU,
        key_bits: int = -1,
        *more: int,
    ) -> None:
        if key_bits < 0 or type(flat) is int:  # not of its parts
            given = (flat, shape, dtype, device, key_bits)
            defaults = Tensor.__init__.__defaults__ or ()
            said = zip(given, defaults, strict=True)
            made_elsewhere(self, *[v for v, default in said if v is not default], *more)
            return
        self._flat: Array | None = flat
        self._shape: tuple[int, ...] = shape
        self._dtype: DType = dtype
        self._device: Device = device
        self.key_bits = key_bits
        self._place: Place | None = None
        self._requires_grad = False
        self._history: Any = None
        self.number: Number | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__init__ is Tensor.__init__:
            # Its tensors are made by `__new__`; Python calls this one after it.
            cls.__init__ = made_elsewhere  # type: ignore[method-assign,assignment]  # takes whatever `__new__` takes

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
        return (self._place or claimed(self))[0]

    @property
    def offset(self) -> int:
        """The elements of the storage before the first one of the tensor."""
        place = self._place
        return 0 if place is None else place[1]

    @property
    def strides(self) -> tuple[int, ...]:
        """The steps in the storage from one index to the next, in elements."""
        place = self._place
        return contiguous_strides(self.shape) if place is None else place[2]

    @property
    def _version(self) -> int:
        """How often the elements were written to in place, by whichever view."""
        return 0 if self._place is None else self._place[0].version

    def storage_offset(self) -> int:
        """The elements of the storage before the first one of the tensor."""
        return self.offset

    def stride(self, dim: int | None = None) -> Any:
        """All strides, or that of one dimension.  Raises `BadDimension`."""
        strides = self.strides
        return strides if dim is None else strides[real_dim(dim, len(strides))]

    def is_contiguous(self, memory_format: MemoryFormat | None = None) -> bool:
        """Whether the elements lie without gaps in an order: row by row, if not said.

        False for a format of another number of dimensions.  Raises `UnfitValue` for the
        format that says no order.
        """
        if memory_format is not None:
            return lies(self.shape, self.strides, memory_format)
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
        """The shape, or the size of one dimension.  Raises `BadDimension`."""
        tell(self, "size()")
        shape = self.shape
        return shape if dim is None else shape[real_dim(dim, len(shape))]

    def is_floating_point(self) -> bool:
        """Whether the elements are real floating-point numbers."""
        return self.dtype.is_floating

    def is_complex(self) -> bool:
        """Whether the elements are complex numbers."""
        return self.dtype.is_complex

    def with_keyset(self, keyset: KeySet) -> "Tensor":
        """A tensor with these keys on the same data; for sparse, quantized, ..."""
        place = claimed(self)
        other = Tensor(self._flat, self.shape, self.dtype, self.device, keyset.bits)
        other._place = place
        other._requires_grad = self._requires_grad
        other.number = self.number
        return other

    # Gradients: what a tensor without autograd says; autograd installs its own.

    @property
    def requires_grad(self) -> bool:
        """Whether autograd records what is computed from the tensor."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self.requires_grad_(wanted)

    def requires_grad_(self, requires_grad: bool = True) -> "Tensor":
        """Set `requires_grad`.  Raises `NoGradient`."""
        if requires_grad and not (self.dtype.is_floating or self.dtype.is_complex):
            raise NoGradient(dtype=str(self.dtype))
        self._requires_grad = bool(requires_grad)
        return self

    @property
    def grad(self) -> "Tensor | None":
        """The gradient accumulated by `backward`; None before."""
        return None

    @grad.setter
    def grad(self, gradient: "Tensor | None") -> None:
        assert gradient is None, "gradients are kept by autograd, which is not loaded"

    @property
    def grad_fn(self) -> Any:
        """The node of the graph that the tensor came from; None for a leaf."""
        return None

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor was not computed under autograd."""
        return True

    # The elements outside.

    def numpy(self, *, force: bool = False) -> "np.ndarray[Any, Any]":
        """The elements as an array that shares memory; `force`: or else as a copy.

        Raises `NoData` on `meta`; unless forced, `NotOnHost` for memory of a device,
        and `NeedsDetach` if the tensor requires grad.
        """
        return forced_array(self) if force else shared_array(self, "numpy()")

    def item(self) -> Any:
        """The one element as a Python number.

        Raises `NoData` on `meta`, and `NotOneElement` for another number of elements.
        """
        return self.number if self.number is not None else element(self, "item()")

    def tolist(self) -> Any:
        """The elements as nested lists; of no dimensions, the number itself."""
        return python_numbers(self)

    def __array__(
        self, dtype: Any = None, copy: bool | None = None
    ) -> "np.ndarray[Any, Any]":
        import numpy as np

        return np.array(shared_array(self, "__array__()"), dtype=dtype, copy=copy)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return array_interface(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return cuda_array_interface(self)

    def __dlpack__(self, **asked: Any) -> Any:
        return capsule(self, **asked)

    def __dlpack_device__(self) -> tuple[int, int]:
        return device_code(self)

    def __len__(self) -> int:
        if not self.shape:
            raise NoLength(asked="len()")
        tell(self, "len()")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise NoLength(asked="iter()")
        tell(self, "iter()")
        return (self[index] for index in range(self.shape[0]))

    def __contains__(self, wanted: object) -> bool:
        return contains(self, wanted)

    def __bool__(self) -> bool:
        return bool(element(self, "bool()"))

    def __int__(self) -> int:
        return int(element(self, "int()"))  # type: ignore[arg-type]  # complex raises

    def __float__(self) -> float:
        return float(element(self, "float()"))  # type: ignore[arg-type]  # complex raises

    def __complex__(self) -> complex:
        return complex(element(self, "complex()"))

    def __index__(self) -> int:
        return whole_number(self)

    def __format__(self, spec: str) -> str:
        return formatted(self, spec)

    def __repr__(self) -> str:
        return text_of(self, Tensor)

    # By identity, also when operators install an elementwise `==`.
    __hash__ = object.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Tensor":
        return deep_copy(self, memo)


register_annotation(Tensor, TensorType)
register_annotation(Device, DeviceType)
register_annotation(DType, ScalarTypeType)
