"""Numbers beside tensors: which tensors stand for one, and how numbers convert.

True only here: the Python number that a kernel gets for a dtype.  Integers wrap around
as elements of that width do; what promotion has made sure of is asserted.
"""

from runtime.schema.codes import DType
from runtime.schema.device import Device
from runtime.tensors.elements import SUPPORTED, info
from runtime.tensors.tensor import Tensor

Number = bool | int | float | complex


def number_of(tensor: Tensor, device: Device) -> Number | None:
    """The Python number that a tensor stands for beside tensors on `device`, if any.

    Wrapped numbers do, and CPU tensors without dimensions on another device.
    """
    number: Number | None = tensor.number
    if number is not None:
        return number
    if tensor.device is not device and not tensor.shape and device.type != "meta":
        number = tensor.item()
    return number


def number_for(number: Number, dtype: DType) -> Number:
    """`number` as the kind of Python number that elements of `dtype` are."""
    kind, low, count = _KINDS[dtype]
    assert kind is complex or not isinstance(number, complex), "promotion saw to it"
    converted: Number = kind(number)  # type: ignore[arg-type]  # asserted above
    if count and not low <= converted < low + count:  # type: ignore[operator]  # an int
        return (converted - low) % count + low  # type: ignore[operator]  # an int
    return converted


_PYTHON = {"b": bool, "u": int, "i": int, "f": float, "c": complex}


def _kind_of(name: str) -> tuple[type[bool | int | float | complex], int, int]:
    facts = info(DType.named(name))
    kind = _PYTHON[facts.kind]
    low = int(facts.smallest) if kind is int else 0
    return kind, low, 2 ** (8 * facts.itemsize) if kind is int else 0


# dtype -> its Python number, the least integer, and how many integers it has.
_KINDS = {DType.named(name): _kind_of(name) for name in SUPPORTED}
