"""Type promotion: which dtype the result of several has.

True only here: the lattice, as a literal table, and the three categories of values.
Both are those of the Array API standard as torch extends it: a uint8 with an int8 goes
to int16, any integer with a float is that float, float16 with bfloat16 is float32, and
a float64 with a complex64 is a complex128.

Rules:
- values fall in three categories: tensors with dimensions, tensors without, and
  numbers (Python's, and wrapped ones); each is promoted in itself first;
- a lower category changes the result only where its kind is higher (bool, integer,
  floating, complex); otherwise the higher category decides alone;
- a Python float brings float32, a complex complex64, where it decides.

How it works: `_ROWS` is the upper triangle in the order of `SUPPORTED`;
`promote_types` is a look-up in a dict of pairs.
"""

from runtime.schema.codes import DType
from runtime.tensors.arrays import Number
from runtime.tensors.elements import SUPPORTED, complex_dtype, info
from runtime.tensors.tensor import Tensor

# Row and column in the order of SUPPORTED; what is left of the diagonal mirrors it.
_ROWS = """
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
    for at, row in enumerate(_ROWS.split("\n")[1:-1]):
        for other, name in zip(DTYPES[at:], row.split(), strict=True):
            found[DTYPES[at], other] = found[other, DTYPES[at]] = _NAMED[name]
    return found


# The dtype of two, in either order.
PROMOTED = _table()

# Kinds in the order in which a lower category gives way to a higher one.
_KINDS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
KIND_OF = {dtype: _KINDS[info(dtype).kind] for dtype in DTYPES}

# What a Python number brings where it decides, by class.
_DEFAULT = {
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
    found = _DEFAULT.get(type(number))
    if found is None:
        found = next(of for base, of in _DEFAULT.items() if isinstance(number, base))
    return found


def result_type(*values: Tensor | Number | DType) -> DType:
    """The dtype in which an operator combines the values.

    A dtype counts as a tensor with dimensions.  Raises ValueError without values.
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
                dimensioned = _joined(dimensioned, dtype)
            else:
                scalar = _joined(scalar, dtype)
        elif isinstance(value, DType):
            dimensioned = _joined(dimensioned, value)
        else:
            plain = value.number if isinstance(value, Tensor) else value
            assert plain is not None, "other tensors were taken above"
            number = _joined(number, number_dtype(plain))
    return combined(dimensioned, scalar, number)


def combined(
    dimensioned: DType | None, scalar: DType | None, number: DType | None
) -> DType:
    """The result of the three categories, each promoted in itself, None if empty."""
    found = _over(dimensioned, _over(scalar, number))
    assert found is not None, "there is a value in one of the categories"
    return found


def can_cast(source: DType, target: DType) -> bool:
    """Whether a result of `source` may be written to a tensor of `target`.

    Not from complex to real, from floating to integer, or from a number to bool.
    """
    return KIND_OF[source] <= KIND_OF[target]


def _joined(one: DType | None, other: DType) -> DType:
    return other if one is None else PROMOTED[one, other]


def _over(higher: DType | None, lower: DType | None) -> DType | None:
    """`higher`, unless `lower` is of a higher kind."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    if KIND_OF[lower] <= KIND_OF[higher]:
        return higher
    if KIND_OF[lower] == 3 and KIND_OF[higher] == 2:
        # A complex number keeps the precision of the floats that it meets.
        return complex_dtype(higher)
    return PROMOTED[higher, lower]
