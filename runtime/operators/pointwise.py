"""Elementwise operators that are more than one function of elements.

`where`, `clamp` and `masked_fill` select and limit; a condition is bool, and does not
take part in promotion.  All others are composites, and have backends and gradients
through the operators that they call.
"""

from math import inf, pi
from typing import Any

from everyorder.runtime.errors.tensor import WrongOption
from everyorder.runtime.operators.binary import TAGS, broadcast
from everyorder.runtime.operators.copying import number_in
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.declare.plan import (
    ALL,
    BOOL,
    COMPLEXES,
    FLOATS,
    INTEGERS,
    NUMBERS,
    CallPlan,
    bad_devices,
    bad_dtype,
    bad_option,
    check_fill,
    common_device,
    one_dtype,
)
from everyorder.runtime.operators.declare.structured import (
    Structured,
    Unstructured,
    composite,
)
from everyorder.runtime.operators.unary import refuse, same
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.dtype_info import DEFAULTS, info, itemsize
from everyorder.runtime.tensors.promotion import result_type
from everyorder.runtime.tensors.shape import contiguous_strides
from everyorder.runtime.tensors.tensor import Tensor


def check_condition(argument: str, condition: Tensor, device: Any) -> None:
    """Make sure that a condition is bool and on the operands' device.

    Raises:
        DTypeRefused: it is not bool.
        DevicesDiffer: it is on another device.
    """
    if condition.dtype is not BOOL:
        raise bad_dtype(argument, condition.dtype, "bool")
    if condition.device is not device:
        raise bad_devices(device, condition.device)


def plan_where(condition: Tensor, self: Tensor, other: Tensor) -> CallPlan:
    """Return the plan of `self` where the condition is true, else `other`."""
    device = common_device(condition, self, other)
    check_condition("condition", condition, device)
    dtype = self.dtype
    if dtype is not other.dtype or self.number is not None or other.number is not None:
        dtype = result_type(self, other)
    shape = broadcast(condition.shape, self.shape, other.shape)
    return CallPlan(
        ((shape, dtype),),
        device,
        (condition, self, other),
        dtype,
        (1, 2),
        pointwise=True,
    )


_BOUNDED = same(ALL - COMPLEXES - {BOOL})


def plan_clamp(self: Tensor, low: Any, high: Any) -> CallPlan:
    """Return the plan of elements limited by numbers or tensors; one may be None.

    A number that integers cannot hold is refused; tensors are converted.
    """
    if low is None and high is None:
        raise bad_option("min and max", "None", "a bound for at least one of them")
    bounds = [bound for bound in (low, high) if bound is not None]
    dtype = result_type(self, *bounds)
    row = _BOUNDED.get(dtype)
    if row is None:
        raise refuse(_BOUNDED, "self", dtype)
    tensors = [bound for bound in bounds if isinstance(bound, Tensor)]
    for name, bound in (("min", low), ("max", high)):
        number = bound.number if isinstance(bound, Tensor) else bound
        if number is not None:
            check_fill(number, dtype, name)
    device = common_device(self, *tensors)
    shape = broadcast(self.shape, *(each.shape for each in tensors))
    outputs = ((shape, dtype),)
    return CallPlan(outputs, device, (self, low, high), row[1], pointwise=True)


def plan_masked_fill(self: Tensor, mask: Tensor, value: Any) -> CallPlan:
    """Return the plan of `value` where the mask is true, else of `self`."""
    check_condition("mask", mask, self.device)
    check_fill(value, self.dtype)
    shape = broadcast(self.shape, mask.shape)
    dtype = self.dtype
    return CallPlan(
        ((shape, dtype),),
        self.device,
        (mask, value, self),
        dtype,
        (1, 2),
        kernel="where",
        pointwise=True,
        # torch expands first, and fills a row-major copy.
        strides=contiguous_strides(shape),
    )


@composite(
    "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
    in_place=True,
)
def masked_fill_by_tensor(self: Tensor, mask: Tensor, value: Tensor) -> Any:
    """Write the number of a tensor without dimensions where the mask is true.

    Raises:
        WrongOption: `value` has dimensions, or is complex and `self` is not.
    """
    return core.contiguous(core.where(mask, number_in(self, value), self))


_CLAMP = "Scalar? min=None, Scalar? max=None"


@composite(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08,"
    " bool equal_nan=False) -> Tensor"
)
def isclose(
    self: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool
) -> Any:
    """Return True where the difference is at most atol + rtol |other|."""
    if self.dtype is not other.dtype:
        raise bad_option("other", str(other.dtype), f"{self.dtype}, as self")
    if min(rtol, atol) < 0:
        raise bad_option("rtol and atol", f"{rtol} and {atol}", "0 or more")
    close = core.eq(self, other)
    if equal_nan and self.dtype in FLOATS | COMPLEXES:
        close = core.logical_or(
            close, core.logical_and(core.isnan(self), core.isnan(other))
        )
    if not rtol and not atol:
        return close
    one, two = self, other
    if self.dtype not in FLOATS | COMPLEXES:
        one, two = (
            core.to(each, dtype=DType.named("float64")) for each in (self, other)
        )
    apart = core.abs(core.sub(one, two))
    allowed = core.add(core.mul(core.abs(two), rtol), atol)
    near = core.logical_and(core.isfinite(apart), core.le(apart, allowed))
    return core.logical_or(close, near)


