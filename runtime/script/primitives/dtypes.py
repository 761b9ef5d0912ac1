"""Primitives of dtypes: promotion, limits, and facts of a dtype.

    can_cast, promote_types, result_type, get_default_dtype    as in `runtime`
    finfo(d).eps, iinfo(d).max, ...    a primitive for each limit
    d.is_floating_point, d.to_real()   facts of a dtype

Rules:
- in a program a dtype is its number; functions here accept both;
- the limits of `finfo` and `iinfo` are primitives named after class and attribute
  (`finfo_eps`), because a program has no object of these classes.
"""

from collections.abc import Callable
from typing import Any

from everyorder.runtime.schema.enums import DType
from everyorder.runtime.script.primitives.primitive_row import (
    PrimitiveRow,
    Way,
    attributes,
    row,
)
from everyorder.runtime.tensors.dtype_info import finfo, get_default_dtype, iinfo
from everyorder.runtime.tensors.promotion import can_cast, promote_types, result_type

# The limits, with their types in schemas.
LIMITS: dict[type, dict[str, str]] = {
    finfo: {
        **dict.fromkeys(("eps", "max", "min", "resolution"), "float"),
        **dict.fromkeys(("smallest_normal", "tiny"), "float"),
        "bits": "int",
        "dtype": "str",
    },
    iinfo: {**dict.fromkeys(("bits", "max", "min"), "int"), "dtype": "str"},
}

# Not a constant: the default can be set between two calls.
_CHANGES = ("nondeterministic_seeded",)
_DTYPES = "float32; int64; bool; complex64; bfloat16"
_PAIRS = "int32, float32; float32, int64; uint8, int8; complex64, float64"


def _kind(dtype: Any) -> DType:
    return DType(dtype) if dtype.__class__ is int else dtype


def _can_cast(from_: Any, to: Any) -> bool:
    return can_cast(_kind(from_), _kind(to))


def _promoted(type1: Any, type2: Any) -> int:
    code: int = promote_types(_kind(type1), _kind(type2)).code
    return code


def _result_type(one: Any, other: Any) -> int:
    code: int = result_type(one, other).code
    return code


def _default() -> int:
    code: int = get_default_dtype().code
    return code


def _limit(of: Any, name: str) -> Callable[[Any], Any]:
    """Return the function that reads one limit of a dtype."""

    def limit(dtype: Any) -> Any:
        return getattr(of(_kind(dtype)), name)

    limit.__name__ = limit.__qualname__ = f"{of.__name__}_{name}"
    return limit


def _fact(name: str) -> Callable[[Any], Any]:
    """Return the function that reads one attribute of a dtype."""
    return lambda self: getattr(_kind(self), name)


def _part(name: str) -> Callable[[Any], int]:
    """Return the function that calls one method of a dtype."""

    def converted(self: Any) -> int:
        code: int = getattr(_kind(self), name)().code
        return code

    return converted


def _named(
    schema: str, python: Any, function: Any, samples: str, **more: Any
) -> PrimitiveRow:
    name = schema.partition(".")[0]
    way = Way("function", python, f"ops.script.{name}")
    return row(schema, way, function, samples, **more)


_FACTS = {
    **dict.fromkeys(("is_floating_point", "is_complex", "is_signed"), "bool"),
    "itemsize": "int",
}

ROWS = (
    _named(
        "can_cast.ScalarType(ScalarType from_, ScalarType to) -> bool",
        can_cast,
        _can_cast,
        f"{_PAIRS}; complex32, float32",
        raises=True,
    ),
    _named(
        "promote_types.ScalarType(ScalarType type1, ScalarType type2) -> ScalarType",
        promote_types,
        _promoted,
        f"{_PAIRS}; complex32, float32",
        raises=True,
    ),
    *(
        _named(
            f"result_type.{overload}({one}, {other}) -> ScalarType",
            result_type,
            _result_type,
            samples,
            tags=_CHANGES,
        )
        for overload, one, other, samples in (
            ("Tensor", "Tensor tensor", "Tensor other", "T0, T2; tensor(1), T0"),
            ("Scalar", "Tensor tensor", "Scalar other", "tensor([1]), 1.5; T0, 1"),
            ("Scalar_Tensor", "Scalar scalar", "Tensor tensor", "1j, T0; 1, T2"),
            ("Scalar_Scalar", "Scalar scalar1", "Scalar scalar2", "1, 1.5; True, 1"),
        )
    ),
    _named(
        "get_default_dtype.mode() -> ScalarType",
        get_default_dtype,
        _default,
        "",
        tags=_CHANGES,
    ),
    *(
        row(
            f"{of.__name__}_{name}.ScalarType(ScalarType dtype) -> {result}",
            Way(
                "function",
                limit := _limit(of, name),
                f"ops.script.{of.__name__}_{name}",
            ),
            limit,
            _DTYPES,
            raises=True,
        )
        for of, limits in LIMITS.items()
        for name, result in limits.items()
    ),
    *attributes(
        "\n".join(
            f"{name}.ScalarType(ScalarType self) -> {result}\n    {_DTYPES}"
            for name, result in _FACTS.items()
        ),
        {name: _fact(name) for name in _FACTS},
    ),
    row(
        "to_real.ScalarType(ScalarType self) -> ScalarType",
        Way("method", "to_real", "to_real"),
        _part("to_real"),
        _DTYPES,
    ),
    row(
        "to_complex.ScalarType(ScalarType self) -> ScalarType",
        Way("method", "to_complex", "to_complex"),
        _part("to_complex"),
        _DTYPES,
        raises=True,
    ),
)
