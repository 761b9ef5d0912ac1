"""What a tensor can hold: the element types, their sizes and their relatives.

True only here: the table of supported dtypes and their NumPy forms.  bfloat16 has no
NumPy form of its own; ml_dtypes brings one.  16-bit floats are stored, but computed
with as float32.

Rules: one row a dtype, in the order of widening; to support another, add its row here
and in `runtime.tensors.promotion`, and kernels for it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime.errors.base import nearest
from runtime.errors.tensor import UnsupportedData
from runtime.schema.codes import DType

if TYPE_CHECKING:
    import numpy as np

# name, bytes, kind (as NumPy's letter), digits of a float's fraction, bits of its
# exponent, computed as, real form, complex form
_ROWS = (
    ("bool", 1, "b", 0, 0, "bool", "bool", "complex64"),
    ("uint8", 1, "u", 0, 0, "uint8", "uint8", "complex64"),
    ("int8", 1, "i", 0, 0, "int8", "int8", "complex64"),
    ("int16", 2, "i", 0, 0, "int16", "int16", "complex64"),
    ("int32", 4, "i", 0, 0, "int32", "int32", "complex64"),
    ("int64", 8, "i", 0, 0, "int64", "int64", "complex64"),
    ("float16", 2, "f", 10, 5, "float32", "float16", "complex64"),
    ("bfloat16", 2, "f", 7, 8, "float32", "bfloat16", "complex64"),
    ("float32", 4, "f", 23, 8, "float32", "float32", "complex64"),
    ("float64", 8, "f", 52, 11, "float64", "float64", "complex128"),
    ("complex64", 8, "c", 23, 8, "complex64", "float32", "complex64"),
    ("complex128", 16, "c", 52, 11, "complex128", "float64", "complex128"),
)

# The names of the dtypes that tensors hold.
SUPPORTED = tuple(row[0] for row in _ROWS)


@dataclass(frozen=True, slots=True)
class ElementInfo:
    """The facts of a dtype; `smallest`, `largest` and `eps` are those of its parts.

    `smallest` is the least number of an integer type, and the least positive normal
    number of a floating one; `eps` is the step above 1, or 0 for integers.
    """

    name: str
    itemsize: int
    kind: str
    smallest: int | float
    largest: int | float
    eps: float


def _info(name: str, size: int, kind: str, digits: int, exponent: int) -> ElementInfo:
    if digits:
        top = 2 ** (exponent - 1)
        largest = (2.0 - 2.0**-digits) * 2.0 ** (top - 1)
        return ElementInfo(name, size, kind, 2.0 ** (2 - top), largest, 2.0**-digits)
    bits = 1 if kind == "b" else 8 * size
    low = -(2 ** (bits - 1)) if kind == "i" else 0
    return ElementInfo(name, size, kind, low, low + 2**bits - 1, 0.0)


_INFO = {DType.named(row[0]): _info(*row[:5]) for row in _ROWS}
_SIZES = {dtype: info.itemsize for dtype, info in _INFO.items()}
_COMPUTE = {DType.named(row[0]): DType.named(row[5]) for row in _ROWS}
_REAL = {DType.named(row[0]): DType.named(row[6]) for row in _ROWS}
_COMPLEX = {DType.named(row[0]): DType.named(row[7]) for row in _ROWS}

# Python's own types of numbers, as NumPy reads them.
_BUILTIN = {
    bool: DType.named("bool"),
    int: DType.named("int64"),
    float: DType.named("float64"),
    complex: DType.named("complex128"),
}
# What stands where a dtype should is shown up to this many characters: half a line.
_SHOWN = 40

# Filled as they are asked for: NumPy is loaded by the first tensor, not before.
_NUMPY: dict[DType, "np.dtype[Any]"] = {}
_BACK: dict["np.dtype[Any]", DType] = {}


def numpy_dtype(dtype: DType) -> "np.dtype[Any]":
    """The NumPy form of a dtype.  Raises `UnsupportedData` for one not in the table."""
    found = _NUMPY.get(dtype)
    return _load(dtype) if found is None else found


def dtype_of(form: "np.dtype[Any]") -> DType:
    """The dtype that NumPy has as `form`.  Raises `UnsupportedData`."""
    found = _BACK.get(form)
    return _BACK.setdefault(form, _supported(form.name)) if found is None else found


def supported(dtype: Any) -> DType:
    """A dtype that tensors can hold, in whichever way it is written.

    It is given as such, by a name or synonym, as Python's `float`, `int`, `bool` or
    `complex` (the widest of the kind, as in NumPy), or as NumPy's dtype or scalar type.
    Raises `UnsupportedData` for any other.
    """
    if isinstance(dtype, DType):
        return dtype if dtype in _INFO else _supported(dtype.name)
    if isinstance(dtype, str):
        return _supported(dtype)
    found = _BUILTIN.get(dtype) if isinstance(dtype, type) else None
    return _of_numpy(dtype) if found is None else found


def itemsize(dtype: DType) -> int:
    """The bytes of one element."""
    return _SIZES[dtype]


def compute_dtype(dtype: DType) -> DType:
    """What kernels compute in: float32 for 16-bit floats, else the dtype itself."""
    return _COMPUTE[dtype]


def real_dtype(dtype: DType) -> DType:
    """The dtype of the parts of a complex dtype; others are themselves."""
    return _REAL[dtype]


def complex_dtype(dtype: DType) -> DType:
    """The complex dtype that holds a dtype's numbers; integers go to complex64."""
    return _COMPLEX[dtype]


def info(dtype: DType) -> ElementInfo:
    """The facts of a dtype.  Raises `UnsupportedData` for one not in the table."""
    return _INFO[supported(dtype)]


def _supported(name: str) -> DType:
    name = DType.SYNONYMS.get(name, name)
    if name not in SUPPORTED:
        raise UnsupportedData(dtype=name, near=nearest(name, SUPPORTED))
    return DType.named(name)


def _of_numpy(given: Any) -> DType:
    import numpy as np

    scalar = isinstance(given, type) and issubclass(given, np.generic)
    if scalar or isinstance(given, np.dtype):
        return _supported(np.dtype(given).name)
    text = given.__name__ if isinstance(given, type) else repr(given)[:_SHOWN]
    raise UnsupportedData(dtype=text, near=nearest(text, SUPPORTED))


def _load(dtype: DType) -> "np.dtype[Any]":
    import numpy as np

    name = supported(dtype).name
    if name == "bfloat16":
        from ml_dtypes import bfloat16

        form = np.dtype(bfloat16)
    else:
        form = np.dtype(name)
    _BACK[form] = dtype
    return _NUMPY.setdefault(dtype, form)
