"""The dtypes of tensors: sizes, compute types and limits.

One table holds the supported dtypes and their NumPy forms.  NumPy lacks bfloat16;
ml_dtypes provides it.  16-bit floats are stored as such and computed in float32.
`finfo` and `iinfo` report the limits under the names of NumPy and torch.

Rules:
- one row per dtype, in the order of widening; to support another dtype, add its row
  here and in the table of promotions (`runtime.tensors.promotion`), and kernels for it.
"""

from dataclasses import dataclass
from math import floor, log10
from typing import TYPE_CHECKING, Any

from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.tensor import UnfitValue
from everyorder.runtime.schema.enums import DType

if TYPE_CHECKING:
    import numpy as np


# A Python number.
Number = bool | int | float | complex
NUMBERS = (bool, int, float, complex)

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

# The names of the supported dtypes.
SUPPORTED = tuple(row[0] for row in _ROWS)


@dataclass(frozen=True, slots=True)
class DTypeInfo:
    """Size, kind and limits of a dtype; complex dtypes have the limits of their parts.

    `itemsize` is in bytes; `kind` is NumPy's letter.  `smallest` is the least number of
    an integer type, and the least positive normal number of a floating one; `eps` is
    the distance from 1 to the next number, or 0 for integers.
    """

    name: str
    itemsize: int
    kind: str
    smallest: int | float
    largest: int | float
    eps: float


def _info(name: str, size: int, kind: str, digits: int, exponent: int) -> DTypeInfo:
    if digits:
        top = 2 ** (exponent - 1)
        largest = (2.0 - 2.0**-digits) * 2.0 ** (top - 1)
        return DTypeInfo(name, size, kind, 2.0 ** (2 - top), largest, 2.0**-digits)
    bits = 1 if kind == "b" else 8 * size
    low = -(2 ** (bits - 1)) if kind == "i" else 0
    return DTypeInfo(name, size, kind, low, low + 2**bits - 1, 0.0)


_INFO = {DType.named(row[0]): _info(*row[:5]) for row in _ROWS}
_SIZES = {dtype: info.itemsize for dtype, info in _INFO.items()}
_COMPUTE = {DType.named(row[0]): DType.named(row[5]) for row in _ROWS}
_REAL = {DType.named(row[0]): DType.named(row[6]) for row in _ROWS}
_COMPLEX = {DType.named(row[0]): DType.named(row[7]) for row in _ROWS}


class _Defaults:
    """The dtypes of Python's floats and complex numbers, for the whole process."""

    __slots__ = ("complex", "real")

    def __init__(self) -> None:
        self.real = DType.named("float32")
        self.complex = DType.named("complex64")


# Read by every operator that makes floating-point numbers from others.
DEFAULTS = _Defaults()


def get_default_dtype() -> DType:
    """Return the dtype of tensors made of Python's floats."""
    return DEFAULTS.real


def set_default_dtype(d: DType | str) -> None:
    """Make `d` the dtype of Python's floats, in all threads of the process.

    Factories without a dtype, `tensor` of floats, integers that become floating-point
    numbers, and integers that meet a float follow it. Complex numbers become complex128
    with float64, and complex64 with any other dtype.

    Raises:
        UnfitValue: `d` is not a floating-point dtype.
    """
    dtype = parse_dtype(d)
    if not dtype.is_floating:
        raise UnfitValue(
            asked="set_default_dtype",
            found=str(dtype),
            fits="a floating-point dtype",
        )
    DEFAULTS.real, DEFAULTS.complex = dtype, complex_dtype(dtype)


# The dtypes of tensors that can have gradients.
DIFFERENTIABLE = frozenset(
    dtype for dtype in _INFO if dtype.is_floating or dtype.is_complex
)

# Python's own types of numbers, as NumPy reads them.
BUILTIN = {
    bool: DType.named("bool"),
    int: DType.named("int64"),
    float: DType.named("float64"),
    complex: DType.named("complex128"),
}
# An error shows at most this many characters of a value that is not a dtype: half a
# line.
_SHOWN = 40

# Filled on demand: the first tensor loads NumPy, not the import of this module.
_NUMPY: dict[DType, "np.dtype[Any]"] = {}
_BACK: dict["np.dtype[Any]", DType] = {}


def numpy_dtype(dtype: DType) -> "np.dtype[Any]":
    """Return the NumPy form of a dtype.  Raises `UnfitValue` for an unsupported one."""
    form = _NUMPY.get(dtype)
    return _load(dtype) if form is None else form


def dtype_of(form: "np.dtype[Any]") -> DType:
    """Return the dtype of a NumPy form.  Raises `UnfitValue` for an unsupported one."""
    dtype = _BACK.get(form)
    return _BACK.setdefault(form, _parse_name(form.name)) if dtype is None else dtype


