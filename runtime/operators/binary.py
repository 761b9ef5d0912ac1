"""Elementwise operators of two tensors, with broadcasting.

An operator of two tensors is a line of `PAIRS`: its rows `dtype -> (result, compute,
kernel)` as in `runtime.operators.unary`, its description, whether it has an in-place
form, and its autocast family.  Everything else is derived: its forms, its kernels by
its name (`runtime.kernels`), its function and method, the fast paths of small calls,
and the signatures for type checkers.

Rules:
- the operands are promoted together (`runtime.tensors.dtype_info`), and the promoted
  dtype selects the row;
- a Python number is a wrapped number here (tag `numbers_as_tensors`): it has no width;
- `alpha` of `add` and `sub` must be of a kind that the result has;
- `div` is true division; with `rounding_mode` it rounds, and keeps integers.
"""

from collections.abc import Callable
from typing import Any

from everyorder.runtime.errors.tensor import ShapesDoNotFit, WrongOption
from everyorder.runtime.operators.declare.fast_paths import (
    fast_binary,
    fast_in_place,
    fast_out,
    fast_scaled,
    fast_unary,
)
from everyorder.runtime.operators.declare.plan import (
    ALL,
    BOOL,
    COMPLEXES,
    FLOATS,
    INTEGERS,
    NUMBERS,
    PLAIN,
    REALS,
    CallPlan,
    Shape,
    bad_option,
    common_device,
)
from everyorder.runtime.operators.declare.structured import Structured
from everyorder.runtime.operators.unary import (
    Pointwise,
    Row,
    Rows,
    check_approximate,
    floating,
    refuse,
    same,
    truth,
)
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.construction import empty_tensor, wrap_number
from everyorder.runtime.tensors.promotion import result_type
from everyorder.runtime.tensors.shape import broadcast_shapes
from everyorder.runtime.tensors.tensor import Tensor

