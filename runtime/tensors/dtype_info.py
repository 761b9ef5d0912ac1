"""The dtypes of tensors: their sizes, relatives and limits, and promotion.

One table has the supported dtypes and their NumPy forms.  bfloat16 has no NumPy form of
its own; ml_dtypes brings one.  16-bit floats are stored, but computed with as float32.
`finfo` and `iinfo` say the limits by the names that NumPy and torch give them.

Promotion says which dtype the result of several has: a lattice, as a literal table, and
three categories of values.  Both are those of the Array API standard as torch extends
it: a uint8 with an int8 goes to int16, any integer with a float is that float, float16
with bfloat16 is float32, and a float64 with a complex64 is a complex128.

Rules:
- one row a dtype, in the order of widening; to support another, add its row here and in
  the table of promotions, and kernels for it;
- values fall in three categories: tensors with dimensions, tensors without, and
  numbers (Python's, and wrapped ones); each is promoted in itself first;
- a lower category changes the result only where its kind is higher (bool, integer,
  floating, complex); otherwise the higher category decides alone;
- a Python float brings float32, a complex complex64, where it decides.
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
class DTypeInfo:
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
# What stands where a dtype should is shown up to this many characters: half a line.
_SHOWN = 40

# Filled as they are asked for: NumPy is loaded by the first tensor, not before.
_NUMPY: dict[DType, "np.dtype[Any]"] = {}
_BACK: dict["np.dtype[Any]", DType] = {}


def numpy_dtype(dtype: DType) -> "np.dtype[Any]":
    """The NumPy form of a dtype.  Raises `UnfitValue` for one not in the table."""
    found = _NUMPY.get(dtype)
    return _load(dtype) if found is None else found


def dtype_of(form: "np.dtype[Any]") -> DType:
    """The dtype that NumPy has as `form`.  Raises `UnfitValue`."""
    found = _BACK.get(form)
    return _BACK.setdefault(form, _parse_name(form.name)) if found is None else found


def parse_dtype(dtype: Any) -> DType:
    """A dtype that tensors can hold, in whichever way it is written.

    It is given as such, by a name or synonym, as Python's `float`, `int`, `bool` or
    `complex` (the widest of the kind, as in NumPy), or as NumPy's dtype or scalar type.
    Raises `UnfitValue` for any other.
    """
    if isinstance(dtype, DType):
        return dtype if dtype in _INFO else _parse_name(dtype.name)
    if isinstance(dtype, str):
        return _parse_name(dtype)
    found = BUILTIN.get(dtype) if isinstance(dtype, type) else None
    return _of_numpy(dtype) if found is None else found


def itemsize(dtype: DType) -> int:
    """The bytes of one element."""
    return _SIZES[dtype]


def compute_dtype(dtype: DType) -> DType:
    """The dtype that kernels compute in: float32 for 16-bit floats, else itself."""
    return _COMPUTE[dtype]


def real_dtype(dtype: DType) -> DType:
    """The dtype of the parts of a complex dtype; others are themselves."""
    return _REAL[dtype]


def complex_dtype(dtype: DType) -> DType:
    """The complex dtype that holds a dtype's numbers; integers go to complex64."""
    return _COMPLEX[dtype]


def info(dtype: DType) -> DTypeInfo:
    """The facts of a dtype.  Raises `UnfitValue` for one not in the table."""
    return _INFO[parse_dtype(dtype)]


def check_differentiable(dtype: DType) -> None:
    """Refuse a dtype whose tensors have no gradient.  Raises `UnfitValue`."""
    if dtype not in DIFFERENTIABLE:
        raise UnfitValue(code="NoGradient", dtype=str(dtype))


def _parse_name(name: str) -> DType:
    name = DType.SYNONYMS.get(name, name)
    if name not in SUPPORTED:
        raise UnfitValue(
            code="UnsupportedData", dtype=name, near=nearest(name, SUPPORTED)
        )
    return DType.named(name)


def _of_numpy(given: Any) -> DType:
    import numpy as np

    scalar = isinstance(given, type) and issubclass(given, np.generic)
    if scalar or isinstance(given, np.dtype):
        return _parse_name(np.dtype(given).name)
    text = given.__name__ if isinstance(given, type) else repr(given)[:_SHOWN]
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


def _facts(asked: str, given: object, kinds: str) -> tuple[DType, DTypeInfo]:
    """The facts of a dtype of some kinds.  Raises `UnfitValue`."""
    dtype = parse_dtype(given)
    found = info(dtype)
    if found.kind not in kinds:
        fits = "an integer dtype" if "i" in kinds else "a floating or complex dtype"
        raise UnfitValue(asked=asked, found=str(dtype), fits=fits)
    return dtype, found


