"""Promotion: the dtype of a result from several dtypes.

A lattice, as a literal table, and three categories of values.  Both are those of the
Array API standard as torch extends it: uint8 with int8 is int16, any integer with a
float is that float, float16 with bfloat16 is float32, and float64 with complex64 is
complex128.

Rules:
- values fall in three categories: tensors with dimensions, tensors without, and numbers
  (Python's, and wrapped ones); each category is promoted by itself first;
- a lower category changes the result only if its kind is higher (bool, integer,
  floating, complex); otherwise the higher category decides alone;
- a Python float that decides has the default dtype, a Python complex the complex
  default (`runtime.tensors.dtype_info.set_default_dtype`).
"""

from typing import Any

from everyorder.runtime.errors.tensor import UnfitValue
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.dtype_info import (
    DEFAULTS,
    SUPPORTED,
    Number,
    complex_dtype,
    info,
    parse_dtype,
)
from everyorder.runtime.tensors.tensor import Tensor

# Row and column in the order of SUPPORTED; the table is symmetric, so the half left of
# the diagonal is omitted.
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
    table = {}
    for at, row in enumerate(_PROMOTIONS.split("\n")[1:-1]):
        for other, name in zip(DTYPES[at:], row.split(), strict=True):
            table[DTYPES[at], other] = table[other, DTYPES[at]] = _NAMED[name]
    return table


# The promoted dtype of two dtypes, in either order.
PROMOTED = _table()

# A lower category decides the result only if its kind is higher in this order.
_KINDS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
KIND_OF = {dtype: _KINDS[info(dtype).kind] for dtype in DTYPES}

# The dtype of a Python number that decides the result, by class; None for the default.
_OF_NUMBERS = {
    bool: DType.named("bool"),
    int: DType.named("int64"),
    float: None,
    complex: None,
}


def result_type(*values: Tensor | Number | DType) -> DType:
    """Return the dtype in which an operator combines the values.

    A dtype counts as a tensor with dimensions.

    Raises:
        ValueError: there are no values.
        UnfitValue: a value is neither a tensor, nor a number, nor a dtype.
    """
    if not values:
        raise ValueError("a result type needs a value")
    dimensioned: DType | None = None
    scalar: DType | None = None
    number: DType | None = None
    for value in values:
        if isinstance(value, Tensor) and value.number is None:
            dtype = value.dtype
            if value.shape:
                dimensioned = promote_skip_none(dimensioned, dtype)
            else:
                scalar = promote_skip_none(scalar, dtype)
        elif isinstance(value, DType):
            dimensioned = promote_skip_none(dimensioned, value)
        else:
            plain: Any = value.number if isinstance(value, Tensor) else value
            number = promote_skip_none(number, number_dtype(plain))
    return combine_categories(dimensioned, scalar, number)


def promote_types(type1: DType, type2: DType) -> DType:
    """Return the narrowest dtype that both dtypes promote to.

    Raises:
        UnfitValue: tensors do not support one of the dtypes.
    """
    try:
        return PROMOTED[type1, type2]
    except KeyError:
        return PROMOTED[parse_dtype(type1), parse_dtype(type2)]


def number_dtype(number: Number) -> DType:
    """Return the dtype of a Python number that decides the result.

    Raises:
        UnfitValue: the value is not a number.
    """
    kind: type = type(number)
    if kind not in _OF_NUMBERS:
        bases = [base for base in _OF_NUMBERS if isinstance(number, base)]
        if not bases:
            raise UnfitValue(
                asked="result_type",
                found=f"a {type(number).__name__}",
                fits="tensors, numbers and dtypes",
            )
        kind = bases[0]
    dtype = _OF_NUMBERS[kind]
    if dtype is None:
        return DEFAULTS.real if kind is float else DEFAULTS.complex
    return dtype


def combine_categories(
    dimensioned: DType | None, scalar: DType | None, number: DType | None
) -> DType:
    """Return the result dtype of the three categories.

    Each argument is the promoted dtype of its category, or None for an empty category;
    at least one is not None.
    """
    dtype = _combine(dimensioned, _combine(scalar, number))
    assert dtype is not None, "there is a value in one of the categories"
    return dtype


def can_cast(from_: DType, to: DType) -> bool:
    """Return True if a result of dtype `from_` may be written to a tensor of `to`.

    The kind may not fall: from complex to real, from floating to integer, or from a
    number to bool.

    Raises:
        UnfitValue: tensors do not support one of the dtypes.
    """
    return KIND_OF[parse_dtype(from_)] <= KIND_OF[parse_dtype(to)]


def promote_skip_none(one: DType | None, other: DType) -> DType:
    """Return `promote_types(one, other)`, or `other` if `one` is None."""
    return other if one is None else PROMOTED[one, other]


def _combine(higher: DType | None, lower: DType | None) -> DType | None:
    """Return `higher`, unless the kind of `lower` is higher."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    if KIND_OF[lower] <= KIND_OF[higher]:
        return higher
    if KIND_OF[lower] == 3 and KIND_OF[higher] == 2:
        # A complex number keeps the precision of the floats that it meets.
        return complex_dtype(higher)
    return PROMOTED[higher, lower]
