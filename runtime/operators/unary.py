"""Operators of one tensor, element by element.

True only here: for which dtypes each is defined, and what dtype the result has.

========== ==========================================================================
family     result
========== ==========================================================================
SAME       the dtype of the input (`abs` of complex numbers is real)
FLOATING   as the input; integers and bool give float32
TRUTH      bool
========== ==========================================================================

Rule: a row `dtype -> (result, computed in, kernel)` is all that the plan of a call
looks up; what integers need not compute (`floor`, `isnan`, ...) runs `copy` or `fill`.
"""

from collections.abc import Mapping
from typing import Any

from runtime.errors.operands import DTypeRefused, WrongOption
from runtime.operators.fast import fast_unary
from runtime.operators.plan import (
    ALL,
    BOOL,
    COMPLEXES,
    FLOAT32,
    FLOATS,
    INT64,
    INTEGERS,
    NUMBERS,
    REALS,
    Plan,
    Work,
)
from runtime.operators.structured import Planner, Structured
from runtime.schema.codes import DType
from runtime.tensors.elements import compute_dtype, real_dtype
from runtime.tensors.tensor import Tensor

Row = tuple[DType, DType, str | Work | None]
Rows = Mapping[DType, Row]


def same(accepted: frozenset[DType]) -> dict[DType, Row]:
    """Rows of operators that keep the dtype."""
    return {dtype: (dtype, compute_dtype(dtype), None) for dtype in accepted}


def floating(accepted: frozenset[DType]) -> dict[DType, Row]:
    """Rows of operators that make floating-point numbers of integers."""
    rows = same(accepted & (FLOATS | COMPLEXES))
    for dtype in accepted - (FLOATS | COMPLEXES):
        rows[dtype] = (FLOAT32, FLOAT32, None)
    return rows


def truth(accepted: frozenset[DType]) -> dict[DType, Row]:
    """Rows of operators that tell true from false."""
    return {dtype: (BOOL, compute_dtype(dtype), None) for dtype in accepted}


def refuse(call: str, rows: Rows, argument: str, dtype: DType) -> DTypeRefused:
    """The error of a dtype that is not among the rows."""
    fits = ", ".join(sorted(map(str, rows)))
    return DTypeRefused(operator=call, argument=argument, dtype=str(dtype), fits=fits)


def planner(rows: Rows) -> Planner:
    """The plan of an operator of one tensor, by its rows."""

    def plan(call: str, self: Tensor) -> Plan:
        dtype = self.dtype
        row = rows.get(dtype)
        if row is None:
            raise refuse(call, rows, "self", dtype)
        result, compute, kernel = row
        return Plan(
            ((self.shape, result),),
            self.device,
            (self,),
            compute,
            None,
            None,
            kernel,
            True,
        )

    return plan


def _filled(value: bool) -> Work:
    def fill(table: Any, out: Tensor, _: Tensor) -> None:
        table["fill"](out, value)

    return fill


def _with(rows: Rows, dtypes: frozenset[DType], kernel: str | Work) -> Rows:
    """The rows, with another kernel for some dtypes."""
    changed = {dtype: (*rows[dtype][:2], kernel) for dtype in dtypes & rows.keys()}
    return {**rows, **changed}


WHOLE = INTEGERS | {BOOL}
_rounded = _with(same(REALS), INTEGERS, "copy")

ROWS: dict[str, Rows] = {
    "neg": same(NUMBERS),
    "abs": {
        dtype: (real_dtype(dtype), compute_dtype(dtype), None) for dtype in NUMBERS
    },
    "sign": _with(same(REALS | {BOOL}), frozenset({BOOL}), "copy"),
    "square": {**same(NUMBERS), BOOL: (INT64, INT64, None)},
    "relu": same(REALS),
    "floor": _rounded,
    "ceil": _rounded,
    "round": _rounded,
    "trunc": _rounded,
    "bitwise_not": same(WHOLE),
    "conj": _with(same(ALL), ALL - COMPLEXES, "copy"),
    **dict.fromkeys(
        ("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt"),
        floating(ALL),
    ),
    **dict.fromkeys(
        ("sin", "cos", "tan", "tanh", "sigmoid", "reciprocal"), floating(ALL)
    ),
    **dict.fromkeys(("sinh", "cosh"), floating(ALL)),
    **dict.fromkeys(("asin", "acos", "atan", "asinh", "acosh", "atanh"), floating(ALL)),
    **dict.fromkeys(("erf", "erfc"), floating(ALL - COMPLEXES)),
    "silu": same(FLOATS | COMPLEXES),
    "logical_not": truth(ALL),
}

