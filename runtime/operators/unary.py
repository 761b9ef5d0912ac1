"""Elementwise operators of one tensor.

An operator is a line of `ROWS`: its dtypes, the dtype of the result, its description,
and its autocast family.  Everything else is derived: its forms, its kernels by its
name, its function and method.

============ =========================================================================
rows         result
============ =========================================================================
`same`       the dtype of the input (`abs` of complex numbers is real)
`floating`   that of the input; integers and bool become the default
`truth`      bool
============ =========================================================================

Rule: the plan of a call reads only its row `dtype -> (result, compute, kernel)`;
operators that are trivial for integers (`floor`, `isnan`, ...) run `copy` or `fill`.
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
from everyorder.runtime.tensors.dtype_info import DEFAULTS, compute_dtype, real_dtype
from everyorder.runtime.tensors.tensor import Tensor

Row = tuple[DType, DType, str | Work | None]
Rows = Mapping[DType, Row]


class Pointwise(NamedTuple):
    """An elementwise operator: its rows, its description, and its forms."""

    rows: Rows
    says: str
    in_place: bool = True
    autocast: str = ""


def of_rows(
    rows: Rows, *, in_place: bool = True, autocast: str = "", **says: str
) -> dict[str, Pointwise]:
    """Return several operators with the same rows, by name."""
    return {
        name: Pointwise(rows, text, in_place, autocast) for name, text in says.items()
    }


def same(accepted: frozenset[DType]) -> dict[DType, Row]:
    """Return the rows of operators that keep the dtype."""
    return {dtype: (dtype, compute_dtype(dtype), None) for dtype in accepted}


class FloatingRows(dict[DType, Row]):
    """Rows of operators whose results of integers have the default dtype.

    `get` returns these rows for the current default dtype.
    """

    def get(self, dtype: DType, default: Any = None) -> Any:
        """Return the row of a dtype, or `default`."""
        row = super().get(dtype)
        if row is None:
            return default
        real = DEFAULTS.real
        converts = row[0] is FLOAT32 and dtype is not FLOAT32
        if converts and real is not FLOAT32:
            return real, compute_dtype(real), row[2]
        return row


def floating(accepted: frozenset[DType]) -> dict[DType, Row]:
    """Return the rows of operators that convert integers to floating-point numbers."""
    rows = FloatingRows(same(accepted & (FLOATS | COMPLEXES)))
    for dtype in accepted - (FLOATS | COMPLEXES):
        rows[dtype] = (FLOAT32, FLOAT32, None)
    return rows


def truth(accepted: frozenset[DType]) -> dict[DType, Row]:
    """Return the rows of operators with bool results."""
    return {dtype: (BOOL, compute_dtype(dtype), None) for dtype in accepted}


def refuse(rows: Rows, argument: str, dtype: DType) -> DTypeRefused:
    """Return the error for a dtype without a row."""
    fits = ", ".join(sorted(map(str, rows)))
    return bad_dtype(argument, dtype, fits)


def planner(rows: Rows) -> Planner:
    """Return the planning function of an operator of one tensor, by its rows."""

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
    """Return the rows, with another kernel for some dtypes."""
    changed = {dtype: (*rows[dtype][:2], kernel) for dtype in dtypes & rows.keys()}
    return {**rows, **changed}


WHOLE = INTEGERS | {BOOL}


def _tests(of_integers: bool) -> Rows:
    """Return the rows of a test of floating-point numbers; constant for integers."""
    return _with(truth(ALL), WHOLE, _filled(of_integers))


_rounded = _with(same(REALS), INTEGERS, "copy")
_inexact = floating(ALL)
_sizes = {dtype: (real_dtype(dtype), compute_dtype(dtype), None) for dtype in NUMBERS}

ROWS: dict[str, Pointwise] = {
    "neg": Pointwise(same(NUMBERS), "Return every element with its sign changed."),
    "abs": Pointwise(_sizes, "Return the magnitude of every element."),
    "sign": Pointwise(
        _with(same(REALS | {BOOL}), frozenset({BOOL}), "copy"),
        "Return -1, 0 or 1 by the sign of every element.",
    ),
    "square": Pointwise(
        {**same(NUMBERS), BOOL: (INT64, INT64, None)},
        "Return every element times itself.",
    ),
    "relu": Pointwise(same(REALS), "Return every element, or 0 if it is less."),
    **of_rows(
        _rounded,
        floor="Return the greatest integer that is not greater.",
        ceil="Return the least integer that is not less.",
        round="Return the nearest integer, the even one of two.",
        trunc="Return every element without its fraction.",
    ),
    "bitwise_not": Pointwise(same(WHOLE), "Return the other bits."),
    "conj": Pointwise(
        _with(same(ALL), ALL - COMPLEXES, "copy"), "Return the complex conjugate."
    ),
    **of_rows(
        _inexact,
        autocast="float32",
        exp="Return e to the power of every element.",
        expm1="Return `exp` less 1, exact near 0.",
        log="Return the natural logarithm of every element.",
        log1p="Return the logarithm of 1 and every element, exact near 0.",
        log2="Return the logarithm to base 2 of every element.",
        log10="Return the logarithm to base 10 of every element.",
        rsqrt="Return 1 divided by the square root of every element.",
        tan="Return the tangent of every element, in radians.",
        reciprocal="Return 1 divided by every element.",
        sinh="Return the hyperbolic sine of every element.",
        cosh="Return the hyperbolic cosine of every element.",
        asin="Return the angle with each sine, in radians.",
        acos="Return the angle with each cosine, in radians.",
    ),
    **of_rows(
        _inexact,
        sqrt="Return the square root of every element.",
        sin="Return the sine of every element, in radians.",
        cos="Return the cosine of every element, in radians.",
        tanh="Return the hyperbolic tangent of every element.",
        sigmoid="Return the logistic function of every element.",
        atan="Return the angle with each tangent, in radians.",
        asinh="Return the number with each hyperbolic sine.",
        acosh="Return the number of 0 and more with each hyperbolic cosine.",
        atanh="Return the number with each hyperbolic tangent.",
    ),
    **of_rows(
        floating(ALL - COMPLEXES),
        erf="Return the error function of every element.",
        erfc="Return 1 less the error function, exact where that is small.",
    ),
    "silu": Pointwise(
        same(FLOATS | COMPLEXES), "Return every element times its sigmoid."
    ),
    "logical_not": Pointwise(truth(ALL), "Return True where the elements are 0."),
}

TESTS: dict[str, Pointwise] = {
    **of_rows(
        _tests(False),
        in_place=False,
        isnan="Return True where the elements are NaN.",
        isinf="Return True where the elements are infinite.",
    ),
    **of_rows(
        _tests(True),
        in_place=False,
        isfinite="Return True where the elements are neither infinite nor NaN.",
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
    """Return the plan of gelu, exact or by tanh."""
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
        says="Return the Gaussian error linear unit.",
    ),
)