class finfo:  # noqa: N801  # the name that programs look for
    """The limits of a floating-point dtype; of a complex one, those of its parts.

    Raises `UnfitValue` for any other.
    """

    def __init__(self, dtype: object = "float32") -> None:
        kind, facts = _facts("finfo", dtype, "fc")
        self.dtype = real_dtype(kind).name
        parts = 2 if kind.is_complex else 1
        self.bits = 8 * facts.itemsize // parts
        self.eps = facts.eps
        self.max = float(facts.largest)
        self.min = -self.max
        self.tiny = self.smallest_normal = float(facts.smallest)
        # As many decimal digits as it keeps whatever the number.
        self.resolution = 10.0 ** -floor(-log10(facts.eps))

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, "
            f"max={self.max:g}, eps={self.eps:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:  # noqa: N801  # as above
    """The limits of an integer dtype.  Raises `UnfitValue` for any other."""

    def __init__(self, dtype: object) -> None:
        kind, facts = _facts("iinfo", dtype, "iu")
        self.dtype = kind.name
        self.bits = 8 * facts.itemsize
        self.max, self.min = int(facts.largest), int(facts.smallest)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


# Row and column in the order of SUPPORTED; what is left of the diagonal mirrors it.
_PROMOTIONS = """
b1 u1 i1 i2 i4 i8 f2 bf f4 f8 c8 c16
   u1 i2 i2 i4 i8 f2 bf f4 f8 c8 c16
      i1 i2 i4 i8 f2 bf f4 f8 c8 c16
         i2 i4 i8 f2 bf f4 f8 c8 c16
            i4 i8 f2 bf f4 f8 c8 c16
               i8 f2 bf f4 f8 c8 c16
                  f2 f4 f4 f8 c8 c16
                     bf f4 f8 c8 c16
                        f4 f8 c8 c16
                           f8 c16 c16
                              c8 c16
                                 c16
"""

# The short names of the table, in the order of SUPPORTED.
_SHORT = ("b1", "u1", "i1", "i2", "i4", "i8", "f2", "bf", "f4", "f8", "c8", "c16")

DTYPES = tuple(map(DType.named, SUPPORTED))
_NAMED = dict(zip(_SHORT, DTYPES, strict=True))


def _table() -> dict[tuple[DType, DType], DType]:
    found = {}
    for at, row in enumerate(_PROMOTIONS.split("\n")[1:-1]):
        for other, name in zip(DTYPES[at:], row.split(), strict=True):
            found[DTYPES[at], other] = found[other, DTYPES[at]] = _NAMED[name]
    return found


# The dtype of two, in either order.
PROMOTED = _table()

# Kinds in the order in which a lower category gives way to a higher one.
_KINDS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
KIND_OF = {dtype: _KINDS[info(dtype).kind] for dtype in DTYPES}

# What a Python number brings where it decides, by class.
_OF_NUMBERS = {
    bool: DType.named("bool"),
    int: DType.named("int64"),
    float: DType.named("float32"),
    complex: DType.named("complex64"),
}


def promote_types(one: DType, other: DType) -> DType:
    """The narrowest dtype that both go to."""
    return PROMOTED[one, other]


def number_dtype(number: Number) -> DType:
    """The dtype that a Python number has by itself."""
    found = _OF_NUMBERS.get(type(number))
    if found is None:
        found = next(of for base, of in _OF_NUMBERS.items() if isinstance(number, base))
    return found


def combine_categories(
    dimensioned: DType | None, scalar: DType | None, number: DType | None
) -> DType:
    """The result of the three categories, each promoted in itself, None if empty."""
    found = _combine(dimensioned, _combine(scalar, number))
    assert found is not None, "there is a value in one of the categories"
    return found


def can_cast(source: DType, target: DType) -> bool:
    """Whether a result of `source` may be written to a tensor of `target`.

    Not from complex to real, from floating to integer, or from a number to bool.
    """
    return KIND_OF[source] <= KIND_OF[target]


def promote_skip_none(one: DType | None, other: DType) -> DType:
    """`promote_types`, where there may be none yet."""
    return other if one is None else PROMOTED[one, other]


def _combine(higher: DType | None, lower: DType | None) -> DType | None:
    """`higher`, unless `lower` is of a higher kind."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    if KIND_OF[lower] <= KIND_OF[higher]:
        return higher
    if KIND_OF[lower] == 3 and KIND_OF[higher] == 2:
        # A complex number keeps the precision of the floats that it meets.
        return complex_dtype(higher)
    return PROMOTED[higher, lower]