TESTS: dict[str, Rows] = {
    "isnan": _with(truth(ALL), WHOLE, _filled(False)),
    "isinf": _with(truth(ALL), WHOLE, _filled(False)),
    "isfinite": _with(truth(ALL), WHOLE, _filled(True)),
}

# What 16-bit floats are too coarse for.
_IN_FLOAT32 = frozenset(
    (
        *("exp", "expm1", "log", "log1p", "log2", "log10", "rsqrt", "reciprocal"),
        *("tan", "sinh", "cosh", "asin", "acos"),
    )
)

# What each is for.
SAYS = {
    "acos": "The angle with each cosine, in radians.",
    "acosh": "The number of 0 and more with each hyperbolic cosine.",
    "asin": "The angle with each sine, in radians.",
    "asinh": "The number with each hyperbolic sine.",
    "atan": "The angle with each tangent, in radians.",
    "atanh": "The number with each hyperbolic tangent.",
    "cosh": "The hyperbolic cosine of every element.",
    "erfc": "1 less the error function of every element, exact where that is small.",
    "sinh": "The hyperbolic sine of every element.",
    "neg": "Every element with its sign changed.",
    "abs": "The magnitude of every element.",
    "sign": "-1, 0 or 1 by the sign of every element.",
    "square": "Every element times itself.",
    "relu": "Every element, or 0 if it is less.",
    "floor": "The greatest integer that is not greater.",
    "ceil": "The least integer that is not less.",
    "round": "The nearest integer, the even one of two.",
    "trunc": "Every element without its fraction.",
    "bitwise_not": "The other bits.",
    "conj": "The complex conjugate.",
    "exp": "e to the power of every element.",
    "expm1": "`exp` less 1, exact near 0.",
    "log": "The natural logarithm of every element.",
    "log1p": "The logarithm of 1 and every element, exact near 0.",
    "log2": "The logarithm to base 2 of every element.",
    "log10": "The logarithm to base 10 of every element.",
    "sqrt": "The square root of every element.",
    "rsqrt": "1 divided by the square root of every element.",
    "sin": "The sine of every element, in radians.",
    "cos": "The cosine of every element, in radians.",
    "tan": "The tangent of every element, in radians.",
    "tanh": "The hyperbolic tangent of every element.",
    "sigmoid": "The logistic function of every element.",
    "reciprocal": "1 divided by every element.",
    "erf": "The error function of every element.",
    "silu": "Every element times its sigmoid.",
    "logical_not": "Where the elements are 0.",
    "isnan": "Where the elements are NaN.",
    "isinf": "Where the elements are infinite.",
    "isfinite": "Where the elements are neither infinite nor NaN.",
}

_GELU = same(FLOATS)
APPROXIMATIONS = ("none", "tanh")


def check_approximate(call: str, approximate: str) -> None:
    """Refuse an approximation of gelu that does not exist.  Raises `WrongOption`."""
    if approximate not in APPROXIMATIONS:
        raise WrongOption(
            operator=call,
            argument="approximate",
            found=repr(approximate),
            fits=" or ".join(map(repr, APPROXIMATIONS)),
        )


def plan_gelu(call: str, self: Tensor, approximate: str) -> Plan:
    """The plan of gelu, exact or by tanh."""
    check_approximate(call, approximate)
    row = _GELU.get(self.dtype)
    if row is None:
        raise refuse(call, _GELU, "self", self.dtype)
    outputs = ((self.shape, row[0]),)
    return Plan(outputs, self.device, (self, approximate), row[1], pointwise=True)


OPERATORS = (
    *(
        Structured(
            name,
            "Tensor self",
            planner(rows),
            in_place=True,
            tags=("pointwise",),
            fast=fast_unary(name, rows),
            says=SAYS[name],
            autocast="float32" if name in _IN_FLOAT32 else "",
        )
        for name, rows in ROWS.items()
    ),
    *(
        Structured(
            name, "Tensor self", planner(rows), tags=("pointwise",), says=SAYS[name]
        )
        for name, rows in TESTS.items()
    ),
    Structured(
        "gelu",
        'Tensor self, *, str approximate="none"',
        plan_gelu,
        in_place=True,
        tags=("pointwise",),
        says="The Gaussian error linear unit.",
    ),
)