TAGS = ("numbers_as_tensors", "pointwise")


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape that all shapes broadcast to.

    Raises:
        ShapesDoNotFit: there is none; the error names the dimension that differs.
    """
    try:
        return broadcast_shapes(*shapes)
    except ShapesDoNotFit:
        raise ShapesDoNotFit(
            code="ShapesRefused", shapes=shapes, fits=_fitting(shapes)
        ) from None


def _fitting(shapes: tuple[Shape, ...]) -> str:
    """Return the text of the sizes that fit, for the last dimension that differs."""
    for back in range(1, max(map(len, shapes)) + 1):
        sizes = [shape[-back] for shape in shapes if len(shape) >= back]
        if len({size for size in sizes if size != 1}) > 1:
            text = " and ".join(map(str, sizes))
            return f"equal sizes, or 1, in dimension {-back} (here {text})"
    raise AssertionError("shapes that do not broadcast differ in a dimension")


def promoted(self: Tensor, other: Tensor) -> DType:
    """Return the promoted dtype of two operands."""
    dtype = self.dtype
    if dtype is other.dtype and (self.number is None or other.number is None):
        return dtype
    return result_type(self, other)


def plan_pair(
    rows: Rows, self: Tensor, other: Tensor, extra: tuple[Any, ...] = ()
) -> CallPlan:
    """Return the plan of two operands by the rows of the operator."""
    dtype = promoted(self, other)
    row = rows.get(dtype)
    if row is None:
        raise refuse(rows, "self and other", dtype)
    compute: DType | None
    result, compute, kernel = row
    shape = self.shape
    if shape != other.shape:
        shape = broadcast(shape, other.shape)
    device = self.device
    if device is not other.device:
        device = common_device(self, other)
    elif compute is self.dtype is other.dtype and self.number is other.number is None:
        # No operand needs a cast: most calls.
        compute = None
    return CallPlan(
        ((shape, result),),
        device,
        (self, other, *extra),
        compute,
        None,
        None,
        kernel,
        True,
    )


def pair_planner(rows: Rows) -> Callable[..., CallPlan]:
    """Return the planning function of an operator of two tensors."""

    def plan(self: Tensor, other: Tensor) -> CallPlan:
        return plan_pair(rows, self, other)

    return plan


def scaled_planner(rows: Rows) -> Callable[..., CallPlan]:
    """Return the planning function of `add` and `sub`, which have a factor."""

    def plan(self: Tensor, other: Tensor, alpha: Any) -> CallPlan:
        # A difference of bools is not defined; a number is an operand of any kind.
        bools = (each.number is None and each.dtype is BOOL for each in (self, other))
        if BOOL not in rows and any(bools):
            raise refuse(rows, "self and other", BOOL)
        planned = plan_pair(rows, self, other, (alpha,))
        if type(alpha) is not int:
            check_alpha(planned.outputs[0][1], alpha)  # type: ignore[index]  # it has one
        return planned

    return plan


def check_alpha(dtype: DType, alpha: Any) -> None:
    """Make sure that a factor is of a kind that the result has.

    Raises:
        WrongOption: a fraction for integers, or a complex number for reals.
    """
    if isinstance(alpha, complex) and not dtype.is_complex:
        fits = f"a real number, as the result is {dtype}"
    elif isinstance(alpha, float) and dtype in INTEGERS | {BOOL}:
        fits = f"an integer, as the result is {dtype}"
    else:
        return
    raise bad_option("alpha", repr(alpha), fits)


def _either(table: Any, out: Tensor, a: Any, b: Any, alpha: Any) -> None:
    """Compute `add` of bool: a or (b and alpha)."""
    table["logical_or"](out, a, b if alpha else False)


def _trunc_divide(table: Any, out: Tensor, a: Any, b: Any) -> None:
    """Divide integers and round towards zero.

    The quotient is the floor, plus one if it is negative and the division is inexact.
    """
    shape, device = out.shape, out.device
    rest = empty_tensor(shape, out.dtype, device)
    inexact, negative = (empty_tensor(shape, BOOL, device) for _ in range(2))
    quotient = empty_tensor(shape, out.dtype, device)
    table["floor_divide"](quotient, a, b)
    table["remainder"](rest, a, b)
    table["ne"](inexact, rest, 0)
    table["lt"](negative, quotient, 0)
    table["logical_and"](inexact, inexact, negative)
    table["copy"](rest, inexact)
    table["add"](out, quotient, rest, 1)


def _trunc_quotient(table: Any, out: Tensor, a: Any, b: Any) -> None:
    """Divide floats and round towards zero."""
    table["div"](out, a, b)
    table["trunc"](out, out)


def _by(kernel: Any, rows: Rows) -> dict[DType, Row]:
    """Return the rows with another kernel."""
    return {
        dtype: (result, compute, kernel) for dtype, (result, compute, _) in rows.items()
    }


_reals = same(REALS)

DIVISIONS: dict[str | None, Rows] = {
    None: floating(ALL),
    "floor": _by("floor_divide", _reals),
    "trunc": {
        **_by(_trunc_quotient, same(FLOATS)),
        **_by(_trunc_divide, same(INTEGERS)),
    },
}


def plan_div(self: Tensor, other: Tensor, rounding_mode: str | None) -> CallPlan:
    """Return the plan of true division, or of division with rounding."""
    rows = DIVISIONS.get(rounding_mode)
    if rows is None:
        raise bad_option(
            "rounding_mode", repr(rounding_mode), "None, 'floor' or 'trunc'"
        )
    return plan_pair(rows, self, other)


def plan_pow(self: Tensor, other: Tensor) -> CallPlan:
    """Return the plan of powers.

    Integers have no negative powers: a Python number as a negative exponent is refused.
    In a tensor of exponents, a negative exponent yields the whole part, as in torch: 1
    and -1 for a base of 1 and -1, else 0.

    Raises:
        WrongOption: the exponent of integers is a negative number.
    """
    plan = plan_pair(PAIRS["pow"].rows, self, other)
    number = other.number
    dtype = promoted(self, other)
    if dtype in INTEGERS and isinstance(number, int) and number < 0:
        raise WrongOption(
            code="NegativeExponent", operator="core::pow", dtype=str(dtype)
        )
    return plan


_ORDERED = ALL - COMPLEXES
_BOOL = frozenset({BOOL})
_BITS = same(INTEGERS | {BOOL})

SCALED: dict[str, Pointwise] = {
    "add": Pointwise(
        {**same(ALL), **_by(_either, same(_BOOL))},
        "Return the sum of both sides, the right one times `alpha`.",
    ),
    "sub": Pointwise(
        same(NUMBERS), "Return the difference, the right side times `alpha`."
    ),
}

PAIRS: dict[str, Pointwise] = {
    "mul": Pointwise(
        {**same(ALL), **_by("logical_and", same(_BOOL))},
        "Return the product of both sides.",
    ),
    "floor_divide": Pointwise(_reals, "Return the quotient, rounded down."),
    "remainder": Pointwise(_reals, "Return the remainder of division rounded down."),
    "fmod": Pointwise(_reals, "Return the remainder of division rounded towards 0."),
    "hypot": Pointwise(
        same(FLOATS),
        "Return the length of the hypotenuse of both sides, without overflow.",
    ),
    "logaddexp": Pointwise(
        same(FLOATS | COMPLEXES),
        "Return the logarithm of the sum of both exponentials, without overflow.",
        in_place=False,
    ),
    "logaddexp2": Pointwise(
        same(FLOATS | COMPLEXES),
        "Return log2 of the sum of both powers of 2, without overflow.",
        in_place=False,
        autocast="widest",
    ),
    "atan2": Pointwise(
        floating(_ORDERED),
        "Return the angle of the point (other, self), in radians.",
        autocast="widest",
    ),
    "eq": Pointwise(truth(ALL), "Return True where both sides are equal."),
    "ne": Pointwise(truth(ALL), "Return True where both sides differ."),
    "lt": Pointwise(truth(_ORDERED), "Return True where the left side is less."),
    "le": Pointwise(truth(_ORDERED), "Return True where the left side is not greater."),
    "gt": Pointwise(truth(_ORDERED), "Return True where the left side is greater."),
    "ge": Pointwise(truth(_ORDERED), "Return True where the left side is not less."),
    "logical_and": Pointwise(truth(ALL), "Return True where both sides are not 0."),
    "logical_or": Pointwise(truth(ALL), "Return True where either side is not 0."),
    "logical_xor": Pointwise(truth(ALL), "Return True where one side is not 0."),
    "bitwise_and": Pointwise(_BITS, "Return the bits that both sides have."),
    "bitwise_or": Pointwise(_BITS, "Return the bits that either side has."),
    "bitwise_xor": Pointwise(_BITS, "Return the bits that one side has."),
    "maximum": Pointwise(
        {**same(_ORDERED), **_by("logical_or", same(_BOOL))},
        "Return the greater of both sides.",
        in_place=False,
    ),
    "minimum": Pointwise(
        {**same(_ORDERED), **_by("logical_and", same(_BOOL))},
        "Return the lesser of both sides.",
        in_place=False,
    ),
    "xlogy": Pointwise(
        floating(ALL),
        "Return the left side times the logarithm of the right one; 0 at 0.",
        autocast="widest",
    ),
    "pow": Pointwise(
        same(NUMBERS),
        "Return the left side to the power of the right one.",
        autocast="float32",
    ),
}

# The kernels of integers check for division by zero; the fast path does not.
CHECKED = frozenset({"floor_divide", "remainder", "fmod", "pow"})
PAIR = "Tensor self, Tensor other"


def unchecked(name: str) -> Rows:
    """Return the rows of an operator whose values need no check."""
    checked = FLOATS | COMPLEXES if name in CHECKED else ALL
    return {dtype: row for dtype, row in PAIRS[name].rows.items() if dtype in checked}


def _true_division(short: Callable[[str, Rows], Any]) -> Callable[..., Any]:
    """Return the wrapper of `div`, with the fast path for calls that do not round."""
    wrap = short("div", same(FLOATS))

    def wrapped(general: Callable[..., Any]) -> Callable[..., Any]:
        divide = wrap(lambda self, other: general(self, other, None))

        def kernel(self: Tensor, other: Tensor, rounding_mode: str | None) -> Any:
            if rounding_mode is None:
                return divide(self, other)
            return general(self, other, rounding_mode)

        return kernel

    return wrapped


def _fast_pow(general: Callable[..., Any]) -> Callable[..., Any]:
    """Add a fast path for squares of floating-point numbers, the commonest power."""
    square = fast_unary("square", same(FLOATS))

    def kernel(self: Tensor, other: Tensor) -> Any:
        if other.number == 2 and self.dtype in PLAIN and self.number is None:
            return short(self)
        return general(self, other)

    def unsquared(self: Tensor) -> Any:
        return general(self, wrap_number(2))

    short = square(unsquared)
    return kernel


OPERATORS = (
    *(
        Structured(
            name,
            f"{PAIR}, *, Scalar alpha=1",
            scaled_planner(each.rows),
            in_place=each.in_place,
            tags=TAGS,
            fast=fast_scaled(name, each.rows),
            fast_in_place=fast_in_place(name, each.rows, -1 if name == "sub" else 1),
            fast_out=fast_out(name, each.rows),
            says=each.says,
            autocast=each.autocast,
        )
        for name, each in SCALED.items()
    ),
    *(
        Structured(
            name,
            PAIR,
            plan_pow if name == "pow" else pair_planner(each.rows),
            in_place=each.in_place,
            tags=TAGS,
            fast=_fast_pow if name == "pow" else fast_binary(name, unchecked(name)),
            fast_in_place=fast_in_place(name, unchecked(name)),
            fast_out=fast_out(name, unchecked(name)),
            says=each.says,
            autocast=each.autocast,
        )
        for name, each in PAIRS.items()
    ),
    Structured(
        "div",
        f"{PAIR}, *, str? rounding_mode=None",
        plan_div,
        in_place=True,
        tags=TAGS,
        fast=_true_division(fast_binary),
        fast_in_place=_true_division(fast_in_place),
        says="Return the quotient of both sides, rounded on request.",
    ),
)

# Slopes that formulas of gradients use and that have their own kernels.  A slope is
# differentiable itself if it has a formula.
SLOPES: dict[str, tuple[str, Rows]] = {
    "relu_backward": ("result", same(FLOATS)),
    "sigmoid_backward": ("result", same(FLOATS | COMPLEXES)),
    "tanh_backward": ("result", same(FLOATS | COMPLEXES)),
    "silu_backward": ("self", same(FLOATS | COMPLEXES)),
    "gelu_backward": ("self", same(FLOATS)),
}


def plan_gelu_backward(grad: Tensor, self: Tensor, approximate: str) -> CallPlan:
    """Return the plan of the gradient of gelu at `self`, exact or by tanh."""
    check_approximate(approximate)
    return plan_pair(SLOPES["gelu_backward"][1], grad, self, (approximate,))


_APPROXIMATE = ', *, str approximate="none"'

GRADIENTS = tuple(
    Structured(
        name,
        f"Tensor grad, Tensor {at}{_APPROXIMATE if name == 'gelu_backward' else ''}",
        plan_gelu_backward if name == "gelu_backward" else pair_planner(rows),
        out=False,
        tags=("pointwise",),
    )
    for name, (at, rows) in SLOPES.items()
)