def parse_dtype(dtype: Any) -> DType:
    """Return the supported dtype that `dtype` denotes.

    `dtype` is a `DType`, a name or synonym, Python's `float`, `int`, `bool` or
    `complex` (the widest dtype of the kind, as in NumPy), or NumPy's dtype or scalar
    type.

    Raises:
        UnfitValue: `dtype` is anything else, or an unsupported dtype.
    """
    if isinstance(dtype, DType):
        return dtype if dtype in _INFO else _parse_name(dtype.name)
    if isinstance(dtype, str):
        return _parse_name(dtype)
    builtin = BUILTIN.get(dtype) if isinstance(dtype, type) else None
    return _of_numpy(dtype) if builtin is None else builtin


def itemsize(dtype: DType) -> int:
    """Return the size of one element in bytes."""
    return _SIZES[dtype]


def compute_dtype(dtype: DType) -> DType:
    """Return the dtype of computation: float32 for 16-bit floats, else `dtype`."""
    return _COMPUTE[dtype]


def real_dtype(dtype: DType) -> DType:
    """Return the dtype of the parts of a complex dtype, or a real dtype itself."""
    return _REAL[dtype]


def complex_dtype(dtype: DType) -> DType:
    """Return the complex dtype that holds a dtype's numbers; complex64 for integers."""
    return _COMPLEX[dtype]


def info(dtype: DType) -> DTypeInfo:
    """Return the facts of a dtype.  Raises `UnfitValue` for an unsupported one."""
    return _INFO[parse_dtype(dtype)]


def check_differentiable(dtype: DType) -> None:
    """Refuse a dtype whose tensors cannot have gradients.  Raises `UnfitValue`."""
    if dtype not in DIFFERENTIABLE:
        raise UnfitValue(code="NoGradient", dtype=str(dtype))


def _parse_name(name: str) -> DType:
    name = DType.SYNONYMS.get(name, name)
    if name not in SUPPORTED:
        raise UnfitValue(
            code="UnsupportedData", dtype=name, near=nearest(name, SUPPORTED)
        )
    return DType.named(name)


def _of_numpy(form: Any) -> DType:
    import numpy as np

    scalar = isinstance(form, type) and issubclass(form, np.generic)
    if scalar or isinstance(form, np.dtype):
        return _parse_name(np.dtype(form).name)
    text = form.__name__ if isinstance(form, type) else repr(form)[:_SHOWN]
    raise UnfitValue(code="UnsupportedData", dtype=text, near=nearest(text, SUPPORTED))


def _load(dtype: DType) -> "np.dtype[Any]":
    import numpy as np

    name = parse_dtype(dtype).name
    if name == "bfloat16":
        from ml_dtypes import bfloat16

        form = np.dtype(bfloat16)
    else:
        form = np.dtype(name)
    _BACK[form] = dtype
    return _NUMPY.setdefault(dtype, form)


def _facts(caller: str, value: object, kinds: str) -> tuple[DType, DTypeInfo]:
    """Return a dtype and its facts if its kind is in `kinds`.  Raises `UnfitValue`."""
    dtype = parse_dtype(value)
    facts = info(dtype)
    if facts.kind not in kinds:
        fits = "an integer dtype" if "i" in kinds else "a floating or complex dtype"
        raise UnfitValue(asked=caller, found=str(dtype), fits=fits)
    return dtype, facts


class finfo:  # noqa: N801  # the name that programs look for
    """The limits of a floating-point dtype, or of the parts of a complex one.

    Without `dtype` they are those of the default dtype.

    Raises:
        UnfitValue: the dtype is neither floating-point nor complex.
    """

    def __init__(self, dtype: object = None) -> None:
        value = DEFAULTS.real if dtype is None else dtype
        kind, facts = _facts("finfo", value, "fc")
        self.dtype = real_dtype(kind).name
        parts = 2 if kind.is_complex else 1
        self.bits = 8 * facts.itemsize // parts
        self.eps = facts.eps
        self.max = float(facts.largest)
        self.min = -self.max
        self.tiny = self.smallest_normal = float(facts.smallest)
        # The decimal digits that every number of the dtype keeps.
        self.resolution = 10.0 ** -floor(-log10(facts.eps))

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, "
            f"max={self.max:g}, eps={self.eps:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:  # noqa: N801  # as above
    """The limits of an integer dtype.  Raises `UnfitValue` for another dtype."""

    def __init__(self, dtype: object) -> None:
        kind, facts = _facts("iinfo", dtype, "iu")
        self.dtype = kind.name
        self.bits = 8 * facts.itemsize
        self.max, self.min = int(facts.largest), int(facts.smallest)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
