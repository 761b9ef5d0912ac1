"""The small tensor: NumPy data, a device, a dtype and a set of dispatch keys.

True only here: how a tensor is made, and what it says about itself.  To the dispatcher
a tensor is whatever has `key_bits`; nothing below this file knows this class.

Rules:
- `key_bits` is an int, set once; another key set makes another tensor on the same data;
- data lies in host memory whatever the device says; on `meta` there is none, and asking
  for it raises `NoData`;
- Python numbers become int64, float32, complex64 or bool; arrays keep their dtype;
- `tensor` copies, `Tensor.numpy` and `Tensor.with_keyset` share;
- NumPy is imported when the first tensor is made.
"""

from typing import TYPE_CHECKING, Any

from runtime.errors.base import nearest
from runtime.errors.tensor import NoData, NoGradient, NotOneElement, UnsupportedData
from runtime.keys import KeySet
from runtime.schema.codes import DType
from runtime.schema.device import Device
from runtime.schema.infer import register_annotation
from runtime.schema.types import DeviceType, ScalarTypeType, TensorType
from runtime.tensors.keys_of import keys_of

if TYPE_CHECKING:
    import numpy as np

# What NumPy makes of Python's floats is twice as wide as what tensors default to.
_NARROWED = {"float64": "float32", "complex128": "complex64"}

# The dtypes that NumPy has under the same name.
_IN_NUMPY = frozenset(
    {
        *("bool", "uint8", "int8", "int16", "int32", "int64"),
        *("uint16", "uint32", "uint64", "float16", "float32", "float64"),
        *("complex64", "complex128"),
    }
)


class Tensor:
    """A tensor; made by `tensor`, or from parts by code that knows them."""

    __slots__ = (
        "__weakref__",
        "_data",
        "device",
        "dtype",
        "key_bits",
        "requires_grad",
        "shape",
    )

    def __init__(
        self,
        data: "np.ndarray[Any, Any] | None",
        *,
        shape: tuple[int, ...],
        dtype: DType,
        device: Device,
        key_bits: int,
        requires_grad: bool = False,
    ) -> None:
        self._data = data
        self.shape = shape
        self.dtype = dtype
        self.device = device
        self.key_bits = key_bits
        self.requires_grad = requires_grad

    @property
    def keyset(self) -> KeySet:
        """The dispatch keys of the tensor."""
        return KeySet.from_bits(self.key_bits)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def numel(self) -> int:
        """The number of elements."""
        from math import prod

        return prod(self.shape)

    def numpy(self) -> "np.ndarray[Any, Any]":
        """The elements, sharing memory.  Raises `NoData` on `meta`."""
        return self._elements("numpy()")

    def item(self) -> bool | int | float | complex:
        """The one element as a Python number.

        Raises `NoData` on `meta`, and `NotOneElement` for another number of elements.
        """
        elements = self._elements("item()")
        if elements.size != 1:
            raise NotOneElement(shape=self.shape, elements=elements.size)
        number: bool | int | float | complex = elements.item()
        return number

    def with_keyset(self, keyset: KeySet) -> "Tensor":
        """A tensor with these keys on the same data; for sparse, quantized, ..."""
        return Tensor(
            self._data,
            shape=self.shape,
            dtype=self.dtype,
            device=self.device,
            key_bits=keyset.bits,
            requires_grad=self.requires_grad,
        )

    def __array__(
        self, dtype: Any = None, copy: bool | None = None
    ) -> "np.ndarray[Any, Any]":
        import numpy as np

        return np.array(self._elements("__array__()"), dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        parts = [_shown(self._data), f"dtype={self.dtype}"]
        if self._data is None:
            parts.insert(1, f"shape={self.shape}")
        if self.device != Device("cpu"):
            parts.append(f"device='{self.device}'")
        if self.requires_grad:
            parts.append("requires_grad=True")
        return f"tensor({', '.join(parts)})"

    def _elements(self, asked: str) -> "np.ndarray[Any, Any]":
        if self._data is None:
            raise NoData(
                device=str(self.device),
                dtype=str(self.dtype),
                shape=self.shape,
                asked=asked,
            )
        return self._data


def tensor(
    data: Any,
    *,
    dtype: DType | str | None = None,
    device: Device | str = "cpu",
    requires_grad: bool = False,
) -> Tensor:
    """A new tensor with a copy of `data`: a number, nested lists, an array, a tensor.

    Raises `UnknownDevice`, `UnsupportedData` for elements that are not numbers or a
    dtype that NumPy lacks, `NoGradient` where `requires_grad` makes no sense, and
    ValueError for lists of uneven lengths.
    """
    import numpy as np

    place = device if isinstance(device, Device) else Device.parse(device)
    wanted = None if dtype is None else _numpy_name(dtype)
    elements = np.array(data, dtype=wanted)
    if wanted is None and not hasattr(data, "dtype"):
        narrowed = _NARROWED.get(elements.dtype.name)
        # NumPy's own scalars inside of lists are narrowed too, as upstream does.
        elements = elements if narrowed is None else elements.astype(narrowed)
    kind = DType.named(_numpy_name(elements.dtype.name))
    if requires_grad and not (kind.is_floating or kind.is_complex):
        raise NoGradient(dtype=str(kind))
    return Tensor(
        None if place.type == "meta" else elements,
        shape=elements.shape,
        dtype=kind,
        device=place,
        key_bits=keys_of(place.type).bits,
        requires_grad=requires_grad,
    )


def _numpy_name(dtype: DType | str) -> str:
    name = DType.SYNONYMS.get(str(dtype), str(dtype))
    if name not in _IN_NUMPY:
        raise UnsupportedData(dtype=name, near=nearest(name, sorted(_IN_NUMPY)))
    return name


def _shown(data: "np.ndarray[Any, Any] | None") -> str:
    if data is None:
        return "..."
    import numpy as np

    return np.array2string(data, separator=", ", prefix="tensor(")


register_annotation(Tensor, TensorType)
register_annotation(Device, DeviceType)
register_annotation(DType, ScalarTypeType)
