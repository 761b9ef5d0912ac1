"""Types of tensors by torch's old names: `FloatTensor`, `LongTensor`, ...

A name stands for a dtype. It is called for a new tensor, `isinstance` checks it, and
`Tensor.type` returns it as text, or converts to it:

    FloatTensor([1, 2])         data, converted
    FloatTensor(2, 3)           sizes, uninitialized
    x.type()                    "torch.FloatTensor", "torch.cuda.FloatTensor"
    x.type(LongTensor)          x.to(int64); so do a dtype and a text

Rules:
- the text begins with `torch`, because programs compare it with torch's;
- complex dtypes have a text, but no constructor, as in torch.
"""

import re
from typing import Any

from everyorder.runtime.errors.call import NotOffered
from everyorder.runtime.errors.tensor import UnfitValue
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.schema.call_errors import checked
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.tensors.dtype_info import DEFAULTS
from everyorder.runtime.tensors.from_data import from_sizes_or_data
from everyorder.runtime.tensors.tensor import Tensor, install

# The word of a dtype in the name of its type.
_WORDS = {
    "float32": "Float",
    "float64": "Double",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "bool": "Bool",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}
_DTYPES = {word: DType.named(name) for name, word in _WORDS.items()}
_TEXT = re.compile(r"torch\.(?:(\w+)\.)?(\w+)Tensor")


class TensorType:
    """The tensors of one dtype: a constructor, and a class for `isinstance`."""

    __slots__ = ("__name__", "dtype")

    def __init__(self, name: str, dtype: DType) -> None:
        self.__name__ = name
        self.dtype = dtype

    def __call__(self, *arguments: Any, device: Device | str = "cpu") -> Tensor:
        """Return a new tensor of sizes, of data, or without elements.

        Raises:
            UnfitValue: the arguments are neither sizes nor data.
            ArithmeticRefused: the dtype cannot hold a number.
            BadSize: nested lists have uneven lengths.
        """
        return from_sizes_or_data(self.__name__, arguments, self.dtype, device)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, Tensor) and value.dtype is self.dtype

    def __reduce__(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        return self.__name__


FloatTensor = TensorType("FloatTensor", _DTYPES["Float"])
DoubleTensor = TensorType("DoubleTensor", _DTYPES["Double"])
HalfTensor = TensorType("HalfTensor", _DTYPES["Half"])
BFloat16Tensor = TensorType("BFloat16Tensor", _DTYPES["BFloat16"])
ByteTensor = TensorType("ByteTensor", _DTYPES["Byte"])
CharTensor = TensorType("CharTensor", _DTYPES["Char"])
ShortTensor = TensorType("ShortTensor", _DTYPES["Short"])
IntTensor = TensorType("IntTensor", _DTYPES["Int"])
LongTensor = TensorType("LongTensor", _DTYPES["Long"])
BoolTensor = TensorType("BoolTensor", _DTYPES["Bool"])


@checked
def type_(
    self: Tensor,
    dtype: DType | TensorType | str | None = None,
    non_blocking: bool = False,
) -> Any:
    """Return the type as text, or the tensor converted to `dtype`.

    `dtype` is a dtype, a type such as `LongTensor`, or a text such as
    "torch.cuda.LongTensor", which names a device, too.

    Raises:
        UnfitValue: `dtype` is anything else.
    """
    if dtype is None:
        word = _WORDS[self.dtype.name]
        device = self.device.type
        return f"torch.{'' if device == 'cpu' else f'{device}.'}{word}Tensor"
    target, place = _parsed(dtype)
    device_of = self.device if place is None else Device(place)
    if target is self.dtype and device_of.type == self.device.type:
        return self
    if device_of.type == self.device.type:
        device_of = self.device
    return core._to_copy(
        self, dtype=target, device=device_of, non_blocking=non_blocking
    )


def _parsed(dtype: Any) -> tuple[DType, str | None]:
    """Return the dtype and the device that a type names; None for any device."""
    if isinstance(dtype, DType):
        return dtype, None
    if dtype is Tensor:
        return DEFAULTS.real, "cpu"
    if isinstance(dtype, TensorType):
        return dtype.dtype, "cpu"
    match = _TEXT.fullmatch(dtype) if isinstance(dtype, str) else None
    if match is None or match[2] not in _DTYPES:
        raise UnfitValue(
            asked="Tensor.type",
            found=repr(dtype)[:60],
            fits='a dtype, a type such as LongTensor, or "torch.LongTensor"',
        )
    return _DTYPES[match[2]], match[1] or "cpu"


def set_default_tensor_type(t: Any) -> None:
    """Refuse torch's old name of `set_default_dtype`.

    Raises:
        NotOffered: always.
    """
    raise NotOffered(
        asked="set_default_tensor_type",
        reason="a default has a dtype, and no device",
        remedy="call set_default_dtype with a floating-point dtype",
    )


@checked
def is_signed(self: Tensor) -> bool:
    """Return True if the elements can be negative."""
    return self.dtype.is_signed


@checked
def nelement(self: Tensor) -> int:
    """Return the number of elements, as `numel` does."""
    return self.numel()


type_.__name__ = type_.__qualname__ = "type"
install("type", type_)
install("is_signed", is_signed)
install("nelement", nelement)