@composite(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None)"
    " -> Tensor",
    in_place=True,
    out=True,
)
def nan_to_num(
    self: Tensor,
    nan: float | None,
    posinf: float | None,
    neginf: float | None,
) -> Any:
    """Replace NaN and infinities, by default by 0 and the largest numbers."""
    if self.dtype.is_complex:
        pairs = core.nan_to_num(core.view_as_real(self), nan, posinf, neginf)
        return core.view_as_complex(pairs)
    if self.dtype not in FLOATS:
        return core.clone(self)
    most = float(info(self.dtype).largest)
    least = -most if neginf is None else neginf
    result = core.where(core.isnan(self), 0.0 if nan is None else nan, self)
    result = core.where(core.eq(self, inf), most if posinf is None else posinf, result)
    return core.where(core.eq(self, -inf), least, result)


@composite("angle(Tensor self) -> Tensor", wide=True, out=True)
def angle(self: Tensor) -> Any:
    """Return the angle of complex numbers, in radians; pi for negative real ones."""
    if self.dtype.is_complex:
        parts = core.view_as_real(self)
        return core.atan2(core.select(parts, -1, 1), core.select(parts, -1, 0))
    if self.dtype not in FLOATS:
        return core.angle(core.to(self, dtype=DEFAULTS.real))
    side = core.sign(self)
    half_turns = core.mul(core.sub(core.abs(side), side), pi / 2)
    return core.where(core.isnan(self), self, half_turns)


_SHIFTED = "Tensor self, Tensor other"


def _shift(self: Tensor, other: Tensor) -> tuple[Any, Any, Any, int]:
    """Return both in their common dtype, where the count is one, and the most."""
    dtype = result_type(self, other)
    most = 8 * itemsize(dtype) - 1
    value, count = core.to(self, dtype=dtype), core.to(other, dtype=dtype)
    fits = core.logical_and(core.ge(count, 0), core.le(count, most))
    return value, count, fits, most


@composite(
    f"bitwise_left_shift({_SHIFTED}) -> Tensor",
    takes=INTEGERS,
    tags=("numbers_as_tensors",),
    in_place=True,
    out=True,
)
def left_shift(self: Tensor, other: Tensor) -> Any:
    """Return the left side with its bits moved up, and zeros below."""
    value, count, fits, most = _shift(self, other)
    # The product of integers wraps around, as the shifted bits that do not fit.
    moved = core.mul(value, core.pow(2, core.clamp(count, 0, most)))
    return core.where(fits, moved, 0)


@composite(
    f"bitwise_right_shift({_SHIFTED}) -> Tensor",
    takes=INTEGERS,
    tags=("numbers_as_tensors",),
    in_place=True,
    out=True,
)
def right_shift(self: Tensor, other: Tensor) -> Any:
    """Return the left side with its bits moved down, and its sign kept."""
    value, count, fits, most = _shift(self, other)
    # The greatest power of two that the dtype holds.
    last = most if value.dtype.name == "uint8" else most - 1
    shifts = core.where(fits, count, most)
    halved = core.floor_divide(value, core.pow(2, core.clamp(shifts, 0, last)))
    sign = core.neg(core.to(core.lt(value, 0), dtype=value.dtype))
    kept = halved if last == most else core.where(core.gt(shifts, last), sign, halved)
    return core.where(fits, kept, sign)


_INEXACT = "floating-point and complex dtypes"
_SCALED = "Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1"


@composite(
    f"addcmul({_SCALED}) -> Tensor",
    takes=NUMBERS,
    wide=True,
    explicit=True,
    autocast="widest",
    in_place=True,
    out=True,
)
def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Any) -> Any:
    """Return `self + value * tensor1 * tensor2`."""
    return _plus(self, core.mul(tensor1, tensor2), value, tensor1, tensor2)


@composite(
    f"addcdiv({_SCALED}) -> Tensor",
    takes=FLOATS | COMPLEXES,
    wide=True,
    autocast="widest",
    in_place=True,
    out=True,
)
def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Any) -> Any:
    """Return `self + value * tensor1 / tensor2`."""
    return _plus(self, core.div(tensor1, tensor2), value, tensor1, tensor2)


def _plus(self: Tensor, product: Any, value: Any, *operands: Tensor) -> Tensor:
    """Return `self + value * product` in the dtype of all operands together.

    Two at a time, one without dimensions would count for more than it does.
    """
    try:
        total = core.add(self, product, alpha=value)
    except WrongOption as error:
        if error.argument == "alpha":
            error.argument = "value"
        raise
    dtype = result_type(self, *operands)
    converted: Tensor = core.to(total, dtype=dtype) if dtype in ALL else total
    return converted


