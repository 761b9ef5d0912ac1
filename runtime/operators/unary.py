"""Operators of one tensor, element by element.

An operator is a line of `ROWS`: for which dtypes it is defined, and what dtype the
result has, what it is for, and what autocast does with it.  Everything else follows:
its forms, its kernels by its name, its function and method.

============ =========================================================================
rows         result
============ =========================================================================
`same`       the dtype of the input (`abs` of complex numbers is real)
`floating`   as the input; integers and bool give float32
`truth`      bool
============ =========================================================================

Rule: a row `dtype -> (result, computed in, kernel)` is all that the plan of a call
looks up; what integers need not compute (`floor`, `isnan`, ...) runs `copy` or `fill`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from everyorder.runtime.errors.tensor import DTypeRefused
from everyorder.runtime.operators.declare.fast_paths import fast_unary
from everyorder.runtime.operators.declare.plan import (
    ALL,
    BOOL,
    COMPLEXES,
    FLOAT32,
    FLOATS,
    INT64,
    INTEGERS,
    NUMBERS,
    REALS,
    CallPlan,
    Work,
    bad_dtype,
    bad_option,
)
from everyorder.runtime.operators.declare.structured import Planner, Structured
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.dtype_info import compute_dtype, real_dtype
from everyorder.runtime.tensors.tensor import Tensor

Row = tuple[DType, DType, str | Work | None]
Rows = Mapping[DType, Row]


class Pointwise(NamedTuple):
    """An operator of elements: its rows, what it is for, and how it is offered."""

    rows: Rows
    says: str
    in_place: bool = True
    autocast: str = ""


def of_rows(
    rows: Rows, *, in_place: bool = True, autocast: str = "", **says: str
) -> dict[str, Pointwise]:
    """Several operators of the same rows, by name."""
    return {
        name: Pointwise(rows, text, in_place, autocast) for name, text in says.items()
    }


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


def refuse(rows: Rows, argument: str, dtype: DType) -> DTypeRefused:
    """The error of a dtype that is not among the rows."""
    fits = ", ".join(sorted(map(str, rows)))
    return bad_dtype(argument, dtype, fits)


def planner(rows: Rows) -> Planner:
    """The plan of an operator of one tensor, by its rows."""

    def plan(self: Tensor) -> CallPlan:
        dtype = self.dtype
        row = rows.get(dtype)
        if row is None:
            raise refuse(rows, "self", dtype)
        result, compute, kernel = row
        return CallPlan(
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


def _tests(of_integers: bool) -> Rows:
    """The rows of a test of floating-point numbers, and what it says of integers."""
    return _with(truth(ALL), WHOLE, _filled(of_integers))


_rounded = _with(same(REALS), INTEGERS, "copy")
_inexact = floating(ALL)
_sizes = {dtype: (real_dtype(dtype), compute_dtype(dtype), None) for dtype in NUMBERS}

ROWS: dict[str, Pointwise] = {
    "neg": Pointwise(same(NUMBERS), "Every element with its sign changed."),
    "abs": Pointwise(_sizes, "The magnitude of every element."),
    "sign": Pointwise(
        _with(same(REALS | {BOOL}), frozenset({BOOL}), "copy"),
        "-1, 0 or 1 by the sign of every element.",
    ),
    "square": Pointwise(
        {**same(NUMBERS), BOOL: (INT64, INT64, None)}, "Every element times itself."
    ),
    "relu": Pointwise(same(REALS), "Every element, or 0 if it is less."),
    **of_rows(
        _rounded,
        floor="The greatest integer that is not greater.",
        ceil="The least integer that is not less.",
        round="The nearest integer, the even one of two.",
        trunc="Every element without its fraction.",
    ),
    "bitwise_not": Pointwise(same(WHOLE), "The other bits."),
    "conj": Pointwise(
        _with(same(ALL), ALL - COMPLEXES, "copy"), "The complex conjugate."
    ),
    **of_rows(
        _inexact,
        autocast="float32",
        exp="e to the power of every element.",
        expm1="`exp` less 1, exact near 0.",
        log="The natural logarithm of every element.",
        log1p="The logarithm of 1 and every element, exact near 0.",
        log2="The logarithm to base 2 of every element.",
        log10="The logarithm to base 10 of every element.",
        rsqrt="1 divided by the square root of every element.",
        tan="The tangent of every element, in radians.",
        reciprocal="1 divided by every element.",
        sinh="The hyperbolic sine of every element.",
        cosh="The hyperbolic cosine of every element.",
        asin="The angle with each sine, in radians.",
        acos="The angle with each cosine, in radians.",
    ),
    **of_rows(
        _inexact,
        sqrt="The square root of every element.",
        sin="The sine of every element, in radians.",
        cos="The cosine of every element, in radians.",
        tanh="The hyperbolic tangent of every element.",
        sigmoid="The logistic function of every element.",
        atan="The angle with each tangent, in radians.",
        asinh="The number with each hyperbolic sine.",
        acosh="The number of 0 and more with each hyperbolic cosine.",
        atanh="The number with each hyperbolic tangent.",
    ),
    **of_rows(
        floating(ALL - COMPLEXES),
        erf="The error function of every element.",
        erfc="1 less the error function of every element, exact where that is small.",
    ),
    "silu": Pointwise(same(FLOATS | COMPLEXES), "Every element times its sigmoid."),
    "logical_not": Pointwise(truth(ALL), "Where the elements are 0."),
}

TESTS: dict[str, Pointwise] = {
    **of_rows(
        _tests(False),
        in_place=False,
        isnan="Where the elements are NaN.",
        isinf="Where the elements are infinite.",
    ),
    **of_rows(
        _tests(True),
        in_place=False,
        isfinite="Where the elements are neither infinite nor NaN.",
    ),
}

_GELU = same(FLOATS)
APPROXIMATIONS = ("none", "tanh")


def check_approximate(approximate: str) -> None:
    """Refuse an approximation of gelu that does not exist.  Raises `WrongOption`."""
    if approximate not in APPROXIMATIONS:
        raise bad_option(
            "approximate",
            repr(approximate),
            " or ".join(map(repr, APPROXIMATIONS)),
        )


def plan_gelu(self: Tensor, approximate: str) -> CallPlan:
    """The plan of gelu, exact or by tanh."""
    check_approximate(approximate)
    row = _GELU.get(self.dtype)
    if row is None:
        raise refuse(_GELU, "self", self.dtype)
    outputs = ((self.shape, row[0]),)
    return CallPlan(outputs, self.device, (self, approximate), row[1], pointwise=True)


OPERATORS = (
    *(
        Structured(
            name,
            "Tensor self",
            planner(each.rows),
            in_place=each.in_place,
            tags=("pointwise",),
            fast=fast_unary(name, each.rows) if name in ROWS else None,
            says=each.says,
            autocast=each.autocast,
        )
        for name, each in {**ROWS, **TESTS}.items()
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