@composite(
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    takes=FLOATS | COMPLEXES,
    wide=True,
    explicit=True,
    in_place=True,
    out=True,
)
def lerp_by_number(self: Tensor, end: Tensor, weight: Any) -> Any:
    """Interpolate linearly between two tensors by one weight."""
    one_dtype(FLOATS | COMPLEXES, _INEXACT, ("self", self), ("end", end))
    apart = core.sub(end, self)
    # From the nearer end, so that the result at either end is exact.
    if abs(weight) < 0.5:
        return core.add(self, core.mul(apart, weight))
    return core.sub(end, core.mul(apart, 1 - weight))


@composite(
    "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    takes=FLOATS | COMPLEXES,
    wide=True,
    explicit=True,
    in_place=True,
    out=True,
)
def lerp_by_tensor(self: Tensor, end: Tensor, weight: Tensor) -> Any:
    """Interpolate linearly between two tensors by a weight for each element.

    The weight has their dtype; one without dimensions counts as a number.
    """
    fits = ("self", self), ("end", end)
    one_dtype(
        FLOATS | COMPLEXES,
        _INEXACT,
        *fits,
        *([("weight", weight)] * bool(weight.shape)),
    )
    apart = core.sub(end, self)
    rest = core.add(core.neg(weight), 1)
    return core.where(
        core.lt(core.abs(weight), 0.5),
        core.add(self, core.mul(apart, weight)),
        core.sub(end, core.mul(apart, rest)),
    )


@composite(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    only="function",
    takes=FLOATS,
    wide=True,
    autocast="float32",
    out=True,
)
def softplus(self: Tensor, beta: Any, threshold: Any) -> Any:
    """Return log(1 + exp(beta x)) / beta, a smooth relu; large elements unchanged."""
    scaled = core.mul(self, beta)
    large = core.gt(scaled, threshold)
    smooth = core.log1p(core.exp(core.masked_fill(scaled, large, 0)))
    return core.where(large, self, core.div(smooth, beta))


@composite(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    only="function",
    takes=FLOATS,
    wide=True,
    explicit=True,
    out=True,
)
def leaky_relu(self: Tensor, negative_slope: Any) -> Any:
    """Multiply negative elements by a small slope."""
    return core.where(core.gt(self, 0), self, core.mul(self, negative_slope))


@composite(
    "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope,"
    " bool self_is_result) -> Tensor",
    takes=FLOATS,
    wide=True,
    explicit=True,
    public=False,
)
def leaky_relu_backward(
    grad_output: Tensor, self: Tensor, negative_slope: Any, self_is_result: bool
) -> Any:
    """Return the gradient of `leaky_relu`, by its input or its result."""
    if self_is_result and negative_slope < 0:
        raise bad_option("negative_slope", str(negative_slope), "0 or more")
    scaled = core.mul(grad_output, negative_slope)
    return core.where(core.gt(self, 0), grad_output, scaled)


@composite(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    only="function",
    takes=FLOATS,
    wide=True,
    out=True,
)
def elu(self: Tensor, alpha: Any, scale: Any, input_scale: Any) -> Any:
    """Return every element, or alpha (exp(x) - 1) if it is negative."""
    above = core.gt(self, 0)
    below = core.mul(core.masked_fill(self, above, 0), input_scale)
    bent = core.mul(core.expm1(below), alpha)
    result = core.where(above, self, bent)
    return result if scale == 1 else core.mul(result, scale)


OPERATORS: tuple[Structured | Unstructured, ...] = (
    Structured(
        "where",
        "Tensor condition, Tensor self, Tensor other",
        plan_where,
        tags=TAGS,
        saves_plans=True,
        says="Return the elements of one of two tensors, by a condition.",
        autocast="widest",
    ),
    Structured(
        "clamp",
        f"Tensor self, {_CLAMP}",
        plan_clamp,
        in_place=True,
        tags=("pointwise",),
        saves_plans=True,
    ),
    Structured(
        "clamp.Tensor",
        f"Tensor self, {_CLAMP.replace('Scalar', 'Tensor')}",
        plan_clamp,
        in_place=True,
        tags=("pointwise",),
    ),
    Structured(
        "masked_fill",
        "Tensor self, Tensor mask, Scalar value",
        plan_masked_fill,
        in_place=True,
        out=False,
        tags=("pointwise",),
        saves_plans=True,
        says="Return the tensor with a number where the mask is true.",
    ),
    masked_fill_by_tensor,
    *(isclose, nan_to_num, angle, addcmul, addcdiv, lerp_by_number, lerp_by_tensor),
    *(softplus, leaky_relu, leaky_relu_backward, elu, left_shift, right_shift),
)
